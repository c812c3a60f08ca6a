use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Deserialize;

use crate::provider::Asked;
use crate::{Answer, Error, Finish, Provider, Request, Result, Usage};

type Reply = dyn Fn(&Request) -> Result<String> + Send + Sync;

/// A provider that is no model: it answers by rule, for demonstrations and for tests of callers.
///
/// Its receipts say so: the provider is `scripted`, the model `scripted-demo`. It counts words where
/// others count tokens. Clones answer by the same rule and count together.
#[derive(Clone)]
pub struct Scripted {
    reply: Arc<Reply>,
    calls: Arc<AtomicU64>,
}

/// Rules for answers, as a file has them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The first that applies is followed.
    #[serde(default)]
    pub rules: Vec<Rule>,
    /// The answer where none applies; without it there is none.
    pub otherwise: Option<String>,
}

/// A rule for answers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// All of these are in what is asked, in the system's text or in the prompt.
    pub contains: Vec<String>,
    /// The answer.
    pub answer: String,
}

impl Scripted {
    /// Answers with what a function says.
    pub fn new(reply: impl Fn(&Request) -> Result<String> + Send + Sync + 'static) -> Self {
        Self { reply: Arc::new(reply), calls: Arc::default() }
    }

    /// Answers with what a script says. Where it says nothing, the answer is [`Error::Invalid`].
    pub fn script(script: Script) -> Self {
        Self::new(move |request| {
            let is_in = |text: &String| {
                request.system.contains(text.as_str()) || request.prompt.contains(text.as_str())
            };
            let rule = script.rules.iter().find(|rule| rule.contains.iter().all(is_in));
            let answer = rule.map(|rule| &rule.answer).or(script.otherwise.as_ref());
            let none = || Error::Invalid("the script has no rule for this request".to_owned());
            answer.cloned().ok_or_else(none)
        })
    }

    /// How often it was asked.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}

impl Provider for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn model(&self) -> &str {
        "scripted-demo"
    }

    fn ask<'a>(&'a self, request: &'a Request) -> Asked<'a> {
        Box::pin(async move {
            self.calls.fetch_add(1, Ordering::Relaxed);
            let text = (self.reply)(request)?;
            let words = |text: &str| text.split_whitespace().count() as u64;
            let usage = Usage {
                input_tokens: words(&request.system) + words(&request.prompt),
                output_tokens: words(&text),
            };
            Ok(Answer { text, finish: Finish::Complete, usage, model: self.model().to_owned() })
        })
    }
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted").field("calls", &self.calls()).finish_non_exhaustive()
    }
}
