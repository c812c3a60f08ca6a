//! Random bytes and damaged documents: an answer or an error, never a panic.
//!
//! `KEYWARD_SEED=n` runs one case, `KEYWARD_DEEP=1` many more.

use std::panic::{AssertUnwindSafe, catch_unwind};

use keyward_extract::{Format, Limits, extract, sanitized_html};

use crate::fixture;

const CASES: u64 = 400;
const NAMES: [(&str, Format); 8] = [
    ("de-libreoffice.pdf", Format::Pdf),
    ("ko-weasyprint.pdf", Format::Pdf),
    ("en-columns.pdf", Format::Pdf),
    ("encrypted.pdf", Format::Pdf),
    ("en-libreoffice.docx", Format::Docx),
    ("fi.docx", Format::Docx),
    ("en.html", Format::Html),
    ("ro.md", Format::Markdown),
];

#[test]
fn damaged_documents_never_panic() {
    let deep = if std::env::var_os("KEYWARD_DEEP").is_some() { 20 } else { 1 };
    let seeds = match std::env::var("KEYWARD_SEED") {
        Ok(seed) => vec![seed.parse().expect("KEYWARD_SEED is a number")],
        Err(_) => (0..CASES * deep).collect(),
    };
    let documents: Vec<(Vec<u8>, Format)> =
        NAMES.iter().map(|(name, format)| (fixture::bytes(name), *format)).collect();
    for seed in seeds {
        let outcome = catch_unwind(AssertUnwindSafe(|| run(seed, &documents)));
        assert!(outcome.is_ok(), "repeat it with KEYWARD_SEED={seed}");
    }
}

fn run(seed: u64, documents: &[(Vec<u8>, Format)]) {
    let mut random = fastrand::Rng::with_seed(seed);
    let (bytes, format) = if random.u8(..8) == 0 {
        let length = random.usize(1..4096);
        let format = Format::ALL[random.usize(..Format::ALL.len())];
        (std::iter::repeat_with(|| random.u8(..)).take(length).collect(), format)
    } else {
        let (document, format) = &documents[random.usize(..documents.len())];
        (damaged(document, &mut random), *format)
    };
    let _ = Format::detect(&bytes, None, None);
    if let Ok(extracted) = extract(&bytes, format, &Limits::default()) {
        assert!(!extracted.markdown.is_empty());
        sanitized_html(&extracted.markdown);
    }
}

fn damaged(document: &[u8], random: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = document.to_vec();
    for _ in 0..random.usize(1..24) {
        let at = random.usize(..bytes.len());
        match random.u8(..6) {
            0 => bytes[at] ^= 1 << random.u8(..8),
            1 => bytes[at] = random.u8(..),
            2 => bytes.truncate(at.max(1)),
            3 => {
                let end = (at + random.usize(1..64)).min(bytes.len());
                bytes.drain(at..end);
            }
            4 => {
                let end = (at + random.usize(1..64)).min(bytes.len());
                let part = bytes[at..end].to_vec();
                let to = random.usize(..=bytes.len());
                bytes.splice(to..to, part);
            }
            // A number that is too large, where there is a number.
            _ => {
                if let Some(digit) = bytes[at..].iter().position(u8::is_ascii_digit) {
                    let at = at + digit;
                    bytes.splice(at..=at, *b"99999999");
                }
            }
        }
        if bytes.is_empty() {
            bytes.push(b'x');
        }
    }
    bytes
}
