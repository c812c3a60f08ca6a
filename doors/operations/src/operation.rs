//! Operations: what can be asked of Keyward, each declared once.
//!
//! An operation is a request type with its facts, its response and one function. Doors know operations
//! only as rows of [`TABLE`](crate::TABLE): HTTP routes, the API description, tools and commands follow
//! from it.

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use keyward::{Code, Json, Key, Version};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::authorize::Needs;
use crate::context::Context;
use crate::facts::Facts;
use crate::input::Input;
use crate::problem::{Problem, Result};

/// Something that can be asked of Keyward.
///
/// The documentation of the type is the documentation of the operation, and that of its fields the
/// documentation of its parameters: every door shows them.
pub trait Operation: DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// The response.
    type Response: Reply;

    /// Its route, tag, effect and kind of body.
    const FACTS: Facts;

    /// What the caller must be allowed to do. Checked before [`run`](Self::run).
    fn needs(&self) -> Needs<'_>;

    /// The key that the request would change, for the audit log of requests that are refused.
    fn key(&self) -> Option<&Key> {
        None
    }

    /// Does it.
    fn run(self, cx: &Context) -> impl Future<Output = Result<Self::Response>> + Send;
}

/// How an operation ended, as far as it matters to a client that only looks at the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Status {
    /// It was done.
    #[default]
    Done,
    /// It was done, and what it wrote was not there before.
    Created,
    /// It was done, and there is nothing to show.
    Empty,
}

/// A response.
pub trait Reply: Serialize + JsonSchema + Send + Sync + 'static {
    /// The statuses that it can have.
    const STATUSES: &'static [Status] = &[Status::Done];

    /// How the operation ended.
    fn status(&self) -> Status {
        Status::Done
    }

    /// The version of what it shows or wrote.
    fn version(&self) -> Option<&Version> {
        None
    }

    /// When what it shows expires.
    fn expires(&self) -> Option<Timestamp> {
        None
    }

    /// The value, if the response is about one: a door may show it alone.
    fn value(&self) -> Option<&Json> {
        None
    }

    /// The path at which what was created can be read.
    fn location(&self) -> Option<String> {
        None
    }

    /// Whether an earlier request with the same idempotency key did it.
    fn is_replayed(&self) -> bool {
        false
    }
}

/// The response of an operation whose type is not known.
pub trait Answer: Send + Sync {
    /// See [`Reply::status`].
    fn status(&self) -> Status;
    /// See [`Reply::version`].
    fn version(&self) -> Option<&Version>;
    /// See [`Reply::expires`].
    fn expires(&self) -> Option<Timestamp>;
    /// See [`Reply::value`].
    fn value(&self) -> Option<&Json>;
    /// See [`Reply::location`].
    fn location(&self) -> Option<String>;
    /// See [`Reply::is_replayed`].
    fn is_replayed(&self) -> bool;
    /// The response as JSON.
    fn to_json(&self) -> Result<Vec<u8>>;
}

impl<R: Reply> Answer for R {
    fn status(&self) -> Status {
        Reply::status(self)
    }

    fn version(&self) -> Option<&Version> {
        Reply::version(self)
    }

    fn expires(&self) -> Option<Timestamp> {
        Reply::expires(self)
    }

    fn value(&self) -> Option<&Json> {
        Reply::value(self)
    }

    fn location(&self) -> Option<String> {
        Reply::location(self)
    }

    fn is_replayed(&self) -> bool {
        Reply::is_replayed(self)
    }

    fn to_json(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(|error| Problem::new(Code::Internal, error.to_string()))
    }
}

/// The call of an operation whose type is not known.
type Call = for<'i> fn(Input<'i>, Context) -> BoxFuture<'i, Result<Box<dyn Answer>>>;

/// A row of the table: an operation whose type is not known.
pub struct Declared {
    /// Its facts.
    pub facts: Facts,
    /// The schema of its request.
    pub request: fn(&mut SchemaGenerator) -> Schema,
    /// The schema of its response.
    pub response: fn(&mut SchemaGenerator) -> Schema,
    /// The statuses that its response can have.
    pub statuses: &'static [Status],
    call: Call,
}

impl Declared {
    /// The row of an operation.
    pub const fn of<O: Operation>() -> Self {
        Self {
            facts: O::FACTS,
            request: <O as JsonSchema>::json_schema,
            response: SchemaGenerator::subschema_for::<O::Response>,
            statuses: O::Response::STATUSES,
            call: called::<O>,
        }
    }

    /// Reads the request, checks what the caller may do, and does it.
    pub fn call<'i>(
        &self,
        input: Input<'i>,
        cx: Context,
    ) -> BoxFuture<'i, Result<Box<dyn Answer>>> {
        (self.call)(input, cx)
    }
}

fn called<O: Operation>(
    input: Input<'_>,
    mut cx: Context,
) -> BoxFuture<'_, Result<Box<dyn Answer>>> {
    Box::pin(async move {
        cx.remember(&O::FACTS, &input)?;
        let request: O = input.read()?;
        let answer = cx.run(request).await?;
        Ok(Box::new(answer) as Box<dyn Answer>)
    })
}
