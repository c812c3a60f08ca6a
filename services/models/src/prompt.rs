use serde::Deserialize;

use crate::Request;
use crate::frame::Frame;

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
/// The policy stands between the lines [begin {{frame}}] and [end {{frame}}].
///
/// [user]
/// In one sentence, in {{language}}:
///
/// {{framed text}}
/// ")?;
/// let request = prompt.render(&[("language", "Korean"), ("text", "… {{language}} …")])?;
/// assert!(request.prompt.starts_with("In one sentence, in Korean:\n\n[begin "));
/// assert_eq!(keyward_models::framed(&request.prompt), ["… {{language}} …"]);
/// assert_eq!(prompt.id(), "summarise@3");
/// # Ok::<(), keyward_models::PromptError>(())
/// ```
///
/// The parts begin after lines that say `[system]` and `[user]`, each once and in this order. The
/// empty lines around a part do not belong to it. `{{name}}` is a place for a value; two opening braces
/// cannot stand for anything else.
///
/// `{{framed name}}` is a place for a text from outside. It is put between the lines `[begin MARK]` and
/// `[end MARK]`, with a mark that occurs in no value of the request, so that the text cannot end its frame.
/// `{{frame}}` stands for the mark; the system's part must name it, so that the model knows.
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
    /// A variable in a frame.
    Framed(String),
    /// The mark of the frames.
    Mark,
}

impl Piece {
    /// The variable that has its place here.
    fn variable(&self) -> Option<&str> {
        match self {
            Self::Variable(name) | Self::Framed(name) => Some(name),
            Self::Text(_) | Self::Mark => None,
        }
    }
}

/// The name that stands for the mark of the frames.
const MARK: &str = "frame";
/// What stands before the name of a variable in a frame.
const FRAMED: &str = "framed ";

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
        let (system, user) = (pieces(system)?, pieces(user)?);
        let frames = system.iter().chain(&user).any(|piece| matches!(piece, Piece::Framed(_)));
        if frames && !system.contains(&Piece::Mark) {
            return Err(odd("it frames texts, and [system] does not name their {{frame}}"));
        }
        Ok(Self { head, system, user })
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
            let is_it = |piece: &Piece| piece.variable() == Some(*name);
            let is_again = values[..at].iter().any(|(earlier, _)| earlier == name);
            if is_again || !self.system.iter().chain(&self.user).any(is_it) {
                let variable = (*name).to_owned();
                return Err(PromptError::Unknown { prompt: self.id(), variable });
            }
        }
        let texts: Vec<&str> = values.iter().map(|(_, text)| *text).collect();
        let frame = Frame::around(&texts);
        Ok(Request {
            system: self.fill(&self.system, values, &frame)?,
            prompt: self.fill(&self.user, values, &frame)?,
            ..Request::default()
        })
    }

    fn fill(
        &self,
        pieces: &[Piece],
        values: &[(&str, &str)],
        frame: &Frame,
    ) -> Result<String, PromptError> {
        let value = |variable: &str| {
            let found = values.iter().find(|(name, _)| *name == variable);
            found.map(|(_, value)| *value).ok_or_else(|| PromptError::Missing {
                prompt: self.id(),
                variable: variable.to_owned(),
            })
        };
        let mut filled = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Variable(variable) => filled.push_str(value(variable)?),
                Piece::Framed(variable) => frame.put(value(variable)?, &mut filled),
                Piece::Mark => filled.push_str(frame.mark()),
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
        let odd = || {
            let near: String = after.chars().take(20).collect();
            PromptError::Unreadable(format!(
                "after {{{{ stand a name of a-z, 0-9 and _, perhaps with framed before it, and }}}}; \
                 near {near:?}"
            ))
        };
        let (place, after) = after.split_once("}}").ok_or_else(odd)?;
        let piece = match (place, place.strip_prefix(FRAMED)) {
            (MARK, _) => Piece::Mark,
            (_, Some(name)) if is_name(name) && name != MARK => Piece::Framed(name.to_owned()),
            (name, None) if is_name(name) => Piece::Variable(name.to_owned()),
            _ => return Err(odd()),
        };
        pieces.push(Piece::Text(before.to_owned()));
        pieces.push(piece);
        rest = after;
    }
    pieces.push(Piece::Text(rest.to_owned()));
    Ok(pieces)
}
