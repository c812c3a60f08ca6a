//! Bringing a store to its schema, and looking whether all is well in it.

use keyward::Data;
use keyward::schema::Schema;
use serde_json::{Value, json};

use crate::fixture::{Running, answered, refused, told};
use crate::spaces::served;

const NOTES: &str = "[stores.app]\n[spaces.notes]\nkey = 'user:{user}:notes:{note}'\n\
                     ownership = 'user'\n";
const BY_TITLE: &str = "[spaces.notes.indexes.by_title]\nfield = 'title'\ntype = 'text'\n";
const MIGRATIONS: &str = "/v1/stores/app/migrations";
const QUESTION: &str = r#"{"index":"by_title","owner":"ada"}"#;

/// A server with a schema on the store in a folder.
async fn on(folder: &tempfile::TempDir, schema: &str) -> Running {
    let schema = Schema::parse(schema, "schema.toml").unwrap();
    let url = format!("embedded:{}", folder.path().join("data").display());
    Running::on(&Data::new(schema).at("app", url).unwrap()).await
}

/// A store with records that were written before their index was declared.
async fn outgrown(records: usize) -> (tempfile::TempDir, Running) {
    let folder = tempfile::tempdir().unwrap();
    let server = on(&folder, NOTES).await;
    for n in 0..records {
        let at = format!("/v1/spaces/notes/records/user:ada:notes:n{n}");
        answered(201, server.put(&at, &json!({"title": format!("t{n}")}).to_string())).await;
    }
    server.stop().await;
    let server = on(&folder, &format!("{NOTES}{BY_TITLE}")).await;
    (folder, server)
}

async fn until_ended(server: &Running, path: &str) -> Value {
    loop {
        let standing = told(200, server.get(path)).await;
        if standing["running"] == false {
            return standing;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_plan_is_shown_and_run() {
    let (_folder, server) = outgrown(3).await;
    let query = || server.post("/v1/spaces/notes/query", QUESTION);
    refused(409, "index-not-ready", query()).await;
    let before = told(200, server.get(MIGRATIONS)).await;
    assert_eq!(before["plan"]["build"][0]["kind"], "add-index");
    assert_eq!((&before["items"], &before["running"]), (&json!([]), &json!(false)));

    let done = told(200, server.post(MIGRATIONS, "{}")).await;
    assert_eq!(done["running"], false);
    assert_eq!(done["migrations"][0]["state"], "done");
    assert_eq!(done["migrations"][0]["counts"]["records"], 3);
    assert_eq!(told(200, query()).await["records"].as_array().unwrap().len(), 3);
    let after = told(200, server.get(MIGRATIONS)).await;
    assert_eq!(after["plan"]["build"], json!([]));
    assert_eq!(after["items"].as_array().unwrap().len(), 1);
    assert_eq!(after["items"][0]["id"], done["migrations"][0]["id"]);
    let older = format!("{MIGRATIONS}?before={}", after["items"][0]["id"].as_str().unwrap());
    assert_eq!(told(200, server.get(&older)).await["items"], json!([]));

    refused(400, "invalid", server.post(MIGRATIONS, r#"{"drop":["by_title"]}"#)).await;
    refused(400, "invalid", server.post(MIGRATIONS, r#"{"yes":true}"#)).await;
    refused(404, "unknown-store", server.get("/v1/stores/none/migrations")).await;
}

#[tokio::test]
async fn an_index_that_is_no_longer_declared_is_dropped_by_name() {
    let (folder, server) = outgrown(2).await;
    told(200, server.post(MIGRATIONS, "{}")).await;
    server.stop().await;
    let server = on(&folder, NOTES).await;
    let plan = told(200, server.get(MIGRATIONS)).await["plan"].clone();
    assert_eq!(plan["undeclared"][0]["index"], "by_title");
    assert_eq!(told(200, server.post(MIGRATIONS, "{}")).await["migrations"], json!([]));
    let done = told(200, server.post(MIGRATIONS, r#"{"drop":["by_title"]}"#)).await;
    assert_eq!(done["migrations"][0]["definition"]["kind"], "drop-index");
    assert_eq!(told(200, server.get(MIGRATIONS)).await["plan"]["undeclared"], json!([]));
}

#[tokio::test]
async fn a_migration_that_takes_long_goes_on_by_itself_and_alone() {
    let (_folder, server) = outgrown(3).await;
    let begun = answered(202, server.post(MIGRATIONS, r#"{"rate":2,"wait":0}"#)).await;
    assert_eq!(begun.headers()["location"], MIGRATIONS);
    refused(409, "overtaken", server.post(MIGRATIONS, "{}")).await;
    let ended = until_ended(&server, MIGRATIONS).await;
    assert_eq!(ended["items"][0]["state"], "done");
    assert_eq!(ended["plan"]["build"], json!([]));
    let found = told(200, server.post("/v1/spaces/notes/query", QUESTION)).await;
    assert_eq!(found["records"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn a_store_is_examined() {
    let server = served().await;
    let doctor = "/v1/stores/app/doctor";
    refused(404, "not-found", server.get(doctor)).await;
    let note = server.put("/v1/spaces/notes/records/user:ada:notes:n1", r#"{"title":"x"}"#);
    answered(201, note.header("idempotency-key", "k")).await;
    let well = told(200, server.post(doctor, "{}")).await;
    assert_eq!((&well["left"], &well["running"]), (&json!(0), &json!(false)), "{well}");
    assert!(well["keys"].as_u64().unwrap() > 0);

    // A key that no pattern of the schema matches.
    answered(200, server.put("/v1/stores/app/entries/stray:key", "1")).await;
    let begun = answered(202, server.post(doctor, r#"{"repair":true,"wait":0}"#)).await;
    assert_eq!(begun.headers()["location"], doctor);
    let ill = until_ended(&server, doctor).await;
    assert_eq!((&ill["left"], &ill["found"][0]["key"]), (&json!(1), &json!("stray:key")), "{ill}");
}
