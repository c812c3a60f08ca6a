//! Paths of a server, with names in them that may have any letters.

use std::fmt::{Display, Write};

/// A path.
#[derive(Debug, Clone)]
pub struct Path(String);

impl Path {
    /// A path that is known to be one.
    pub fn new(path: &str) -> Self {
        Self(path.to_owned())
    }

    /// What is called so below it.
    #[must_use]
    pub fn of(mut self, segment: &str) -> Self {
        self.0.push('/');
        escape(segment, &mut self.0);
        self
    }

    /// The same with a question.
    #[must_use]
    pub fn asking(mut self, query: &Query) -> Self {
        self.0.push_str(&query.0);
        self
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A question after a path.
#[derive(Debug, Clone, Default)]
pub struct Query(String);

impl Query {
    /// The same with one thing more, if that is said.
    #[must_use]
    pub fn add(mut self, name: &str, value: Option<impl Display>) -> Self {
        if let Some(value) = value {
            self.0.push(if self.0.is_empty() { '?' } else { '&' });
            self.0.push_str(name);
            self.0.push('=');
            escape(&value.to_string(), &mut self.0);
        }
        self
    }
}

/// Writes a text so that nothing in it means anything in a URL.
fn escape(text: &str, to: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => to.push(byte.into()),
            // A segment of dots would mean another place.
            _ => drop(write!(to, "%{byte:02X}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_elsewhere() {
        let path = Path::new("/v1").of("..").of("a/b?c").of("é");
        let query = Query::default().add("after", Some("x&y")).add("none", None::<&str>);
        assert_eq!(
            path.asking(&query.add("limit", Some(3))).as_str(),
            "/v1/%2E%2E/a%2Fb%3Fc/%C3%A9?after=x%26y&limit=3"
        );
    }
}
