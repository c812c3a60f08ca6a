//! What is counted about workspaces of agreements.

use std::sync::atomic::Ordering;

use keyward::models::Usage;
use keyward::queue::Metrics as QueueMetrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// A workspace: there are few, and the configuration names them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfWorkspace {
    workspace: String,
}

/// What is counted about workspaces, by their names.
#[derive(Debug, Default)]
pub struct AgreementFamilies {
    completed: Family<OfWorkspace, Counter>,
    failed: Family<OfWorkspace, Counter>,
    given_up: Family<OfWorkspace, Counter>,
    taken_over: Family<OfWorkspace, Counter>,
    input_tokens: Family<OfWorkspace, Counter>,
    output_tokens: Family<OfWorkspace, Counter>,
}

impl AgreementFamilies {
    pub fn register(&self, registry: &mut Registry) {
        for (name, about, family) in [
            ("tasks_completed", "Tasks that came to a result", &self.completed),
            ("tasks_failed", "Attempts of tasks that failed", &self.failed),
            ("tasks_given_up", "Tasks that came to nothing", &self.given_up),
            ("tasks_taken_over", "Tasks taken over from workers that died", &self.taken_over),
            ("input_tokens", "Tokens that models read", &self.input_tokens),
            ("output_tokens", "Tokens that models wrote", &self.output_tokens),
        ] {
            registry.register(name, about, family.clone());
        }
    }

    /// What the tasks of a workspace count in.
    pub fn of(&self, workspace: &str) -> QueueMetrics {
        let of = OfWorkspace { workspace: workspace.to_owned() };
        let counter = |family: &Family<OfWorkspace, Counter>| family.get_or_create(&of).clone();
        QueueMetrics {
            completed: counter(&self.completed),
            failed: counter(&self.failed),
            dead_lettered: counter(&self.given_up),
            taken_over: counter(&self.taken_over),
            ..QueueMetrics::default()
        }
    }

    /// Takes over what a workspace has spent on models.
    pub fn spent(&self, workspace: &str, spent: Usage) {
        let of = OfWorkspace { workspace: workspace.to_owned() };
        let set = |family: &Family<OfWorkspace, Counter>, tokens: u64| {
            family.get_or_create(&of).inner().store(tokens, Ordering::Relaxed);
        };
        set(&self.input_tokens, spent.input_tokens);
        set(&self.output_tokens, spent.output_tokens);
    }
}
