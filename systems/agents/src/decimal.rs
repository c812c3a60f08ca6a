//! Numbers by what they mean, however they are written.

/// A number without what does not change it: its digits, from the first that is not zero to the last, and the power of
/// ten that they are multiplied with. Zero has no digits, no sign and no power.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decimal {
    pub is_negative: bool,
    pub digits: String,
    pub power: i64,
}

impl Decimal {
    /// Reads a number of JSON; `None` if its power of ten is beyond all bounds.
    pub fn parse(text: &str) -> Option<Self> {
        let (is_negative, plain) =
            text.strip_prefix('-').map_or((false, text), |plain| (true, plain));
        let (decimal, power) = match plain.split_once(['e', 'E']) {
            Some((decimal, power)) => (decimal, power.parse::<i64>().ok()?),
            None => (plain, 0),
        };
        let (whole, fraction) = decimal.split_once('.').unwrap_or((decimal, ""));
        let digits = format!("{whole}{fraction}");
        let power = power.checked_sub(i64::try_from(fraction.len()).ok()?)?;
        let digits = digits.trim_start_matches('0');
        let shortest = digits.trim_end_matches('0');
        if shortest.is_empty() {
            return Some(Self { is_negative: false, digits: String::new(), power: 0 });
        }
        let zeros = i64::try_from(digits.len() - shortest.len()).ok()?;
        let power = power.checked_add(zeros)?;
        Some(Self { is_negative, digits: shortest.to_owned(), power })
    }
}
