use std::fmt;

use serde::{Deserialize, Serialize};

use crate::iso639::CODES;

/// How much of a document is looked at to tell its language.
const SAMPLE_BYTES_MAX: usize = 32 << 10;
/// Fewer letters tell nothing.
const LETTERS_MIN: usize = 40;
/// The least confidence that is believed, of texts of at least [`LETTERS_LONG`] letters. Close
/// relatives (Swedish and Norwegian, Spanish and Portuguese) are rarely told apart with more.
const CONFIDENCE_MIN: f64 = 0.2;
const LETTERS_LONG: usize = 200;

/// A language, by its code in ISO 639-1.
///
/// ```
/// use keyward_extract::Language;
///
/// let language = Language::parse("ro").expect("Romanian");
/// assert_eq!((language.as_str(), language.name()), ("ro", "Romanian"));
/// assert!(Language::parse("xx").is_none());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub struct Language(u8);

impl Language {
    /// The language with this code: two lower-case letters. `None` for anything else.
    pub fn parse(code: &str) -> Option<Self> {
        let code: [u8; 2] = code.as_bytes().try_into().ok()?;
        let index = CODES.binary_search_by_key(&code, |(code, _)| *code).ok()?;
        u8::try_from(index).ok().map(Self)
    }

    /// The language that the text is written in, if that is clear.
    pub fn of_text(text: &str) -> Option<Self> {
        let mut places = text.char_indices().map(|(at, _)| at);
        let end = places.find(|at| *at >= SAMPLE_BYTES_MAX).unwrap_or(text.len());
        let sample = &text[..end];
        let letters = sample.chars().filter(|letter| letter.is_alphabetic()).count();
        // A letter of Chinese, Japanese and Korean says as much as a few of the others.
        let letters = letters + 3 * sample.chars().filter(|letter| *letter >= '\u{2e80}').count();
        if letters < LETTERS_MIN {
            return None;
        }
        let found = whatlang::detect(sample)?;
        let believed = found.is_reliable()
            || (letters >= LETTERS_LONG && found.confidence() >= CONFIDENCE_MIN);
        believed.then(|| iso639_1(found.lang())).flatten()
    }

    /// The code.
    pub fn as_str(self) -> &'static str {
        let (code, _) = &CODES[usize::from(self.0)];
        std::str::from_utf8(code).unwrap_or_default()
    }

    /// The English name.
    pub fn name(self) -> &'static str {
        CODES[usize::from(self.0)].1
    }

    /// All languages, by code.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..=u8::MAX).take(CODES.len()).map(Self)
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<Language> for &'static str {
    fn from(language: Language) -> Self {
        language.as_str()
    }
}

impl TryFrom<String> for Language {
    type Error = String;

    fn try_from(code: String) -> Result<Self, Self::Error> {
        Self::parse(&code).ok_or_else(|| format!("{code:?} is not a code of ISO 639-1"))
    }
}

fn iso639_1(lang: whatlang::Lang) -> Option<Language> {
    use whatlang::Lang;

    let code = match lang {
        Lang::Afr => "af",
        Lang::Aka => "ak",
        Lang::Amh => "am",
        Lang::Ara => "ar",
        Lang::Aze => "az",
        Lang::Bel => "be",
        Lang::Ben => "bn",
        Lang::Bul => "bg",
        Lang::Cat => "ca",
        Lang::Ces => "cs",
        Lang::Cmn => "zh",
        Lang::Cym => "cy",
        Lang::Dan => "da",
        Lang::Deu => "de",
        Lang::Ell => "el",
        Lang::Eng => "en",
        Lang::Epo => "eo",
        Lang::Est => "et",
        Lang::Fin => "fi",
        Lang::Fra => "fr",
        Lang::Guj => "gu",
        Lang::Heb => "he",
        Lang::Hin => "hi",
        Lang::Hrv => "hr",
        Lang::Hun => "hu",
        Lang::Hye => "hy",
        Lang::Ind => "id",
        Lang::Ita => "it",
        Lang::Jav => "jv",
        Lang::Jpn => "ja",
        Lang::Kan => "kn",
        Lang::Kat => "ka",
        Lang::Khm => "km",
        Lang::Kor => "ko",
        Lang::Lat => "la",
        Lang::Lav => "lv",
        Lang::Lit => "lt",
        Lang::Mal => "ml",
        Lang::Mar => "mr",
        Lang::Mkd => "mk",
        Lang::Mya => "my",
        Lang::Nep => "ne",
        Lang::Nld => "nl",
        Lang::Nob => "nb",
        Lang::Ori => "or",
        Lang::Pan => "pa",
        Lang::Pes => "fa",
        Lang::Pol => "pl",
        Lang::Por => "pt",
        Lang::Ron => "ro",
        Lang::Rus => "ru",
        Lang::Sin => "si",
        Lang::Slk => "sk",
        Lang::Slv => "sl",
        Lang::Sna => "sn",
        Lang::Spa => "es",
        Lang::Srp => "sr",
        Lang::Swe => "sv",
        Lang::Tam => "ta",
        Lang::Tel => "te",
        Lang::Tgl => "tl",
        Lang::Tha => "th",
        Lang::Tuk => "tk",
        Lang::Tur => "tr",
        Lang::Ukr => "uk",
        Lang::Urd => "ur",
        Lang::Uzb => "uz",
        Lang::Vie => "vi",
        Lang::Yid => "yi",
        Lang::Zul => "zu",
    };
    Language::parse(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_every_code_is_two_small_letters() {
        assert!(CODES.is_sorted_by(|(before, _), (after, _)| before < after));
        for language in Language::all() {
            assert_eq!(Language::parse(language.as_str()), Some(language));
            assert!(language.as_str().bytes().all(|letter| letter.is_ascii_lowercase()));
            assert!(!language.name().is_empty());
        }
        assert_eq!(Language::all().count(), 184);
    }

    #[test]
    fn only_codes_of_iso_639_1_are_languages() {
        for code in ["", "e", "EN", "eng", "en-GB", "xx", "zz", "ö"] {
            assert_eq!(Language::parse(code), None, "{code}");
        }
        assert_eq!(serde_json::to_string(&Language::parse("fi")).unwrap(), r#""fi""#);
        assert!(serde_json::from_str::<Language>(r#""qq""#).is_err());
    }
}
