use keyward::Data;
use keyward::schema::Schema;
use keyward_server::{Config, RegistryConfig, Server, without_schema};
use serde_json::json;

use super::{registry, repository};
use crate::fixture::configured;

async fn refused(data: &Data, registries: Vec<RegistryConfig>) -> String {
    let config = Config { registries, ..configured() };
    Server::bind(&config, data).await.unwrap_err().to_string()
}

#[tokio::test]
async fn a_registry_that_cannot_be_kept_is_named_with_the_reason() {
    let repository = repository();
    let one = |more| registry(&repository, more);
    let data = without_schema("memory:").unwrap();
    let said = refused(&data, vec![one(json!({ "store": "none" }))]).await;
    assert!(said.contains("policies") && said.contains("\"none\""), "{said}");
    let weak = without_schema("memory:?tier=recoverable").unwrap();
    let said = refused(&weak, vec![one(json!({}))]).await;
    assert!(said.contains("policies") && said.contains("recoverable"), "{said}");
    let said = refused(&data, vec![one(json!({ "folder": "../x" }))]).await;
    assert!(said.contains("folder"), "{said}");
    let said = refused(&data, vec![one(json!({})), one(json!({ "prefix": "kr" }))]).await;
    assert!(said.contains("two of this name"), "{said}");
    let schema = "[stores.main]\nurl = \"memory:\"\n[spaces.rules]\nkey = \"policy:{rule}\"\n\
                  ownership = \"shared\"\n";
    let data = Data::new(Schema::parse(schema, "schema.toml").unwrap());
    let said = refused(&data, vec![one(json!({}))]).await;
    assert!(said.contains("policy:{rule}"), "{said}");
}

#[test]
fn settings_are_checked_without_opening_anything() {
    let repository = repository();
    let config = |more| Config { registries: vec![registry(&repository, more)], ..configured() };
    assert!(config(json!({})).check().is_ok());
    let said = config(json!({ "retries": 0 })).check().unwrap_err().to_string();
    assert!(said.contains("policies") && said.contains("retries"), "{said}");
}
