use std::sync::Arc;

use futures_core::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Result;

/// The future of an answer.
pub type Asked<'a> = BoxFuture<'a, Result<Answer>>;

/// One model of one provider.
///
/// A provider asks once. Trying again, waiting, limits of time and of concurrency are above it, in
/// [`Models`](crate::Models), so that they are the same for all.
pub trait Provider: Send + Sync {
    /// The provider, in a word.
    fn name(&self) -> &str;

    /// The model, as settings name it.
    fn model(&self) -> &str;

    /// Asks. An answer that was cut or declined is an answer; [`Answer::finish`] says so.
    ///
    /// Dropping the future ends the request. An error that
    /// is retryable ([`Coded`](keyward_engine::Coded)) has [`Models`](crate::Models) ask again.
    fn ask<'a>(&'a self, request: &'a Request) -> Asked<'a>;
}

impl<P: Provider + ?Sized> Provider for Arc<P> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn model(&self) -> &str {
        (**self).model()
    }

    fn ask<'a>(&'a self, request: &'a Request) -> Asked<'a> {
        (**self).ask(request)
    }
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Request {
    /// Who the model is and what it keeps to.
    pub system: String,
    /// What it is asked.
    pub prompt: String,
    /// The JSON Schema that the answer fits, if it is to be JSON.
    pub schema: Option<Value>,
    /// The most tokens of the answer; by default what the settings say.
    pub output_tokens_max: Option<u32>,
}

impl Request {
    /// The most bytes of a request's texts.
    pub const BYTES_MAX: usize = 8 << 20;
}

/// What a model answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The text.
    pub text: String,
    /// Whether that is all of it.
    pub finish: Finish,
    /// What it took.
    pub usage: Usage,
    /// The model that answered, as the provider names it.
    pub model: String,
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// At its end.
    Complete,
    /// At a limit.
    Truncated,
    /// By the model, or a filter, that would not answer.
    Refused,
}

/// Tokens that were read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Read by the model.
    pub input_tokens: u64,
    /// Written by the model, with what it thought before.
    pub output_tokens: u64,
}

impl std::ops::AddAssign for Usage {
    /// Counts are the provider's word, so a sum stops at the largest number.
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
    }
}
