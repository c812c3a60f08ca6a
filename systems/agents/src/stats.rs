//! How much a namespace holds.

use std::collections::BTreeSet;

use jiff::Timestamp;
use keyward_engine::Json;
use keyward_records::field::{object, quoted};

use crate::Result;
use crate::namespace::Namespace;
use crate::skipped::Skipped;
use crate::track::Line;

/// How many agents are named at most.
const AGENTS_MAX: usize = 1_000;
/// How many entries are read at a time.
const PAGE: usize = 64;

/// How much a namespace holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NamespaceStats {
    /// The namespace.
    pub namespace: String,
    /// How many entries there are.
    pub record_count: u64,
    /// How many bytes their values and metadata have, as JSON text.
    pub size_bytes: u64,
    /// The agents that made entries or accessed them last, in order.
    pub agents: Vec<String>,
    /// Whether there are more agents than are named.
    pub more_agents: bool,
    /// When an entry was last updated, in ISO 8601.
    pub updated_at: Option<String>,
    /// Documents that are not counted, in a store with `layout=document`.
    pub skipped: Skipped,
}

impl NamespaceStats {
    /// The same as JSON: `{namespace, recordCount, sizeBytes, agents, updatedAt}`; with `skipped` and `lastSkipped` if
    /// documents were left out.
    pub fn to_json(&self) -> Json {
        let agents: Vec<String> = self.agents.iter().map(|agent| quoted(agent)).collect();
        let members = [
            ("namespace", quoted(&self.namespace)),
            ("recordCount", self.record_count.to_string()),
            ("sizeBytes", self.size_bytes.to_string()),
            ("agents", format!("[{}]", agents.join(","))),
            ("updatedAt", self.updated_at.as_deref().map_or("null".to_owned(), quoted)),
        ];
        let members = members.iter().map(|(name, text)| (*name, text.as_str()));
        let more = self.more_agents.then_some(("moreAgents", "true"));
        let skipped = self.skipped.documents.to_string();
        let last = quoted(self.skipped.last_id.as_deref().unwrap_or_default());
        let skipped = [("skipped", skipped.as_str()), ("lastSkipped", last.as_str())];
        let skipped = skipped.into_iter().filter(|_| self.skipped.documents > 0);
        Json::from_stored(object(members.chain(more).chain(skipped)))
    }
}

impl Namespace {
    /// How much the namespace holds. Everything in it is read, a page at a time.
    pub async fn stats(&self) -> Result<NamespaceStats> {
        let mut stats =
            NamespaceStats { namespace: self.namespace.as_ref().to_owned(), ..Default::default() };
        let mut agents = BTreeSet::new();
        let mut latest: Option<(Option<Timestamp>, String)> = None;
        let mut after = None;
        loop {
            let page = self.page_of_entries("", after, PAGE, usize::MAX).await?;
            for entry in page.entries {
                stats.record_count += 1;
                let bytes = entry.value.len() + entry.metadata.as_ref().map_or(0, Json::len);
                stats.size_bytes += bytes as u64;
                for agent in entry.created_by_agent.into_iter().chain(entry.access.agent) {
                    if agents.len() < AGENTS_MAX || agents.contains(&agent) {
                        agents.insert(agent);
                    } else {
                        stats.more_agents = true;
                    }
                }
                let at = entry.updated_at.parse().ok();
                if latest.as_ref().is_none_or(|(known, _)| *known < at) {
                    latest = Some((at, entry.updated_at));
                }
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        stats.agents = agents.into_iter().collect();
        stats.updated_at = latest.map(|(_, text)| text);
        if self.known_rules().await?.in_place {
            let user = self.agents.user(&*self.user, self.actor.clone());
            stats.skipped = user.skipped(Some(&self.namespace)).await?;
        }
        self.log(Line { count: usize::try_from(stats.record_count).ok(), ..Line::of("stats") });
        Ok(stats)
    }
}
