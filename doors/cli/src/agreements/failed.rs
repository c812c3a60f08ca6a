//! Errors that come as codes: from a job that failed, or from a server.

use keyward::Code;
use keyward::queue::Trace;
use keyward::remote::Refused;

use crate::failure::Failure;

/// A job that ended without a result. Its trace begins with the code of what happened.
pub fn of_trace(trace: &Trace, workspace: &str) -> Failure {
    let Trace { kind, message, .. } = trace;
    if kind == "cancelled" {
        return Failure::new(Code::Cancelled, format!("the task was cancelled: {message}"));
    }
    let told =
        message.split_once(": ").and_then(|(code, said)| Some((Code::from_name(code)?, said)));
    let Some((code, said)) = told else { return Failure::new(Code::TaskFailed, message.clone()) };
    let failure = Failure::new(code, said);
    match code {
        Code::ModelUnset => failure.hint(unset(workspace)),
        Code::UnknownPage => failure.hint("keyward page list has the pages."),
        Code::UnknownPolicy => {
            failure.hint("keyward page policies PAGE has the policies of a page.")
        }
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
        // Like the store of a server, which takes what it does not know for a refusal of the request.
        let code = code.unwrap_or(Code::Invalid);
        let failure = Self::new(code, message).retryable(retryable);
        match hint.is_empty() {
            true => failure,
            false => failure.hint(hint),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

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
