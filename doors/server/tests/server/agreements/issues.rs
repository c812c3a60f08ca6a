//! Issues, and those who change them at the same time.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{PAGE, Served};
use crate::fixture::{answered, etag, refused, told};

#[tokio::test]
async fn an_issue_goes_from_its_making_to_its_end() {
    let served = Served::new().await;
    let body = json!({
        "title": "  Twenty\nor thirty? ", "severity": 2, "annotations": "ask Eve",
        "description": ["The page says twenty."],
    });
    let made = served.server.post(&format!("{PAGE}/issues"), &body.to_string());
    let made = answered(201, made).await;
    let (place, first) = (made.headers()["location"].to_str().unwrap().to_owned(), etag(&made));
    let made: Value = made.json().await.unwrap();
    assert_eq!((&made["title"], &made["state"]), (&json!("Twenty or thirty?"), &json!("pending")));
    assert_eq!(format!("\"{}\"", made["version"].as_str().unwrap()), first);
    let shown = answered(200, served.server.get(&place)).await;
    assert_eq!(etag(&shown), first);
    assert_eq!(shown.json::<Value>().await.unwrap(), made);
    let known = served.server.get(&place).header("if-none-match", &first);
    answered(304, known).await;

    let active =
        told(200, served.change(&made, json!({ "state": "active", "why": "begun" }))).await;
    assert_eq!(active["history"][1]["why"], "begun");
    let noted = told(200, served.change(&made, json!({ "note": "Eve says thirty." }))).await;
    assert_eq!(noted["annotations"], "ask Eve\n\nEve says thirty.");
    let replaced = told(200, served.change(&made, json!({ "annotations": "thirty" }))).await;
    assert_eq!(replaced["annotations"], "thirty");
    assert_eq!(told(200, served.change(&made, json!({ "severity": 3 }))).await["severity"], 3);
    let resolved = told(200, served.change(&made, json!({ "state": "resolved" }))).await;
    assert!(resolved["resolvedAt"].is_string(), "{resolved}");
    let problem =
        refused(409, "transition-refused", served.change(&made, json!({ "state": "blocked" })))
            .await;
    assert_eq!(problem["allowed"], "active");
    told(200, served.change(&made, json!({ "archived": true }))).await;
    refused(409, "issue-archived", served.change(&made, json!({ "state": "active" }))).await;
    told(200, served.change(&made, json!({ "archived": false }))).await;
    let reopened = told(200, served.change(&made, json!({ "state": "active" }))).await;
    assert!(reopened["resolvedAt"].is_null(), "{reopened}");
}

#[tokio::test]
async fn what_is_no_issue_or_no_change_is_refused() {
    let served = Served::new().await;
    let issue = served.issue("One", 1).await;
    for body in [
        json!({}),
        json!({ "why": "no reason" }),
        json!({ "severity": 4 }),
        json!({ "severity": 1, "state": "active" }),
        json!({ "state": "done" }),
        json!({ "title": "Two" }),
        json!([1]),
    ] {
        refused(400, "invalid", served.change(&issue, body)).await;
    }
    let marked = served.change(&issue, json!({ "severity": 2 })).header("idempotency-key", "k");
    refused(400, "invalid", marked).await;
    let absent = served.change(&issue, json!({ "severity": 2 })).header("if-none-match", "*");
    refused(400, "invalid", absent).await;
    let unknown = json!({ "id": "f47ac10b-58cc-4372-a567-0e02b2c3d479" });
    refused(404, "unknown-issue", served.change(&unknown, json!({ "severity": 2 }))).await;
    let at = format!("{PAGE}/issues/f47ac10b-58cc-4372-a567-0e02b2c3d479");
    refused(404, "unknown-issue", served.server.get(&at)).await;
    refused(400, "invalid", served.server.get(&format!("{PAGE}/issues/7"))).await;
    for body in
        [r#"{"severity":1}"#, r#"{"title":"","severity":1}"#, r#"{"title":"T","severity":0}"#]
    {
        refused(400, "invalid", served.server.post(&format!("{PAGE}/issues"), body)).await;
    }
    let none = "/v1/agreements/inbox/pages/none/issues";
    refused(404, "unknown-page", served.server.post(none, r#"{"title":"T","severity":1}"#)).await;
    for query in
        ["state=done", "severity=4", "sort=size", "limit=0", "limit=201", "after=x", "archived=1"]
    {
        refused(400, "invalid", served.server.get(&format!("{PAGE}/issues?{query}"))).await;
    }
}

#[tokio::test]
async fn issues_are_listed_filtered_and_sorted_in_pages() {
    let served = Served::new().await;
    let (low, _, high) = (
        served.issue("Low Ä", 1).await,
        served.issue("Mid", 2).await,
        served.issue("High", 3).await,
    );
    told(200, served.change(&high, json!({ "state": "active" }))).await;
    told(200, served.change(&low, json!({ "archived": true }))).await;
    let titles = async |query: &str| -> Vec<String> {
        let listed = told(200, served.server.get(&format!("{PAGE}/issues?{query}"))).await;
        let items = listed["items"].as_array().unwrap().iter();
        items.map(|issue| issue["title"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(titles("").await, ["High", "Mid"]);
    assert_eq!(titles("archived=included&sort=title").await, ["High", "Low Ä", "Mid"]);
    assert_eq!(titles("archived=only").await, ["Low Ä"]);
    assert_eq!(titles("state=active,blocked").await, ["High"]);
    assert_eq!(titles("severity=1,2&archived=included&text=low%20%C3%A4").await, ["Low Ä"]);
    assert_eq!(titles("source=leave").await, [""; 0]);
    assert_eq!(titles("stale=true").await, [""; 0]);
    let first = told(200, served.server.get(&format!("{PAGE}/issues?limit=1"))).await;
    assert_eq!((&first["total"], &first["items"][0]["history"]), (&json!(2), &Value::Null));
    let next = first["next"].as_str().unwrap();
    assert_eq!(titles(&format!("limit=1&after={next}")).await, ["Mid"]);
    refused(400, "invalid", served.server.get(&format!("{PAGE}/issues?sort=title&after={next}")))
        .await;
}

#[tokio::test]
async fn of_two_who_move_an_issue_one_is_told_what_the_other_did() {
    let served = Served::new().await;
    let issue = served.issue("Contested", 2).await;
    let tag = format!("\"{}\"", issue["version"].as_str().unwrap());
    let moves = ["active", "blocked", "resolved", "active"].map(|state| {
        served.change(&issue, json!({ "state": state })).header("if-match", &tag).send()
    });
    let answers = join_all(moves).await.into_iter().map(Result::unwrap);
    let (won, lost): (Vec<_>, Vec<_>) = answers.partition(|answer| answer.status() == 200);
    assert_eq!((won.len(), lost.len()), (1, 3));
    for answer in lost {
        let status = answer.status();
        let problem: Value = answer.json().await.unwrap();
        assert_eq!((status.as_u16(), &problem["code"]), (412, &json!("precondition-failed")));
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("local moved it from pending to"), "{detail}");
        assert!(detail.contains(" at 20"), "{detail}");
    }
    // Without a version, what cannot be done any more is refused, or nothing of it is lost.
    let issue = served.issue("Again", 2).await;
    let moves = (0..4).map(|_| served.change(&issue, json!({ "state": "active" })).send());
    let statuses: Vec<u16> =
        join_all(moves).await.into_iter().map(|answer| answer.unwrap().status().as_u16()).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 409).count(), 3, "{statuses:?}");
    // Several tags are as good as the one that is meant.
    let now = told(200, served.change(&issue, json!({ "note": "x" }))).await;
    let tags = format!("\"0\", \"{}\"", now["version"].as_str().unwrap());
    let change = |tags: &str| {
        served.change(&issue, json!({ "severity": 3 })).header("if-match", tags.to_owned())
    };
    told(200, change(&tags)).await;
    refused(412, "precondition-failed", change("\"0\", \"1x\"")).await;
    told(200, change("*")).await;
}

#[tokio::test]
async fn notes_of_several_are_all_kept() {
    let served = Served::new().await;
    let issue = served.issue("Noted", 1).await;
    let notes =
        (0..6).map(|at| told(200, served.change(&issue, json!({ "note": format!("n{at}") }))));
    join_all(notes).await;
    let at = format!("{PAGE}/issues/{}", issue["id"].as_str().unwrap());
    let shown = told(200, served.server.get(&at)).await;
    for at in 0..6 {
        assert!(shown["annotations"].as_str().unwrap().contains(&format!("n{at}")), "{shown}");
    }
    assert_eq!(shown["history"].as_array().unwrap().len(), 7);
}

#[tokio::test]
async fn issues_are_exported_and_run_nothing() {
    let served = Served::new().await;
    served.issue("=HYPERLINK(\"http://x\")", 3).await;
    let archived = served.issue("Away", 1).await;
    told(200, served.change(&archived, json!({ "archived": true }))).await;
    let export = |form: &str| served.server.get(&format!("{PAGE}/issues/export?format={form}"));
    let csv = answered(200, export("csv")).await;
    assert_eq!(csv.headers()["content-type"], "text/csv; charset=utf-8");
    assert_eq!(csv.headers()["content-security-policy"], "default-src 'none'; sandbox");
    let csv = csv.text().await.unwrap();
    assert!(csv.contains("'=HYPERLINK") && csv.contains("Away"), "{csv}");
    let markdown = answered(200, export("markdown")).await;
    assert_eq!(markdown.headers()["content-type"], "text/markdown; charset=utf-8");
    assert!(markdown.text().await.unwrap().starts_with("# Issues"));
    refused(400, "invalid", export("pdf")).await;
}
