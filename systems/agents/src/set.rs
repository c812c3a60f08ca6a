//! What an entry is to become.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::{Json, moment_text};
use keyward_records::field::{members, object, quoted};
use keyward_records::{Error, Merge, Next, Precondition, Record, Result, Ttl};

use crate::actor::Actor;
use crate::agents::Options;
use crate::declaration::SPACE;
use crate::entry::{Body, plain};
use crate::settings::Rules;
use crate::write_times::time_after;

/// The member of metadata that says how long an entry lives, in namespaces that honour it.
const TTL_SECONDS: &str = "ttl_seconds";

/// A value to be set.
///
/// ```
/// use std::time::Duration;
/// use keyward_agents::{Life, Set};
/// use keyward_engine::Json;
///
/// let set = Set::new(Json::parse("[1,2]")?)
///     .metadata(Json::parse(r#"{"source":"crawler"}"#)?)
///     .life(Life::After(Duration::from_secs(3600)));
/// assert_eq!(set.life, Some(Life::After(Duration::from_secs(3600))));
/// # Ok::<(), keyward_engine::JsonError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    /// The value.
    pub value: Json,
    /// What to say about the value: an object whose members are added to those there are, or take their
    /// place. Null is a value like any other.
    pub metadata: Option<Json>,
    /// How long the entry lives; what the namespace says, if nothing is said.
    pub life: Option<Life>,
    /// What must be so.
    pub expect: Precondition,
}

/// How long an entry lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// This long.
    After(Duration),
    /// This long, and anew each time it is read past half of it.
    Sliding(Duration),
    /// For ever.
    Never,
}

impl From<Life> for Ttl {
    fn from(life: Life) -> Self {
        match life {
            Life::After(ttl) => Self::After(ttl),
            Life::Sliding(ttl) => Self::Sliding(ttl),
            Life::Never => Self::Never,
        }
    }
}

impl Set {
    /// A value, whatever was there before.
    pub fn new(value: Json) -> Self {
        Self { value, metadata: None, life: None, expect: Precondition::Any }
    }

    /// The same with metadata, which is merged into what there is.
    #[must_use]
    pub fn metadata(mut self, metadata: Json) -> Self {
        self.metadata = Some(metadata);
        self
    }

    /// The same with a lifetime.
    #[must_use]
    pub fn life(mut self, life: Life) -> Self {
        self.life = Some(life);
        self
    }

    /// The same, ending after this time.
    #[must_use]
    pub fn ttl(self, ttl: Duration) -> Self {
        self.life(Life::After(ttl))
    }

    /// The same under a condition.
    #[must_use]
    pub fn expecting(mut self, expect: Precondition) -> Self {
        self.expect = expect;
        self
    }
}

/// Parts to merge into an entry, each as JSON Merge Patch (RFC 7396) says: here null removes a member.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Patch {
    /// Into the value.
    pub value: Option<Json>,
    /// Into the metadata.
    pub metadata: Option<Json>,
    /// What must be so.
    pub expect: Precondition,
}

impl Patch {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with a part for the value.
    #[must_use]
    pub fn value(mut self, patch: Json) -> Self {
        self.value = Some(patch);
        self
    }

    /// The same with a part for the metadata: an object.
    #[must_use]
    pub fn metadata(mut self, patch: Json) -> Self {
        self.metadata = Some(patch);
        self
    }

    /// The same under a condition.
    #[must_use]
    pub fn expecting(mut self, expect: Precondition) -> Self {
        self.expect = expect;
        self
    }
}

/// Who writes, when, and by which rules.
#[derive(Clone, Copy)]
pub(crate) struct Writer<'w> {
    pub actor: &'w Actor,
    pub options: &'w Options,
    pub rules: &'w Rules,
    /// How long entries live by what the schema says.
    pub declared: Option<Duration>,
    pub now: Timestamp,
}

/// What is learned of an entry while it is written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Seen {
    /// When this process last wrote or deleted it before, where times tell states apart.
    pub last: Option<Timestamp>,
    /// The time that it was given, where times tell states apart.
    pub at: Option<Timestamp>,
    /// When it was made.
    pub born: String,
    /// When it ends, about.
    pub ends: Option<Timestamp>,
    /// Whether it had an end, or has one.
    pub mortal: bool,
}

impl Writer<'_> {
    /// What a set makes of an entry.
    pub fn set(&self, record: Option<&Record>, set: &Set, seen: &mut Seen) -> Result<Next> {
        let old = record.map(|record| Body::read(&record.value)).transpose()?;
        let metadata = match (&set.metadata, old.and_then(|old| old.metadata)) {
            (Some(new), old) => Some(shallow(old, new)?),
            (None, old) => old.map(str::to_owned),
        };
        self.written(record, old, set.value.as_str(), metadata.as_deref(), set.life, seen)
    }

    /// What a patch makes of an entry; `None` where there is none.
    pub fn patch(
        &self,
        record: Option<&Record>,
        patch: &Patch,
        seen: &mut Seen,
    ) -> Result<Option<Next>> {
        let Some(record) = record else { return Ok(None) };
        let old = Body::read(&record.value)?;
        let merged = |old: Option<&str>, patch: &Json| {
            let old = old.map(|old| Json::from_stored(old.to_owned()));
            Merge::new(patch.clone()).apply(old.as_ref())
        };
        let value = match &patch.value {
            Some(patch) => Some(merged(Some(old.value), patch)?),
            None => None,
        };
        let metadata = match &patch.metadata {
            Some(patch) => {
                require_object(patch)?;
                Some(merged(old.metadata, patch)?)
            }
            None => None,
        };
        let value = value.as_ref().map_or(old.value, Json::as_str);
        let metadata = metadata.as_ref().map(Json::as_str).or(old.metadata);
        // An end that metadata ask for moves when they change; any other stays.
        let asked = |metadata: Option<&str>| metadata.and_then(|text| member(text, TTL_SECONDS));
        let moved =
            self.rules.settings.honour_ttl_seconds && asked(metadata) != asked(old.metadata);
        let next = self.written(Some(record), Some(old), value, metadata, None, seen)?;
        if moved {
            return Ok(Some(next));
        }
        seen.ends = record.expires;
        Ok(Some(next.ttl(Ttl::Keep)))
    }

    /// What an earlier version makes of an entry: its value and metadata, set now.
    pub fn restored(&self, record: Option<&Record>, past: &Json, seen: &mut Seen) -> Result<Next> {
        let was = Body::read(past)?;
        let made = record.map(|record| Body::read(&record.value)).transpose()?.unwrap_or(was);
        self.written(record, Some(made), was.value, was.metadata, None, seen)
    }

    fn written(
        &self,
        record: Option<&Record>,
        old: Option<Body<'_>>,
        value: &str,
        metadata: Option<&str>,
        life: Option<Life>,
        seen: &mut Seen,
    ) -> Result<Next> {
        self.check(value, metadata)?;
        let now = quoted(&self.time_text(old, seen));
        let agent = self.actor.agent_id().map(quoted);
        let body = Body {
            created_by_agent: old.map_or(agent.as_deref(), |old| old.created_by_agent),
            created_at: old.map_or(&now, |old| old.created_at),
            updated_at: &now,
            metadata,
            value,
        };
        let ttl = self.ttl(metadata, life)?;
        seen.born = plain(body.created_at)?;
        seen.ends = self.ends(ttl);
        let had = record.is_some_and(|record| record.expires.is_some());
        seen.mortal = had || seen.ends.is_some();
        Ok(Next::new(body.write()).ttl(ttl))
    }

    /// The text of the time of the write.
    fn time_text(&self, old: Option<Body<'_>>, seen: &mut Seen) -> String {
        if !self.rules.in_place {
            return moment_text(self.now);
        }
        let before = old.and_then(|old| plain(old.updated_at).ok()?.parse().ok());
        let (at, text) = time_after(seen.last.max(before), self.now);
        seen.at = Some(at);
        text
    }

    /// When an entry that lives so long ends.
    pub fn ends(&self, ttl: Ttl) -> Option<Timestamp> {
        let ttl = match ttl {
            Ttl::After(ttl) | Ttl::Sliding(ttl) => Some(ttl),
            Ttl::Declared | Ttl::Keep => self.declared,
            Ttl::Never => None,
        };
        ttl.map(|ttl| self.now.saturating_add(ttl).unwrap_or(Timestamp::MAX))
    }

    /// How long an entry with this metadata lives.
    pub fn ttl(&self, metadata: Option<&str>, life: Option<Life>) -> Result<Ttl> {
        if let Some(life) = life {
            return Ok(life.into());
        }
        let settings = self.rules.settings;
        let asked = metadata.and_then(|text| member(text, TTL_SECONDS));
        let asked = match asked.filter(|_| settings.honour_ttl_seconds) {
            Some(text) if text != "null" => Some(seconds(&text)?),
            _ => None,
        };
        Ok(match asked.or(settings.ttl) {
            Some(ttl) if settings.sliding => Ttl::Sliding(ttl),
            Some(ttl) => Ttl::After(ttl),
            None => Ttl::Declared,
        })
    }

    /// Refuses what is too large or too deep.
    pub fn check(&self, value: &str, metadata: Option<&str>) -> Result<()> {
        let Options { value_bytes_max, metadata_bytes_max, depth_max, .. } = *self.options;
        if value.len() > value_bytes_max {
            let (space, bytes, bytes_max) = (SPACE.to_owned(), value.len(), value_bytes_max);
            return Err(Error::ValueTooLarge { space, bytes, bytes_max });
        }
        let metadata = metadata.unwrap_or_default();
        if metadata.len() > metadata_bytes_max {
            let bytes = metadata.len();
            let message =
                format!("the metadata is {bytes} bytes; at most {metadata_bytes_max} fit");
            return Err(Error::BadChange(message));
        }
        for (what, text) in [("value", value), ("metadata", metadata)] {
            let depth = depth(text);
            if depth > depth_max {
                let message =
                    format!("the {what} is nested {depth} deep; at most {depth_max} is possible");
                return Err(Error::BadChange(message));
            }
        }
        Ok(())
    }
}

/// The members of the new object added to those of the old one, or in their place.
fn shallow(old: Option<&str>, new: &Json) -> Result<String> {
    let new = require_object(new)?;
    let old = old.and_then(members).unwrap_or_default();
    let known: HashSet<&str> = old.iter().map(|(name, _)| &**name).collect();
    // Of a name that stands there twice, the first counts.
    let changes: HashMap<&str, &str> = new.iter().rev().map(|(name, it)| (&**name, *it)).collect();
    let mut merged: Vec<(&str, &str)> = Vec::with_capacity(old.len() + new.len());
    for (name, value) in &old {
        merged.push((name, changes.get(&**name).unwrap_or(value)));
    }
    let added = new.iter().filter(|(name, _)| !known.contains(&**name));
    merged.extend(added.map(|(name, value)| (&**name, *value)));
    Ok(object(merged))
}

fn require_object(json: &Json) -> Result<Vec<(std::borrow::Cow<'_, str>, &str)>> {
    let wrong =
        || Error::BadChange("metadata is a JSON object, as in {\"source\":\"crawler\"}".into());
    members(json.as_str()).ok_or_else(wrong)
}

fn member(object: &str, name: &str) -> Option<String> {
    let all = members(object)?;
    all.into_iter().find(|(it, _)| it == name).map(|(_, text)| text.to_owned())
}

/// The time that `ttl_seconds` says.
fn seconds(text: &str) -> Result<Duration> {
    const YEARS_MAX: f64 = 100.0 * 366.0 * 24.0 * 60.0 * 60.0;
    let number = text.parse::<f64>().ok().filter(|number| *number > 0.0 && *number <= YEARS_MAX);
    let duration = number.and_then(|number| Duration::try_from_secs_f64(number).ok());
    duration.ok_or_else(|| {
        Error::BadChange(format!(
            "metadata.{TTL_SECONDS} is {text}; in this namespace it is a number of seconds above zero, \
             of at most 100 years"
        ))
    })
}

/// How deep arrays and objects nest in JSON text.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    let mut bytes = json.bytes();
    let mut in_text = false;
    while let Some(byte) = bytes.next() {
        match (byte, in_text) {
            (b'\\', true) => drop(bytes.next()),
            (b'"', _) => in_text = !in_text,
            (b'{' | b'[', false) => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            (b'}' | b']', false) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_merged_by_its_members_and_null_stays() {
        let merged = |old: Option<&str>, new: &str| {
            shallow(old, &Json::parse(new.to_owned()).unwrap()).unwrap()
        };
        assert_eq!(
            merged(
                Some(r#"{"version":"1.0","author":"alice"}"#),
                r#"{"version":"2.0","reviewer":"bob"}"#
            ),
            r#"{"version":"2.0","author":"alice","reviewer":"bob"}"#
        );
        assert_eq!(
            merged(Some(r#"{"a":{"b":1}}"#), r#"{"a":{"c":null},"d":null}"#),
            r#"{"a":{"c":null},"d":null}"#
        );
        assert_eq!(merged(None, r#"{"n":1.10}"#), r#"{"n":1.10}"#);
        assert!(shallow(None, &Json::parse("[1]").unwrap()).is_err());
    }

    #[test]
    fn depth_is_that_of_the_deepest_part() {
        for (json, deep) in [("1", 0), ("[]", 1), (r#"{"a":[{}],"b":[]}"#, 3), (r#""[\"[""#, 0)] {
            assert_eq!(depth(json), deep, "{json}");
        }
    }

    #[test]
    fn a_time_to_live_in_metadata_is_a_number_above_zero() {
        assert_eq!(seconds("3600").unwrap(), Duration::from_secs(3600));
        assert_eq!(seconds("0.5").unwrap(), Duration::from_millis(500));
        for wrong in ["0", "-1", "\"3600\"", "1e300", "true", "{}"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
