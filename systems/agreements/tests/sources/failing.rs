//! Confluence, when it does not answer as it should: an error every time, and never "not there".

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use keyward_agreements::source::{
    Confluence, ConfluenceOptions, ConfluenceSettings, Secret, Source,
};
use keyward_engine::Coded;
use serde_json::{Value, json};

use crate::server::{Asked, Reply, Server};
use crate::wiki::{PDF, a_page, start, start_with, wiki};
use crate::{page, source};

const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";

/// Everything that is no answer.
fn failures() -> Vec<Reply> {
    let login = "<html><title>Log in</title></html>".to_owned();
    let whole = a_page("101", "Rules", "current").to_string();
    let mut failures: Vec<Reply> = [400, 401, 403, 405, 408, 410, 429, 500, 502, 503, 504]
        .map(|status| Reply::Json(status, json!({"message": "no"})))
        .to_vec();
    failures.extend([
        Reply::Text(200, HTML, login.clone()),
        Reply::Text(404, HTML, login),
        Reply::Text(404, "text/plain", "not found".to_owned()),
        Reply::Text(404, HTML, "{}".to_owned()),
        Reply::Text(404, JSON, "{".to_owned()),
        Reply::Text(200, JSON, String::new()),
        Reply::Text(200, JSON, "null".to_owned()),
        Reply::Text(200, JSON, whole[..whole.len() / 2].to_owned()),
        Reply::Json(200, json!({"results": "no list"})),
        Reply::Json(200, a_page("555", "Another", "current")),
        Reply::Redirect("/login".to_owned()),
        Reply::Redirect("https://elsewhere.example/login".to_owned()),
        Reply::Cut(JSON, whole),
        Reply::Flood(JSON),
    ]);
    failures
}

#[tokio::test]
async fn a_page_is_not_gone_because_confluence_fails() {
    for failure in failures() {
        let reply = failure.clone();
        let sees_all = |settings: &mut ConfluenceSettings| settings.missing_is_gone = true;
        let asked = start_with(
            move |asked| match &*asked.path {
                "/wiki/api/v2/pages/101" => reply.clone(),
                _ => wiki(asked),
            },
            sees_all,
        )
        .await;
        let found = asked.confluence.page(&page("101")).await;
        assert!(found.is_err(), "{failure:?}: {found:?}");
        assert!(!found.unwrap_err().to_string().contains("s3cret"));
        assert!(asked.confluence.read(&page("101"), &source("att1")).await.is_err());
    }
}

#[tokio::test]
async fn a_list_that_fails_in_any_part_is_an_error() {
    for failure in failures() {
        for part in ["limit=250", "cursor=c1", "cursor=c2"] {
            let reply = failure.clone();
            let asked = start(move |asked| match asked.query.ends_with(part) {
                true => reply.clone(),
                false => wiki(asked),
            })
            .await;
            assert!(asked.confluence.list().await.is_err(), "{part} {failure:?}");
            assert!(asked.confluence.page(&page("101")).await.is_err(), "{part} {failure:?}");
        }
    }
}

#[tokio::test]
async fn a_list_that_breaks_off_with_a_404_is_an_error() {
    let asked = start(|asked| match asked.query.contains("cursor=c2") {
        true => crate::wiki::not_found(),
        false => wiki(asked),
    })
    .await;
    assert!(asked.confluence.list().await.is_err());
    assert!(asked.confluence.page(&page("101")).await.is_err());
}

/// Lists whose next part is wherever this says.
fn leading_to(next: impl Fn(&Asked) -> Value + Send + Sync + 'static) -> impl Fn(&Asked) -> Reply {
    move |asked| match &*asked.path {
        "/wiki/api/v2/pages" => {
            Reply::Json(200, json!({"results": [], "_links": {"next": next(asked)}}))
        }
        _ => wiki(asked),
    }
}

#[tokio::test]
async fn lists_without_an_end_and_in_circles_are_found_out() {
    let circle = |asked: &Asked| match asked.query.contains("cursor=a") {
        true => json!("/wiki/api/v2/pages?cursor=b"),
        false => json!("/wiki/api/v2/pages?cursor=a"),
    };
    let asked = start(leading_to(circle)).await;
    assert!(asked.confluence.list().await.unwrap_err().to_string().contains("circle"));
    assert_eq!(asked.server.seen().len(), 3);
    let asked = start(leading_to(|_| json!("/wiki/api/v2/pages?start=25"))).await;
    assert!(asked.confluence.list().await.unwrap_err().to_string().contains("cursor"));
    let count = AtomicU32::new(0);
    let asked = start(leading_to(move |_| {
        json!(format!("?cursor={}", count.fetch_add(1, Ordering::Relaxed)))
    }))
    .await;
    assert!(asked.confluence.list().await.unwrap_err().to_string().contains("no end"));
}

#[tokio::test]
async fn a_next_part_elsewhere_is_asked_for_here() {
    let elsewhere = Server::start(wiki).await;
    let to = format!("{}/wiki/api/v2/pages?cursor=c2", elsewhere.url);
    let asked = start(move |asked| match (&*asked.path, asked.query.contains("cursor")) {
        ("/wiki/api/v2/pages", false) => {
            let page = a_page("1", "One", "current");
            Reply::Json(200, json!({"results": [page], "_links": {"next": to}}))
        }
        _ => wiki(asked),
    })
    .await;
    assert!(!asked.confluence.list().await.unwrap().is_empty());
    assert!(elsewhere.seen().is_empty());
}

/// Answers so to the first questions, and then as it should.
fn at_first(replies: Vec<Reply>) -> impl Fn(&Asked) -> Reply {
    let count = AtomicU32::new(0);
    move |asked| {
        let nth = count.fetch_add(1, Ordering::SeqCst) as usize;
        replies.get(nth).cloned().unwrap_or_else(|| wiki(asked))
    }
}

#[tokio::test]
async fn confluence_is_asked_again_when_it_is_busy() {
    let asked = start(at_first(vec![Reply::Later(429, 0), Reply::Json(503, json!({}))])).await;
    assert_eq!(asked.confluence.page(&page("102")).await.unwrap(), None);
    assert_eq!(asked.server.seen().len(), 3);
    let busy = vec![Reply::Json(503, json!({})); 3];
    let asked = start(at_first(busy)).await;
    assert!(asked.confluence.page(&page("102")).await.unwrap_err().retryable());
    assert_eq!(asked.server.seen().len(), 3, "it is not asked for ever");
}

#[tokio::test]
async fn confluence_is_not_asked_again_before_it_wants_to_be() {
    let asked = start(at_first(vec![Reply::Later(429, 3_600)])).await;
    assert!(asked.confluence.page(&page("102")).await.unwrap_err().retryable());
    assert_eq!(asked.server.seen().len(), 1);
}

#[tokio::test]
async fn what_will_not_change_is_not_asked_for_again() {
    let asked = start(at_first(vec![Reply::Json(401, json!({}))])).await;
    let refused = asked.confluence.page(&page("102")).await.unwrap_err();
    assert!(!refused.retryable() && refused.to_string().contains("token"), "{refused}");
    assert_eq!(asked.server.seen().len(), 1);
}

#[tokio::test]
async fn a_server_that_is_silent_or_away_is_an_error() {
    let silent = Server::start(|_| Reply::Never).await;
    let folder = tempfile::tempdir().unwrap();
    keyward_testkit::write_secret(folder.path().join("token"), "t").unwrap();
    let options = ConfluenceOptions {
        timeout: Duration::from_millis(50),
        attempts: 2,
        retry_wait_min: Duration::from_millis(1),
        ..ConfluenceOptions::default()
    };
    let open = |url: &str, token: &str| {
        let settings = ConfluenceSettings {
            base_url: url.to_owned(),
            email: None,
            token: Secret::File(folder.path().join(token)),
            space: None,
            root_page: None,
            missing_is_gone: true,
        };
        Confluence::new(settings, options).unwrap()
    };
    assert!(open(&silent.url, "token").page(&page("1")).await.unwrap_err().retryable());
    assert_eq!(silent.seen().len(), 2);
    // A token that is not there is no reason to ask.
    assert!(open(&silent.url, "no token").page(&page("1")).await.is_err());
    assert_eq!(silent.seen().len(), 2);
    let url = silent.url.clone();
    drop(silent);
    assert!(open(&url, "token").list().await.unwrap_err().retryable());
}

#[tokio::test]
async fn a_download_that_is_not_the_file_is_an_error() {
    let pdf = "application/pdf";
    let mut failures = failures();
    failures.extend([
        Reply::Text(200, pdf, PDF[..4].to_owned()),
        Reply::Text(200, pdf, format!("{PDF} and more")),
        Reply::Text(200, HTML, PDF.to_owned()),
        Reply::Cut(pdf, PDF[..4].to_owned()),
        Reply::Flood(pdf),
        crate::wiki::not_found(),
    ]);
    for failure in failures {
        // Where it leads to, there is nothing; certainly not outside.
        let reply = match failure.clone() {
            Reply::Redirect(to) if to.starts_with("https") => Reply::Redirect("ftp://x".to_owned()),
            reply => reply,
        };
        let asked = start(move |asked| match asked.path.ends_with("/download") {
            true => reply.clone(),
            false => wiki(asked),
        })
        .await;
        let read = asked.confluence.read(&page("101"), &source("att1")).await;
        assert!(read.is_err(), "{failure:?}");
    }
}

#[tokio::test]
async fn a_download_that_leads_on_and_on_is_given_up() {
    let asked = start(move |asked| match asked.path.ends_with("/download") {
        true => Reply::Redirect(asked.path.clone()),
        false => wiki(asked),
    })
    .await;
    assert!(asked.confluence.read(&page("101"), &source("att1")).await.is_err());
    let followed = asked.server.seen().iter().filter(|it| it.path.ends_with("/download")).count();
    assert_eq!(followed, 4);
}

#[tokio::test]
async fn what_is_larger_than_it_may_be_is_not_downloaded() {
    let asked = start(|asked| match asked.path.ends_with("/attachments") {
        true => {
            let huge = json!({
                "id": "att1", "status": "current", "title": "huge.pdf", "fileSize": 1 << 30,
                "version": {"number": 1, "createdAt": "2025-02-01T00:00:00Z"},
            });
            Reply::Json(200, json!({"results": [huge], "_links": {}}))
        }
        false => wiki(asked),
    })
    .await;
    assert!(asked.confluence.read(&page("101"), &source("att1")).await.is_err());
    assert!(!asked.server.seen().iter().any(|it| it.path.ends_with("/download")));
}
