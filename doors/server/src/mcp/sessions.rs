//! The sessions of clients before the revision 2026-07-28: whose they are, and how many.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use keyward::Code;
use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use tokio::sync::Mutex;

use super::McpOptions;
use crate::auth::Identity;
use crate::problem::{Problem, Result};
use crate::shares::{Full, Holder, Place, Shares};

/// How many messages wait in a session for a client that does not read.
const WAITING_MAX: usize = 64;

/// The sessions that are open, each with the place that is held for the credential it was begun with.
#[derive(Debug)]
pub(super) struct Sessions {
    manager: Arc<LocalSessionManager>,
    open: Mutex<HashMap<Arc<str>, Place>>,
    shares: Shares,
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
            open: Mutex::default(),
            shares: Shares::new(options.sessions_max),
        }
    }

    pub fn manager(&self) -> Arc<LocalSessionManager> {
        self.manager.clone()
    }

    /// Refuses a session that is another's, as one that does not exist.
    pub async fn admit(&self, id: &str, who: &Identity) -> Result<()> {
        match self.open.lock().await.get(id) {
            Some(place) if *place.holder() == Holder::of(who) => Ok(()),
            _ => Err(Problem::not_found("there is no such session")
                .hint("Begin a new one: send initialize without Mcp-Session-Id.")),
        }
    }

    /// Takes a place for one more session before it is begun. Refused where as many are open as are held,
    /// or as one credential may have.
    pub async fn reserve(&self, who: &Identity) -> Result<Place> {
        let holder = Holder::of(who);
        if let Ok(place) = self.shares.take(&holder) {
            return Ok(place);
        }
        let mut open = self.open.lock().await;
        let there = self.manager.sessions.read().await;
        open.retain(|id, _| there.contains_key(id));
        drop((there, open));
        self.shares.take(&holder).map_err(|full| {
            let detail = match full {
                Full::All => "as many sessions are open as this server holds",
                Full::Part => "this credential has as many sessions open as one may have",
            };
            Problem::new(Code::Overloaded, detail)
                .hint("End sessions that are no longer used (DELETE), or try again later.")
                .retryable()
        })
    }

    /// Remembers whose a new session is.
    pub async fn begin(&self, id: &str, place: Place) {
        self.open.lock().await.insert(id.into(), place);
    }

    /// Forgets a session.
    pub async fn end(&self, id: &str) {
        self.open.lock().await.remove(id);
    }

    /// Ends all of them.
    pub async fn close(&self) {
        self.open.lock().await.clear();
        let open: Vec<_> = self.manager.sessions.read().await.keys().cloned().collect();
        for id in open {
            // One that ended meanwhile is as good.
            let _ = self.manager.close_session(&id).await;
        }
    }
}
