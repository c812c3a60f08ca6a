//! Coordinators of a schema's stores.

use keyward::Data;
use keyward::schema::Schema;

fn data(text: &str) -> Data {
    let schema = Schema::parse(text, "schema.toml").unwrap();
    Data::beside(schema, "/srv/app".as_ref())
}

const DECLARED: &str =
    "[stores.kv]\nurl = 'cloudflare-kv://a/n'\ncoordinator = 'embedded:./coord'\n";

#[test]
fn a_coordinator_becomes_part_of_the_url_and_is_relative_to_the_schema() {
    let beside = "cloudflare-kv://a/n?coordinator=embedded:/srv/app/./coord";
    assert_eq!(data(DECLARED).url("kv").unwrap(), beside);
    let inside = "[stores.kv]\nurl = 'cloudflare-kv://a/n?coordinator=embedded:./coord'\n";
    assert_eq!(data(inside).url("kv").unwrap(), beside);
}

#[test]
fn a_store_that_is_named_otherwise_keeps_its_coordinator_and_another_one_does_not() {
    let at = |schema: &str, url: &str| data(schema).at("kv", url).unwrap().url("kv").unwrap();
    let same = "cloudflare-kv://a/n?answer_timeout=5s";
    assert_eq!(at(DECLARED, same), format!("{same}&coordinator=embedded:/srv/app/./coord"));
    let inside = "[stores.kv]\nurl = 'cloudflare-kv://a/n?coordinator=embedded:./coord'\n";
    assert_eq!(at(inside, same), format!("{same}&coordinator=embedded:/srv/app/./coord"));
    for other in [
        "cloudflare-kv://a/other",
        "cloudflare-kv://a/n?coordinator=embedded:/its/own",
        "embedded:/data",
    ] {
        assert_eq!(at(DECLARED, other), other);
    }
    // The schema leaves open where the store is.
    let open = "[stores.kv]\ncoordinator = 'embedded:./coord'\n";
    let named = at(open, "cloudflare-kv://a/n");
    assert_eq!(named, "cloudflare-kv://a/n?coordinator=embedded:/srv/app/./coord");
    assert_eq!(at(open, "embedded:/data"), "embedded:/data");
}

#[tokio::test]
async fn stores_with_one_coordinator_are_refused_before_anything_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let schema = "[stores.a]\nurl = 'cloudflare-kv://a/n'\ncoordinator = 'embedded:./c'\n\
                  [stores.b]\nurl = 'cloudflare-kv://a/m?coordinator=embedded:c'\n\
                  [stores.fine]\nurl = 'embedded:./fine'\n";
    let data = Data::beside(Schema::parse(schema, "schema.toml").unwrap(), folder.path());
    for store in ["a", "b"] {
        let error = data.records(store).await.unwrap_err();
        assert!(error.to_string().contains("have the same coordinator"), "{error}");
    }
    data.records("fine").await.unwrap();
    let problems = data.check().unwrap();
    let told: Vec<_> = problems.iter().map(|it| (it.code, it.line)).collect();
    assert_eq!(told, [("coordinator", 3), ("coordinator", 5)]);
    assert!(!folder.path().join("c").exists());
}

#[test]
fn a_coordinator_that_is_a_store_of_the_schema_is_refused() {
    let schema = "[stores.kv]\nurl = 'cloudflare-kv://a/n'\ncoordinator = 'embedded:./main'\n\
                  [stores.main]\nurl = 'embedded:main'\n";
    let error = data(schema).url("kv").unwrap_err();
    assert!(error.to_string().contains("is the store main"), "{error}");
}
