//! Several entries in one request.

use keyward_engine::{Json, Tier};
use keyward_key::Key;
use keyward_records::{Record, Update, Written};

use crate::entry::value_of;
use crate::namespace::{Namespace, is_refused};
use crate::set::{Seen, Set};
use crate::track::Line;
use crate::{Error, Result};

/// How many entries one request may have.
const TOGETHER_MAX: usize = 1_000;

impl Namespace {
    /// How many entries [`Namespace::get_many`] and [`Namespace::set_many`] take.
    pub const TOGETHER_MAX: usize = TOGETHER_MAX;

    /// The values of some entries, in the order of the keys. Reading many does not prolong the life of
    /// any.
    pub async fn get_many<K: AsRef<str>>(&self, keys: &[K]) -> Result<Vec<Option<Json>>> {
        bounded(keys.len())?;
        let places: Vec<Key> =
            keys.iter().map(|key| self.place(key.as_ref())).collect::<Result<_>>()?;
        let records = self.space.get_many(&places).await?;
        for (place, record) in places.iter().zip(&records) {
            if let Some(record) = record {
                self.saw(place, record);
            }
        }
        let values = records.iter().map(|record| {
            let value = record.as_ref().map(|record| value_of(&record.value));
            Ok(value.transpose()?)
        });
        let values: Vec<Option<Json>> = values.collect::<Result<_>>()?;
        let found = values.iter().flatten().count();
        self.log(Line { found: Some(found > 0), count: Some(found), ..Line::of("get_many") });
        Ok(values)
    }

    /// Sets some entries, in the order given.
    ///
    /// On engines with commits of several keys all are set in one commit, or none if one of them expects
    /// what is not so ([`Written::Conflicted`]). Elsewhere they are set one after the other, and
    /// [`Error::Partly`] tells how many were when one fails.
    ///
    /// What does not fit one commit is refused with
    /// [`LimitExceeded`](keyward_engine::ErrorKind::LimitExceeded), and nothing is set: send it in parts.
    pub async fn set_many(&self, entries: Vec<(String, Set)>) -> Result<Vec<Written>> {
        bounded(entries.len())?;
        let rules = self.known_rules().await?;
        let writer = self.writer(&rules);
        for (_, set) in &entries {
            writer.check(set.value.as_str(), set.metadata.as_ref().map(Json::as_str))?;
        }
        let places: Vec<Key> =
            entries.iter().map(|(key, _)| self.place(key)).collect::<Result<_>>()?;
        let mut seen: Vec<Seen> = places.iter().map(|place| self.before(place, &rules)).collect();
        let mut updates = Vec::with_capacity(entries.len());
        for (((_, set), place), seen) in entries.iter().zip(&places).zip(&mut seen) {
            let update = move |record: Option<&Record>| writer.set(record, set, seen).map(Some);
            updates.push(Update::new(place.clone(), update).expecting(set.expect.clone()));
        }
        let written = match self.space.guarantee() {
            Tier::Atomic => self.space.apply_together(updates).await?,
            Tier::Recoverable | Tier::Advisory => {
                let mut written = Vec::with_capacity(updates.len());
                for update in updates {
                    let one = self.space.apply(update).await.map_err(|error| Error::Partly {
                        done: written.len(),
                        source: Box::new(error.into()),
                    })?;
                    written.push(one);
                }
                written
            }
        };
        for ((place, written), seen) in places.iter().zip(&written).zip(&seen) {
            self.note_time(place, seen.at);
            self.wrote(place, written, seen);
        }
        let done = written.iter().filter(|one| matches!(one, Written::Applied { .. })).count();
        let refused = written.iter().any(is_refused);
        self.log(Line { count: Some(done), refused, ..Line::of("set_many") });
        Ok(written)
    }
}

fn bounded(given: usize) -> Result<()> {
    match given {
        0..=TOGETHER_MAX => Ok(()),
        _ => Err(Error::TooMany { given, given_max: TOGETHER_MAX }),
    }
}
