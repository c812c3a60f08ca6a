//! What must be true in every state.

use stateright::Property;

use crate::config::Config;
use crate::model::{Process, State};
use crate::protocol::Schema;
use crate::store::{RECORDS, members};
use crate::sweeper::Sweeper;

pub const NOT_MISSING: &str = "every entry that a record holds is there";
pub const NOT_LOST: &str = "no entry is missing once everybody is done";
pub const ONE_HOLDER: &str = "a unique value has one holder";
pub const TRUE_ANSWERS: &str = "what callers and queries are told is true";
pub const ALONE: &str = "a writer that is left alone finishes";
pub const SCRUBBED: &str = "after a scrub nothing is left over and nothing is missing";
pub const GOAL: &str = "the situation that the run is about is reached";

/// Engine calls that one operation takes at most once nobody interferes.
const CALLS_ALONE_MAX: usize = 24;

pub fn all(config: &Config) -> Vec<Property<Config>> {
    let mut properties = vec![
        Property::always(NOT_LOST, |config: &Config, state: &State| {
            !config.damaged.is_empty() || !state.is_at_rest() || nothing_missing(config, state)
        }),
        Property::always(ONE_HOLDER, one_holder),
        Property::always(TRUE_ANSWERS, |_, state: &State| state.fault.is_none()),
        Property::always(SCRUBBED, scrubbed),
        Property::sometimes(GOAL, |config: &Config, state| (config.goal)(state)),
    ];
    if config.damaged.is_empty() {
        properties.push(Property::always(NOT_MISSING, nothing_missing));
    }
    if config.alone {
        properties.push(Property::always(ALONE, |config: &Config, state: &State| {
            (0..state.processes.len()).all(|number| finishes_alone(config, state, number))
        }));
    }
    properties
}

fn nothing_missing(config: &Config, state: &State) -> bool {
    (0..RECORDS as u8).all(|number| {
        state.store.records[usize::from(number)].is_none_or(|record| {
            record.value.is_none()
                || members(record.idx).all(|entry| {
                    state.store.owner(config.schema.slot(number, entry)) == Some(number)
                })
        })
    })
}

fn one_holder(config: &Config, state: &State) -> bool {
    members(config.schema.unique).all(|entry| {
        (0..RECORDS as u8).filter(|record| state.store.holds(*record, entry)).count() <= 1
    })
}

fn finishes_alone(config: &Config, state: &State, number: usize) -> bool {
    let Process::Writer(writer) = &state.processes[number] else { return true };
    let op = writer.op;
    let mut alone = state.clone();
    for _ in 0..CALLS_ALONE_MAX {
        let Process::Writer(writer) = &alone.processes[number] else { return false };
        if writer.op != op || alone.is_finished(number) {
            return true;
        }
        let Some(choice) = members(writer.choices(config)).next() else { return false };
        alone.step(config, number, choice);
    }
    false
}

/// Once everybody is done or dead, one look at every key leaves each entry with a record that holds
/// it, each record with its entries, and no marker and no intent.
fn scrubbed(config: &Config, state: &State) -> bool {
    if !state.is_at_rest() {
        return true;
    }
    let mut scrubbed = state.clone();
    config.tasks(true, |task| {
        scrubbed.processes = vec![Process::Sweeper(Sweeper::new(1))];
        let mut choice = task.choice();
        while !scrubbed.is_finished(0) {
            scrubbed.step(config, 0, choice);
            choice = 0;
        }
    });
    let wanted = |slot: u8, owner: u8| {
        let entry = Schema::entry(slot);
        config.schema.slot(owner, entry) == slot && scrubbed.store.holds(owner, entry)
    };
    let slots = 0..scrubbed.store.entries.len() as u8;
    nothing_missing(config, &scrubbed)
        && slots
            .into_iter()
            .all(|slot| scrubbed.store.owner(slot).is_none_or(|owner| wanted(slot, owner)))
        && scrubbed
            .store
            .records
            .iter()
            .flatten()
            .all(|record| record.value.is_some() && record.pending == 0)
}
