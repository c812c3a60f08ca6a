//! The sessions of clients before the revision 2026-07-28: whose they are, and how many.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use tokio::sync::Mutex;

use super::McpOptions;
use crate::auth::Identity;
use crate::problem::{Problem, Result};

/// How many messages wait in a session for a client that does not read.
const WAITING_MAX: usize = 64;

/// The sessions that are open, each with the credential that it was begun with.
#[derive(Debug)]
pub(super) struct Sessions {
    manager: Arc<LocalSessionManager>,
    owners: Mutex<HashMap<Arc<str>, Owner>>,
    sessions_max: usize,
}

/// Whose a session is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Owner {
    tenant: String,
    credential: String,
}

impl Owner {
    fn of(who: &Identity) -> Self {
        Self { tenant: who.tenant().name().to_owned(), credential: who.credential().to_owned() }
    }
}

impl Sessions {
    pub fn new(options: &McpOptions) -> Self {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(options.session_time_max);
        manager.session_config.channel_capacity = WAITING_MAX;
        // Answers may be large, and whoever lost one can ask again.
        manager.session_config.completed_cache_ttl = Duration::ZERO;
        Self {
            manager: Arc::new(manager),
            owners: Mutex::default(),
            sessions_max: options.sessions_max,
        }
    }

    pub fn manager(&self) -> Arc<LocalSessionManager> {
        self.manager.clone()
    }

    /// Refuses a session that is another's, as one that does not exist.
    pub async fn admit(&self, id: &str, who: &Identity) -> Result<()> {
        match self.owners.lock().await.get(id) {
            Some(owner) if *owner == Owner::of(who) => Ok(()),
            _ => Err(Problem::not_found("there is no such session")
                .hint("Begin a new one: send initialize without Mcp-Session-Id.")),
        }
    }

    /// Refuses one more session where there are as many as are held.
    pub async fn admit_one_more(&self) -> Result<()> {
        let mut owners = self.owners.lock().await;
        if owners.len() < self.sessions_max {
            return Ok(());
        }
        let open = self.manager.sessions.read().await;
        owners.retain(|id, _| open.contains_key(id));
        match owners.len() < self.sessions_max {
            true => Ok(()),
            false => {
                Err(Problem::new("overloaded", "as many sessions are open as this server holds")
                    .hint("End sessions that are no longer used (DELETE), or try again later.")
                    .retryable())
            }
        }
    }

    /// Remembers whose a new session is.
    pub async fn begin(&self, id: &str, who: &Identity) {
        self.owners.lock().await.insert(id.into(), Owner::of(who));
    }

    /// Forgets a session.
    pub async fn end(&self, id: &str) {
        self.owners.lock().await.remove(id);
    }

    /// Ends all of them.
    pub async fn close(&self) {
        self.owners.lock().await.clear();
        let open: Vec<_> = self.manager.sessions.read().await.keys().cloned().collect();
        for id in open {
            // One that ended meanwhile is as good.
            let _ = self.manager.close_session(&id).await;
        }
    }
}
