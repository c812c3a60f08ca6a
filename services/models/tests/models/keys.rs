//! The key goes to the provider, and nowhere else.

use keyward_engine::{Code, Coded};
use keyward_models::{Models, Secret, Settings};
use serde_json::Value;

use crate::server::Reply;
use crate::speakers::{ALL, KEY, SEED, counted};

#[tokio::test]
async fn a_provider_that_tells_the_key_is_not_repeated() {
    for speaker in ALL {
        let told = format!("you have sent Bearer {KEY} as {KEY}");
        let mut replies = vec![
            Reply::Text(200, format!("\"{KEY}\"")),
            Reply::Text(200, format!("{{\"choices\":\"{KEY}\",\"message\":\"{KEY}\"}}")),
            Reply::Text(401, told.clone()),
        ];
        for status in [307, 400, 401, 403, 404, 429, 500, 529] {
            replies.push(Reply::Say(status, (speaker.error)(&told)));
        }
        for reply in replies {
            let stage = speaker.stage_with([reply], |settings| settings.attempts_max = 1).await;
            let error = stage.models.json::<Value>(&counted()).await.unwrap_err();
            let shown = format!("{error} {error:?} {:?}", stage.models);
            assert!(!shown.contains(KEY), "{shown}");
            let seen = &stage.server.seen()[0];
            assert!(!seen.body.to_string().contains(KEY) && !seen.path.contains(KEY));
        }
    }
}

#[tokio::test]
async fn a_key_is_read_when_it_is_used_so_that_it_can_change() {
    let speaker = ALL[1];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    let stage = speaker.stage([Reply::Say(200, (speaker.good)("Three."))]).await;
    let mut settings = speaker.settings(&stage.server.url);
    settings.api_key = Some(Secret::File(path.clone()));
    let models = Models::open(&settings, SEED).unwrap();
    let error = models.text(&counted()).await.unwrap_err();
    assert_eq!(error.code(), Code::ModelUnset);
    assert!(error.to_string().contains("the key in "), "{error}");
    for key in ["one", "two"] {
        keyward_testkit::write_secret(&path, key).unwrap();
        models.text(&counted()).await.unwrap();
    }
    let seen = stage.server.seen();
    let keys: Vec<_> = seen.iter().map(|seen| seen.header("x-api-key").unwrap()).collect();
    assert_eq!(keys, ["one", "two"]);
    assert!(!format!("{settings:?}").contains("two"));
}

#[test]
fn a_configuration_says_where_the_key_is() {
    let written = |key: &str| {
        let text =
            format!("provider = \"openai\"\nmodel = \"m\"\ntimeout = \"2m\"\napi_key = {key}");
        toml::from_str::<Settings>(&text)
    };
    let settings = written("{ env = \"MODEL_KEY\" }").unwrap();
    assert_eq!(settings.api_key, Some(Secret::Env("MODEL_KEY".to_owned())));
    settings.check().unwrap();
    let settings = written("{ file = \"key\" }").unwrap();
    assert_eq!(settings.api_key, Some(Secret::File("key".into())));
    assert!(written("\"sk-1\"").is_err());
    assert!(written("{ env = \"A\", file = \"b\" }").is_err());
}
