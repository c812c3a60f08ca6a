use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Where an issue stands. Which state can follow which is [`State::next`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Nobody has taken it up.
    Pending,
    /// Somebody works on it.
    Active,
    /// It waits for something else.
    Blocked,
    /// It is settled.
    Resolved,
}

impl State {
    /// All states, in the order of work.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Active, Self::Blocked, Self::Resolved];

    /// The states that can follow this one. Going from resolved to active is reopening.
    pub fn next(self) -> &'static [Self] {
        match self {
            Self::Pending => &[Self::Active, Self::Blocked, Self::Resolved],
            Self::Active => &[Self::Pending, Self::Blocked, Self::Resolved],
            Self::Blocked => &[Self::Active, Self::Resolved],
            Self::Resolved => &[Self::Active],
        }
    }

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Active => "active",
            Self::Blocked => "blocked",
            Self::Resolved => "resolved",
        }
    }

    /// Refuses what the table does not have.
    pub(super) fn check(self, to: Self) -> Result<()> {
        if self.next().contains(&to) {
            return Ok(());
        }
        let allowed: Vec<&str> = self.next().iter().map(|state| state.as_str()).collect();
        Err(Error::Transition {
            from: self.to_string(),
            to: to.to_string(),
            allowed: allowed.join(" or "),
        })
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which state can follow which, as a table in Markdown: from the rows to the columns.
///
/// ```
/// assert_eq!(
///     keyward_agreements::transitions(),
///     "\
/// | from \\ to | pending | active | blocked | resolved |
/// |---|---|---|---|---|
/// | pending | | yes | yes | yes |
/// | active | yes | | yes | yes |
/// | blocked | | yes | | yes |
/// | resolved | | yes | | |
/// "
/// );
/// ```
pub fn transitions() -> String {
    let mut table = String::from("| from \\ to |");
    for to in State::ALL {
        table.push_str(&format!(" {to} |"));
    }
    table.push_str("\n|---|---|---|---|---|\n");
    for from in State::ALL {
        table.push_str(&format!("| {from} |"));
        for to in State::ALL {
            table.push_str(if from.next().contains(&to) { " yes |" } else { " |" });
        }
        table.push('\n');
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_state_follows_itself_and_none_is_a_dead_end() {
        for state in State::ALL {
            assert!(!state.next().contains(&state) && !state.next().is_empty());
        }
    }

    #[test]
    fn a_refusal_says_what_can_be_asked_for() {
        let refused = State::Blocked.check(State::Pending).unwrap_err().to_string();
        let told = "the issue is blocked, and cannot become pending; \
                    from there it can become active or resolved";
        assert_eq!(refused, told);
    }
}
