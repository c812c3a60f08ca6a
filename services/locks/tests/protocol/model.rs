use stateright::{Model, Property};

use crate::rules::{HELD, PATIENCE, Rules, Shortcut, TTL, Tier};

/// Two processes that want one lock and write one entry under it.
#[derive(Clone)]
pub struct World {
    pub rules: Rules,
    /// How often a person breaks the lock.
    pub breaks: u8,
}

const PROCESSES: usize = 2;
/// When the world ends.
const TIME_MAX: u8 = 5;
/// How many locks a run gives out.
const TOKEN_MAX: u8 = 2;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    now: u8,
    catalog: Catalog,
    entry: Entry,
    processes: [Process; PROCESSES],
    breaks: u8,
    fault: Option<Fault>,
    /// Whether a lock passed on without being released.
    took_over: bool,
    /// Whether the store refused a write.
    refused: bool,
}

/// What is found wrong in the middle of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Fault {
    LateWrite,
    LostUpdate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Catalog {
    version: u8,
    next_token: u8,
    holder: Option<Holder>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Holder {
    token: u8,
    beat: u8,
    /// When the lease ends by the engine's clock.
    until: u8,
}

/// What is written under the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Entry {
    version: u8,
    /// How often it was written.
    count: u8,
    /// The token of the last write.
    written_by: u8,
    /// The highest token that touched it, where commits have one key.
    mark: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Process {
    belief: Option<Belief>,
    /// What it last saw of another's claim, and since when: token, beat, time.
    seen: Option<(u8, u8, u8)>,
    call: Option<Call>,
    /// What it read of the entry, to write it: count and version.
    read: Option<(u8, u8)>,
}

/// A lock that a process believes to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Belief {
    token: u8,
    deadline: u8,
}

/// A commit on its way, with what it checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Call {
    Grant { sent: u8, version: u8, reaps: Option<u8> },
    Renew { sent: u8, token: u8, version: u8 },
    Release { token: u8, version: u8 },
    Touch { token: u8, version: u8 },
    Write { token: u8, count: u8, version: u8 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    Tick,
    Ask(usize),
    Renew(usize),
    Read(usize),
    Write(usize),
    Release(usize),
    /// A commit takes effect, and is answered.
    Land(usize),
    /// A commit takes effect, and its process dies before the answer.
    LandAndCrash(usize),
    Crash(usize),
    Break,
}

impl State {
    fn believes(&self, process: usize) -> Option<u8> {
        let belief = self.processes[process].belief?;
        (self.now < belief.deadline).then_some(belief.token)
    }

    /// Looks at the catalog, and asks for the lock if it can be had.
    fn ask(&mut self, rules: &Rules, number: usize) -> Option<()> {
        let Catalog { version, holder, .. } = self.catalog;
        let reaps = match holder {
            None => None,
            Some(holder) if self.is_dead(rules, number, holder) => Some(holder.token),
            Some(holder) => {
                let sight = (holder.token, holder.beat, self.now);
                let seen = &mut self.processes[number].seen;
                if seen.is_some_and(|(token, beat, _)| (token, beat) == (holder.token, holder.beat))
                {
                    return None;
                }
                *seen = Some(sight);
                return Some(());
            }
        };
        self.processes[number].call = Some(Call::Grant { sent: self.now, version, reaps });
        Some(())
    }

    fn is_dead(&self, rules: &Rules, number: usize, holder: Holder) -> bool {
        if rules.takes(Shortcut::NoPatience) {
            return true;
        }
        match rules.tier {
            Tier::Atomic => holder.until <= self.now,
            Tier::Recoverable => self.processes[number].seen.is_some_and(|(token, beat, since)| {
                (token, beat) == (holder.token, holder.beat) && self.now >= since + PATIENCE
            }),
        }
    }

    /// A commit takes effect, if its checks hold; the process learns of it, if it lives.
    fn land(&mut self, rules: &Rules, number: usize, answered: bool) {
        let Some(call) = self.processes[number].call.take() else { return };
        match call {
            Call::Grant { sent, version, reaps } => {
                self.grant(rules, number, sent, version, reaps, answered)
            }
            Call::Renew { sent, token, version } => {
                self.renew(rules, number, sent, token, version, answered)
            }
            Call::Release { token, version } => {
                let mine = self.catalog.holder.is_some_and(|holder| holder.token == token);
                if mine && self.catalog.version == version {
                    self.catalog.holder = None;
                    self.catalog.version += 1;
                }
            }
            Call::Touch { token, version } => {
                if self.entry.version == version {
                    self.entry.version += 1;
                    self.entry.mark = token;
                    if answered && !rules.takes(Shortcut::ReadFirst) {
                        let Entry { count, version, .. } = self.entry;
                        self.processes[number].read = Some((count, version));
                    }
                }
            }
            Call::Write { token, count, version } => {
                self.write(rules, number, token, count, version)
            }
        }
    }

    fn grant(
        &mut self,
        rules: &Rules,
        number: usize,
        sent: u8,
        version: u8,
        reaps: Option<u8>,
        answered: bool,
    ) {
        let reaped_is_dead = self.catalog.holder.is_none_or(|holder| {
            rules.takes(Shortcut::NoPatience)
                || rules.tier == Tier::Recoverable
                || holder.until <= self.now
        });
        let unchanged = self.catalog.version == version;
        if !unchanged || self.catalog.holder.map(|holder| holder.token) != reaps || !reaped_is_dead
        {
            return;
        }
        self.took_over |= reaps.is_some();
        let token = self.catalog.next_token + 1;
        let until = self.now + TTL;
        self.catalog = Catalog {
            version: version + 1,
            next_token: token,
            holder: Some(Holder { token, beat: 0, until }),
        };
        if answered {
            let deadline = sent + HELD;
            self.processes[number].belief = Some(Belief { token, deadline });
        }
    }

    fn renew(
        &mut self,
        rules: &Rules,
        number: usize,
        sent: u8,
        token: u8,
        version: u8,
        answered: bool,
    ) {
        // Where commits have one key, the catalog must be what it was when it was read.
        let unchanged = rules.tier == Tier::Atomic || self.catalog.version == version;
        let now = self.now;
        let process = &mut self.processes[number];
        match &mut self.catalog.holder {
            Some(holder) if holder.token == token && unchanged => {
                holder.until = now + TTL;
                if rules.tier == Tier::Recoverable {
                    holder.beat += 1;
                    self.catalog.version += 1;
                }
                let in_time = process.belief.filter(|belief| now < belief.deadline);
                if answered && let Some(belief) = in_time {
                    process.belief = Some(Belief { deadline: sent + HELD, ..belief });
                }
            }
            Some(holder) if holder.token == token => {}
            _ => process.belief = None,
        }
    }

    fn write(&mut self, rules: &Rules, number: usize, token: u8, count: u8, version: u8) {
        self.processes[number].read = None;
        let holds = match rules.tier {
            Tier::Atomic => self.catalog.holder.is_some_and(|holder| holder.token == token),
            Tier::Recoverable => self.entry.version == version,
        };
        if !holds && !rules.takes(Shortcut::NoFence) {
            self.refused = true;
            return;
        }
        if self.entry.written_by > token {
            self.fault = Some(Fault::LateWrite);
        } else if self.entry.count != count {
            self.fault = Some(Fault::LostUpdate);
        }
        let Entry { version, mark, .. } = self.entry;
        self.entry = Entry { version: version + 1, count: count + 1, written_by: token, mark };
    }

    /// Reads the entry to write it: where commits have one key, its own token must be in it first.
    fn read(&mut self, rules: &Rules, number: usize, token: u8) {
        let Entry { count, version, mark, .. } = self.entry;
        if rules.tier == Tier::Atomic || rules.takes(Shortcut::NoFence) {
            self.processes[number].read = Some((count, version));
            return;
        }
        if mark > token {
            self.refused = true;
            self.processes[number].belief = None;
            return;
        }
        if rules.takes(Shortcut::ReadFirst) {
            // The version is looked at again later, when the token is in.
            self.processes[number].read = Some((count, version + 1));
        }
        self.processes[number].call = Some(Call::Touch { token, version });
    }
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            now: 0,
            catalog: Catalog::default(),
            entry: Entry::default(),
            processes: [Process::default(); PROCESSES],
            breaks: self.breaks,
            fault: None,
            took_over: false,
            refused: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.now < TIME_MAX {
            actions.push(Action::Tick);
        }
        for (number, process) in state.processes.iter().enumerate() {
            match (process.call, state.believes(number)) {
                (Some(_), _) => {
                    actions.extend([Action::Land(number), Action::LandAndCrash(number)]);
                }
                (None, Some(_)) => {
                    let next = if process.read.is_some() { Action::Write } else { Action::Read };
                    actions.extend([next(number), Action::Renew(number), Action::Release(number)]);
                    actions.push(Action::Crash(number));
                }
                (None, None) if state.catalog.next_token < TOKEN_MAX => {
                    actions.push(Action::Ask(number));
                }
                (None, None) => {}
            }
        }
        if state.breaks > 0 && state.catalog.holder.is_some() {
            actions.push(Action::Break);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        let rules = &self.rules;
        match action {
            Action::Tick => next.now += 1,
            Action::Ask(number) => {
                let process = &mut next.processes[number];
                (process.belief, process.read) = (None, None);
                next.ask(rules, number)?;
            }
            Action::Renew(number) => {
                let token = state.believes(number)?;
                let version = state.catalog.version;
                next.processes[number].call = Some(Call::Renew { sent: state.now, token, version });
            }
            Action::Release(number) => {
                let token = state.believes(number)?;
                let version = state.catalog.version;
                next.processes[number] =
                    Process { call: Some(Call::Release { token, version }), ..Process::default() };
            }
            Action::Read(number) => next.read(rules, number, state.believes(number)?),
            Action::Write(number) => {
                let token = state.believes(number)?;
                let (count, version) = state.processes[number].read?;
                next.processes[number].call = Some(Call::Write { token, count, version });
            }
            Action::Land(number) => next.land(rules, number, true),
            Action::LandAndCrash(number) => {
                next.land(rules, number, false);
                next.processes[number] = Process::default();
            }
            Action::Crash(number) => next.processes[number] = Process::default(),
            Action::Break => {
                next.breaks -= 1;
                next.catalog.holder = None;
                next.catalog.version += 1;
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always("no write lands after one of a later lock", |_, state: &State| {
                state.fault != Some(Fault::LateWrite)
            }),
            Property::always("no update is lost", |_, state: &State| {
                state.fault != Some(Fault::LostUpdate)
            }),
            Property::sometimes("can be taken over", |_, state: &State| state.took_over),
            Property::sometimes("can be written by both", |_, state: &State| {
                state.entry.written_by > 1 && state.entry.count > 1
            }),
        ];
        if self.breaks == 0 {
            properties.push(Property::always(
                "nobody else believes to hold",
                |_, state: &State| {
                    (0..PROCESSES).filter(|number| state.believes(*number).is_some()).count() < 2
                },
            ));
        } else {
            properties
                .push(Property::sometimes("can be refused", |_, state: &State| state.refused));
        }
        properties
    }

    fn within_boundary(&self, state: &State) -> bool {
        state.entry.version <= 4 && state.catalog.version <= 4
    }
}
