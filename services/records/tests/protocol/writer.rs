//! A writer: puts and deletes, one engine call at a time.

use crate::config::Config;
use crate::protocol::{Intent, Phase, Schema, Unanswered};
use crate::script::{Answer, Fault, Last, Op, Script};
use crate::store::{Call, ENTRIES, Guard, Key, RECORDS, Record, Reply, Set, Store, members};

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    Read,
    Run {
        phase: u8,
    },
    /// The unique entry has another owner: look whether it holds the value.
    Rival {
        phase: u8,
        entry: u8,
        owner: u8,
    },
    /// It does not: see to it that it cannot commit any more.
    Revoke {
        phase: u8,
        entry: u8,
        owner: u8,
        seen: Record,
        guard: Guard,
    },
    Take {
        phase: u8,
        entry: u8,
    },
    Finished,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub struct Writer {
    pub op: u8,
    pub step: Step,
    base: Option<Record>,
    guard: Guard,
    entries: [Guard; ENTRIES],
    todo: Set,
    /// A commit of this operation got no answer.
    maybe: bool,
    pub last: Last,
    pub applied: bool,
    /// Kept only where calls can get lost.
    pub answers: [Answer; 3],
}

impl Writer {
    pub fn new() -> Self {
        Self {
            op: 0,
            step: Step::Read,
            base: None,
            guard: Guard::Unread,
            entries: [Guard::Unread; ENTRIES],
            todo: 0,
            maybe: false,
            last: Last::Base,
            applied: false,
            answers: [Answer::Open; 3],
        }
    }

    pub fn outdate(&mut self, config: &Config, script: &Script, key: Key) {
        match key {
            Key::Record(record) => {
                if record == script.record {
                    self.guard.outdate();
                }
                if let Step::Revoke { owner, ref mut guard, .. } = self.step
                    && owner == record
                {
                    guard.outdate();
                }
            }
            Key::Entry(slot) => {
                let entry = Schema::entry(slot);
                if config.schema.slot(script.record, entry) == slot {
                    self.entries[usize::from(entry)].outdate();
                }
            }
        }
    }

    /// Whether the next call is the one that counts.
    pub fn commits(&self, config: &Config) -> bool {
        self.is_in(config, Phase::Commit)
    }

    /// Whether the operation has been done, and only old entries are left.
    fn cleans(&self, config: &Config) -> bool {
        self.is_in(config, Phase::Clean)
    }

    fn is_in(&self, config: &Config, wanted: Phase) -> bool {
        matches!(self.step, Step::Run { phase }
            if config.protocol.phases[usize::from(phase)] == wanted)
    }

    /// The entries among which the next call can choose.
    pub fn choices(&self, config: &Config) -> Set {
        match self.step {
            Step::Run { phase } => match config.protocol.phases[usize::from(phase)] {
                Phase::Announce | Phase::Commit => 1,
                _ => self.todo,
            },
            Step::Finished => 0,
            _ => 1,
        }
    }

    fn wanted(&self, config: &Config, script: &Script) -> Set {
        match script.ops[usize::from(self.op)] {
            Op::Put(value) => config.schema.values[usize::from(value)],
            Op::Delete => 0,
        }
    }

    fn held(&self) -> Set {
        self.base.map_or(0, |base| base.idx)
    }

    fn touches(&self, config: &Config, script: &Script) -> Set {
        self.wanted(config, script) & !self.held()
    }

    fn drops(&self, config: &Config, script: &Script) -> Set {
        self.held() & !self.wanted(config, script)
    }

    fn intention(&self, config: &Config, script: &Script) -> Record {
        let touches = self.touches(config, script);
        let always = config.protocol.intent == Intent::Always;
        Record {
            value: self.base.and_then(|base| base.value),
            idx: self.held(),
            pending: if always { touches } else { 0 },
        }
    }

    pub fn call(&self, config: &Config, script: &Script, choice: u8) -> Call {
        let slot = |entry| config.schema.slot(script.record, entry);
        match self.step {
            Step::Read => Call::ReadRecord(script.record),
            Step::Rival { owner, .. } => Call::ReadRecord(owner),
            Step::Revoke { owner, seen, guard, .. } => Call::PutRecord {
                record: owner,
                guard,
                to: Record { pending: 0, ..seen },
                renames: false,
            },
            Step::Take { entry, .. } => Call::PutEntry {
                slot: slot(entry),
                guard: self.entries[usize::from(entry)],
                owner: script.record,
            },
            Step::Run { phase } => match config.protocol.phases[usize::from(phase)] {
                Phase::Announce => Call::PutRecord {
                    record: script.record,
                    guard: self.guard,
                    to: self.intention(config, script),
                    renames: self.base.is_none(),
                },
                Phase::Commit => self.commit(config, script),
                Phase::Clean => Call::DeleteEntry {
                    slot: slot(choice),
                    guard: match self.entries[usize::from(choice)] {
                        guard if config.protocol.guarded && guard != Guard::Unread => guard,
                        _ => Guard::Any,
                    },
                },
                Phase::Prepare | Phase::Touch | Phase::Look => {
                    let touch = self.touches(config, script) & (1 << choice) != 0;
                    if touch && config.protocol.bump && !config.schema.is_unique(choice) {
                        let (slot, owner) = (slot(choice), script.record);
                        Call::PutEntry { slot, guard: Guard::Any, owner }
                    } else {
                        Call::ReadEntry(slot(choice))
                    }
                }
            },
            Step::Finished => unreachable!("a finished writer makes no call"),
        }
    }

    fn commit(&self, config: &Config, script: &Script) -> Call {
        let record = script.record;
        let guard = if config.protocol.checked { self.guard } else { Guard::Any };
        match script.ops[usize::from(self.op)] {
            Op::Delete => Call::DeleteRecord { record, guard },
            Op::Put(value) => {
                let idx = self.wanted(config, script);
                let to = Record { value: Some(value), idx, pending: 0 };
                Call::PutRecord { record, guard, to, renames: true }
            }
        }
    }

    /// Takes the reply to the call; a fault is an answer to the caller that is not true.
    pub fn resume(
        &mut self,
        config: &Config,
        script: &Script,
        choice: u8,
        reply: Reply,
        store: &Store,
    ) -> Option<Fault> {
        if reply == Reply::Unknown
            && config.protocol.unanswered == Unanswered::GiveUp
            && !self.cleans(config)
        {
            return self.finish(config, script, Answer::Unknown);
        }
        match self.step {
            Step::Read => return self.begin(config, script, reply),
            Step::Rival { phase, entry, owner } => {
                let Reply::Record(seen) = reply else { unreachable!() };
                if seen.is_some_and(|seen| seen.holds(entry)) {
                    return self.clash(config, script, store);
                }
                self.step = match seen {
                    Some(seen) if config.protocol.rival_revokes.applies(seen, entry) => {
                        Step::Revoke { phase, entry, owner, seen, guard: Guard::Current }
                    }
                    _ => Step::Take { phase, entry },
                };
            }
            Step::Revoke { phase, entry, .. } => {
                self.step = match reply {
                    Reply::Applied => Step::Take { phase, entry },
                    _ => self.again(phase, entry),
                };
            }
            Step::Take { phase, entry } => {
                if reply == Reply::Applied {
                    self.todo &= !(1 << entry);
                }
                self.step = self.again(phase, entry);
                return self.settle(config, script);
            }
            Step::Run { phase } => return self.run(config, script, phase, choice, reply, store),
            Step::Finished => unreachable!("a finished writer gets no reply"),
        }
        None
    }

    /// Forgets what was read of an entry, and goes on with the phase.
    fn again(&mut self, phase: u8, entry: u8) -> Step {
        self.entries[usize::from(entry)] = Guard::Unread;
        Step::Run { phase }
    }

    fn begin(&mut self, config: &Config, script: &Script, reply: Reply) -> Option<Fault> {
        let Reply::Record(seen) = reply else { unreachable!() };
        let delete = script.ops[usize::from(self.op)] == Op::Delete;
        if self.maybe && config.protocol.unanswered == Unanswered::FindOut {
            match (seen, self.last) {
                (None, _) if delete => return self.finish(config, script, Answer::Gone),
                (None, _) | (Some(_), Last::Other) => {
                    return self.finish(config, script, Answer::Unknown);
                }
                (Some(_), Last::Mine) => return self.finish(config, script, Answer::Done),
                (Some(_), Last::Base) => {}
            }
        }
        if delete && seen.is_none_or(|seen| seen.value.is_none()) {
            return self.finish(config, script, Answer::Refused);
        }
        self.last = Last::Base;
        self.base = seen;
        self.guard = if seen.is_some() { Guard::Current } else { Guard::Absent };
        self.enter(config, script, 0);
        self.settle(config, script)
    }

    fn run(
        &mut self,
        config: &Config,
        script: &Script,
        phase: u8,
        choice: u8,
        reply: Reply,
        store: &Store,
    ) -> Option<Fault> {
        let bit = 1 << choice;
        match (config.protocol.phases[usize::from(phase)], reply) {
            (Phase::Announce, Reply::Applied) => {
                self.base = Some(self.intention(config, script));
                self.guard = Guard::Current;
                self.last = Last::Base;
                self.todo = 0;
            }
            (Phase::Commit, Reply::Applied) => {
                self.guard = Guard::Unread;
                self.todo = 0;
            }
            (Phase::Announce | Phase::Commit, _) => {
                let commit = config.protocol.phases[usize::from(phase)] == Phase::Commit;
                self.maybe |= commit && reply == Reply::Unknown;
                self.restart();
                return None;
            }
            (Phase::Clean, _) => {
                self.todo &= !bit;
                self.entries[usize::from(choice)] = Guard::Unread;
            }
            (_, Reply::Applied) => self.todo &= !bit,
            (_, Reply::Entry(owner)) if self.touches(config, script) & bit != 0 => {
                let rival = owner.is_some_and(|owner| owner != script.record);
                if rival && !config.protocol.takes_over {
                    return self.clash(config, script, store);
                }
                self.meet(config, script, phase, choice, owner);
            }
            (_, Reply::Entry(owner)) => {
                let mine = owner == Some(script.record);
                self.entries[usize::from(choice)] =
                    if mine { Guard::Current } else { Guard::Absent };
                self.todo &= !bit;
            }
            // A lost touch is sent again.
            (_, _) => {}
        }
        self.settle(config, script)
    }

    /// Decides how to make an entry ours that was read first.
    fn meet(&mut self, config: &Config, script: &Script, phase: u8, entry: u8, owner: Option<u8>) {
        let guard = if owner.is_some() { Guard::Current } else { Guard::Absent };
        self.entries[usize::from(entry)] = guard;
        match owner {
            Some(owner) if owner != script.record => {
                self.step = Step::Rival { phase, entry, owner };
            }
            Some(_) if !config.protocol.bump => {
                self.todo &= !(1 << entry);
                self.entries[usize::from(entry)] = Guard::Unread;
            }
            _ => self.step = Step::Take { phase, entry },
        }
    }

    /// Ends the operation because somebody else holds a value.
    fn clash(&mut self, config: &Config, script: &Script, store: &Store) -> Option<Fault> {
        let wanted = members(self.wanted(config, script) & config.schema.unique);
        let taken = |entry| {
            (0..RECORDS as u8).any(|other| other != script.record && store.holds(other, entry))
        };
        let free = !wanted.into_iter().any(taken);
        let fault = self.finish(config, script, Answer::Refused);
        fault.or(free.then_some(Fault::RefusedButFree))
    }

    /// Leaves phases in which nothing is left to do.
    fn settle(&mut self, config: &Config, script: &Script) -> Option<Fault> {
        while let Step::Run { phase } = self.step
            && self.todo == 0
        {
            if usize::from(phase) + 1 == config.protocol.phases.len() {
                return self.finish(config, script, Answer::Done);
            }
            self.enter(config, script, phase + 1);
        }
        None
    }

    fn enter(&mut self, config: &Config, script: &Script, phase: u8) {
        let touches = self.touches(config, script);
        let drops = self.drops(config, script);
        self.step = Step::Run { phase };
        self.todo = match config.protocol.phases[usize::from(phase)] {
            Phase::Announce => match config.protocol.intent {
                Intent::Never => 0,
                Intent::OnCreate => Set::from(touches != 0 && self.base.is_none()),
                Intent::Always => Set::from(touches != 0),
            },
            Phase::Prepare => touches | drops,
            Phase::Touch => touches,
            Phase::Look => drops,
            Phase::Commit => 1,
            Phase::Clean => members(drops)
                .filter(|entry| self.entries[usize::from(*entry)] != Guard::Absent)
                .map(|entry| 1 << entry)
                .sum(),
        };
    }

    fn restart(&mut self) {
        self.step = Step::Read;
        self.base = None;
        self.guard = Guard::Unread;
        self.entries = [Guard::Unread; ENTRIES];
        self.todo = 0;
    }

    fn finish(&mut self, config: &Config, script: &Script, answer: Answer) -> Option<Fault> {
        let fault = match answer {
            Answer::Done if !self.applied => Some(Fault::ToldDoneButWasNot),
            Answer::Refused if self.applied => Some(Fault::DoneButRefused),
            _ => None,
        };
        if config.losses > 0 {
            self.answers[usize::from(self.op)] = answer;
        }
        self.op += 1;
        self.restart();
        self.maybe = false;
        self.last = Last::Base;
        self.applied = false;
        if usize::from(self.op) == script.ops.len() {
            self.step = Step::Finished;
        }
        fault
    }
}
