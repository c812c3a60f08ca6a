//! All processes and the store together, and what can happen next.

use stateright::{Model, Property};

use crate::config::{Config, Role};
use crate::property;
use crate::reader::{self, Reader};
use crate::script::{Answer, Fault, Last};
use crate::store::{Call, Guard, Key, RECORDS, Reply, Store, members};
use crate::sweeper::{self, Sweeper};
use crate::writer::{self, Writer};

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub enum Process {
    Writer(Writer),
    Sweeper(Sweeper),
    Reader(Reader),
    Crashed,
}

/// A write that got no answer.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub struct Flight {
    process: u8,
    op: u8,
    call: Call,
    commits: bool,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub struct State {
    pub store: Store,
    pub processes: Vec<Process>,
    pub flight: Option<Flight>,
    pub crashes: u8,
    pub losses: u8,
    pub expiries: u8,
    pub fault: Option<Fault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The next engine call of a process.
    Step {
        process: u8,
        choice: u8,
    },
    /// The same, but the process gets no answer.
    Lose {
        process: u8,
        choice: u8,
    },
    /// What was lost is applied after all.
    Land,
    /// What was lost never was applied.
    Vanish,
    Crash {
        process: u8,
    },
    Expire {
        record: u8,
    },
}

impl State {
    pub fn is_finished(&self, process: usize) -> bool {
        match &self.processes[process] {
            Process::Writer(writer) => writer.step == writer::Step::Finished,
            Process::Sweeper(sweeper) => sweeper.left == 0,
            Process::Reader(reader) => reader.step == reader::Step::Finished,
            Process::Crashed => true,
        }
    }

    /// Whether nobody is about to do anything.
    pub fn is_at_rest(&self) -> bool {
        self.flight.is_none() && (0..self.processes.len()).all(|process| self.is_finished(process))
    }

    /// How many processes stopped for ever.
    pub fn crashed(&self) -> usize {
        self.processes.iter().filter(|process| **process == Process::Crashed).count()
    }

    fn choices(&self, config: &Config, process: usize, mut each: impl FnMut(u8)) {
        match &self.processes[process] {
            Process::Writer(writer) => members(writer.choices(config)).for_each(each),
            Process::Reader(reader) => members(reader.choices()).for_each(each),
            Process::Sweeper(sweeper) if sweeper.left == 0 => {}
            Process::Sweeper(Sweeper { step: sweeper::Step::Choose, .. }) => {
                config.tasks(config.restores, |task| each(task.choice()));
            }
            Process::Sweeper(_) => each(0),
            Process::Crashed => {}
        }
    }

    pub fn call(&self, config: &Config, process: usize, choice: u8) -> Call {
        match (&self.processes[process], &config.roles[process]) {
            (Process::Writer(writer), Role::Writer(script)) => writer.call(config, script, choice),
            (Process::Sweeper(sweeper), _) => sweeper.call(config, choice),
            (Process::Reader(reader), Role::Reader { entry }) => {
                reader.call(config, *entry, choice)
            }
            _ => unreachable!("a crashed process makes no call"),
        }
    }

    /// Lets the engine do a call, and everybody else's guards of that key go out of date.
    fn execute(&mut self, config: &Config, call: &Call) -> Reply {
        let reply = self.store.apply(call);
        if reply == Reply::Applied
            && let Some(key) = call.writes()
        {
            self.outdate(config, key);
        }
        reply
    }

    fn outdate(&mut self, config: &Config, key: Key) {
        for (process, role) in self.processes.iter_mut().zip(&config.roles) {
            match (process, role) {
                (Process::Writer(writer), Role::Writer(script)) => {
                    writer.outdate(config, script, key);
                }
                (Process::Sweeper(sweeper), _) => sweeper.outdate(key),
                (Process::Reader(reader), Role::Reader { entry }) => {
                    reader.watch(*entry, &self.store);
                }
                _ => {}
            }
        }
        if let Some(flight) = &mut self.flight
            && flight.call.writes() == Some(key)
            && let Some(guard) = flight.call.guard_mut()
        {
            guard.outdate();
        }
    }

    /// Keeps account of whose write id a record has.
    fn rename(&mut self, config: &Config, record: u8, by: Option<usize>) {
        for (number, process) in self.processes.iter_mut().enumerate() {
            if let (Process::Writer(writer), Role::Writer(script)) =
                (process, &config.roles[number])
                && script.record == record
            {
                writer.last = if by == Some(number) { Last::Mine } else { Last::Other };
            }
        }
    }

    /// Makes the next call of a process and gives it the reply.
    pub fn step(&mut self, config: &Config, number: usize, choice: u8) {
        let call = self.call(config, number, choice);
        let reply = self.execute(config, &call);
        if reply == Reply::Applied {
            if let Some(record) = call.renames() {
                self.rename(config, record, Some(number));
            }
            if let Process::Writer(writer) = &mut self.processes[number]
                && writer.commits(config)
            {
                if writer.applied {
                    self.fault = Some(Fault::DoneTwice);
                }
                writer.applied = true;
            }
        }
        self.resume(config, number, choice, reply);
    }

    fn resume(&mut self, config: &Config, number: usize, choice: u8, reply: Reply) {
        let fault = match (&mut self.processes[number], &config.roles[number]) {
            (Process::Writer(writer), Role::Writer(script)) => {
                writer.resume(config, script, choice, reply, &self.store)
            }
            (Process::Sweeper(sweeper), _) => {
                sweeper.resume(config, choice, reply);
                None
            }
            (Process::Reader(reader), Role::Reader { entry }) => {
                reader.resume(config, *entry, choice, reply, &self.store)
            }
            _ => unreachable!("a crashed process gets no reply"),
        };
        self.fault = self.fault.or(fault);
    }

    fn lose(&mut self, config: &Config, number: usize, choice: u8) {
        let (op, commits) = match &self.processes[number] {
            Process::Writer(writer) => (writer.op, writer.commits(config)),
            _ => (0, false),
        };
        let call = self.call(config, number, choice);
        self.losses -= 1;
        self.flight = Some(Flight { process: number as u8, op, call, commits });
        self.resume(config, number, choice, Reply::Unknown);
    }

    fn land(&mut self, config: &Config) {
        let Some(flight) = self.flight.take() else { return };
        if self.execute(config, &flight.call) != Reply::Applied {
            return;
        }
        let number = usize::from(flight.process);
        let mut by = None;
        if let Process::Writer(writer) = &mut self.processes[number]
            && flight.commits
        {
            if writer.op == flight.op {
                by = Some(number);
                if writer.applied {
                    self.fault = Some(Fault::DoneTwice);
                }
                writer.applied = true;
            } else {
                match writer.answers[usize::from(flight.op)] {
                    Answer::Refused => self.fault = Some(Fault::DoneButRefused),
                    Answer::Done => self.fault = Some(Fault::DoneTwice),
                    Answer::Open | Answer::Gone | Answer::Unknown => {}
                }
            }
        }
        if let Some(record) = flight.call.renames() {
            self.rename(config, record, by);
        }
    }

    /// Puts interchangeable processes into one order.
    fn order(&mut self, config: &Config) {
        if self.flight.is_none() {
            for chunk in 1..self.processes.len() {
                for number in (1..=chunk).rev() {
                    if config.roles[number - 1] == config.roles[number]
                        && self.processes[number - 1] > self.processes[number]
                    {
                        self.processes.swap(number - 1, number);
                    }
                }
            }
        }
    }
}

impl Model for Config {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let process = |role: &Role| match role {
            Role::Writer(_) => Process::Writer(Writer::new()),
            Role::Sweeper { sweeps } => Process::Sweeper(Sweeper::new(*sweeps)),
            Role::Reader { .. } => Process::Reader(Reader::new()),
        };
        vec![State {
            store: self.store(),
            processes: self.roles.iter().map(process).collect(),
            flight: None,
            crashes: self.crashes,
            losses: self.losses,
            expiries: self.expiries,
            fault: None,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for number in 0..state.processes.len() {
            let process = number as u8;
            if state.is_finished(number) {
                continue;
            }
            state.choices(self, number, |choice| {
                actions.push(Action::Step { process, choice });
                if state.losses > 0
                    && state.flight.is_none()
                    && state.call(self, number, choice).writes().is_some()
                {
                    actions.push(Action::Lose { process, choice });
                }
            });
            if state.crashes > 0 && !matches!(state.processes[number], Process::Reader(_)) {
                actions.push(Action::Crash { process });
            }
        }
        if state.flight.is_some() {
            actions.extend([Action::Land, Action::Vanish]);
        }
        if state.expiries > 0 {
            let live = |record: &u8| {
                state.store.records[usize::from(*record)]
                    .is_some_and(|record| record.value.is_some())
            };
            let expire = |record| Action::Expire { record };
            actions.extend((0..RECORDS as u8).filter(live).map(expire));
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Step { process, choice } => next.step(self, usize::from(process), choice),
            Action::Lose { process, choice } => next.lose(self, usize::from(process), choice),
            Action::Land => next.land(self),
            Action::Vanish => next.flight = None,
            Action::Crash { process } => {
                next.crashes -= 1;
                next.processes[usize::from(process)] = Process::Crashed;
            }
            Action::Expire { record } => {
                next.expiries -= 1;
                next.execute(self, &Call::DeleteRecord { record, guard: Guard::Any });
                next.rename(self, record, None);
            }
        }
        next.order(self);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        property::all(self)
    }
}
