//! The description of the API, and the pages for people.

use std::io::Read as _;
use std::path::Path;

use crate::fixture::{Running, answered, refused, told};

/// The file in the tree. `KEYWARD_WRITE=1` writes it anew.
#[test]
fn the_description_in_the_tree_is_that_of_the_code() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let described = serde_json::to_string_pretty(&keyward_server::openapi()).unwrap() + "\n";
    if std::env::var_os("KEYWARD_WRITE").is_some() {
        std::fs::write(&file, &described).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        written == described,
        "docs/openapi.json is not what the code says; write it anew with\n  KEYWARD_WRITE=1 cargo \
         nextest run -p keyward-server the_description_in_the_tree"
    );
}

#[test]
fn every_operation_says_what_it_does_and_how_it_fails() {
    let api = keyward_server::openapi();
    let mut names = std::collections::BTreeSet::new();
    for (path, methods) in api["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let at = format!("{method} {path}");
            assert!(operation["summary"].as_str().is_some_and(|it| it.ends_with('.')), "{at}");
            assert!(operation["tags"][0].is_string(), "{at}");
            let name = operation["operationId"].as_str().unwrap().to_owned();
            assert!(names.insert(name.clone()), "{at}: two operations are called {name}");
            for problem in ["4XX", "5XX"] {
                let content = &operation["responses"][problem]["content"];
                assert!(content["application/problem+json"].is_object(), "{at} {problem}");
            }
        }
    }
    assert!(names.len() > 5);
}

#[tokio::test]
async fn pages_for_people_need_nothing_from_elsewhere() {
    let server = Running::new().await;
    for path in ["/", "/problems", "/docs/"] {
        let answer = answered(200, server.get(path)).await;
        assert!(answer.headers()["content-type"].to_str().unwrap().starts_with("text/html"));
        let text = unpacked(answer).await;
        for part in text.split(['"', '\'']) {
            let elsewhere = part.starts_with("http://") || part.starts_with("https://");
            assert!(!elsewhere || part == "http://www.w3.org/2000/svg", "{path}: {part}");
        }
    }
    answered(200, server.get("/home.js")).await;
    answered(200, server.get("/problems/bad-cursor")).await;
    refused(404, "not-found", server.get("/problems/none")).await;
    assert_eq!(told(200, server.get("/openapi.json")).await["info"]["title"], "Keyward");
}

#[tokio::test]
async fn browsers_are_told_what_they_may_do_with_every_answer() {
    let server = Running::new().await;
    answered(200, server.put("/v1/stores/main/entries/a", "1")).await;
    for (status, path) in [
        (200, "/v1/stores"),
        (200, "/v1/stores/main/entries/a"),
        (404, "/v1/stores/main/entries/none"),
        (404, "/none"),
        (200, "/openapi.json"),
        (200, "/metrics"),
        (200, "/healthz"),
    ] {
        let answer = answered(status, server.get(path)).await;
        assert_eq!(answer.headers()["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(answer.headers()["cache-control"], "no-store", "{path}");
    }
    let watch = answered(200, server.get("/v1/stores/main/watch")).await;
    assert_eq!(watch.headers()["x-content-type-options"], "nosniff");
    assert!(watch.headers().contains_key("cache-control"));

    let parts = ["/docs/swagger-ui-bundle.js", "/docs/swagger-initializer.js", "/docs/index.css"];
    for path in ["/", "/home.js", "/style.css", "/problems", "/docs/"].into_iter().chain(parts) {
        let answer = answered(200, server.get(path)).await;
        let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(header("x-frame-options"), "DENY", "{path}");
        assert_eq!(header("referrer-policy"), "no-referrer", "{path}");
        let policy = header("content-security-policy");
        for part in ["default-src 'none'", "script-src 'self';", "frame-ancestors 'none'"] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(policy.contains("base-uri 'none'") && !policy.contains("unsafe-eval"), "{policy}");
    }
}

/// The text of a page, as a browser reads it: the files of `/docs/` are kept and sent compressed.
async fn unpacked(answer: reqwest::Response) -> String {
    if !answer.headers().contains_key("content-encoding") {
        return answer.text().await.unwrap();
    }
    assert_eq!(answer.headers()["content-encoding"], "gzip");
    let packed = answer.bytes().await.unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
    text
}

/// What the policy of its page does not let run or load is not in it.
#[tokio::test]
async fn the_documentation_works_under_its_policy() {
    let server = Running::new().await;
    let page = unpacked(answered(200, server.get("/docs/")).await).await;
    for script in page.split("<script").skip(1) {
        let (tag, rest) = script.split_once('>').unwrap();
        assert!(tag.contains("src="), "{page}");
        assert_eq!(rest.split("</script>").next().unwrap().trim(), "", "{page}");
    }
    assert!(!page.contains("onload=") && !page.contains("<base"), "{page}");
    let style = unpacked(answered(200, server.get("/docs/swagger-ui.css")).await).await;
    assert!(!style.contains("@import") && !style.contains("@font-face"));
    for loaded in style.split("url(").skip(1) {
        assert!(loaded.trim_start_matches(['"', '\'']).starts_with("data:image/"));
    }
    let config = answered(200, server.get("/docs/swagger-initializer.js")).await;
    let config = config.text().await.unwrap();
    assert!(config.contains("\"validatorUrl\": \"none\""), "{config}");
}

#[tokio::test]
async fn it_says_how_it_is() {
    let server = Running::new().await;
    assert_eq!(told(200, server.get("/healthz")).await["status"], "alive");
    assert_eq!(told(200, server.get("/readyz")).await["status"], "ready");
    refused(404, "not-found", server.get("/v1/stores/main/entries/canary-key")).await;
    let metrics = answered(200, server.get("/metrics")).await.text().await.unwrap();
    let line = "keyward_http_requests_total{method=\"GET\",\
                route=\"/v1/stores/{store}/entries/{key}\",status=\"404\"} 1";
    assert!(metrics.contains(line), "{metrics}");
    assert!(metrics.contains("keyward_http_problems_total{code=\"not-found\"} 1"), "{metrics}");
    assert!(!metrics.contains("canary-key"), "{metrics}");
}

#[tokio::test]
async fn every_answer_has_the_id_of_its_request() {
    let server = Running::new().await;
    let given = answered(200, server.get("/healthz").header("x-request-id", "mine-1")).await;
    assert_eq!(given.headers()["x-request-id"], "mine-1");
    let made_up = answered(200, server.get("/healthz").header("x-request-id", "a b")).await;
    let other = answered(404, server.get("/none")).await;
    assert_ne!(made_up.headers()["x-request-id"], other.headers()["x-request-id"]);
    assert_ne!(made_up.headers()["x-request-id"], "a b");
}
