//! What long work shows on a terminal while it lasts.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::Output;

/// A bar or a spinner on standard error; nothing when that is no terminal, when JSON was asked for,
/// or when it would run into the results. Gone when dropped.
pub struct Progress(ProgressBar);

impl Progress {
    /// Work that is counted in `unit`s; a bar if the total is known.
    pub fn counted(what: &str, unit: &str, total: Option<u64>, output: &Output) -> Self {
        let form = match total {
            Some(_) => format!(
                "{{spinner}} {what} {{wide_bar}} {{human_pos}}/{{human_len}} {unit}, {{eta}} left"
            ),
            None => format!("{{spinner}} {what}: {{human_pos}} {unit}, {{per_sec}}"),
        };
        Self::shown(&form, total, output)
    }

    /// Work on a stream of bytes; a bar if the total is known.
    pub fn of_bytes(what: &str, total: Option<u64>, output: &Output) -> Self {
        let form = match total {
            Some(_) => {
                format!("{{spinner}} {what} {{wide_bar}} {{bytes}}/{{total_bytes}}, {{eta}} left")
            }
            None => format!("{{spinner}} {what}: {{bytes}}, {{bytes_per_sec}}"),
        };
        Self::shown(&form, total, output)
    }

    /// Work of unknown length.
    pub fn working(what: &str, output: &Output) -> Self {
        Self::shown(&format!("{{spinner}} {what}, {{elapsed}}"), None, output)
    }

    /// Work that says what it is doing.
    pub fn telling(output: &Output) -> Self {
        Self::shown("{spinner} {msg}, {elapsed}", None, output)
    }

    fn shown(form: &str, total: Option<u64>, output: &Output) -> Self {
        if output.json() {
            return Self(ProgressBar::hidden());
        }
        let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
        if let Ok(style) = ProgressStyle::with_template(form) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(bar)
    }

    /// No progress to show.
    pub fn none() -> Self {
        Self(ProgressBar::hidden())
    }

    /// So much more is done.
    pub fn advance(&self, by: u64) {
        self.0.inc(by);
    }

    /// It does this now.
    pub fn tell(&self, what: &str) {
        self.0.set_message(what.to_owned());
    }

    /// Whether nobody sees it.
    pub fn is_hidden(&self) -> bool {
        self.0.is_hidden()
    }

    /// So much is done in all.
    pub fn reach(&self, done: u64) {
        self.0.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
