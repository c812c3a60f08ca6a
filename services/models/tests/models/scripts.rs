//! The provider that is no model.

use std::sync::Arc;

use keyward_models::{Models, Options, Provider, Request, Script, Scripted};

use crate::speakers::SEED;

const SCRIPT: &str = r#"
otherwise = "I have nothing to say."

[[rules]]
contains = ["translate", "Korean"]
answer = "안녕하세요"

[[rules]]
contains = ["translate"]
answer = "Bonjour"
"#;

async fn ask(models: &Models, system: &str, prompt: &str) -> Result<String, keyward_models::Error> {
    let request =
        Request { system: system.to_owned(), prompt: prompt.to_owned(), ..Request::default() };
    models.text(&request).await.map(|(text, _)| text)
}

#[tokio::test]
async fn a_script_answers_by_the_first_rule_that_applies() {
    let scripted = Scripted::script(toml::from_str(SCRIPT).unwrap());
    assert_eq!((scripted.name(), scripted.model()), ("scripted", "scripted-demo"));
    let models = Models::new(scripted.clone(), Options::default(), SEED);
    assert_eq!(ask(&models, "You translate.", "Into Korean: hello").await.unwrap(), "안녕하세요");
    assert_eq!(ask(&models, "You translate.", "Into French: hello").await.unwrap(), "Bonjour");
    assert_eq!(ask(&models, "", "hello").await.unwrap(), "I have nothing to say.");
    assert_eq!(scripted.calls(), 3);
    assert_eq!(models.spent().output_tokens, 7);
}

#[tokio::test]
async fn a_script_without_a_rule_says_so() {
    let script: Script = serde_json::from_str(r#"{"rules":[]}"#).unwrap();
    let models = Models::new(Scripted::script(script), Options::default(), SEED);
    let error = ask(&models, "", "hello").await.unwrap_err();
    assert_eq!(error.to_string(), "the script has no rule for this request");
    assert!(serde_json::from_str::<Script>(r#"{"rules":[{"has":"x","answer":"y"}]}"#).is_err());
}

#[tokio::test]
async fn a_receipt_says_that_it_was_no_model() {
    let provider: Arc<dyn Provider> = Arc::new(Scripted::new(|_| Ok("yes".to_owned())));
    let models = Models::new(provider, Options::default(), SEED);
    let (_, receipt) = models.text(&Request::default()).await.unwrap();
    assert_eq!((&*receipt.provider, &*receipt.model), ("scripted", "scripted-demo"));
}
