//! What one call costs at most, and that it goes through all the same.

use keyward_engine::Tier;
use keyward_key::Bindings;
use keyward_records::{Caller, Query};

use crate::fixture::{declare, draft, key, memory};

const NOTES: &str = r#"
[stores.app]
[spaces.notes]
key = "user:{user}:notes:{note}"
ownership = "user"
[spaces.notes.indexes.tag]
field = "tags"
type = "text"
multi = true
"#;

#[tokio::test(start_paused = true)]
async fn records_whose_entries_fill_a_commit_are_deleted_all_the_same() {
    let (memory, clock) = memory(Tier::Atomic);
    let records = declare(memory, &clock, NOTES);
    let notes = records.space("notes", &Caller::user("ada")).unwrap();
    let tags: Vec<String> = (0..200).map(|n| format!("\"t{n}\"")).collect();
    let value = format!("{{\"tags\":[{}]}}", tags.join(","));
    for n in 0..60 {
        notes.put(&key(&format!("user:ada:notes:n{n}")), draft(&value)).await.unwrap();
    }
    assert_eq!(notes.delete_prefix(Bindings::new()).await.unwrap(), 60);
    assert_eq!(notes.query(&Query::index("tag")).await.unwrap().records, []);
}
