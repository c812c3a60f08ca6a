use clap::Args;
use keyward::Code;

use crate::args::Target;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::queues;

/// Remove messages from a queue for good
///
/// Also those that are being worked on: their completion is refused. Exits with 1 if one is not
/// there.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  keyward queue drop mails welcome-ada"#)]
pub struct Arguments {
    /// The queue
    queue: String,
    /// The ids of the messages
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
}

pub async fn run(arguments: Arguments, target: &Target, output: &mut Output) -> Result {
    let queue = queues::queue(target.open_existing().await?, &arguments.queue)?;
    for id in &arguments.ids {
        if !queue.drop_message(id).await? {
            let message = format!("there is no message {id} in the queue {}", queue.name());
            return Err(Failure::new(Code::NotFound, message));
        }
        if output.json() {
            output.write_json(&serde_json::json!({ "dropped": id }))?;
        } else {
            writeln!(output, "dropped {id}")?;
        }
    }
    Ok(())
}
