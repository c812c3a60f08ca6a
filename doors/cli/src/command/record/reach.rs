//! What the schema declares, as the caller reaches it.

use clap::Args;
use keyward::records::{Caller, Space};
use keyward::rules::admit_space;
use keyward::schema::Space as Declaration;
use keyward::{Code, Data, Limits};

use crate::args::{self, Target};
use crate::failure::{Failure, Result};
use crate::output::{Output, note};

/// In whose name.
#[derive(Debug, Args)]
#[command(next_help_heading = "In whose name")]
pub struct Asking {
    /// Act as this user: what the schema refuses them is refused; without it you are the operator
    #[arg(long = "as", global = true, value_name = "USER")]
    user: Option<String>,
    /// Act as nobody in particular, who reaches only what is shared
    #[arg(long, global = true, conflicts_with = "user")]
    anonymous: bool,
    /// With this role, for spaces that ask for one; may be repeated
    #[arg(long = "role", global = true, value_name = "ROLE")]
    roles: Vec<String>,
    /// Through this agent, whom the history names
    #[arg(long, global = true)]
    agent: Option<String>,
}

impl Asking {
    fn caller(self) -> Result<Caller> {
        let mut caller = match self.user {
            Some(user) => Caller::user(user),
            None if self.anonymous => Caller::anonymous(),
            None if self.roles.is_empty() => Caller::operator(),
            None => {
                let failure = Failure::invalid("--role says what a user may do, and none is named");
                return Err(
                    failure.hint("Add --as USER or --anonymous; the operator needs no role.")
                );
            }
        };
        if let Some(agent) = self.agent {
            caller = caller.with_agent(agent);
        }
        Ok(self.roles.into_iter().fold(caller, Caller::with_role))
    }
}

/// What the schema declares, as the caller reaches it.
pub struct Reach {
    pub data: Data,
    pub caller: Caller,
}

impl Reach {
    /// Reads the schema; no store is opened.
    pub async fn new(target: &Target, asking: Asking) -> Result<Self> {
        let caller = asking.caller()?;
        Ok(Self { data: target.data().await?, caller })
    }

    /// What the schema says about a space.
    pub fn declaration(&self, space: &str) -> Result<&Declaration> {
        let store = self.data.store_of(space)?;
        let declared = self.data.schema().spaces_of(store).find(|one| one.name == space);
        declared.ok_or_else(|| Failure::invalid(format!("there is no space {space:?}")))
    }

    /// A space to write to. Where there is no store, what shall be written is tried in an empty one
    /// in memory, and the store is made if that is not refused: what is refused leaves nothing.
    pub async fn to_write(
        &self,
        space: &str,
        attempt: impl AsyncFnOnce(&Space) -> Result,
    ) -> Result<Space> {
        self.admit_write(space)?;
        if let Some(found) = self.data.existing_space(space, &self.caller).await? {
            return Ok(found);
        }
        let scratch = self.data.scratch(self.data.store_of(space)?).await?;
        attempt(&scratch.space(space, &self.caller)?).await?;
        Ok(self.data.space(space, &self.caller).await?)
    }

    /// The limits of the store that a space lives in, which need not be there.
    pub async fn limits(&self, space: &str) -> Result<Limits> {
        Ok(self.data.limits(self.data.store_of(space)?).await?)
    }

    /// Refuses to change what is in a space whose records are written by something else.
    pub fn admit_write(&self, space: &str) -> Result {
        Ok(admit_space(space)?)
    }

    /// A space whose store must be there.
    pub async fn existing(&self, space: &str) -> Result<Space> {
        match self.data.existing_space(space, &self.caller).await? {
            Some(found) => Ok(found),
            None => {
                let missing = self.no_store(space)?;
                Err(Failure::new(Code::NotFound, missing).hint(HOW_TO_MAKE_ONE))
            }
        }
    }

    /// A space to look something up: where there is no store, nothing is found, and a note says why.
    pub async fn to_read(&self, space: &str, output: &Output) -> Result<Space> {
        if let Some(found) = self.data.existing_space(space, &self.caller).await? {
            return Ok(found);
        }
        if !output.json() {
            note(format_args!("{}; {HOW_TO_MAKE_ONE}", self.no_store(space)?));
        }
        let empty = self.data.clone().at(self.data.store_of(space)?, "memory:")?;
        Ok(empty.space(space, &self.caller).await?)
    }

    /// The largest value that a space takes.
    pub async fn value_bytes_max(&self, space: &str) -> Result<usize> {
        let store = self.limits(space).await?.value_bytes_max;
        Ok(self.declaration(space)?.value_bytes_max.map_or(store, |max| max.min(store)))
    }

    fn no_store(&self, space: &str) -> Result<String> {
        Ok(args::no_store(&self.data.url(self.data.store_of(space)?)?))
    }
}

const HOW_TO_MAKE_ONE: &str = "record put, create and batch make one";
