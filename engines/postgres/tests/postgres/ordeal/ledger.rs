//! What was asked of a store and what it answered, and whether that is what the store holds.
//!
//! Every commit leaves a mark under a name of its own, together with what it does. So it can be told
//! afterwards which commits are in the store, and everything else must follow from these.

use std::collections::{BTreeMap, BTreeSet};

use keyward_engine::{Commit, Entry, Error, ErrorKind, Expect, Json, Outcome, Put, Store, Version};
use keyward_engine::{Scan, Write};
use keyward_key::{Key, KeyRange};

use crate::server::key;

/// Something that must hold, or the reason why it does not.
pub type Checked<T> = Result<T, String>;

/// What a commit does, beside leaving its mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// Nothing: a commit of one key, which checks nothing.
    Note,
    /// Takes a slot, which must be free.
    Claim { slot: u32 },
    /// Puts its name into a register, if that still holds what was read.
    Swap { register: u32, before: Option<(String, Version)> },
    /// Adds to a number.
    Add { number: u32, amount: i64 },
    /// Takes from one account and gives to another: their sum stays.
    Move { from: u32, to: u32, amount: i64 },
    /// Makes one side and removes the other: there is always exactly one.
    Turn { side: u32 },
    /// Puts its name into every field of a board.
    Fill { board: u32 },
}

/// Enough for the server to take another way than for a few keys.
const FIELDS: u32 = 40;

/// How a commit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is in the store, with this version.
    Made(u64),
    /// A check did not hold.
    Conflicted,
    /// It certainly was not done.
    NotDone,
    /// Nobody knows yet.
    Unknown,
}

pub fn mark(name: &str) -> Key {
    key(&format!("mark:{name}"))
}

pub fn register(number: u32) -> Key {
    key(&format!("register:{number}"))
}

pub fn account(number: u32) -> Key {
    key(&format!("account:{number}"))
}

pub fn side(number: u32) -> Key {
    key(&format!("side:{number}"))
}

fn slot(number: u32) -> Key {
    key(&format!("slot:{number}"))
}

fn field(board: u32, number: u32) -> Key {
    key(&format!("board:{board}:{number:02}"))
}

fn number(number: u32) -> Key {
    key(&format!("number:{number}"))
}

impl Deed {
    /// The commit that does this, under a name, with something to fill the store.
    pub fn commit(&self, name: &str, padding: &str) -> Commit {
        let text = |text: &str| Put::new(Json::parse(format!("\"{text}\"")).unwrap());
        let commit = Commit::new().put(mark(name), text(&format!("{name} {padding}")));
        match self {
            Self::Note => commit,
            Self::Claim { slot: taken } => {
                commit.check(slot(*taken), Expect::Absent).put(slot(*taken), text(name))
            }
            Self::Swap { register: held, before } => {
                let expect = match before {
                    None => Expect::Absent,
                    Some((_, version)) => Expect::Version(version.clone()),
                };
                commit.check(register(*held), expect).put(register(*held), text(name))
            }
            Self::Add { number: to, amount } => commit.add(number(*to), *amount),
            Self::Move { from, to, amount } => {
                commit.add(account(*from), -amount).add(account(*to), *amount)
            }
            Self::Turn { side: made } => commit.put(side(*made), text(name)).delete(side(1 - made)),
            Self::Fill { board } => (0..FIELDS)
                .fold(commit, |commit, number| commit.put(field(*board, number), text(name))),
        }
    }
}

/// What an error says about a commit: whether it was done.
pub fn fate_of_error(error: &Error) -> Fate {
    match error.kind() {
        ErrorKind::OutcomeUnknown => Fate::Unknown,
        _ => Fate::NotDone,
    }
}

pub fn fate_of_outcome(outcome: &Outcome) -> Fate {
    match outcome {
        Outcome::Applied { revision, .. } => Fate::Made(revision.unwrap().0),
        Outcome::Conflicted { .. } => Fate::Conflicted,
    }
}

/// What a store holds: the version and the first word of each entry.
pub type Contents = BTreeMap<String, (u64, String)>;

pub async fn contents(store: &Store) -> keyward_engine::Result<Contents> {
    let mut found = Contents::new();
    let mut scan = Scan::new(KeyRange::all()).limit(10_000);
    loop {
        let page = store.scan(&scan).await?;
        let held = |entry: &Entry| (entry.version.as_number().unwrap(), word(&entry.value));
        let rows = page.rows.iter();
        found.extend(rows.map(|row| (row.key.to_string(), held(row.entry.as_ref().unwrap()))));
        match page.next {
            Some(next) => scan = scan.after(Some(next)),
            None => return Ok(found),
        }
    }
}

/// The first word of a value.
pub fn word(value: &Json) -> String {
    let text = value.as_str().trim_matches('"');
    text.split(' ').next().unwrap_or_default().to_owned()
}

/// What a watcher was told, in order: of each commit the revision and the keys.
pub type Told = Vec<(u64, BTreeSet<String>)>;

#[derive(Default)]
pub struct Ledger {
    deeds: BTreeMap<String, (Deed, Fate)>,
}

impl Ledger {
    pub fn enter(&mut self, name: String, deed: Deed, fate: Fate) {
        let former = self.deeds.insert(name, (deed, fate));
        assert!(former.is_none(), "names are used once");
    }

    pub fn count(&self, which: impl Fn(Fate) -> bool) -> usize {
        self.deeds.values().filter(|(_, fate)| which(*fate)).count()
    }

    /// Finds out what became of those that nobody knew about. From now on that is certain. Gives
    /// how many of them were made.
    pub fn settle(&mut self, contents: &Contents) -> usize {
        let mut made = 0;
        for (name, (_, fate)) in &mut self.deeds {
            if *fate == Fate::Unknown {
                *fate = match contents.get(&mark(name).to_string()) {
                    Some((version, _)) => Fate::Made(*version),
                    None => Fate::NotDone,
                };
                made += usize::from(matches!(fate, Fate::Made(_)));
            }
        }
        made
    }

    fn made(&self) -> impl Iterator<Item = (&String, &Deed, u64)> {
        self.deeds.iter().filter_map(|(name, (deed, fate))| match fate {
            Fate::Made(version) => Some((name, deed, *version)),
            _ => None,
        })
    }

    /// Compares a store in which nothing is under way with what was asked and answered.
    pub fn check(&self, contents: &Contents) -> Checked<()> {
        self.check_marks(contents)?;
        self.check_slots(contents)?;
        self.check_registers(contents)?;
        self.check_sums(contents)?;
        self.check_sides(contents)?;
        self.check_boards(contents)
    }

    /// Every commit that was made is there, once, with its version; no other is.
    fn check_marks(&self, contents: &Contents) -> Checked<()> {
        let mut versions = BTreeSet::new();
        for (name, (deed, fate)) in &self.deeds {
            let found = contents.get(&mark(name).to_string()).map(|(version, _)| *version);
            let expected = match fate {
                Fate::Made(version) => Some(*version),
                Fate::Conflicted | Fate::NotDone => None,
                Fate::Unknown => return Err(format!("{name} is not settled")),
            };
            if found != expected {
                return Err(format!("{name} ({deed:?}) was {fate:?}, and its mark has {found:?}"));
            }
            if found.is_some_and(|version| !versions.insert(version)) {
                return Err(format!("{name} has a version that another commit has: {found:?}"));
            }
        }
        let marks = contents.keys().filter(|key| key.starts_with("mark:")).count();
        if marks != versions.len() {
            return Err(format!("there are {marks} marks of {} commits", versions.len()));
        }
        Ok(())
    }

    /// A slot was claimed once, and nobody was refused a slot that was free.
    fn check_slots(&self, contents: &Contents) -> Checked<()> {
        let mut claimed = BTreeMap::new();
        for (name, deed, version) in self.made() {
            if let Deed::Claim { slot } = deed
                && let Some((_, other)) = claimed.insert(*slot, (version, name.clone()))
            {
                return Err(format!("slot {slot} was claimed by {other} and by {name}"));
            }
        }
        for (name, (deed, fate)) in &self.deeds {
            match (deed, fate) {
                (Deed::Claim { slot: asked }, fate) => {
                    let held = contents.get(&slot(*asked).to_string());
                    if held != claimed.get(asked) {
                        return Err(format!(
                            "slot {asked} is held by {held:?}, against {claimed:?}"
                        ));
                    }
                    if *fate == Fate::Conflicted && held.is_none() {
                        return Err(format!("{name} was refused slot {asked}, which is free"));
                    }
                }
                (Deed::Swap { .. }, _) => {}
                (_, Fate::Conflicted) => return Err(format!("{name} checked nothing: {deed:?}")),
                _ => {}
            }
        }
        Ok(())
    }

    /// Each swap followed the one that it had read, no two the same one, and the last one is held.
    fn check_registers(&self, contents: &Contents) -> Checked<()> {
        let name_of = |before: &Option<(String, Version)>| before.clone().map(|(name, _)| name);
        let mut swaps: BTreeMap<u32, BTreeMap<Option<String>, (u64, String)>> = BTreeMap::new();
        for (name, deed, version) in self.made() {
            let Deed::Swap { register, before } = deed else { continue };
            let followers = swaps.entry(*register).or_default();
            if let Some(other) = followers.insert(name_of(before), (version, name.clone())) {
                return Err(format!("{name} and {other:?} both followed {before:?}: one is lost"));
            }
        }
        for (number, mut followers) in swaps {
            let mut last: Option<(u64, String)> = None;
            while let Some(next) = followers.remove(&last.clone().map(|(_, name)| name)) {
                last = Some(next);
            }
            let held = contents.get(&register(number).to_string());
            if held != last.as_ref() || !followers.is_empty() {
                return Err(format!(
                    "register {number} holds {held:?}; the last swap was {last:?}, and beside it \
                     there are {followers:?}"
                ));
            }
        }
        self.deeds.iter().try_for_each(|(name, (deed, fate))| match (deed, fate) {
            (Deed::Swap { register: asked, before }, Fate::Conflicted) => {
                let held = contents.get(&register(*asked).to_string());
                if held.map(|(_, name)| name) == name_of(before).as_ref() {
                    return Err(format!("{name} was refused, and register {asked} is as it read"));
                }
                Ok(())
            }
            _ => Ok(()),
        })
    }

    /// Numbers are the sums of what was added.
    fn check_sums(&self, contents: &Contents) -> Checked<()> {
        let mut sums: BTreeMap<String, i64> = BTreeMap::new();
        for (_, deed, _) in self.made() {
            for write in deed.commit("any", "").writes {
                if let Write::Add(to, amount) = write {
                    *sums.entry(to.to_string()).or_default() += amount;
                }
            }
        }
        let is_sum = |key: &&String| key.starts_with("number:") || key.starts_with("account:");
        for name in contents.keys().filter(is_sum).chain(sums.keys()) {
            let found = contents.get(name).map(|(_, text)| text.parse::<i64>().unwrap());
            let expected = sums.get(name).copied();
            if found != expected {
                return Err(format!("{name} is {found:?}, and {expected:?} was added"));
            }
        }
        Ok(())
    }

    /// There is exactly one side, made by somebody who turned to it.
    fn check_sides(&self, contents: &Contents) -> Checked<()> {
        let sides = [0, 1].map(|number| contents.get(&side(number).to_string()));
        let turned = |number: usize, held: &(u64, String)| {
            self.made().any(|(name, deed, version)| {
                *deed == (Deed::Turn { side: number as u32 })
                    && (version, name) == (held.0, &held.1)
            })
        };
        let any = self.made().any(|(_, deed, _)| matches!(deed, Deed::Turn { .. }));
        match sides {
            [None, None] if !any => Ok(()),
            [Some(held), None] if turned(0, held) => Ok(()),
            [None, Some(held)] if turned(1, held) => Ok(()),
            _ => Err(format!("the sides are {sides:?}")),
        }
    }

    /// The fields of a board were all filled by one commit.
    fn check_boards(&self, contents: &Contents) -> Checked<()> {
        for (_, deed, _) in self.made() {
            let Deed::Fill { board } = deed else { continue };
            let fields: BTreeSet<_> =
                (0..FIELDS).map(|at| contents.get(&field(*board, at).to_string())).collect();
            let filled = |held: &(u64, String)| {
                self.made().any(|(name, other, version)| {
                    deed == other && (version, name) == (held.0, &held.1)
                })
            };
            let mut holders = fields.iter();
            match (holders.next(), holders.next()) {
                (Some(Some(held)), None) if filled(held) => {}
                _ => return Err(format!("board {board} holds {fields:?}")),
            }
        }
        Ok(())
    }

    /// Compares what a watcher was told with what was made: every commit once, with everything that
    /// it wrote, and nothing else.
    pub fn check_told(&self, told: &Told) -> Checked<()> {
        if let Some(pair) = told.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            return Err(format!("revision {} was told before {}", pair[0].0, pair[1].0));
        }
        let told: BTreeMap<u64, &BTreeSet<String>> =
            told.iter().map(|(revision, keys)| (*revision, keys)).collect();
        for (name, deed, version) in self.made() {
            let Some(keys) = told.get(&version) else {
                return Err(format!("{name} ({deed:?}) with revision {version} was not told"));
            };
            let commit = deed.commit(name, "");
            let written = commit.writes.iter().filter(|write| !matches!(write, Write::Delete(_)));
            if let Some(missing) =
                written.map(|write| write.key()).find(|key| !keys.contains(&key.to_string()))
            {
                return Err(format!("{name} wrote {missing}, and only {keys:?} were told"));
            }
        }
        let made = self.made().count();
        if told.len() != made {
            return Err(format!("{} commits were told, and {made} made", told.len()));
        }
        Ok(())
    }
}
