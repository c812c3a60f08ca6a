//! Errors that come as codes: from a job that failed, or from a server.

use keyward::queue::Trace;
use keyward::remote::Refused;

use crate::exit::Exit;
use crate::failure::Failure;

/// Codes that agreements have, and how the command ends with them.
const CODES: &[(&str, Exit)] = &[
    ("unknown-workspace", Exit::Absent),
    ("unknown-page", Exit::Absent),
    ("unknown-policy", Exit::Absent),
    ("unknown-issue", Exit::Absent),
    ("not-made", Exit::Absent),
    ("unknown-job", Exit::Absent),
    ("not-found", Exit::Absent),
    ("transition-refused", Exit::Conflict),
    ("issue-moved", Exit::Conflict),
    ("issue-archived", Exit::Conflict),
    ("precondition-failed", Exit::Conflict),
    ("occupied", Exit::Conflict),
    ("read-only", Exit::Conflict),
    ("conflict", Exit::Conflict),
    ("invalid", Exit::Invalid),
    ("model-unset", Exit::Invalid),
    ("model-overloaded", Exit::Unavailable),
    ("model-unreachable", Exit::Unavailable),
    ("model-timed-out", Exit::Unavailable),
    ("source-failed", Exit::Unavailable),
    ("unavailable", Exit::Unavailable),
    ("overloaded", Exit::Unavailable),
    ("stopping", Exit::Unavailable),
    ("rate-limited", Exit::Unavailable),
    ("timeout", Exit::Unavailable),
    ("contended", Exit::Unavailable),
    ("outcome-unknown", Exit::OutcomeUnknown),
    ("timed-out", Exit::Locked),
    ("lock-lost", Exit::Lost),
    ("forbidden", Exit::Forbidden),
    ("limit-exceeded", Exit::Unable),
    ("unsupported", Exit::Unable),
    ("full", Exit::Place),
    ("corrupt", Exit::Corrupt),
    ("internal", Exit::Internal),
    ("contradicting-type", Exit::Failed),
    ("empty-file", Exit::Failed),
    ("encrypted", Exit::Failed),
    ("no-text", Exit::Failed),
    ("broken", Exit::Failed),
    ("too-large", Exit::Failed),
    ("too-much-memory", Exit::Failed),
    ("took-too-long", Exit::Failed),
    ("sandbox", Exit::Failed),
    ("computation-failed", Exit::Failed),
    ("task-failed", Exit::Failed),
    ("model-refused", Exit::Failed),
    ("model-request-invalid", Exit::Failed),
    ("model-truncated", Exit::Failed),
    ("model-malformed", Exit::Failed),
    ("model-declined", Exit::Failed),
    ("model-too-large", Exit::Failed),
];

/// What codes are that this version does not know yet.
const OTHERWISE: (&str, Exit) = ("failed", Exit::Failed);

fn known(code: &str) -> (&'static str, Exit) {
    CODES.iter().find(|(known, _)| *known == code).copied().unwrap_or(OTHERWISE)
}

/// How the command ends with a code.
pub fn exit(code: &str) -> Exit {
    known(code).1
}

/// A job that ended without a result. Its trace begins with the code of what happened.
pub fn of_trace(trace: &Trace, workspace: &str) -> Failure {
    let Trace { kind, message, .. } = trace;
    if kind == "cancelled" {
        return Failure::new(
            Exit::Differs,
            "cancelled",
            format!("the task was cancelled: {message}"),
        );
    }
    let (code, said) = message.split_once(": ").unwrap_or(("", message));
    let is_code = |c: char| c.is_ascii_lowercase() || c == '-';
    if code.is_empty() || !code.chars().all(is_code) {
        return Failure::new(Exit::Failed, "failed", message.clone());
    }
    let (code, exit) = known(code);
    let failure = Failure::new(exit, code, said);
    match code {
        "model-unset" => failure.hint(unset(workspace)),
        "unknown-page" => failure.hint("keyward page list has the pages."),
        "unknown-policy" => failure.hint("keyward page policies PAGE has the policies of a page."),
        _ => failure,
    }
}

/// What to write so that a model is asked.
fn unset(workspace: &str) -> String {
    format!(
        "Say which model is asked, in the config file:\n  [agreements.{workspace}.models]\n  \
         provider = \"ollama\"          # or openai, anthropic, gemini\n  model = \"…\"\n  \
         api_key = {{ env = \"NAME\" }}   # not for ollama"
    )
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        let Refused { code, message, hint, retryable } = refused;
        let (code, exit) = known(&code);
        let failure = Self::new(exit, code, message).retryable(retryable);
        match hint.is_empty() {
            true => failure,
            false => failure.hint(hint),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(kind: &str, message: &str) -> Trace {
        Trace { kind: kind.to_owned(), message: message.to_owned(), attempts: 1 }
    }

    fn told(failure: &Failure) -> String {
        let mut text = Vec::new();
        failure.tell(&mut text, false).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_trace_keeps_its_code_and_says_what_to_set() {
        let failure =
            of_trace(&trace("failed", "model-unset: set [models] provider: one"), "supply");
        assert_eq!(failure.code(), Exit::Invalid.code());
        let told = told(&failure);
        assert!(told.starts_with("error: set [models] provider: one\n"), "{told}");
        assert!(told.contains("[agreements.supply.models]"), "{told}");
    }

    #[test]
    fn what_has_no_code_or_an_unknown_one_is_a_failure() {
        for message in ["it broke: Badly", "no colon", "encrypted: it has a password"] {
            assert_eq!(of_trace(&trace("failed", message), "w").code(), Exit::Failed.code());
        }
        assert_eq!(of_trace(&trace("cancelled", "by ada"), "w").code(), Exit::Differs.code());
    }
}
