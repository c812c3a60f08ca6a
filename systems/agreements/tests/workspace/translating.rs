//! What a model returns is looked at before it is kept.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use keyward_agreements::{Course, Document, Error};
use keyward_engine::{Code, Coded, SystemClock};
use keyward_key::Key;
use keyward_models::{Answer, Asked, Finish, Provider, Request, Scripted, Usage, framed};
use keyward_stores::{Place, on_every_engine};
use serde_json::json;

use crate::fixture::{Desk, language, models, page, source, translated};

on_every_engine!(
    a_translation_that_stays_empty_or_cut_is_an_error_and_nothing_is_kept,
    a_model_that_cut_a_text_is_told_what_is_missing_and_asked_again,
);

async fn ask(desk: &Desk, code: &str) -> Result<Document, Error> {
    let (page, policy, course) = (page("p1"), source("leave"), Course::untold());
    desk.workspace.policy(&page, &policy, Some(language(code)), &course).await
}

fn answer(markdown: &str) -> String {
    json!({ "title": "Titre", "markdown": markdown }).to_string()
}

async fn a_translation_that_stays_empty_or_cut_is_an_error_and_nothing_is_kept(place: Place) {
    let scripted = Scripted::new(|request| {
        let text = framed(&request.prompt)[1];
        let end = text.find("## Fees").unwrap();
        Ok(match request.prompt.starts_with("Translate into French.") {
            true => answer(""),
            false => answer(&text[..end]),
        })
    });
    let desk = Desk::new(place.store().await, place.clock().clone(), models(scripted.clone()));
    let desk = desk.with_page("p1").await;
    for (code, calls, wrong) in
        [("fr", 3, "the translation is empty"), ("de", 6, "its headings are # (1)")]
    {
        let failed = ask(&desk, code).await.unwrap_err();
        assert_eq!((failed.code(), failed.retryable()), (Code::ModelMalformed, false), "{failed}");
        assert!(failed.to_string().contains(wrong), "{failed}");
        assert_eq!(scripted.calls(), calls, "{code}: as often as the budget allows");
        let key = Key::parse("p1:policy:leave").unwrap().child(code);
        assert_eq!(desk.workspace.store().get(&key).await.unwrap(), None, "{key}");
        let (id, policy) = (page("p1"), source("leave"));
        let cached = desk.workspace.cached_policy(&id, &policy, Some(language(code)));
        assert_eq!(cached.await.unwrap(), None);
    }
}

async fn a_model_that_cut_a_text_is_told_what_is_missing_and_asked_again(place: Place) {
    let (asked, prompts) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let seen = prompts.clone();
    let scripted = Scripted::new(move |request| {
        seen.lock().unwrap().push(request.prompt.clone());
        let whole = translated(request).unwrap();
        Ok(match asked.fetch_add(1, Ordering::Relaxed) {
            0 => answer("# Congé"),
            1 => whole[..whole.len() / 2].to_owned(),
            _ => whole,
        })
    });
    let desk = Desk::new(place.store().await, place.clock().clone(), models(scripted.clone()));
    let desk = desk.with_page("p1").await;
    let french = ask(&desk, "fr").await.unwrap();
    assert!(french.content.contains("## Fees"), "{}", french.content);
    // What the tries cost is counted together.
    assert_eq!(french.made.unwrap().receipt.attempts, 3);
    let prompts = prompts.lock().unwrap();
    assert!(prompts[1].contains("its headings are # (1), and those of the original #, ## (2)"));
    assert!(prompts[2].contains("it is no JSON") && !prompts[2].contains("headings"));
}

#[tokio::test]
async fn a_model_that_hands_a_text_back_as_it_was_has_not_translated_it() {
    let scripted = Scripted::new(|request| Ok(answer(framed(&request.prompt)[1])));
    let store = keyward_engine::Store::new(keyward_memory::Memory::new());
    let desk = Desk::new(store, SystemClock, models(scripted)).with_page("p1").await;
    let failed = ask(&desk, "fr").await.unwrap_err();
    assert_eq!(failed.code(), Code::ModelMalformed, "{failed}");
    assert!(failed.to_string().contains("was not translated"), "{failed}");
}

/// A model whose answer ends where its limit is, in the middle of a text that looks whole.
struct Cut;

impl Provider for Cut {
    fn name(&self) -> &str {
        "cut"
    }

    fn model(&self) -> &str {
        "cut"
    }

    fn ask<'a>(&'a self, request: &'a Request) -> Asked<'a> {
        Box::pin(async {
            let (text, finish) = (translated(request).unwrap(), Finish::Truncated);
            Ok(Answer { text, finish, usage: Usage::default(), model: String::new() })
        })
    }
}

#[tokio::test]
async fn an_answer_that_the_provider_cut_is_no_translation() {
    let store = keyward_engine::Store::new(keyward_memory::Memory::new());
    let desk = Desk::new(store, SystemClock, models(Cut)).with_page("p1").await;
    let failed = ask(&desk, "fr").await.unwrap_err();
    assert_eq!(failed.code(), Code::ModelTruncated, "{failed}");
    let key = Key::parse("p1:policy:leave:fr").unwrap();
    assert_eq!(desk.workspace.store().get(&key).await.unwrap(), None);
}
