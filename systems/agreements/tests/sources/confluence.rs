//! Pages of Confluence, as long as it answers.

use keyward_agreements::BodyFormat;
use keyward_agreements::source::Source;
use keyward_engine::{Code, Coded};
use serde_json::json;

use crate::server::{Reply, Server};
use crate::wiki::{BODY, PDF, a_page, not_found, start, start_with, wiki};
use crate::{page, source};

#[tokio::test]
async fn a_list_comes_in_parts() {
    for space in [None, Some("LEGAL".to_owned())] {
        let asked = start_with(wiki, |settings| settings.space = space.clone()).await;
        let pages = asked.confluence.list().await.unwrap();
        let shown: Vec<_> = pages.iter().map(|page| (page.id.as_str(), &*page.title)).collect();
        let all =
            [("100", "Home"), ("101", "Rules"), ("102", "학칙"), ("103", "Four"), ("104", "Five")];
        assert_eq!(shown, all);
        let parts = asked.server.seen().iter().filter(|it| it.path.ends_with("/pages")).count();
        assert_eq!(parts, 3);
    }
}

#[tokio::test]
async fn a_page_has_its_stored_text_and_all_its_attachments() {
    let asked = start_with(wiki, |settings| settings.space = Some("LEGAL".to_owned())).await;
    let found = asked.confluence.page(&page("101")).await.unwrap().unwrap();
    assert_eq!((&*found.title, &*found.body, found.body_format), ("Rules", BODY, BodyFormat::Html));
    assert_eq!(found.updated.to_string(), "2025-06-01T10:00:00Z");
    let shown: Vec<_> =
        found.attachments.iter().map(|it| (it.source.as_str(), &*it.name)).collect();
    let all = [
        ("att1", "학칙 개정.pdf"),
        ("att2", "../../etc/passwd"),
        ("att3", "Ordnung \"neu\" (1).pdf"),
    ];
    assert_eq!(shown, all);
    assert_eq!(found.attachments[0].created.to_string(), "2025-02-01T00:00:01.5Z");
    assert_eq!(found.attachments[0].media_type.as_deref(), Some("application/pdf"));
    assert_eq!(found.attachments[0].bytes, Some(PDF.len() as u64));
    // "reader@example.com:s3cret"
    let credentials = "Basic cmVhZGVyQGV4YW1wbGUuY29tOnMzY3JldA==";
    let seen = asked.server.seen();
    assert!(seen.iter().all(|it| it.credentials.as_deref() == Some(credentials)), "{seen:?}");
}

#[tokio::test]
async fn a_token_without_an_address_is_a_bearer() {
    let asked = start_with(wiki, |settings| settings.email = None).await;
    asked.confluence.page(&page("101")).await.unwrap().unwrap();
    assert_eq!(asked.server.seen()[0].credentials.as_deref(), Some("Bearer s3cret"));
}

#[tokio::test]
async fn below_a_root_page_all_pages_are_found_at_any_depth() {
    let root = |settings: &mut keyward_agreements::source::ConfluenceSettings| {
        settings.root_page = Some("100".to_owned());
    };
    let asked = start_with(wiki, root).await;
    let pages = asked.confluence.list().await.unwrap();
    let ids: Vec<_> = pages.iter().map(|page| page.id.as_str()).collect();
    assert_eq!(ids, ["100", "101", "152", "160"]);
    assert!(asked.confluence.page(&page("101")).await.unwrap().is_some());
    let moved = start_with(
        |asked| match &*asked.path {
            "/wiki/api/v2/pages/101/ancestors" => {
                Reply::Json(200, json!({"results": [{"id": "999", "type": "page"}]}))
            }
            _ => wiki(asked),
        },
        root,
    );
    assert!(moved.await.confluence.page(&page("101")).await.is_err());
}

#[tokio::test]
async fn a_page_that_is_shown_as_trashed_is_gone() {
    let asked = start(wiki).await;
    assert_eq!(asked.confluence.page(&page("102")).await.unwrap(), None);
    assert_eq!(asked.confluence.read(&page("102"), &source("att1")).await.unwrap(), None);
    assert!(asked.confluence.page(&page("103")).await.is_err(), "a draft is neither");
}

#[tokio::test]
async fn a_page_that_is_not_shown_may_be_hidden() {
    let asked = start(wiki).await;
    let unknown = asked.confluence.page(&page("999")).await.unwrap_err();
    assert_eq!(unknown.code(), Code::SourceFailed);
    assert!(asked.confluence.read(&page("999"), &source("att1")).await.is_err());
}

#[tokio::test]
async fn a_page_that_is_not_shown_is_gone_for_credentials_that_see_everything() {
    let sees_all = |settings: &mut keyward_agreements::source::ConfluenceSettings| {
        settings.missing_is_gone = true;
        settings.space = Some("LEGAL".to_owned());
    };
    let asked = start_with(wiki, sees_all).await;
    assert_eq!(asked.confluence.page(&page("999")).await.unwrap(), None);
    // Credentials that see nothing any more say nothing.
    let nothing = json!({"results": [], "_links": {}});
    for spaces in [Reply::Json(200, nothing), Reply::Json(401, json!({})), not_found()] {
        let asked = start_with(
            move |asked| match &*asked.path {
                "/wiki/api/v2/spaces" => spaces.clone(),
                _ => wiki(asked),
            },
            sees_all,
        );
        assert!(asked.await.confluence.page(&page("999")).await.is_err());
    }
    // Nor does a root page that is hidden.
    let rooted = start_with(wiki, |settings| {
        sees_all(settings);
        settings.root_page = Some("998".to_owned());
    });
    assert!(rooted.await.confluence.page(&page("999")).await.is_err());
}

#[tokio::test]
async fn a_page_of_another_space_is_an_error() {
    let mut elsewhere = a_page("101", "Rules", "current");
    elsewhere["spaceId"] = json!("78");
    let asked = start_with(
        move |asked| match &*asked.path {
            "/wiki/api/v2/pages/101" => Reply::Json(200, elsewhere.clone()),
            _ => wiki(asked),
        },
        |settings| settings.space = Some("LEGAL".to_owned()),
    );
    assert!(asked.await.confluence.page(&page("101")).await.is_err());
    let unknown = start_with(wiki, |settings| settings.space = Some("NONE".to_owned())).await;
    assert!(unknown.confluence.list().await.is_err());
    assert!(unknown.confluence.page(&page("101")).await.is_err());
}

#[tokio::test]
async fn ids_that_are_no_numbers_are_refused_and_not_asked_for() {
    let asked = start(wiki).await;
    for id in ["abc", "101/attachments", "..", "1 OR 1", "１０１"] {
        assert!(asked.confluence.page(&page(id)).await.is_err(), "{id}");
    }
    assert!(asked.server.seen().is_empty());
    // Others' attachments are not there, whatever they are called.
    for id in ["att9", "../../101", "att1/../att2"] {
        let read = asked.confluence.read(&page("101"), &source(id)).await.unwrap();
        assert_eq!(read, None, "{id}");
    }
}

#[tokio::test]
async fn an_attachment_is_downloaded() {
    let asked = start(wiki).await;
    let read = asked.confluence.read(&page("101"), &source("att1")).await.unwrap();
    assert_eq!(read.unwrap(), PDF);
}

#[tokio::test]
async fn a_download_is_followed_to_another_host_without_the_credentials() {
    let media = Server::start(|asked| match &*asked.path {
        "/file/1/binary" => Reply::Redirect("/file/2/binary".to_owned()),
        _ => Reply::Text(200, "application/octet-stream", PDF.to_owned()),
    })
    .await;
    let to = format!("{}/file/1/binary?token=jwt", media.url);
    let asked = start(move |asked| match asked.path.ends_with("/download") {
        true => Reply::Redirect(to.clone()),
        false => wiki(asked),
    })
    .await;
    let read = asked.confluence.read(&page("101"), &source("att1")).await.unwrap();
    assert_eq!(read.unwrap(), PDF);
    let seen = media.seen();
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|asked| asked.credentials.is_none()), "{seen:?}");
}
