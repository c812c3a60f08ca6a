//! Putting messages into a queue.

use std::collections::HashMap;

use keyward_engine::{Commit, Error as StoreError, ErrorKind, Expect, Json};

use crate::job::Trace;
use crate::lease::done_mark;
use crate::moment::Moment;
use crate::queue::{Committed, Found, TRIES};
use crate::row::{Row, State};
use crate::{Enqueued, Error, Message, Places, Queue, Result};

/// A message with its id, as it is going to be written.
pub(crate) struct Draft {
    pub id: String,
    pub row: Row,
    pub replaces: bool,
}

/// What a commit would do for each message.
pub(crate) struct Plan {
    pub commit: Commit,
    pub fates: Vec<Enqueued>,
}

impl Queue {
    /// The most messages that are enqueued together.
    pub const ENQUEUE_MAX: usize = 1_000;

    /// Enqueues a message. With an id that is given it is idempotent: the same content again is
    /// [`Enqueued::Duplicate`], other content is refused, unless the message
    /// [replaces](Message::replacing).
    pub async fn enqueue(&self, message: Message) -> Result<Enqueued> {
        let mut fates = self.enqueue_all(vec![message]).await?;
        fates.pop().ok_or_else(|| Error::BadMessage("no message was given".to_owned()))
    }

    /// Enqueues messages in one commit, all or none, in this order.
    pub async fn enqueue_all(&self, messages: Vec<Message>) -> Result<Vec<Enqueued>> {
        let drafts = self.drafts(messages)?;
        let mut unsure: Option<(Vec<Enqueued>, StoreError)> = None;
        for _ in 0..TRIES {
            let is_unsure = unsure.is_some();
            let plan = self.plan(Commit::new(), &drafts, is_unsure).await;
            let plan = plan.map_err(|error| error.after(is_unsure))?;
            if plan.commit.writes.is_empty() {
                return Ok(unsure.map_or(plan.fates, |(fates, _)| fates));
            }
            match self.commit(plan.commit).await.map_err(|error| error.after(is_unsure))? {
                Committed::Applied(_) => {
                    self.count_enqueued(&plan.fates);
                    return Ok(plan.fates);
                }
                Committed::Conflicted(_) => {}
                Committed::Unknown(error) => unsure = Some((plan.fates, error)),
            }
        }
        match unsure {
            Some((_, unknown)) => Err(unknown.into()),
            None => Err(self.contended(format_args!("the queue {}", self.name()))),
        }
    }

    /// Adds messages to a commit of other data, so that both are done or neither. The fates are what
    /// the commit does if it is applied; if one of its checks fails, enqueue again with a new
    /// commit. Messages that are duplicates add nothing.
    pub async fn enqueue_in(
        &self,
        commit: Commit,
        messages: Vec<Message>,
    ) -> Result<(Commit, Vec<Enqueued>)> {
        let drafts = self.drafts(messages)?;
        let plan = self.plan(commit, &drafts, false).await?;
        Ok((plan.commit, plan.fates))
    }

    /// Counts what a commit of [`Queue::enqueue_in`] has enqueued, when it has been applied.
    pub fn count_enqueued(&self, fates: &[Enqueued]) {
        let new = fates.iter().filter(|fate| !matches!(fate, Enqueued::Duplicate { .. }));
        self.inner.metrics.enqueued.inc_by(new.count() as u64);
    }

    fn drafts(&self, messages: Vec<Message>) -> Result<Vec<Draft>> {
        if messages.len() > Self::ENQUEUE_MAX {
            return Err(Error::BadMessage(format!(
                "{} messages are too many at once; enqueue at most {}",
                messages.len(),
                Self::ENQUEUE_MAX
            )));
        }
        let now = self.now();
        messages.into_iter().map(|message| self.draft(message, now)).collect()
    }

    pub(crate) fn draft(&self, message: Message, now: Moment) -> Result<Draft> {
        let Message { payload, id, version, delay, replaces } = message;
        Row::admit(&payload, self.inner.places.layout())?;
        let keyed = id.is_some();
        let id = match id {
            Some(id) => checked_id(id)?,
            None => self.new_id(now)?,
        };
        let delay = delay.filter(|delay| !delay.is_zero());
        let row = Row {
            version,
            state: if delay.is_some() { State::Delayed } else { State::Ready },
            retry_count: 0,
            created_at: now,
            enqueued_at: None,
            due_at: delay.map(|delay| now.after(delay)),
            attempt: None,
            error_message: None,
            history: Vec::new(),
            job: None,
            keyed,
            dead_at: None,
            reason: None,
            payload,
        };
        self.check_size(&row)?;
        Ok(Draft { id, row, replaces })
    }

    /// Refuses what could be enqueued, but not claimed.
    fn check_size(&self, row: &Row) -> Result<()> {
        let bytes = row.encode(self.inner.places.layout())?.len();
        let bytes_max = self.inner.store.limits().value_bytes_max.saturating_sub(Row::ROOM_BYTES);
        if bytes <= bytes_max {
            return Ok(());
        }
        let message = format!(
            "a message is a row of at most {bytes_max} bytes here, which leaves room for its \
             attempts, and this one has {bytes}"
        );
        Err(StoreError::new(ErrorKind::LimitExceeded, message).into())
    }

    /// What to write, by what is there. If `unsure`, an earlier commit of the same drafts may have
    /// been done.
    pub(crate) async fn plan(
        &self,
        mut commit: Commit,
        drafts: &[Draft],
        unsure: bool,
    ) -> Result<Plan> {
        let read: Vec<&Draft> = drafts.iter().filter(|draft| unsure || draft.row.keyed).collect();
        let keys: Vec<_> = read.iter().flat_map(|draft| self.keys_of(&draft.id)).collect();
        let mut entries = match keys.is_empty() {
            true => Vec::new(),
            false => self.inner.store.get_many(&keys).await?,
        }
        .into_iter();
        let mut fates = Vec::with_capacity(drafts.len());
        let mut earlier: HashMap<&str, &Draft> = HashMap::new();
        for draft in drafts {
            let found = match unsure || draft.row.keyed {
                true => {
                    let three = entries.by_ref().take(3).collect();
                    self.found(&self.keys_of(&draft.id), three)?
                }
                false => Found { row: None, dead: None, claim: None },
            };
            let id = draft.id.clone();
            match earlier.insert(&draft.id, draft) {
                Some(twin) if twin.row.has_content_of(&draft.row) => {
                    fates.push(Enqueued::Duplicate { id });
                    continue;
                }
                Some(_) => return Err(self.taken(id)),
                None => {}
            }
            let fate;
            (commit, fate) = self.plan_one(commit, draft, found, unsure)?;
            fates.push(fate);
        }
        Ok(Plan { commit, fates })
    }

    fn plan_one(
        &self,
        mut commit: Commit,
        draft: &Draft,
        found: Found,
        unsure: bool,
    ) -> Result<(Commit, Enqueued)> {
        let places = &self.inner.places;
        let id = draft.id.clone();
        let new_entry = draft.row.entry(places, &id);
        let same = |old: &Row| old.has_content_of(&draft.row);
        let mut fate = Enqueued::Added { id: id.clone() };
        if let Some((old, version)) = &found.row {
            if same(old) {
                return Ok((commit, Enqueued::Duplicate { id }));
            }
            if !draft.replaces {
                return Err(self.taken(id));
            }
            let gone = Err(Trace::dropped("another version of the message took its place"));
            commit = self.finish_job(commit, &id, old, self.now(), gone)?;
            commit = commit.check(places.row(&id), Expect::Version(version.clone()));
            let old_entry = old.entry(places, &id);
            if old_entry != new_entry {
                commit = commit.delete(old_entry);
            }
            if old.attempt.is_some() {
                commit = commit.delete(places.claim(&id));
            }
            fate = Enqueued::Replaced { id: id.clone() };
        } else {
            let done = found.claim.as_ref().and_then(done_mark);
            let is_done = done.is_some_and(|mark| {
                (!draft.replaces || unsure)
                    && (!draft.row.keyed || mark.digest.as_deref() == Some(&*draft.row.digest()))
            });
            if is_done {
                return Ok((commit, Enqueued::Duplicate { id }));
            }
            if found.dead.as_ref().is_some_and(|(old, _)| same(old)) {
                return Ok((commit, Enqueued::Duplicate { id }));
            }
            // A commit whose answer was lost may land when the message has been completed, or has
            // become a dead letter, since: then these checks refuse it.
            let mark = found.claim.map_or(Expect::Absent, |mark| Expect::Version(mark.version));
            commit = commit.check(places.row(&id), Expect::Absent).check(places.claim(&id), mark);
        }
        if let Some((_, version)) = &found.dead {
            if !draft.replaces {
                return Err(self.taken(id));
            }
            commit = commit
                .check(places.dead_letter(&id), Expect::Version(version.clone()))
                .delete(places.dead_letter(&id));
            fate = Enqueued::Replaced { id: id.clone() };
        } else {
            commit = commit.check(places.dead_letter(&id), Expect::Absent);
        }
        Ok((self.put_row(commit, &id, &draft.row)?, fate))
    }

    pub(crate) fn taken(&self, id: String) -> Error {
        Error::IdTaken { queue: self.name().to_owned(), id }
    }
}

fn checked_id(id: String) -> Result<String> {
    if id.is_empty() || id.len() > Places::ID_BYTES_MAX {
        return Err(Error::BadMessage(format!(
            "the id of a message has 1 to {} bytes, not {}",
            Places::ID_BYTES_MAX,
            id.len()
        )));
    }
    Ok(id)
}

/// JSON of our own making.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<Json> {
    Json::from_value(value).map_err(|error| Error::BadMessage(error.to_string()))
}
