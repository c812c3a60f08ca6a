use serde::Deserialize;

use crate::Request;

/// A prompt, as a file has it: named, versioned, with places for what differs.
///
/// ```
/// use keyward_models::Prompt;
///
/// let prompt = Prompt::parse("\
/// ---
/// name: summarise
/// version: 3
/// ---
/// [system]
/// You summarise policies.
///
/// [user]
/// In one sentence, in {{language}}:
///
/// {{text}}
/// ")?;
/// let request = prompt.render(&[("language", "Korean"), ("text", "… {{language}} …")])?;
/// assert_eq!(request.prompt, "In one sentence, in Korean:\n\n… {{language}} …");
/// assert_eq!(prompt.id(), "summarise@3");
/// # Ok::<(), keyward_models::PromptError>(())
/// ```
///
/// The parts begin after lines that say `[system]` and `[user]`, each once and in this order. The
/// empty lines around a part do not belong to it. `{{name}}` is a place for a value; two opening braces
/// cannot stand for anything else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    head: Head,
    system: Vec<Piece>,
    user: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    name: String,
    version: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Variable(String),
}

/// Why a prompt cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PromptError {
    /// The file is no prompt.
    #[error("this is no prompt: {0}")]
    Unreadable(String),
    /// A place has no value.
    #[error("the prompt {prompt} has no value for {{{{{variable}}}}}")]
    Missing {
        /// Which prompt, with its version.
        prompt: String,
        /// Which place.
        variable: String,
    },
    /// A value has no place, or is there twice.
    #[error("the prompt {prompt} has no place for another {variable}")]
    Unknown {
        /// Which prompt, with its version.
        prompt: String,
        /// Which value.
        variable: String,
    },
}

impl Prompt {
    /// Reads a prompt.
    pub fn parse(text: &str) -> Result<Self, PromptError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
        let odd = |reason: &str| PromptError::Unreadable(reason.to_owned());
        let head = text.strip_prefix("---\n").and_then(|text| text.split_once("\n---\n"));
        let (head, parts) =
            head.ok_or_else(|| odd("it begins with name and version between lines of ---"))?;
        let head: Head = serde_saphyr::from_str(head)
            .map_err(|_| odd("between the lines of --- stand a name and a version, a number"))?;
        if head.name.is_empty() || head.name.contains(char::is_whitespace) {
            return Err(odd("its name is one word"));
        }
        let (system, user) = parted(parts)
            .ok_or_else(|| odd("it has one line [system] and, after it, one line [user]"))?;
        if user.trim().is_empty() {
            return Err(odd("nothing stands after [user]"));
        }
        Ok(Self { head, system: pieces(system)?, user: pieces(user)? })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.head.name
    }

    /// Its version.
    pub fn version(&self) -> u32 {
        self.head.version
    }

    /// Name and version in one, to be kept with what was made by it.
    pub fn id(&self) -> String {
        format!("{}@{}", self.head.name, self.head.version)
    }

    /// The request, with every place filled. Values stand in it as they are: what looks like a place in
    /// a value is none.
    ///
    /// A place without a value, a value without a place and a value that is there twice are refused.
    pub fn render(&self, values: &[(&str, &str)]) -> Result<Request, PromptError> {
        for (at, (name, _)) in values.iter().enumerate() {
            let is_it =
                |piece: &Piece| matches!(piece, Piece::Variable(variable) if variable == name);
            let is_again = values[..at].iter().any(|(earlier, _)| earlier == name);
            if is_again || !self.system.iter().chain(&self.user).any(is_it) {
                let variable = (*name).to_owned();
                return Err(PromptError::Unknown { prompt: self.id(), variable });
            }
        }
        Ok(Request {
            system: self.fill(&self.system, values)?,
            prompt: self.fill(&self.user, values)?,
            ..Request::default()
        })
    }

    fn fill(&self, pieces: &[Piece], values: &[(&str, &str)]) -> Result<String, PromptError> {
        let mut filled = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Variable(variable) => {
                    let value = values.iter().find(|(name, _)| name == variable);
                    let (_, value) = value.ok_or_else(|| PromptError::Missing {
                        prompt: self.id(),
                        variable: variable.clone(),
                    })?;
                    filled.push_str(value);
                }
            }
        }
        Ok(filled)
    }
}

/// What stands after `[system]` and after `[user]`.
fn parted(text: &str) -> Option<(&str, &str)> {
    let mut starts = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        if matches!(line.trim_end(), "[system]" | "[user]") {
            starts.push((line.trim_end(), at, end));
        }
        at = end;
    }
    let [("[system]", before, system), ("[user]", system_end, user)] = starts[..] else {
        return None;
    };
    let is_first = text[..before].trim().is_empty();
    is_first.then(|| (&text[system..system_end], &text[user..]))
}

fn pieces(part: &str) -> Result<Vec<Piece>, PromptError> {
    let mut pieces = Vec::new();
    let mut rest = part.trim_matches('\n');
    while let Some((before, after)) = rest.split_once("{{") {
        let is_name = |name: &str| {
            name.starts_with(|first: char| first.is_ascii_lowercase())
                && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        };
        let (name, after) =
            after.split_once("}}").filter(|(name, _)| is_name(name)).ok_or_else(|| {
                let near: String = after.chars().take(20).collect();
                PromptError::Unreadable(format!(
                    "after {{{{ stand a name of a-z, 0-9 and _, and }}}}; near {near:?}"
                ))
            })?;
        pieces.push(Piece::Text(before.to_owned()));
        pieces.push(Piece::Variable(name.to_owned()));
        rest = after;
    }
    pieces.push(Piece::Text(rest.to_owned()));
    Ok(pieces)
}
