//! Language models, asked for texts and for JSON that fits a schema.
//!
//! [`Models`] asks one model of one provider: OpenAI and what speaks like it, Anthropic, Gemini or
//! Ollama, as [`Settings`] say. It waits its turn, tries again when the provider is overloaded, never
//! takes a cut answer for a whole one, and gives a [`Receipt`] with every result.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! use keyward_models::{Models, Options, Prompt, Scripted};
//! use serde::Deserialize;
//!
//! #[derive(Deserialize)]
//! struct Translation {
//!     text: String,
//! }
//!
//! let prompt = Prompt::parse(
//!     "---\nname: translate\nversion: 2\n---\n[system]\nYou translate.\n[user]\nInto {{language}}: {{text}}",
//! )?;
//! let mut request = prompt.render(&[("language", "French"), ("text", "Good day")])?;
//! request.schema = Some(serde_json::json!({
//!     "type": "object",
//!     "properties": { "text": { "type": "string" } },
//!     "required": ["text"],
//!     "additionalProperties": false,
//! }));
//!
//! // A provider that answers by rule; `Models::open` takes a real one from settings.
//! let scripted = Scripted::new(|_| Ok(r#"{"text":"Bonjour"}"#.to_owned()));
//! let models = Models::new(scripted, Options::default(), 7);
//! let (translation, receipt) = models.json::<Translation>(&request).await?;
//! assert_eq!(translation.text, "Bonjour");
//! assert_eq!((&*receipt.provider, receipt.attempts), ("scripted", 1));
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`split_markdown`] cuts documents that are too long to be asked about at once.
//!
//! # Why the wires are written here
//!
//! A crate for many providers was looked at (genai 0.7). It takes an address and a key per client, and
//! tells status and headers of failures; but it reads bodies of any size into memory, quotes them whole
//! in its errors, and brings many more providers than these. Requests and answers of the
//! four wires here are a page each.

mod anthropic;
mod backoff;
mod error;
mod frame;
mod gemini;
mod json;
mod models;
mod ollama;
mod openai;
mod prompt;
mod provider;
mod receipt;
mod refusal;
mod retry_after;
mod scripted;
mod secret;
mod settings;
mod split;
mod tls;
mod wire;

pub use error::{Error, Result};
pub use frame::framed;
pub use models::{Models, Options};
pub use prompt::{Prompt, PromptError};
pub use provider::{Answer, Asked, Finish, Provider, Request, Usage};
pub use receipt::{Price, Receipt};
pub use scripted::{Rule, Script, Scripted};
pub use secret::Secret;
pub use settings::{ProviderKind, Settings};
pub use split::split_markdown;
