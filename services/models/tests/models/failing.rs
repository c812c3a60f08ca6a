//! Providers that are overloaded, refuse, break off, or never end.

use std::sync::Arc;
use std::time::Duration;

use keyward_engine::{Code, Coded};
use keyward_models::{Error, Models};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Barrier;

use crate::server::Reply;
use crate::speakers::{ALL, SEED, Speaker, question};

impl Speaker {
    fn says(&self, text: &str) -> Reply {
        Reply::Say(200, (self.good)(text))
    }
}

#[tokio::test]
async fn an_overloaded_provider_is_asked_again() {
    for speaker in ALL {
        let mut overloads = vec![
            Reply::Say(speaker.overload, (speaker.error)("too much to do")),
            Reply::Head(429, "retry-after", "0".to_owned()),
            Reply::Head(503, "retry-after", "Fri, 02 Jan 2026 12:00:00 GMT".to_owned()),
        ];
        overloads.push(speaker.says("Three."));
        let stage = speaker.stage(overloads).await;
        let (text, receipt) = stage.models.text(&question()).await.unwrap();
        assert_eq!((&*text, receipt.attempts), ("Three.", 4), "{}", speaker.provider);
        assert_eq!(stage.server.seen().len(), 4);
    }
}

#[tokio::test]
async fn an_overload_that_lasts_is_told_with_what_the_provider_said() {
    for speaker in ALL {
        let overload = Reply::Say(speaker.overload, (speaker.error)("too much to do"));
        let stage = speaker.stage_with([overload], |settings| settings.attempts_max = 3).await;
        let error = stage.models.text(&question()).await.unwrap_err();
        let last = format!("{}: too much to do", speaker.overload);
        assert_eq!(error, Error::Overloaded { attempts: 3, last, retry_after: None });
        assert_eq!(stage.server.seen().len(), 3, "{}", speaker.provider);
    }
}

#[tokio::test]
async fn when_to_ask_again_is_told_to_the_caller() {
    let overload = Reply::Head(429, "retry-after", "41".to_owned());
    let stage = ALL[0].stage_with([overload], |settings| settings.attempts_max = 1).await;
    let error = stage.models.text(&question()).await.unwrap_err();
    let Error::Overloaded { retry_after, .. } = error else { panic!("{error}") };
    assert_eq!(retry_after, Some(Duration::from_secs(41)));
}

#[tokio::test]
async fn a_refusal_is_shown_in_the_providers_words_and_not_repeated() {
    for speaker in ALL {
        for (status, code, hint) in [
            (400, Code::ModelRequestInvalid, "the provider refuses the request (400): "),
            (
                401,
                Code::ModelRefused,
                "the provider refuses the API key (401): set [models] api_key",
            ),
            (403, Code::ModelRefused, "the provider does not allow this to the key (403): "),
            (404, Code::ModelRequestInvalid, "check [models] model and base_url: "),
            (413, Code::ModelRequestInvalid, "the provider refuses the request (413): "),
        ] {
            let stage = speaker.stage([Reply::Say(status, (speaker.error)("because"))]).await;
            let error = stage.models.text(&question()).await.unwrap_err();
            assert_eq!(error.code(), code, "{} {status}", speaker.provider);
            let told = error.to_string();
            assert!(told.contains(hint) && told.ends_with(": because"), "{told}");
            assert!(!error.retryable());
            assert_eq!(stage.server.seen().len(), 1, "{} {status}", speaker.provider);
        }
    }
}

#[tokio::test]
async fn a_wrong_key_and_a_used_up_quota_are_no_overload() {
    let [openai, _, gemini, _] = ALL;
    let quota = json!({ "error": { "message": "pay", "code": "insufficient_quota" } });
    let wrong = json!({ "error": {
        "code": 400,
        "message": "API key not valid.",
        "status": "INVALID_ARGUMENT",
        "details": [{ "reason": "API_KEY_INVALID", "domain": "googleapis.com" }],
    } });
    for (speaker, status, said) in [(openai, 429, quota), (gemini, 400, wrong)] {
        let stage = speaker.stage([Reply::Say(status, said)]).await;
        let error = stage.models.text(&question()).await.unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{error}");
        assert_eq!(stage.server.seen().len(), 1);
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    for speaker in ALL {
        let elsewhere = speaker.stage([speaker.says("Three.")]).await;
        let to = elsewhere.server.url.clone();
        let stage = speaker.stage([Reply::Head(307, "location", to)]).await;
        let error = stage.models.text(&question()).await.unwrap_err();
        assert_eq!(error.code(), Code::ModelRequestInvalid);
        assert!(error.to_string().contains("set [models] base_url"), "{error}");
        assert_eq!(elsewhere.server.seen().len(), 0);
    }
}

#[tokio::test]
async fn an_answer_without_an_end_is_given_up_at_a_size() {
    const BYTES_MAX: usize = 16 << 20;
    for speaker in ALL {
        let stage = speaker.stage([Reply::Flood]).await;
        let error = stage.models.text(&question()).await.unwrap_err();
        assert_eq!(error, Error::TooLarge { bytes_max: BYTES_MAX }, "{}", speaker.provider);
    }
    let speaker = ALL[3];
    let padded = |bytes: usize| {
        let answer = (speaker.good)("Three.").to_string();
        format!("{answer}{}", " ".repeat(bytes - answer.len()))
    };
    let replies = [Reply::Text(200, padded(BYTES_MAX)), Reply::Text(200, padded(BYTES_MAX + 1))];
    let stage = speaker.stage(replies).await;
    assert_eq!(stage.models.text(&question()).await.unwrap().0, "Three.");
    assert_eq!(stage.models.text(&question()).await.unwrap_err().code(), Code::ModelTooLarge);
}

#[tokio::test]
async fn an_answer_that_stops_coming_is_given_up() {
    for speaker in ALL {
        let limit = Duration::from_millis(60);
        let stage = speaker
            .stage_with([Reply::Stall], |settings| {
                settings.idle_timeout = limit;
                settings.attempts_max = 2;
            })
            .await;
        let error = stage.models.text(&question()).await.unwrap_err();
        assert_eq!(error, Error::TimedOut { attempts: 2, limit }, "{}", speaker.provider);
    }
}

#[tokio::test]
async fn an_answer_that_trickles_or_never_begins_is_given_up_in_time() {
    for speaker in ALL {
        for reply in [Reply::Trickle, Reply::Never] {
            let limit = Duration::from_millis(60);
            let stage = speaker
                .stage_with([reply], |settings| {
                    settings.timeout = limit;
                    settings.attempts_max = 2;
                })
                .await;
            let error = stage.models.text(&question()).await.unwrap_err();
            assert_eq!(error, Error::TimedOut { attempts: 2, limit }, "{}", speaker.provider);
        }
    }
}

#[tokio::test]
async fn a_connection_that_breaks_is_made_again() {
    for speaker in ALL {
        let stage = speaker.stage([Reply::Short, speaker.says("Three.")]).await;
        let (text, receipt) = stage.models.text(&question()).await.unwrap();
        assert_eq!((&*text, receipt.attempts), ("Three.", 2), "{}", speaker.provider);
    }
}

#[tokio::test]
async fn a_provider_that_is_not_there_is_unreachable() {
    // A port that was free a moment ago, and that nobody listens on.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let mut settings = ALL[3].settings(&url);
    settings.attempts_max = 2;
    settings.pause_min = Duration::from_millis(1);
    let models = Models::open(&settings, SEED).unwrap();
    let error = models.text(&question()).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { attempts: 2, .. }), "{error}");
    // Which address it is, is a setting, and may say more than an error should.
    assert!(!error.to_string().contains(&url), "{error}");
}

#[tokio::test]
async fn no_more_are_asked_at_once_than_allowed() {
    const AT_ONCE: usize = 3;
    for speaker in ALL {
        let barrier = Arc::new(Barrier::new(AT_ONCE));
        let together = Reply::Together(barrier, (speaker.good)("Three."));
        let stage =
            speaker.stage_with([together], |settings| settings.concurrency_max = AT_ONCE).await;
        let question = question();
        let asks = (0..4 * AT_ONCE).map(|_| stage.models.text(&question));
        for answer in futures_util::future::join_all(asks).await {
            assert_eq!(answer.unwrap().0, "Three.");
        }
        // The server answers only when so many wait: it has seen exactly that many.
        assert_eq!(stage.server.at_once_max(), AT_ONCE, "{}", speaker.provider);
    }
}

#[tokio::test]
async fn an_error_that_is_long_is_told_in_short() {
    let stage = ALL[1].stage([Reply::Text(400, "x\n".repeat(1 << 20))]).await;
    let error = stage.models.json::<Value>(&question()).await.unwrap_err();
    assert!(error.to_string().len() < 1_000);
}
