//! The agent data store, as a user and an agent reach it.

use clap::Args;
use keyward::agents::{Actor, Agents, Error, Gathered, Options, UserData};
use keyward::{Code, Data};
use tokio::sync::oneshot;

use crate::args::{self, Target};
use crate::failure::{Failure, Result};
use crate::output::{Output, note};
use crate::store_choice;

/// For whom, and in whose name.
#[derive(Debug, Args)]
#[command(next_help_heading = "In whose name")]
pub struct Asking {
    /// The user whose entries they are
    #[arg(long, global = true, default_value = "local")]
    user: String,
    /// The agent that does it: what it reads counts as accessed, and the history names it
    #[arg(long, global = true)]
    agent: Option<String>,
    /// The run of the agent, whose log says what was done
    #[arg(long, global = true)]
    run: Option<String>,
}

impl Asking {
    fn actor(&self) -> Actor {
        let actor = self.agent.as_ref().map_or_else(Actor::nobody, Actor::agent);
        match &self.run {
            Some(run) => actor.in_run(run),
            None => actor,
        }
    }
}

/// The agent data store, as a user and an agent reach it.
pub struct Reach<'t> {
    target: &'t Target,
    asking: Asking,
}

impl<'t> Reach<'t> {
    /// Opens nothing yet.
    pub fn new(target: &'t Target, asking: Asking) -> Self {
        Self { target, asking }
    }

    /// The user whose entries they are.
    pub fn user(&self) -> &str {
        &self.asking.user
    }

    /// How much may be kept: as the table `server.agents` of the config file says, as for a server, so
    /// that what one takes the other takes too.
    pub fn options(&self) -> Result<Options> {
        Ok(self.target.settings()?.agents.options())
    }

    /// Works on a store that is made if it does not exist.
    pub async fn to_write(
        &self,
        output: &mut Output,
        work: impl AsyncFnOnce(UserData, &mut Output) -> Result,
    ) -> Result {
        let (data, store) = self.place().await?;
        let agents = data.agents(&store).await?;
        self.during(&agents, output, work).await
    }

    /// Works on a store that must be there.
    pub async fn existing(
        &self,
        output: &mut Output,
        work: impl AsyncFnOnce(UserData, &mut Output) -> Result,
    ) -> Result {
        let (data, store) = self.place().await?;
        let Some(agents) = data.existing_agents(&store).await? else {
            let missing = args::no_store(&data.url(&store)?);
            return Err(Failure::new(Code::NotFound, missing).hint(HOW_TO_MAKE_ONE));
        };
        self.during(&agents, output, work).await
    }

    /// Looks something up: where there is no store, nothing is found, and a note says why.
    pub async fn to_read(
        &self,
        output: &mut Output,
        work: impl AsyncFnOnce(UserData, &mut Output) -> Result,
    ) -> Result {
        let (data, store) = self.place().await?;
        let agents = match data.existing_agents(&store).await? {
            Some(agents) => agents,
            None => {
                if !output.json() {
                    let missing = args::no_store(&data.url(&store)?);
                    note(format_args!("{missing}; {HOW_TO_MAKE_ONE}"));
                }
                data.at(&store, "memory:")?.agents(&store).await?
            }
        };
        self.during(&agents, output, work).await
    }

    /// The agent data store here, and the one at another URL, which is made if it does not exist; without `make`, an
    /// empty one stands for it.
    pub async fn both(&self, to: &str, make: bool) -> Result<(Agents, Agents)> {
        let (data, store) = self.place().await?;
        let (from, to) = (data.url(&store)?, self.target.named(to.to_owned())?);
        if from == to {
            return Err(Failure::invalid("the source and the target are the same store"));
        }
        let at_source = |failure: Failure| failure.at("the source");
        let source = data.existing_agents(&store).await;
        let Some(source) = source.map_err(|error| at_source(error.into()))? else {
            return Err(Failure::new(Code::NotFound, args::no_store(&from)));
        };
        let at_target = |error: Error| Failure::from(error).at("the target");
        let data = data.at(&store, to)?;
        let target = match make {
            true => Some(data.agents(&store).await.map_err(at_target)?),
            false => data.existing_agents(&store).await.map_err(at_target)?,
        };
        let target = match target {
            Some(target) => target,
            None => data.at(&store, "memory:")?.agents(&store).await?,
        };
        Ok((source, target))
    }

    /// What is declared, and the store among it that has agents' entries.
    async fn place(&self) -> Result<(Data, String)> {
        let (data, store) = store_choice::of_agents(self.target).await?;
        Ok((data.with_agents(self.options()?), store))
    }

    /// Writes what is gathered about accesses while the work lasts, and all of it before the end.
    async fn during(
        &self,
        agents: &Agents,
        output: &mut Output,
        work: impl AsyncFnOnce(UserData, &mut Output) -> Result,
    ) -> Result {
        let user = agents.user(self.user(), self.asking.actor());
        let (ended, end) = oneshot::channel::<()>();
        let flushing = agents.keep_flushing(async {
            // The sender is dropped when the work is done.
            let _ = end.await;
        });
        let working = async {
            let done = work(user, output).await;
            drop(ended);
            done
        };
        let (done, flushed) = tokio::join!(working, flushing);
        let Gathered { accesses_lost, lines_lost, .. } = agents.gathered();
        if accesses_lost > 0 || lines_lost > 0 {
            note(format_args!(
                "{accesses_lost} accesses were not counted, {lines_lost} operations not logged"
            ));
        }
        done?;
        Ok(flushed?)
    }
}

const HOW_TO_MAKE_ONE: &str = "agent set and agent import make one";
