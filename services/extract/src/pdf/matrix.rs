/// A linear map of places, as PDF writes it: `[a b c d e f]`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Matrix(pub(crate) [f32; 6]);

impl Matrix {
    pub(crate) const IDENTITY: Self = Self([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    pub(crate) fn translation(x: f32, y: f32) -> Self {
        Self([1.0, 0.0, 0.0, 1.0, x, y])
    }

    /// This map, and then the other.
    pub(crate) fn then(self, other: Self) -> Self {
        let [a, b, c, d, e, f] = self.0;
        let [oa, ob, oc, od, oe, of] = other.0;
        Self([
            a * oa + b * oc,
            a * ob + b * od,
            c * oa + d * oc,
            c * ob + d * od,
            e * oa + f * oc + oe,
            e * ob + f * od + of,
        ])
    }

    pub(crate) fn origin(self) -> (f32, f32) {
        (self.0[4], self.0[5])
    }

    /// How long a step to the right becomes.
    pub(crate) fn scale_x(self) -> f32 {
        self.0[0].hypot(self.0[1])
    }

    /// How long a step upwards becomes.
    pub(crate) fn scale_y(self) -> f32 {
        self.0[2].hypot(self.0[3])
    }

    /// In which of four directions a step to the right goes: right, up, left, down.
    pub(crate) fn quarter(self) -> u8 {
        let (along, across) = (self.0[0], self.0[1]);
        match (along.abs() >= across.abs(), along >= 0.0, across >= 0.0) {
            (true, true, _) => 0,
            (false, _, true) => 1,
            (true, false, _) => 2,
            (false, _, false) => 3,
        }
    }
}
