//! The row that binds a coordinator to one value store: `system:coordinator:store`.

use jiff::Timestamp;
use keyward_engine::{
    Commit, Error, ErrorKind, Expect, Json, Outcome, Put, Result, Version, moment,
};
use serde::{Deserialize, Serialize};

use crate::layout;
use crate::shared::Shared;

/// How often a claim reads the row again because other processes change it.
const ROUNDS_MAX: usize = 16;

/// What a coordinator is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoreRow {
    /// The value store, as [`Engine::store_id`](keyward_engine::Engine::store_id) names it. Rows of older versions do
    /// not say, nor do those of engines that do not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<String>,
    /// First segments of the keys that stay in the coordinator.
    pub keep: Vec<String>,
    /// Whether all keys that the value store had at first are adopted.
    pub adopted: bool,
    /// When the first listing was complete. Listings are late: what was written until then is certain to be in one
    /// that begins after the value store's lag.
    #[serde(with = "moment::optional", default, skip_serializing_if = "Option::is_none")]
    pub listed: Option<Timestamp>,
    /// Whether there may be rows that say which keys adoption has copied.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub copied: bool,
}

impl Shared {
    /// Makes sure that the coordinator is for this value store. An empty coordinator becomes its own, and so does one
    /// of an older version, which did not note the value store.
    pub(crate) async fn claim(&self) -> Result<StoreRow> {
        let values = self.values.store_id();
        let mut keep = self.options.keep.clone();
        keep.sort();
        keep.dedup();
        for _ in 0..ROUNDS_MAX {
            let (row, expect) = match self.store_row().await? {
                Some((version, row)) => {
                    check_values(&row, values.as_deref())?;
                    check_keep(&row, &keep)?;
                    if row.values == values {
                        return Ok(row);
                    }
                    (StoreRow { values: values.clone(), ..row }, Expect::Version(version))
                }
                None => {
                    let (values, keep) = (values.clone(), keep.clone());
                    let row = StoreRow { values, keep, adopted: false, listed: None, copied: true };
                    (row, Expect::Absent)
                }
            };
            // A conflict means that another process was first.
            if self.put_store_row(expect, &row).await?.is_applied() {
                return Ok(row);
            }
        }
        let message = "the coordinator's store row changed again and again while it was claimed";
        Err(Error::new(ErrorKind::Unavailable, message))
    }

    pub(crate) async fn write_store_row(
        &self,
        version: Version,
        row: &StoreRow,
    ) -> Result<Outcome> {
        self.put_store_row(Expect::Version(version), row).await
    }

    async fn put_store_row(&self, expect: Expect, row: &StoreRow) -> Result<Outcome> {
        let row = Json::from_value(row).map_err(|error| {
            Error::new(ErrorKind::Internal, "the coordinator's store row cannot be written")
                .caused_by(error)
        })?;
        let commit = Commit::new()
            .check(layout::store_row(), expect)
            .put(layout::store_row(), Put::new(row));
        self.coordinator.commit(commit).await
    }

    pub(crate) async fn store_row(&self) -> Result<Option<(Version, StoreRow)>> {
        let Some(entry) = self.coordinator.get(&layout::store_row()).await? else {
            return Ok(None);
        };
        let row = serde_json::from_slice(entry.value.as_bytes()).map_err(|error| {
            let message = format!("the coordinator's row {} cannot be read", layout::store_row());
            Error::new(ErrorKind::Corrupt, message).caused_by(error)
        })?;
        Ok(Some((entry.version, row)))
    }
}

/// Refuses another value store than the coordinator's: its pending values would be pushed there.
fn check_values(row: &StoreRow, values: Option<&str>) -> Result<()> {
    let Some(bound) = row.values.as_deref().filter(|bound| Some(*bound) != values) else {
        return Ok(());
    };
    let opened = values.unwrap_or("a store that has no id");
    let message = format!("the coordinator belongs to {bound}, and was opened with {opened}");
    Err(Error::new(ErrorKind::Misplaced, message).advise(format!(
        "Nothing was written. Open {bound} with this coordinator, or name a new, empty coordinator: it adopts what \
         the store holds. To move all data to another store, use keyward copy."
    )))
}

fn check_keep(row: &StoreRow, keep: &[String]) -> Result<()> {
    if row.keep == keep {
        return Ok(());
    }
    let message = format!(
        "the coordinator keeps the keys of {} to itself, but the store was opened to keep those of {}",
        row.keep.join(", "),
        keep.join(", ")
    );
    Err(Error::new(ErrorKind::Misplaced, message)
        .advise("Open the store with the keep option that it was first opened with."))
}
