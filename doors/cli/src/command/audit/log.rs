//! Where the audit log is kept: in a control store, or behind a server.

use keyward::remote::Connection;
use keyward_server::{AuditLog, AuditQuery};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::failure::Result;
use crate::served::read;

/// The audit log of a server.
pub enum Log {
    /// In its control store.
    Stored(AuditLog),
    /// Through the server itself.
    Served(Connection),
}

#[derive(Deserialize)]
struct Page {
    items: Vec<Box<RawValue>>,
    next: Option<String>,
}

impl Log {
    /// A page of acts, oldest first, each a JSON object, and the cursor of the next page.
    pub async fn read(&self, query: &AuditQuery) -> Result<(Vec<String>, Option<String>)> {
        let server = match self {
            Self::Stored(log) => {
                let (acts, next) = log.read(query).await?;
                return Ok((acts.iter().map(|act| act.as_str().to_owned()).collect(), next));
            }
            Self::Served(server) => server,
        };
        let mut path = format!("/v1/audit?limit={}", query.limit);
        // Moments and cursors of the log have no character that would need escaping.
        for (name, moment) in [("since", query.since), ("until", query.until)] {
            if let Some(moment) = moment {
                path.push_str(&format!("&{name}={moment}"));
            }
        }
        if let Some(after) = &query.after {
            path.push_str(&format!("&cursor={after}"));
        }
        let Page { items, next } = read(&server.get(&path).await?)?;
        Ok((items.iter().map(|act| act.get().to_owned()).collect(), next))
    }
}
