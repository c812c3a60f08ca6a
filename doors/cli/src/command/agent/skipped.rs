//! Documents of a store with layout=document that lists leave out.

use clap::Args;
use keyward::Code;
use keyward::agents::Skipped;

use crate::failure::{Failure, Result};
use crate::output::note;

/// Whether what is left out is an error.
#[derive(Debug, Clone, Copy, Args)]
pub struct Allowing {
    /// Succeed even if documents are skipped whose _id does not match their userId, namespace and key
    #[arg(long)]
    allow_skipped: bool,
}

impl Allowing {
    /// The error of an output that lacks documents, unless that is allowed: then a note.
    pub fn check(self, skipped: &Skipped, outcome: &str) -> Result {
        if self.allow_skipped || skipped.documents == 0 {
            tell(skipped);
            return Ok(());
        }
        let message = format!("the {outcome} is incomplete: {}", sentence(skipped));
        Err(Failure::new(Code::Differs, message).hint(
            "Correct these documents with the database's own tools, or pass --allow-skipped to go without them.",
        ))
    }
}

/// Notes how many documents were left out, if any were.
pub fn tell(skipped: &Skipped) {
    if skipped.documents > 0 {
        note(sentence(skipped));
    }
}

fn sentence(skipped: &Skipped) -> String {
    let last = skipped.last_id.as_deref().unwrap_or_default();
    match skipped.documents {
        1 => format!(
            "1 document was skipped, because its _id does not match its userId, namespace and key: {last:?}"
        ),
        count => format!(
            "{count} documents were skipped, because their _id does not match their userId, namespace and key; the last \
             one is {last:?}"
        ),
    }
}
