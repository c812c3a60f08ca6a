//! A small Confluence.

use std::time::Duration;

use keyward_agreements::source::{
    Confluence, ConfluenceOptions, ConfluenceSettings, Secret, SourceLimits,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::{Asked, Reply, Server};

pub const PDF: &str = "%PDF-1.7 …";
pub const BODY: &str = "<h1>Rules</h1><ac:structured-macro ac:name=\"toc\" />";

/// What Confluence says of something that is not there, or must not be seen.
pub fn not_found() -> Reply {
    let error = json!({"status": 404, "code": "NOT_FOUND", "title": "Not Found", "detail": null});
    Reply::Json(404, json!({"errors": [error]}))
}

pub fn a_page(id: &str, title: &str, status: &str) -> Value {
    json!({
        "id": id, "status": status, "title": title, "spaceId": "77", "parentId": "100",
        "parentType": "page", "authorId": "a", "createdAt": "2025-01-01T00:00:00.000Z",
        "version": {"number": 3, "createdAt": "2025-06-01T10:00:00.000Z", "message": ""},
        "body": {"storage": {"representation": "storage", "value": BODY}},
        "_links": {"webui": "/spaces/LEGAL/pages/101"},
    })
}

fn attachment(id: &str, title: &str, media_type: &str, second: u32) -> Value {
    json!({
        "id": id, "status": "current", "title": title, "pageId": "101", "mediaType": media_type,
        "fileSize": PDF.len(), "createdAt": "2024-01-01T00:00:00.000Z",
        "version": {"number": 2, "createdAt": format!("2025-02-01T00:00:{second:02}.500Z")},
        "downloadLink": "/download/attachments/101/x.pdf?version=2", "comment": "",
    })
}

/// One part of a list that comes in three.
fn part(asked: &Asked, items: &[Value]) -> Reply {
    let at = ["cursor=c1", "cursor=c2"].iter().position(|it| asked.query.contains(it));
    let at = at.map_or(0, |at| at + 1);
    let size = items.len().div_ceil(3).max(1);
    let some: Vec<&Value> = items.iter().skip(at * size).take(size).collect();
    let path = &asked.path;
    let links = match at {
        2 => json!({"base": "https://elsewhere.example/wiki"}),
        at => json!({"next": format!("{path}?limit=250&cursor=c{}", at + 1)}),
    };
    Reply::Json(200, json!({"results": some, "_links": links}))
}

/// What is answered to credentials that see all there is.
pub fn wiki(asked: &Asked) -> Reply {
    let Some(path) = asked.path.strip_prefix("/wiki/") else { return Reply::Json(500, json!({})) };
    if asked.credentials.is_none() {
        return Reply::Json(401, json!({"message": "Unauthorized"}));
    }
    match path {
        "api/v2/spaces" if asked.query.contains("keys=") && !asked.query.contains("keys=LEGAL") => {
            Reply::Json(200, json!({"results": [], "_links": {}}))
        }
        "api/v2/spaces" => {
            let space = json!({"id": "77", "key": "LEGAL", "name": "Legal", "status": "current"});
            Reply::Json(200, json!({"results": [space], "_links": {}}))
        }
        "api/v2/pages" | "api/v2/spaces/77/pages" => {
            let titles = ["Home", "Rules", "학칙", "Four", "Five"].into_iter().enumerate();
            let page = |(n, title): (usize, _)| a_page(&(100 + n).to_string(), title, "current");
            part(asked, &titles.map(page).collect::<Vec<_>>())
        }
        "api/v2/pages/100" => Reply::Json(200, a_page("100", "Home", "current")),
        "api/v2/pages/101" => Reply::Json(200, a_page("101", "Rules", "current")),
        "api/v2/pages/102" => Reply::Json(200, a_page("102", "Old", "trashed")),
        "api/v2/pages/103" => Reply::Json(200, a_page("103", "Draft", "draft")),
        "api/v2/pages/101/attachments" => {
            let gone = json!({
                "id": "att9", "status": "trashed", "title": "gone.pdf",
                "version": {"number": 1, "createdAt": "2025-02-01T00:00:00Z"},
            });
            part(
                asked,
                &[
                    attachment("att3", "Ordnung \"neu\" (1).pdf", "application/pdf", 3),
                    attachment("att1", "학칙 개정.pdf", "application/pdf", 1),
                    attachment("att2", "../../etc/passwd", "text/plain", 2),
                    gone,
                ],
            )
        }
        "api/v2/pages/101/ancestors" => {
            Reply::Json(200, json!({"results": [{"id": "100", "type": "page"}], "_links": {}}))
        }
        "api/v2/pages/100/descendants" => {
            let item = |id: &str, kind: &str, depth: u32| {
                json!({"id": id, "status": "current", "title": id, "type": kind,
                       "parentId": "100", "depth": depth, "childPosition": 1})
            };
            part(
                asked,
                &[
                    item("101", "page", 1),
                    item("150", "folder", 5),
                    item("151", "database", 1),
                    item("152", "page", 5),
                ],
            )
        }
        "api/v2/folders/150/descendants" => {
            let deep = json!({"id": "160", "status": "current", "title": "Deep", "type": "page",
                              "parentId": "150", "depth": 1, "childPosition": 1});
            Reply::Json(200, json!({"results": [deep], "_links": {}}))
        }
        "api/v2/pages/152/descendants" => Reply::Json(200, json!({"results": [], "_links": {}})),
        "rest/api/content/101/child/attachment/att1/download" => {
            assert_eq!(asked.query, "version=2");
            Reply::Text(200, "application/pdf", PDF.to_owned())
        }
        _ => not_found(),
    }
}

pub struct Wiki {
    pub server: Server,
    pub confluence: Confluence,
    _token: TempDir,
}

/// A Confluence that answers so, and a source that asks it.
pub async fn start(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Wiki {
    start_with(answer, |_| {}).await
}

pub async fn start_with(
    answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    change: impl Fn(&mut ConfluenceSettings),
) -> Wiki {
    let server = Server::start(answer).await;
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    keyward_testkit::write_secret(&token, "s3cret\n").unwrap();
    let mut settings = ConfluenceSettings {
        base_url: server.url.clone(),
        email: Some("reader@example.com".to_owned()),
        token: Secret::File(token),
        space: None,
        root_page: None,
        missing_is_gone: false,
    };
    change(&mut settings);
    let options = ConfluenceOptions {
        attempts: 3,
        retry_wait_min: Duration::from_millis(1),
        answer_bytes_max: 64 << 10,
        limits: SourceLimits { attachment_bytes_max: 64 << 10, ..SourceLimits::default() },
        ..ConfluenceOptions::default()
    };
    let confluence = Confluence::new(settings, options).unwrap();
    Wiki { server, confluence, _token: folder }
}
