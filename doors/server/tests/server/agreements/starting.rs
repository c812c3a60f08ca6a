use keyward::Data;
use keyward::schema::Schema;
use keyward_server::{Config, Server, WorkspaceConfig, without_schema};
use serde_json::json;

use super::{stores, workspace};
use crate::fixture::configured;

async fn refused(data: &Data, agreements: Vec<WorkspaceConfig>) -> String {
    let config = Config { agreements, ..configured() };
    Server::bind(&config, data).await.unwrap_err().to_string()
}

fn uploads(name: &str) -> WorkspaceConfig {
    workspace(name, json!({ "uploads": true }), None)
}

#[tokio::test]
async fn a_workspace_that_cannot_be_kept_is_named_with_the_reason() {
    let said = refused(&stores(), vec![uploads("elsewhere")]).await;
    assert!(said.contains("elsewhere") && said.contains("cannot be kept"), "{said}");
    let said = refused(&stores(), vec![uploads("inbox"), uploads("inbox")]).await;
    assert!(said.contains("inbox") && said.contains("the same store"), "{said}");
    let mut other = uploads("shelf");
    other.name = "inbox".to_owned();
    let said = refused(&stores(), vec![uploads("inbox"), other]).await;
    assert!(said.contains("two of this name"), "{said}");
    let weak = without_schema("memory:?tier=recoverable").unwrap();
    let said = refused(&weak, vec![uploads("main")]).await;
    assert!(said.contains("main") && said.contains("recoverable"), "{said}");
    let schema = "[stores.main]\nurl = \"memory:\"\n[spaces.notes]\nkey = \"{page}:{note}\"\n\
                  ownership = \"shared\"\n";
    let data = Data::new(Schema::parse(schema, "schema.toml").unwrap());
    let said = refused(&data, vec![uploads("main")]).await;
    assert!(said.contains("notes"), "{said}");
    let said =
        refused(&stores(), vec![workspace("inbox", json!({ "uploads": false }), None)]).await;
    assert!(said.contains("inbox") && said.contains("uploads"), "{said}");
}

#[test]
fn settings_are_checked_without_opening_anything() {
    let config =
        |pages| Config { agreements: vec![workspace("inbox", pages, None)], ..configured() };
    assert!(config(json!({ "folder": "/nowhere" })).check().is_ok());
    let said = config(json!({ "folder": "" })).check().unwrap_err().to_string();
    assert!(said.contains("inbox") && said.contains("folder"), "{said}");
}
