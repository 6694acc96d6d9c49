//! Logging in, by settings page and by chat: the key is used, kept apart, and shown to nobody.

use std::collections::BTreeMap;

use custom_methods::Empty;
use custom_methods::methods::{ProvidersList, ProvidersLogin, ProvidersLoginInput, ProvidersLogout};
use custom_methods::providers::{
    ProvidersLoginInputParams, ProvidersLoginParams, ProvidersLoginResult, ProvidersLogoutParams,
};
use serde_json::{Value, json};

use crate::mock_llm::{MockLlm, Script};
use crate::peer::outline::{outline, text_by};
use crate::server::TestServer;

/// Entered by the user; the harness looks for the configured key only, so the tests look for this.
const ENTERED: &str = "entered-key-0123456789";

/// A server that knows Groq at the mock's address, without a key for it.
fn keyless(model: &MockLlm) -> crate::server::Builder {
    TestServer::with(model).variable("GROQ_API_URL", model.url())
}

/// Lists one model, and answers anything else.
fn answer(model: &MockLlm) {
    model.respond_with(|request| match request.method.as_str() {
        "GET" => Script::models(&["m"]),
        _ => Script::text_stream(&["ok"]),
    });
}

fn nowhere(text: &str, messages: &[Value]) {
    assert!(!messages.iter().any(|message| message.to_string().contains(text)), "{messages:#?}");
}

#[tokio::test]
async fn a_login_by_settings_page_tells_models_and_provider_and_then_answers() {
    let model = MockLlm::start().await;
    answer(&model);
    let mut server = keyless(&model).start().await;
    let step = server.request::<ProvidersLogin>(ProvidersLoginParams { provider: "groq".into(), method: None }).await;
    let ProvidersLoginResult::Input(input) = step else { panic!("{step:?}") };
    assert_eq!(input.fields.len(), 1);
    let data = BTreeMap::from([(input.fields[0].key.clone(), format!(" {ENTERED}\n"))]);
    let id = server.start::<ProvidersLoginInput>(ProvidersLoginInputParams { provider: "groq".into(), data });
    let messages = server.everything_until("the answer", |message| message["id"] == id).await;
    let methods: Vec<&str> = messages.iter().filter_map(|message| message["method"].as_str()).collect();
    assert_eq!(methods, ["config/updated", "providers/updated"]);
    assert!(messages[0]["params"]["chat"]["models"].to_string().contains("groq/m"), "{}", messages[0]);
    assert_eq!(messages[1]["params"]["auth"]["source"], "login");
    assert_eq!(messages[2]["result"], json!({"action": "done"}));
    nowhere(ENTERED, &messages);

    let mut prompt = crate::server::prompt(Some("c"), "hi");
    prompt.model = Some("groq/m".into());
    server.start::<custom_methods::methods::ChatPrompt>(prompt);
    server.collect_turn("c").await;
    let mut request = model.next_request().await;
    while request.method == "GET" {
        // The list of models is asked for with the new key, too.
        request = model.next_request().await;
    }
    assert_eq!(request.header("authorization"), Some(format!("Bearer {ENTERED}").as_str()));

    server.request::<ProvidersLogout>(ProvidersLogoutParams { provider: "groq".into() }).await;
    let listed = server.request::<ProvidersList>(Empty).await;
    assert!(!listed.providers.iter().any(|provider| provider.id == "groq"), "{listed:?}");
    server.ignore_rest();
    server.finish().await;
}

#[tokio::test]
async fn a_login_by_chat_asks_masks_and_keeps_nothing_in_the_chat() {
    let model = MockLlm::start().await;
    answer(&model);
    let mut server = keyless(&model).start().await;
    let asked = server.turn("c", "/login").await;
    assert!(text_by("system", &asked).contains("`groq`"), "{}", text_by("system", &asked));
    assert!(outline(&asked).contains(&"status login".to_owned()), "{:?}", outline(&asked));
    let named = server.turn("c", "groq").await;
    assert!(text_by("system", &named).contains("API key of Groq"), "{}", text_by("system", &named));
    let kept = server.turn("c", ENTERED).await;
    assert_eq!(text_by("user", &kept), "*****\n");
    assert!(text_by("system", &kept).contains("in use"), "{}", text_by("system", &kept));
    assert!(outline(&kept).contains(&"status idle".to_owned()), "{:?}", outline(&kept));
    nowhere(ENTERED, &[asked, named, kept].concat());

    // What the model sees next begins after the login.
    server.turn("c", "hello").await;
    let mut request = model.next_request().await;
    while request.method == "GET" {
        request = model.next_request().await;
    }
    assert!(!request.body.to_string().contains("login") && !request.body.to_string().contains(ENTERED));
    server.ignore_rest();
    server.finish().await;
}

#[tokio::test]
async fn a_login_can_be_cancelled_and_impossible_ones_say_why() {
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model).start().await;
    let copilot = server.turn("c", "/login github-copilot").await;
    assert!(text_by("system", &copilot).contains("cannot be logged into"), "{}", text_by("system", &copilot));
    let cancelled = server.turn("c", "cancel").await;
    assert!(text_by("system", &cancelled).contains("cancelled"));
    assert_eq!(outline(&cancelled).last().map(String::as_str), Some("finished"));
    let refused = server.request_raw("providers/login", Some(json!({"provider": "github-copilot"}))).await;
    assert!(refused["error"]["message"].to_string().contains("cannot be logged into"), "{refused}");
    server.ignore_rest();
    server.finish().await;
}

#[tokio::test]
async fn a_client_that_wants_itself_alone_gets_no_keys_of_earlier_logins() {
    let model = MockLlm::start().await;
    answer(&model);
    let mut server = keyless(&model).start().await;
    let data = BTreeMap::from([("api-key".to_owned(), ENTERED.to_owned())]);
    server.request::<ProvidersLoginInput>(ProvidersLoginInputParams { provider: "groq".into(), data }).await;
    let dirs = std::sync::Arc::clone(&server.dirs);
    server.ignore_rest();
    server.finish().await;
    let source = async |pure: bool, key: &str| {
        let options = json!({"pureConfig": pure, "localDiscovery": false, "modelsDev": false});
        let mut server = keyless(&model).dirs(&dirs).options(options).variable("GROQ_API_KEY", key).start().await;
        let listed = server.request::<ProvidersList>(Empty).await;
        let found = listed.providers.into_iter().find(|provider| provider.id == "groq");
        server.ignore_rest();
        server.finish().await;
        found.and_then(|provider| serde_json::to_value(provider.auth.source).unwrap().as_str().map(str::to_owned))
    };
    assert_eq!(source(false, "").await.as_deref(), Some("login"));
    assert_eq!(source(true, "").await, None);
    // Those of the environment belong to the built-in defaults.
    assert_eq!(source(true, "sk-env").await.as_deref(), Some("env"));
}
