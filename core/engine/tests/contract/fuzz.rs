//! Fuzz targets. They run over random inputs and the kept corpus as ordinary tests; with
//! `cargo bolero test -p keyward-engine fuzz::NAME` they run under a coverage-guided engine.

use keyward_engine::{Json, StoreUrl};

#[test]
fn any_bytes_are_json_or_a_clear_error() {
    bolero::check!().for_each(|input: &[u8]| match Json::parse(input.to_vec()) {
        Ok(json) => {
            assert_eq!(Json::parse(json.to_bytes()).unwrap(), json, "parsing is idempotent");
            assert!(!json.is_empty() && json.len() <= input.len());
            assert!(serde_json::from_slice::<serde::de::IgnoredAny>(input).is_ok());
        }
        Err(error) => assert!(error.offset <= input.len(), "{error}"),
    });
}

#[test]
fn any_text_is_a_store_url_or_a_clear_error() {
    bolero::check!().for_each(|input: &[u8]| {
        let text = String::from_utf8_lossy(input);
        if let Ok(url) = text.parse::<StoreUrl>() {
            assert_eq!(url.to_string().parse::<StoreUrl>().unwrap(), url);
        }
    });
}
