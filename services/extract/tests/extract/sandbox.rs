//! The process boundary.

use std::time::Duration;

use bytes::Bytes;
use keyward_engine::{Code, Coded};
use keyward_extract::{Error, Format, Limits, Sandbox, extract};

use crate::{fixture, made};

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(300);

fn sandbox() -> Sandbox {
    Sandbox::new(env!("CARGO_BIN_EXE_keyward-extract-child")).time_max(PATIENCE)
}

#[tokio::test]
async fn a_child_answers_what_this_process_would() {
    for name in ["ro-libreoffice.pdf", "ro.docx", "ro.md"] {
        let bytes = fixture::bytes(name);
        let format = Format::detect(&bytes, None, Some(name)).unwrap();
        let here = extract(&bytes, format, &Limits::default()).unwrap();
        assert_eq!(sandbox().extract(bytes.into(), format).await.unwrap(), here);
    }
    let scanned = fixture::bytes("scanned.pdf").into();
    let error = sandbox().extract(scanned, Format::Pdf).await.unwrap_err();
    assert_eq!(error, Error::NoText { format: Format::Pdf, pages: Some(1) });
}

#[tokio::test]
async fn a_child_that_never_ends_is_stopped() {
    let time_max = Duration::from_millis(50);
    for mode in ["loop", "babble"] {
        let sandbox = sandbox().args([mode]).time_max(time_max);
        let error = sandbox.extract(Bytes::from_static(b"x"), Format::Text).await.unwrap_err();
        assert_eq!(error, Error::TookTooLong { time_max }, "{mode}");
    }
}

#[tokio::test]
async fn a_document_that_takes_too_much_memory_is_stopped() {
    let memory_bytes_max = 96 << 20;
    let mut limits = Limits::default();
    limits.expanded_bytes_max = 2 << 30;
    let sandbox = sandbox().memory_bytes_max(memory_bytes_max).limits(limits);
    let bomb = made::pdf_page("/Filter/FlateDecode", &made::deflated(b' ', 512 << 20));
    let error = sandbox.extract(bomb.into(), Format::Pdf).await.unwrap_err();
    assert_eq!(error, Error::TooMuchMemory { memory_bytes_max });
}

#[tokio::test]
async fn address_space_that_was_reserved_before_does_not_count() {
    let sandbox = sandbox().args(["reserve"]);
    let extracted = sandbox.extract(Bytes::from_static(b"text"), Format::Text).await.unwrap();
    assert_eq!(extracted.markdown, "text\n");
}

#[tokio::test]
async fn a_child_that_does_not_speak_as_agreed_is_named() {
    for (mode, problem) in [("fail", "something is missing"), ("silence", "not understood")] {
        let sandbox = sandbox().args([mode]);
        let error = sandbox.extract(Bytes::from_static(b"x"), Format::Text).await.unwrap_err();
        assert_eq!(error.code(), Code::Sandbox);
        assert!(error.to_string().contains(problem), "{error}");
    }
    let missing = Sandbox::new("/nowhere/at/all");
    let error = missing.extract(Bytes::from_static(b"x"), Format::Text).await.unwrap_err();
    assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
}

#[tokio::test]
async fn only_so_many_children_run_at_once_and_all_are_served() {
    let sandbox = sandbox().children_max(1);
    let one =
        |text: &'static str| sandbox.extract(Bytes::from_static(text.as_bytes()), Format::Text);
    let (first, second, third) = tokio::join!(one("first"), one("second"), one("third"));
    let texts = [first, second, third].map(|outcome| outcome.unwrap().markdown);
    assert_eq!(texts, ["first\n", "second\n", "third\n"]);
}

#[tokio::test]
async fn a_file_over_the_limit_starts_no_child() {
    let mut limits = Limits::default();
    limits.bytes_max = 2;
    let sandbox = Sandbox::new("/nowhere").limits(limits);
    let error = sandbox.extract(Bytes::from_static(b"abc"), Format::Text).await.unwrap_err();
    assert_eq!(error.code(), Code::TooLarge);
    assert_eq!(sandbox.extract(Bytes::new(), Format::Text).await, Err(Error::EmptyFile));
}
