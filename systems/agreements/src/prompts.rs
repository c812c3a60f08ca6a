//! What models are asked, in files with a version.

use keyward_models::{Prompt, PromptError};
use serde_json::{Value, json};

use crate::{Error, Result};

/// How a part of a policy is translated.
pub(crate) fn translate() -> Result<Prompt> {
    Ok(Prompt::parse(include_str!("../prompts/translate.md"))?)
}

/// How a policy is compared with an agreement.
pub(crate) fn analyze() -> Result<Prompt> {
    Ok(Prompt::parse(include_str!("../prompts/analyze.md"))?)
}

/// What a translation looks like.
pub(crate) fn translation_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "title": { "type": "string" },
            "markdown": { "type": "string" },
        },
        "required": ["title", "markdown"],
        "additionalProperties": false,
    })
}

/// What an analysis looks like.
pub(crate) fn analysis_schema() -> Value {
    let part = json!({
        "type": "object",
        "properties": {
            "text": { "type": ["string", "null"] },
            "excerpt": { "type": ["string", "null"] },
        },
        "required": ["text", "excerpt"],
        "additionalProperties": false,
    });
    let issue = json!({
        "type": "object",
        "properties": {
            "title": { "type": "string", "minLength": 1 },
            "severity": { "type": "integer", "minimum": 1, "maximum": 3 },
            "description": { "type": "array", "items": part },
            "known": { "type": ["string", "null"] },
        },
        "required": ["title", "severity", "description", "known"],
        "additionalProperties": false,
    });
    json!({
        "type": "object",
        "properties": { "issues": { "type": "array", "items": issue } },
        "required": ["issues"],
        "additionalProperties": false,
    })
}

impl From<PromptError> for Error {
    fn from(error: PromptError) -> Self {
        Self::Invalid(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_can_be_read_and_have_a_version() {
        assert_eq!(translate().unwrap().id(), "translate@2");
        assert_eq!(analyze().unwrap().id(), "analyze@2");
    }
}
