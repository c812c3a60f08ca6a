use std::collections::HashMap;

use lopdf::{Dictionary, Document as Pdf, Object};

/// The widths of the letters from `' '` to `'~'` in Helvetica, in thousandths of the font's size.
/// They also stand in for those of other fonts that a viewer has by itself: what is decided by them,
/// whether a gap is a space, needs no more.
const HELVETICA: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667,
    611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667,
    667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500,
    222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];
const TYPICAL: f32 = 556.0;
/// Entries of the widths of a font that are read.
const ENTRIES_MAX: usize = 0x1_0000;

/// How wide the glyphs of a font are, in thousandths of its size.
#[derive(Debug)]
pub(crate) struct Widths {
    by_code: HashMap<u32, f32>,
    other: Option<f32>,
    /// By how much letters differ from those of Helvetica, if nothing else is known.
    standard: f32,
}

impl Widths {
    pub(crate) fn simple(pdf: &Pdf, font: &Dictionary, name: &str) -> Self {
        let first = font.get_deref(b"FirstChar", pdf).and_then(Object::as_i64).unwrap_or(0);
        let widths = font.get_deref(b"Widths", pdf).and_then(Object::as_array);
        let by_code = widths.map(Vec::as_slice).unwrap_or_default().iter().take(ENTRIES_MAX);
        let by_code: HashMap<u32, f32> = (first..)
            .zip(by_code)
            .filter_map(|(code, width)| Some((u32::try_from(code).ok()?, length(pdf, width)?)))
            .collect();
        let other = (!by_code.is_empty()).then(|| {
            let descriptor = font.get_deref(b"FontDescriptor", pdf).and_then(Object::as_dict);
            let missing = descriptor.and_then(|found| found.get_deref(b"MissingWidth", pdf));
            missing.ok().and_then(|missing| length(pdf, missing)).unwrap_or(TYPICAL)
        });
        let standard = if name.contains("Times") { 0.92 } else { 1.0 };
        let other = if name.contains("Courier") { other.or(Some(600.0)) } else { other };
        Self { by_code, other, standard }
    }

    /// The widths of a font with many glyphs: `[first [w w …] first last w …]`.
    pub(crate) fn composite(pdf: &Pdf, descendant: &Dictionary) -> Self {
        let mut by_code = HashMap::new();
        let list = descendant.get_deref(b"W", pdf).and_then(Object::as_array);
        let mut entries = list.map(Vec::as_slice).unwrap_or_default().iter();
        while let (Some(first), Some(next)) = (entries.next(), entries.next()) {
            let Some(first) = code(pdf, first) else { break };
            match pdf.dereference(next) {
                Ok((_, Object::Array(widths))) => {
                    let widths = widths.iter().filter_map(|width| length(pdf, width));
                    by_code.extend((first..).zip(widths.take(ENTRIES_MAX)));
                }
                _ => {
                    let (Some(last), Some(width)) = (code(pdf, next), entries.next()) else {
                        break;
                    };
                    let Some(width) = length(pdf, width) else { break };
                    by_code.extend((first..=last).take(ENTRIES_MAX).map(|code| (code, width)));
                }
            }
            if by_code.len() > ENTRIES_MAX {
                break;
            }
        }
        let other = descendant.get_deref(b"DW", pdf).ok().and_then(|width| length(pdf, width));
        Self { by_code, other: Some(other.unwrap_or(1000.0)), standard: 1.0 }
    }

    pub(crate) fn of(&self, code: u32, text: &str) -> f32 {
        if let Some(width) = self.by_code.get(&code).copied().or(self.other) {
            return width;
        }
        let letter = text.chars().next().map_or(0, u32::from);
        let index = usize::try_from(letter.wrapping_sub(32)).unwrap_or(usize::MAX);
        self.standard * HELVETICA.get(index).map_or(TYPICAL, |width| f32::from(*width))
    }
}

fn length(pdf: &Pdf, object: &Object) -> Option<f32> {
    let (_, object) = pdf.dereference(object).ok()?;
    object.as_float().ok().filter(|length| length.is_finite())
}

fn code(pdf: &Pdf, object: &Object) -> Option<u32> {
    let (_, object) = pdf.dereference(object).ok()?;
    object.as_i64().ok().and_then(|code| u32::try_from(code).ok())
}
