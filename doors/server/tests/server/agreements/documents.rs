//! Policies, as documents in all forms and languages.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{INBOX, Model, PAGE, POLICY, SHELF, Served, TRANSLATION};
use crate::fixture::{answered, etag, refused, told};

#[tokio::test]
async fn a_policy_is_extracted_once_and_given_out_in_three_forms() {
    let served = Served::new().await;
    let at = format!("{PAGE}/policies/leave");
    let get = |accept: &str| served.server.get(&at).header("accept", accept);
    let before = told(200, served.server.get(&format!("{PAGE}/policies"))).await;
    assert_eq!(before["policies"]["leave"]["extracted"], false);
    refused(404, "not-made", served.server.get(&at)).await;
    let document = told(200, served.make(&at)).await;
    assert_eq!(told(200, served.server.get(&at)).await, document);
    assert_eq!((&document["title"], &document["original"]), (&json!("Leave"), &json!(true)));
    assert_eq!((&document["language"], &document["content"]), (&json!("en"), &json!(POLICY)));
    let after = told(200, served.server.get(&format!("{PAGE}/policies"))).await;
    let listed = &after["policies"]["leave"];
    assert_eq!((&listed["extracted"], &listed["name"]), (&json!(true), &json!("leave.md")));
    let markdown = answered(200, get("text/markdown")).await;
    assert_eq!(markdown.headers()["content-type"], "text/markdown; charset=utf-8");
    assert_eq!(markdown.headers()["vary"], "accept");
    let tag = etag(&markdown);
    assert_eq!(markdown.text().await.unwrap(), POLICY);
    let known = get("text/markdown").header("if-none-match", &tag);
    assert_eq!(answered(304, known).await.text().await.unwrap(), "");
    // Another form is another thing to have.
    answered(200, get("text/html").header("if-none-match", &tag)).await;
    let html = answered(200, get("text/html, */*;q=0.1")).await;
    assert_eq!(html.headers()["content-type"], "text/html; charset=utf-8");
    let html = html.text().await.unwrap();
    assert!(html.contains("<html lang=\"en\">") && html.contains("<h1>Leave</h1>"), "{html}");
    let folder = format!("{SHELF}/pages/lease/policies/leave.md");
    assert_eq!(told(200, served.make(&folder)).await["content"], POLICY);
    // What was asked for by POST is given out whole, whatever the client has.
    let made = served.make(&at).header("accept", "text/markdown").header("if-none-match", &tag);
    assert_eq!(answered(200, made).await.text().await.unwrap(), POLICY);
}

#[tokio::test]
async fn a_get_starts_nothing_and_a_key_that_reads_has_nothing_made() {
    let served = Served::new().await;
    let admin = served.server.admin().await;
    let scopes = json!({ "name": "r", "scopes": ["read:agreements/inbox"] });
    let reader = served.server.key(&admin, &scopes).await;
    let all = async |path: &str| {
        let listed = served.server.get(&format!("/v1/stores/inbox/{path}"));
        let listed = told(200, listed.bearer_auth(&admin.secret)).await["items"].clone();
        let mut keys: Vec<String> = listed
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["id"].as_str().or(item["key"].as_str()).unwrap().to_owned())
            .collect();
        keys.sort();
        keys
    };
    let jobs = all("jobs").await;
    for query in ["", "?language=fr", "?language=de"] {
        let at = format!("{PAGE}/policies/leave{query}");
        for secret in [&reader.secret, &admin.secret] {
            let problem =
                refused(404, "not-made", served.server.get(&at).bearer_auth(secret)).await;
            assert!(problem["hint"].as_str().unwrap().starts_with("POST "), "{problem}");
        }
        refused(403, "forbidden", served.make(&at).bearer_auth(&reader.secret)).await;
    }
    let listed = served.server.get(&format!("{PAGE}/policies")).bearer_auth(&reader.secret);
    assert_eq!(told(200, listed).await["policies"]["leave"]["extracted"], false);
    assert_eq!(all("jobs").await, jobs, "nothing was submitted");
    assert_eq!(served.model.calls(), 0, "nobody was asked");
    // Once somebody had it made, whoever reads gets it.
    let at = format!("{PAGE}/policies/leave?language=fr");
    told(200, served.make(&at).bearer_auth(&admin.secret)).await;
    let read = told(200, served.server.get(&at).bearer_auth(&reader.secret)).await;
    assert_eq!((&read["language"], served.model.calls()), (&json!("fr"), 1));
    // What is out of date is not there.
    let newer = served.attach("leave", &POLICY.replace("thirty", "forty"));
    answered(200, newer.bearer_auth(&admin.secret)).await;
    refused(404, "not-made", served.server.get(&at).bearer_auth(&reader.secret)).await;
    assert_eq!(served.model.calls(), 1);
}

#[tokio::test]
async fn a_script_in_a_document_never_comes_out_as_html() {
    let served = Served::new().await;
    let evil = "# <script>alert(1)</script>Title</title><script>alert(2)</script>\n\n\
                <img src=x onerror=alert(3)> [link](javascript:alert(4)) <b onclick=\"x()\">bold</b>\n\n\
                <svg/onload=alert(5)><iframe srcdoc=\"<script>6</script>\"></iframe>\n\n\
                ```\n</code></pre><script>alert(7)</script>\n```\n";
    answered(200, served.attach("evil", evil)).await;
    let at = format!("{PAGE}/policies/evil");
    answered(200, served.make(&at)).await;
    let html = answered(200, served.server.get(&at).header("accept", "text/html")).await;
    let header = |name: &str| html.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-security-policy"), "default-src 'none'; sandbox");
    assert_eq!(header("x-content-type-options"), "nosniff");
    assert_eq!(header("referrer-policy"), "no-referrer");
    let html = html.text().await.unwrap().to_lowercase();
    for refused in ["<script", "<img", "<svg", "<iframe", "javascript:", "onclick"] {
        assert!(!html.contains(refused), "{refused}: {html}");
    }
    let markdown = answered(200, served.server.get(&at).header("accept", "text/markdown")).await;
    assert_eq!(markdown.headers()["content-security-policy"], "default-src 'none'; sandbox");
    assert_eq!(markdown.headers()["x-content-type-options"], "nosniff");
}

#[tokio::test]
async fn all_who_ask_for_a_translation_get_the_one_that_is_made() {
    let served = Served::new().await;
    let at = format!("{PAGE}/policies/leave?language=fr");
    let all = join_all((0..8).map(|_| told(200, served.make(&at)))).await;
    for document in &all {
        assert_eq!((&document["title"], &document["language"]), (&json!("Congé"), &json!("fr")));
        assert_eq!(document, &all[0]);
    }
    assert_eq!(served.model.calls(), 1);
    assert_eq!(all[0]["made"]["receipt"]["provider"], "scripted");
    let listed = told(200, served.server.get(&format!("{PAGE}/policies"))).await;
    assert_eq!(listed["policies"]["leave"]["translations"], json!(["fr"]));
    // The language it was written in needs no model.
    let same = told(200, served.server.get(&format!("{PAGE}/policies/leave?language=en"))).await;
    assert_eq!((&same["original"], served.model.calls()), (&json!(true), 1));
    for language in ["xx", "french", ""] {
        let odd = format!("{PAGE}/policies/leave?language={language}");
        refused(400, "invalid", served.server.get(&odd)).await;
    }
    // What is attached anew is translated anew.
    answered(200, served.attach("leave", &POLICY.replace("thirty", "forty"))).await;
    told(200, served.make(&at)).await;
    assert_eq!(served.model.calls(), 2);
}

#[tokio::test]
async fn what_takes_longer_than_is_waited_is_told_of_by_a_job_that_all_share() {
    let served = Served::with(Model::held()).await;
    let at = format!("{PAGE}/policies/leave?language=de&wait_ms=50");
    let first = answered(202, served.make(&at)).await;
    let place = first.headers()["location"].to_str().unwrap().to_owned();
    assert!(place.starts_with(&format!("{INBOX}/jobs/")), "{place}");
    let first: Value = first.json().await.unwrap();
    let second = told(202, served.make(&at)).await;
    assert_eq!(first["id"], second["id"]);
    served.model.let_answer();
    let ended = served.ended(&first).await;
    assert_eq!(ended["status"]["result"]["language"], "de", "{ended}");
    assert_eq!(told(200, served.make(&at)).await["language"], "de");
    assert_eq!(told(200, served.server.get(&place)).await["id"], first["id"]);
}

#[tokio::test]
async fn without_a_model_the_problem_says_what_to_set() {
    let served = Served::without_model().await;
    told(200, served.make(&format!("{PAGE}/policies/leave"))).await;
    let translated = served.make(&format!("{PAGE}/policies/leave?language=fr"));
    let problem = refused(409, "model-unset", translated).await;
    assert!(problem["detail"].as_str().unwrap().contains("models"), "{problem}");
    let analysis = served.server.post(&format!("{PAGE}/analysis"), "{}");
    let problem = refused(409, "model-unset", analysis).await;
    assert!(problem["hint"].as_str().unwrap().contains("[agreements.inbox.models]"), "{problem}");
}

#[tokio::test]
async fn a_file_that_cannot_be_read_says_why() {
    let served = Served::new().await;
    for (source, bytes, status, code) in [
        ("empty", &b""[..], 422, "empty-file"),
        ("broken.pdf", b"%PDF-1.7\nnothing more", 422, "broken"),
        ("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 501, "unsupported"),
    ] {
        let at = format!("{PAGE}/attachments/{source}");
        let put = served.server.request(reqwest::Method::PUT, &at).body(bytes.to_vec());
        answered(200, put.header("content-type", "application/octet-stream")).await;
        let problem =
            refused(status, code, served.make(&format!("{PAGE}/policies/{source}"))).await;
        assert!(problem["job"].is_string(), "{problem}");
    }
    // The others are read all the same.
    told(200, served.make(&format!("{PAGE}/policies/leave"))).await;
}

#[tokio::test]
async fn an_empty_or_cut_translation_is_refused_and_not_kept() {
    let served = Served::new().await;
    let at = format!("{PAGE}/policies/leave?language=fr");
    for (translation, calls, wrong) in
        [("", 3, "the translation is empty"), ("Chaque personne", 6, "its headings are none")]
    {
        served.model.translate_as(translation);
        // A failure holds the next try back for a moment.
        let problem = loop {
            let answer = served.make(&at).send().await.unwrap();
            let status = answer.status().as_u16();
            let problem: Value = answer.json().await.unwrap();
            if problem["code"] != "computation-failed" {
                assert_eq!(status, 502, "{problem}");
                break problem;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        };
        assert_eq!(problem["code"], "model-malformed");
        assert!(problem["detail"].as_str().unwrap().contains(wrong), "{problem}");
        assert_eq!(served.model.calls(), calls);
        refused(404, "not-made", served.server.get(&at)).await;
    }
}

#[tokio::test]
async fn a_translation_is_made_again_and_the_others_are_kept() {
    let served = Served::new().await;
    let (french, german) = (
        format!("{PAGE}/policies/leave?language=fr"),
        format!("{PAGE}/policies/leave?language=de"),
    );
    let first = told(200, served.make(&french)).await;
    let other = told(200, served.make(&german)).await;
    let original = told(200, served.server.get(&format!("{PAGE}/policies/leave"))).await;
    served.model.translate_as(&TRANSLATION.replace("trente", "30"));
    // Without a word nothing is made again.
    assert_eq!(told(200, served.make(&format!("{french}&redo=false"))).await, first);
    let redo = format!("{french}&redo=true");
    let admin = served.server.admin().await;
    let reader = json!({ "name": "r", "scopes": ["read:agreements/inbox"] });
    let reader = served.server.key(&admin, &reader).await;
    refused(403, "forbidden", served.make(&redo).bearer_auth(&reader.secret)).await;
    let as_admin = |request: reqwest::RequestBuilder| request.bearer_auth(&admin.secret);
    assert_eq!(served.model.calls(), 2);
    let again = told(200, as_admin(served.make(&redo))).await;
    assert!(again["content"].as_str().unwrap().contains("a 30 jours"), "{again}");
    assert_eq!(told(200, as_admin(served.server.get(&french))).await, again);
    assert_eq!(told(200, as_admin(served.server.get(&german))).await, other);
    // The same text again leaves what was made from it.
    let at = format!("{PAGE}/policies/leave?redo=true");
    assert_eq!(told(200, as_admin(served.make(&at))).await, original);
    assert_eq!(told(200, as_admin(served.server.get(&french))).await, again);
    assert_eq!(served.model.calls(), 3);
    // What cannot be made leaves what is there.
    served.model.translate_as("");
    refused(502, "model-malformed", as_admin(served.make(&redo))).await;
    assert_eq!(told(200, as_admin(served.server.get(&french))).await, again);
    refused(400, "invalid", as_admin(served.make(&format!("{french}&redo=1")))).await;
}

#[tokio::test]
async fn all_who_have_a_translation_made_again_share_a_job() {
    let served = Served::with(Model::held()).await;
    served.model.let_answer();
    let at = format!("{PAGE}/policies/leave?language=fr");
    let before = told(200, served.make(&at)).await;
    let redo = format!("{at}&redo=true&wait_ms=0");
    let first = told(202, served.make(&redo)).await;
    assert_eq!(told(202, served.make(&redo)).await["id"], first["id"]);
    assert_eq!(told(200, served.server.get(&at)).await, before, "it is given out meanwhile");
    served.model.let_answer();
    served.ended(&first).await;
    assert_eq!(served.model.calls(), 2);
}
