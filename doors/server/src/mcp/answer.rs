//! Answers and problems, in words for a model.

use std::fmt::{self, Write};

use keyward::Code;
use rmcp::model::{CallToolResult, ContentBlock};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::http::text::Object;
use crate::problem::Problem;

/// A tool's answer: JSON, as text and as structure. The text has every digit that is stored; the
/// structure has what the protocol's library makes of it.
pub(super) fn told(text: String) -> CallToolResult {
    match serde_json::from_str::<Value>(&text) {
        Ok(structure) => {
            let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
            result.structured_content = Some(structure);
            result
        }
        Err(_) => failed(
            &Problem::new(
                Code::Unsupported,
                "the answer has a number that is too large for this protocol",
            )
            .hint("Read it over HTTP, or ask for other fields."),
            "",
        ),
    }
}

/// The same as JSON, with the structure as it stands: it has every digit, too. None, if it is not JSON, or
/// has a number that many clients cannot read.
pub(super) fn told_as_it_stands(text: &str) -> Option<String> {
    let Readable = serde_json::from_str(text).ok()?;
    let content = Object::new().text("type", "text").text("text", text).finish();
    let told = Object::new()
        .text("resultType", "complete")
        .list("content", [content])
        .raw("structuredContent", text)
        .raw("isError", "false");
    Some(told.finish())
}

/// Any JSON that the protocol's library could read, which nothing is kept of: its numbers have 64 bits.
struct Readable;

impl<'de> Deserialize<'de> for Readable {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Readable;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_str<E>(self, _: &str) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Readable, A::Error> {
        while let Some(Readable) = items.next_element()? {}
        Ok(Readable)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Readable, A::Error> {
        while let Some((Readable, Readable)) = members.next_entry()? {}
        Ok(Readable)
    }
}

/// A tool's answer in words of its own.
pub(super) fn said(text: String, failed: bool) -> CallToolResult {
    let content = vec![ContentBlock::text(text)];
    if failed { CallToolResult::error(content) } else { CallToolResult::success(content) }
}

/// Why a tool did not do it, and what to call next.
pub(super) fn failed(problem: &Problem, next: &str) -> CallToolResult {
    // Only text: what is said of structure is the schema of an answer, and this is none.
    CallToolResult::error(vec![ContentBlock::text(words(problem, next))])
}

fn words(problem: &Problem, next: &str) -> String {
    let mut text = format!("{}: {}.", problem.code(), problem.detail().trim_end_matches('.'));
    let advice = problem.advice();
    if !advice.is_empty() && !is_of_http(advice) {
        let _ = write!(text, "\nWhat to do: {advice}");
    }
    if !next.is_empty() {
        let _ = write!(text, "\nNext: {next}");
    }
    if problem.is_retryable() {
        text.push_str("\nThe same call may succeed later.");
    }
    if !problem.more().is_empty() {
        let more = Value::Object(problem.more().clone());
        let _ = write!(text, "\nMore: {more}");
    }
    text
}

/// Whether advice speaks of routes and headers, which nobody here has.
fn is_of_http(advice: &str) -> bool {
    ["GET ", "/v1/", "?root", "Idempotency-Key", "Authorization", "header", "change the path"]
        .iter()
        .any(|word| advice.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(result: &CallToolResult) -> &str {
        &result.content[0].as_text().unwrap().text
    }

    #[test]
    fn an_answer_is_text_and_structure() {
        let answer = told(r#"{"n":1.10,"b":2}"#.to_owned());
        assert_eq!(text(&answer), r#"{"n":1.10,"b":2}"#);
        assert_eq!(answer.structured_content.unwrap()["n"], 1.1);
        assert_eq!(answer.is_error, Some(false));
    }

    #[test]
    fn an_answer_as_it_stands_is_the_same_with_every_digit() {
        let text = r#"{"n":1.5,"t":"\"\u00fc\n","b":[2]}"#;
        let same = serde_json::to_string(&told(text.to_owned())).unwrap();
        let same: Value = serde_json::from_str(&same).unwrap();
        let stands = told_as_it_stands(text).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&stands).unwrap(), same);
        let digits = r#"{"n":123456789012345678901.10}"#;
        let stands = told_as_it_stands(digits).unwrap();
        assert!(stands.contains(&format!(r#""structuredContent":{digits}"#)), "{stands}");
    }

    #[test]
    fn what_is_no_json_or_has_a_number_beyond_the_protocol_does_not_stand() {
        let nines = "9".repeat(400);
        for text in [
            r#"{"value":}"#.to_owned(),
            r#"{"a":[1,1e400]}"#.to_owned(),
            r#"{"\\":-1E+999}"#.to_owned(),
            format!(r#"{{"n":{nines}}}"#),
        ] {
            assert_eq!(told_as_it_stands(&text), None, "{text}");
        }
        for text in [
            r#"{"t":"1e400","u":"\"1e400","e":1e300}"#.to_owned(),
            format!(r#"{{"t":"{nines}","n":0.{nines}}}"#),
        ] {
            assert!(told_as_it_stands(&text).is_some(), "{text}");
        }
    }

    #[test]
    fn a_problem_says_what_to_do_and_what_to_call() {
        let problem = Problem::new(Code::Locked, "it is held by eve").hint("Wait.").retryable();
        let answer = failed(&problem.with("age", 7), "call lock_acquire with wait: 20.");
        assert_eq!(answer.is_error, Some(true));
        assert_eq!(answer.structured_content, None);
        assert_eq!(
            text(&answer),
            "locked: it is held by eve.\nWhat to do: Wait.\nNext: call lock_acquire with wait: \
             20.\nThe same call may succeed later.\nMore: {\"age\":7}"
        );
    }

    #[test]
    fn advice_about_routes_is_not_passed_on() {
        let problem = Problem::new(Code::UnknownSpace, "no").hint("GET /v1/spaces lists them.");
        assert!(!text(&failed(&problem, "")).contains("GET"));
    }

    #[test]
    fn a_number_beyond_the_protocol_is_a_problem_and_no_wrong_number() {
        let answer = told(r#"{"n":1e400}"#.to_owned());
        assert_eq!(answer.is_error, Some(true));
    }
}
