//! What a client is told after a selection.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::*;
use crate::config::{AgentConfig, Config};
use crate::engine::{Event, EventSink, Options, Pace};
use crate::frontends::eca::session::{ClientFacts, Presentation};
use crate::frontends::eca::start::config_update;
use crate::providers::{Environment, Registry, Wiring};
use crate::store::Store;

struct Nobody;

impl EventSink for Nobody {
    fn emit(&self, _: Event) -> Option<BoxFuture<'static, ()>> {
        None
    }
}

/// A session with keys for two vendors.
fn session(config: &Config) -> Session {
    let keys = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"].map(|name| (name.to_owned(), "sk".to_owned()));
    let environment = Environment { vars: BTreeMap::from(keys), ..Environment::default() };
    let wiring = Wiring::standard(config, &environment);
    let (registry, _) = Registry::new(config, environment, wiring);
    let engine = Engine::new(Options {
        registry,
        store: Store::at("/nonexistent/chats.db".into()),
        loaded: Arc::new({
            let mut loaded = crate::config::load::Loaded::default();
            loaded.config = config.clone();
            loaded
        }),
        host: Arc::new(crate::host::NoHost),
        outputs: None,
        servers: Default::default(),
        find_sources: Arc::new(|_, _| crate::customization::Sources {
            config_dir: Default::default(),
            roots: Vec::new(),
            settings: Default::default(),
            trusted: Default::default(),
            env: Arc::new(|_| None),
            isolated: true,
        }),
        environment: Default::default(),
        public_places: Vec::new(),
        hook_setting: Default::default(),
        secrets: crate::state::Secrets::in_directory(std::path::Path::new("/nonexistent")),
        sink: Arc::new(Nobody),
        pace: Pace::Deterministic,
    });
    let session = Session::default();
    session.present(Presentation::of(config));
    let servers = crate::mcp::Servers::default();
    session.start(Started { client: ClientFacts::default(), engine, servers, problems: Vec::new() });
    session
}

fn with_planner() -> Config {
    let planner = AgentConfig {
        default_model: Some("anthropic/claude-opus-4-8".into()),
        variant: Some("max".into()),
        ..AgentConfig::default()
    };
    Config { agents: BTreeMap::from([("plan".to_owned(), planner)]), ..Config::default() }
}

fn messages(frames: Vec<Frame>) -> Vec<Value> {
    let read = |frame| match frame {
        Frame::Plain { body, .. } => serde_json::from_slice(&body).expect("JSON"),
        other => panic!("{other:?}"),
    };
    frames.into_iter().map(read).collect()
}

fn select_model(session: &Session, params: Value) -> Value {
    let params = serde_json::from_value(params).expect("params");
    let mut sent = messages(model_selected(session, session.started().expect("started"), params));
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0]["method"], "config/updated");
    sent.remove(0)["params"].take()
}

fn select_agent(session: &Session, params: Value) -> Vec<(String, Value)> {
    let params = serde_json::from_value(params).expect("params");
    let sent = messages(agent_selected(session, session.started().expect("started"), params));
    sent.into_iter().map(|mut m| (m["method"].as_str().expect("a method").to_owned(), m["params"].take())).collect()
}

#[tokio::test]
async fn a_model_brings_its_variants() {
    let session = session(&Config::default());
    assert_eq!(
        select_model(&session, json!({"model": "openai/gpt-5.2", "variant": "high"})),
        json!({"chat": {"variants": ["high", "low", "medium", "none", "xhigh"], "selectVariant": "high"}})
    );
    assert_eq!(
        select_model(&session, json!({"model": "claude-opus-4-8", "variant": "none"})),
        json!({"chat": {"variants": ["high", "low", "max", "medium", "xhigh"], "selectVariant": null}})
    );
    let none = json!({"chat": {"variants": [], "selectVariant": null}});
    assert_eq!(select_model(&session, json!({"model": "openai/gpt-4.1"})), none);
    assert_eq!(select_model(&session, json!({"model": "no such model"})), none);
}

#[tokio::test]
async fn a_selection_is_for_a_known_chat_or_for_all() {
    let session = session(&Config::default());
    session.note_prompt(ChatId::new("mine"), "openai/gpt-5.2");
    let scoped = select_model(&session, json!({"chatId": "mine", "model": "gpt-5.2"}));
    assert_eq!(scoped["chatId"], "mine");
    assert_eq!(session.selection().model, None, "the other chats are not touched");
    let all = select_model(&session, json!({"chatId": "unknown", "model": "gpt-5.2"}));
    assert_eq!(all.get("chatId"), None);
    assert_eq!(session.selection().model, ModelId::parse("openai/gpt-5.2"));
}

#[tokio::test]
async fn the_session_is_told_the_variants_of_what_is_selected() {
    let session = session(&Config::default());
    let first = config_update(&session).and_then(|params| params.chat).expect("news");
    assert_eq!(first.select_model.as_deref(), Some("anthropic/claude-sonnet-4-6"));
    assert_eq!(first.variants.map(|names| names.join(" ")).as_deref(), Some("high low max medium"));
    assert_eq!(first.select_variant, Some(None));
    assert_eq!(config_update(&session), None);
    select_model(&session, json!({"model": "openai/gpt-5.2", "variant": "low"}));
    assert_eq!(config_update(&session), None, "the user's selection is neither repeated nor taken back");
}

#[tokio::test]
async fn an_agent_brings_its_model_and_the_tools_follow() {
    let session = session(&with_planner());
    let sent = select_agent(&session, json!({"agent": "plan"}));
    assert_eq!(sent[0].0, "config/updated");
    assert_eq!(
        sent[0].1,
        json!({"chat": {
            "selectModel": "anthropic/claude-opus-4-8",
            "variants": ["high", "low", "max", "medium", "xhigh"],
            "selectVariant": "max"
        }})
    );
    assert_eq!((sent[1].0.as_str(), &sent[1].1["name"]), ("tool/serverUpdated", &json!("ECA")));
    assert_eq!(sent.len(), 2);
    let sent = select_agent(&session, json!({"behavior": "agent"}));
    assert_eq!(sent.len(), 1, "an agent without a wish leaves the model alone: {sent:?}");
}

#[tokio::test]
async fn a_chat_keeps_its_model_when_the_agent_changes() {
    let session = session(&with_planner());
    session.note_prompt(ChatId::new("mine"), "openai/gpt-5.2");
    let sent = select_agent(&session, json!({"chatId": "mine", "behavior": "plan"}));
    assert_eq!(sent[0].1["chatId"], "mine");
    assert_eq!(sent[0].1["chat"]["selectModel"], "openai/gpt-5.2");
    assert_eq!(sent[0].1["chat"]["selectVariant"], Value::Null, "this model has no such variant");
    assert_eq!(session.selection().agent, None);
}

#[tokio::test]
async fn the_configured_default_counts_for_every_agent() {
    let session = session(&Config { default_model: Some("openai/gpt-5.2".into()), ..Config::default() });
    let sent = select_agent(&session, json!({"agent": "code"}));
    assert_eq!(sent[0].1["chat"]["selectModel"], "openai/gpt-5.2");
}
