use lopdf::{Dictionary, Document as Pdf, Object};

use crate::Result;
use crate::pdf::budget::Budget;
use crate::pdf::cmap::CMap;
use crate::pdf::widths::Widths;

/// What the encoding of a simple font may expand to.
const ENCODING_BYTES_MAX: usize = 1 << 20;

/// A font: what its codes mean, and how wide they are.
#[derive(Debug)]
pub(crate) struct Font {
    pub(crate) bold: bool,
    to_text: CMap,
    codes: Codes,
    widths: Widths,
    /// The font's unit of width, for fonts drawn by the document itself.
    unit: f32,
}

#[derive(Debug)]
enum Codes {
    /// One byte each, and their letters.
    Simple(Vec<String>),
    /// Several bytes each.
    Composite { glyphs: CMap, is_unicode: bool },
}

/// A code of a shown text.
pub(crate) struct Glyph {
    pub(crate) text: String,
    /// In units of the font's size.
    pub(crate) width: f32,
    /// Whether the spacing of words applies.
    pub(crate) is_space: bool,
}

impl Font {
    pub(crate) fn read(pdf: &Pdf, font: &Dictionary, budget: &mut Budget) -> Result<Self> {
        let name = |key| font.get_deref(key, pdf).and_then(Object::as_name).unwrap_or_default();
        let base = String::from_utf8_lossy(name(b"BaseFont")).into_owned();
        let to_text = read_cmap(pdf, font, b"ToUnicode", budget)?;
        let composite = name(b"Subtype") == b"Type0";
        let (codes, widths) = if composite {
            let descendants = font.get_deref(b"DescendantFonts", pdf).and_then(Object::as_array);
            let empty = Dictionary::new();
            let descendant = descendants
                .ok()
                .and_then(|descendants| pdf.dereference(descendants.first()?).ok())
                .and_then(|(_, descendant)| descendant.as_dict().ok())
                .unwrap_or(&empty);
            let encoding = String::from_utf8_lossy(name(b"Encoding"));
            let is_unicode = encoding.contains("UCS2") || encoding.contains("UTF16");
            let glyphs = read_cmap(pdf, font, b"Encoding", budget)?;
            (Codes::Composite { glyphs, is_unicode }, Widths::composite(pdf, descendant))
        } else {
            (Codes::Simple(letters(pdf, font)), Widths::simple(pdf, font, &base))
        };
        let unit = if name(b"Subtype") == b"Type3" { type3_unit(pdf, font) } else { 0.001 };
        Ok(Self { bold: is_bold(&base), to_text, codes, widths, unit })
    }

    /// The codes of a shown text, one after the other.
    pub(crate) fn glyphs<'a>(&'a self, mut bytes: &'a [u8]) -> impl Iterator<Item = Glyph> + 'a {
        std::iter::from_fn(move || {
            let (code, length) = self.code(bytes)?;
            bytes = &bytes[length..];
            let text = self.text(code).unwrap_or_default();
            let glyph = match &self.codes {
                Codes::Composite { glyphs, .. } => glyphs.glyph(code).unwrap_or(code),
                Codes::Simple(_) => code,
            };
            let width = self.widths.of(glyph, &text) * self.unit;
            Some(Glyph { text, width, is_space: length == 1 && code == 32 })
        })
    }

    fn code(&self, bytes: &[u8]) -> Option<(u32, usize)> {
        let first = u32::from(*bytes.first()?);
        let Codes::Composite { glyphs, .. } = &self.codes else { return Some((first, 1)) };
        let two = || bytes.get(1).map(|second| (first << 8 | u32::from(*second), 2));
        glyphs.code(bytes).or_else(two).or(Some((first, 1)))
    }

    fn text(&self, code: u32) -> Option<String> {
        if let Some(text) = self.to_text.text(code) {
            return Some(text);
        }
        match &self.codes {
            Codes::Simple(letters) => letters.get(usize::try_from(code).ok()?).cloned(),
            Codes::Composite { is_unicode: true, .. } => {
                u16::try_from(code).ok().map(|unit| String::from_utf16_lossy(&[unit]))
            }
            Codes::Composite { .. } => None,
        }
    }
}

fn read_cmap(pdf: &Pdf, font: &Dictionary, key: &[u8], budget: &mut Budget) -> Result<CMap> {
    match font.get_deref(key, pdf).and_then(Object::as_stream) {
        Ok(stream) => Ok(CMap::parse(&budget.expand(stream)?.unwrap_or_default())),
        Err(_) => Ok(CMap::default()),
    }
}

/// The letters of a font with codes of one byte, by its encoding.
fn letters(pdf: &Pdf, font: &Dictionary) -> Vec<String> {
    let mut font = font.clone();
    font.set("Type", Object::Name(b"Font".to_vec()));
    // It is read on its own, since it also overrides the encoding.
    font.remove(b"ToUnicode");
    let Ok(encoding) = font.get_font_encoding_with_limit(pdf, ENCODING_BYTES_MAX) else {
        return Vec::new();
    };
    (0..=u8::MAX).map(|code| encoding.bytes_to_string(&[code]).unwrap_or_default()).collect()
}

fn type3_unit(pdf: &Pdf, font: &Dictionary) -> f32 {
    let matrix = font.get_deref(b"FontMatrix", pdf).and_then(Object::as_array);
    let scale = matrix.ok().and_then(|matrix| matrix.first()?.as_float().ok());
    scale.filter(|scale| scale.is_finite()).map_or(0.001, f32::abs)
}

fn is_bold(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["bold", "black", "heavy"].iter().any(|weight| name.contains(weight))
        // Computer Modern, the font of TeX.
        || name.contains("cmbx")
}
