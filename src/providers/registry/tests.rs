//! Tests of the registry against fake providers; no socket is opened.

mod catalogue;
mod vendors;

use std::future::pending;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use futures_util::stream::{self, StreamExt};

use super::*;
use crate::config::{ModelConfig, Secret};
use crate::llm::{DeltaStream, ErrorClass, LlmError, Request};

/// What the fake network answers at a url.
#[derive(Debug, Clone)]
enum Reply {
    Models(Vec<ListedModel>),
    Refused,
    Silence,
}

/// What a provider was built from: id, url, key.
type Built = (String, String, Option<String>);

/// The replies by url, and what was built.
#[derive(Debug, Clone, Default)]
struct Network {
    replies: Arc<Mutex<BTreeMap<String, Reply>>>,
    built: Arc<Mutex<Vec<Built>>>,
}

#[derive(Debug)]
struct Fake {
    id: String,
    url: String,
    network: Network,
}

impl Provider for Fake {
    fn id(&self) -> &str {
        &self.id
    }

    fn dialect(&self) -> &'static str {
        "fake"
    }

    fn stream(&self, _: Request) -> DeltaStream {
        stream::empty().boxed()
    }
}

impl Upstream for Fake {
    fn list_models(&self) -> BoxFuture<'_, Result<Vec<ListedModel>, LlmError>> {
        let reply = self.network.replies.lock().unwrap().get(&self.url).cloned();
        match reply.unwrap_or(Reply::Refused) {
            Reply::Models(models) => ready(Ok(models)).boxed(),
            Reply::Silence => pending().boxed(),
            Reply::Refused => ready(Err(LlmError {
                class: ErrorClass::Network,
                status: None,
                provider: self.id.clone(),
                retry_after: None,
                user_text: "refused".into(),
            }))
            .boxed(),
        }
    }
}

impl Network {
    fn says(&self, url: &str, reply: Reply) {
        self.replies.lock().unwrap().insert(url.into(), reply);
    }

    fn lists(&self, url: &str, names: &[&str]) {
        let model =
            |name: &&str| ListedModel { name: (*name).into(), context_limit: Some(1_000), ..ListedModel::default() };
        self.says(url, Reply::Models(names.iter().map(model).collect()));
    }

    fn wiring(&self) -> Wiring {
        let network = self.clone();
        let build: BuildUpstream = Arc::new(move |id, config, key| {
            // Bedrock alone finds its address by itself.
            let url = config.url.clone().unwrap_or_default();
            let key = key.map(|key| key.expose().to_owned());
            network.built.lock().unwrap().push((id.into(), url.clone(), key));
            Arc::new(Fake { id: id.into(), url, network: network.clone() })
        });
        let short = Duration::from_millis(5);
        let at = |id: &str, url: &str| LocalServer { id: id.into(), api: "openai-chat".into(), url: url.into() };
        let local_servers = vec![at("ollama", "http://127.0.0.1:1/v1"), at("lmstudio", "http://127.0.0.1:2/v1")];
        Wiring { local_servers, list_patience: short, probe_patience: short, ..Wiring::new(build) }
    }
}

fn openai_chat(url: &str, models: &[&str]) -> ProviderConfig {
    ProviderConfig {
        api: Some("openai-chat".into()),
        url: Some(url.into()),
        fetch_models: true,
        models: models.iter().map(|name| ((*name).into(), ModelConfig::default())).collect(),
        ..Default::default()
    }
}

fn config(providers: &[(&str, ProviderConfig)]) -> Config {
    let providers = providers.iter().map(|(id, provider)| ((*id).into(), provider.clone())).collect();
    Config { providers, ..Config::default() }
}

fn vars(pairs: &[(&str, &str)]) -> Environment {
    let vars = pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    Environment { vars, config_path: "/cfg/config.json".into(), ..Environment::default() }
}

fn registry(network: &Network, config: &Config) -> Registry {
    let (registry, problems) = Registry::new(config, vars(&[]), network.wiring());
    assert_eq!(problems, []);
    registry
}

fn ids(registry: &Registry) -> Vec<String> {
    registry.models().iter().map(|model| model.id.to_string()).collect()
}

fn id(full: &str) -> ModelId {
    ModelId::parse(full).expect("a full id")
}

#[tokio::test]
async fn nothing_configured_means_the_guide() {
    let registry = registry(&Network::default(), &Config::default());
    assert_eq!(ids(&registry), ["eca/guide"]);
    assert_eq!(registry.default_model(), id("eca/guide"));
    assert_eq!(registry.provider("eca").map(|p| p.id().to_owned()).as_deref(), Some("eca"));
    assert!(registry.provider("openai").is_none());
    assert!(!registry.refresh().await, "nothing was found, so nothing changed");
    assert_eq!(registry.default_model(), id("eca/guide"));
}

#[test]
fn models_are_sorted_and_the_guide_is_last() {
    let config = config(&[("zed", openai_chat("http://z", &["b", "a"])), ("alpha", openai_chat("http://a", &["m"]))]);
    let registry = registry(&Network::default(), &config);
    assert_eq!(ids(&registry), ["alpha/m", "zed/a", "zed/b", "eca/guide"]);
    assert_eq!(registry.default_model(), id("alpha/m"));
}

#[test]
fn what_cannot_be_built_is_reported_and_the_rest_works() {
    let with_api = |api: Option<&str>| ProviderConfig { api: api.map(Into::into), ..openai_chat("http://x", &["m"]) };
    let without_url = ProviderConfig { url: Some(" ".into()), ..openai_chat("", &["m"]) };
    let config = config(&[
        ("a-dialect", with_api(Some("smoke-signals"))),
        ("b-none", with_api(None)),
        ("c-url", without_url),
        ("d-url", openai_chat("http://user:hunter2@[", &["m"])),
        ("e-url", openai_chat("ftp://user:hunter2@host", &["m"])),
        ("eca", openai_chat("http://x", &["m"])),
        ("f/slash", openai_chat("http://x", &["m"])),
        ("good", openai_chat("http://x", &["m"])),
    ]);
    let (registry, problems) = Registry::new(&config, vars(&[]), Network::default().wiring());
    let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
    for (message, expected) in messages.iter().zip([
        "providers.a-dialect: the api \"smoke-signals\" is not available; available: openai-chat, openai-responses",
        "providers.b-none: \"api\" is missing",
        "providers.c-url: \"url\" is missing; set it, or the environment variable C_URL_API_URL",
        "providers.d-url: \"url\" cannot be read",
        "providers.e-url: \"url\" must start with http",
        "providers.eca: this name belongs to the built-in guide",
        "providers.f/slash: a provider's name must not",
    ]) {
        assert!(message.contains(expected), "{message:?} does not contain {expected:?}");
        assert!(!message.contains("hunter2"), "{message}");
    }
    assert_eq!(messages.len(), 7);
    assert_eq!(ids(&registry), ["good/m", "eca/guide"]);
}

#[test]
fn keys_and_urls_come_from_the_configuration_then_the_environment() {
    let network = Network::default();
    let with_key = ProviderConfig { key: Some(Secret::new("from-config")), ..openai_chat("http://a/v1/", &[]) };
    let blank_key = ProviderConfig { key: Some(Secret::new(" ")), ..openai_chat("http://b", &[]) };
    let no_url = ProviderConfig { url: None, ..openai_chat("", &[]) };
    let config = config(&[("with-key", with_key), ("blankKey", blank_key), ("no-url", no_url)]);
    let environment = vars(&[
        ("WITH_KEY_API_KEY", "from-env"),
        ("BLANK_KEY_API_KEY", "from-env"),
        ("NO_URL_API_KEY", ""),
        ("NO_URL_API_URL", "http://u:p@c/v1?q=1"),
    ]);
    let (registry, problems) = Registry::new(&config, environment, network.wiring());
    assert_eq!(problems, []);
    let built = network.built.lock().unwrap().clone();
    let row = |id: &str, url: &str, key: Option<&str>| (id.to_owned(), url.to_owned(), key.map(str::to_owned));
    assert_eq!(
        built,
        [
            row("blankKey", "http://b", Some("from-env")),
            row("no-url", "http://u:p@c/v1?q=1", None),
            row("with-key", "http://a/v1", Some("from-config")),
        ]
    );
    let described = registry.describe();
    let sources: Vec<_> = described.iter().map(|view| (view.key_source.clone(), view.has_key)).collect();
    let from_env = KeySource::Env("BLANK_KEY_API_KEY".into());
    assert_eq!(sources, [(from_env, true), (KeySource::None, false), (KeySource::Config, true)]);
    assert_eq!(described[1].url, "http://c/v1");
    let shown = format!("{registry:?} {described:?} {:?}", registry.inner.environment);
    assert!(!shown.contains("from-env") && !shown.contains("from-config") && !shown.contains("u:p"), "{shown}");
}

#[tokio::test]
async fn the_guide_speaks_of_this_registry_and_shows_no_key() {
    let provider = ProviderConfig { key: Some(Secret::new("sk-config")), ..openai_chat("http://h/v1", &["m"]) };
    let environment = vars(&[("GROQ_API_KEY", "sk-env"), ("EMPTY_API_KEY", " "), ("WORK_API_URL", "x")]);
    let (registry, _) = Registry::new(&config(&[("work", provider)]), environment, Network::default().wiring());
    let view = guide_view(&Arc::downgrade(&registry.inner));
    assert_eq!(view.key_variables, ["GROQ_API_KEY"]);
    assert_eq!(view.config_path, PathBuf::from("/cfg/config.json"));
    assert_eq!(view.providers, registry.describe());
    assert!(view.local_discovery);
    let request = Request {
        model: Guide::model().id,
        system: String::new(),
        messages: Vec::new(),
        tools: Vec::new(),
        max_output_tokens: None,
        reasoning: true,
        web_search: false,
        payload: serde_json::Map::new(),
        cache_key: None,
    };
    let guide = Guide::new(move || view.clone()).with_pause(Duration::ZERO);
    let said = format!("{:?}", guide.stream(request).collect::<Vec<_>>().await);
    assert!(said.contains("GROQ_API_KEY") && said.contains("work"));
    assert!(!said.contains("sk-"), "{said}");
}

#[test]
fn a_configured_default_wins_when_it_means_something() {
    let base = config(&[("p", openai_chat("http://p", &["a", "b"]))]);
    for (wanted, got) in [
        (Some("p/unlisted"), "p/unlisted"),
        (Some("b"), "p/b"),
        (Some("eca/guide"), "eca/guide"),
        (Some("gone/model"), "p/a"),
        (Some("nothing"), "p/a"),
        (None, "p/a"),
    ] {
        let config = Config { default_model: wanted.map(Into::into), ..base.clone() };
        assert_eq!(registry(&Network::default(), &config).default_model(), id(got), "{wanted:?}");
    }
}

#[test]
fn names_are_resolved() {
    let config = config(&[
        ("one", openai_chat("http://1", &["same", "gpt-4.1"])),
        ("router", openai_chat("http://r", &["openai/gpt-5"])),
        ("two", openai_chat("http://2", &["same"])),
    ]);
    let registry = registry(&Network::default(), &config);
    let current = id("two/x");
    for (wanted, current, got) in [
        ("", None, "one/gpt-4.1"),
        (" auto ", Some(&current), "one/gpt-4.1"),
        ("two/anything", None, "two/anything"),
        ("same", Some(&current), "two/same"),
        ("same", None, "one/same"),
        ("gpt-4.1", Some(&current), "one/gpt-4.1"),
        ("openai/gpt-5", None, "router/openai/gpt-5"),
        ("router/openai/gpt-5", None, "router/openai/gpt-5"),
        ("guide", None, "eca/guide"),
    ] {
        assert_eq!(registry.resolve(wanted, current), Ok(id(got)), "{wanted:?}");
    }
}

#[test]
fn an_unknown_name_gets_helpful_words() {
    let config = config(&[("one", openai_chat("http://1", &["gpt-4.1", "qwen3", "sonnet"]))]);
    let registry = registry(&Network::default(), &config);
    let error = registry.resolve("gpt-4", None).expect_err("not a model");
    assert_eq!(error.close, [id("one/gpt-4.1")]);
    assert!(error.to_string().contains("no model named `gpt-4`") && error.to_string().contains("`one/gpt-4.1`"));
    assert_eq!(registry.resolve("sonet", None).expect_err("a typo").close, [id("one/sonnet")]);
    assert_eq!(registry.resolve("eca/other", None).expect_err("no such guide").close, []);
    let long = registry.resolve(&"é".repeat(100_000), None).expect_err("nonsense");
    assert!(long.to_string().chars().count() < 400);
}

#[test]
fn info_knows_listed_models_and_names_of_known_providers() {
    let mut provider = openai_chat("http://p", &["a"]);
    provider.models.insert("big".into(), ModelConfig { context_limit: Some(9), ..Default::default() });
    let registry = registry(&Network::default(), &config(&[("p", provider)]));
    assert_eq!(registry.info(&id("p/big")).and_then(|info| info.context_limit), Some(9));
    assert_eq!(registry.info(&id("p/unlisted")), Some(ModelInfo::named(id("p/unlisted"))));
    assert_eq!(registry.info(&id("q/x")), None);
    assert!(registry.info(&id("eca/guide")).is_some());
}

#[test]
fn retry_is_per_provider() {
    let retry = RetryConfig { max_retries: 1, ..RetryConfig::default() };
    let provider = ProviderConfig { retry: retry.clone(), ..openai_chat("http://p", &[]) };
    let registry = registry(&Network::default(), &config(&[("p", provider)]));
    assert_eq!(registry.retry("p"), retry);
    assert_eq!(registry.retry("eca"), RetryConfig::default());
}

#[tokio::test]
async fn refresh_adds_listed_models_and_survives_failures() {
    let network = Network::default();
    network.lists("http://good", &["m1", "m0"]);
    network.lists("http://unasked", &["hidden"]);
    network.says("http://slow", Reply::Silence);
    let unasked = ProviderConfig { fetch_models: false, ..openai_chat("http://unasked", &["own"]) };
    let config = config(&[
        ("bad", openai_chat("http://bad", &["own"])),
        ("good", openai_chat("http://good", &["own"])),
        ("slow", openai_chat("http://slow", &["own"])),
        ("unasked", unasked),
    ]);
    let registry = registry(&network, &config);
    let before = registry.default_model();
    assert!(registry.refresh().await);
    let all = ["bad/own", "good/m0", "good/m1", "good/own", "slow/own", "unasked/own", "eca/guide"];
    assert_eq!(ids(&registry), all);
    assert_eq!(registry.info(&id("good/m1")).and_then(|info| info.context_limit), Some(1_000));
    assert_eq!(registry.default_model(), before, "the selection does not jump");
    assert!(!registry.refresh().await, "the same lists again change nothing");
    network.says("http://good", Reply::Refused);
    assert!(!registry.refresh().await, "a failed list leaves the last one");
    assert_eq!(ids(&registry), all);
}

#[tokio::test]
async fn local_servers_are_found_kept_while_slow_and_lost_when_gone() {
    let network = Network::default();
    let registry = registry(&network, &Config::default());
    let ollama = "http://127.0.0.1:1/v1";
    network.lists(ollama, &["qwen3", "nomic-embed-text"]);
    assert!(registry.refresh().await);
    assert_eq!(ids(&registry), ["ollama/qwen3", "eca/guide"]);
    assert_eq!(registry.default_model(), id("ollama/qwen3"));
    let described = registry.describe();
    assert_eq!((described.len(), described[0].local, described[0].model_count), (1, true, 1));
    network.says(ollama, Reply::Silence);
    assert!(!registry.refresh().await);
    network.says(ollama, Reply::Refused);
    assert!(registry.refresh().await);
    assert_eq!(ids(&registry), ["eca/guide"]);
    network.lists("http://127.0.0.1:2/v1", &[]);
    assert!(registry.refresh().await, "a server without models is still a provider");
    assert!(registry.provider("lmstudio").is_some());
    assert_eq!(registry.default_model(), id("eca/guide"));
}

#[tokio::test]
async fn local_discovery_can_be_turned_off() {
    let network = Network::default();
    network.lists("http://127.0.0.1:1/v1", &["qwen3"]);
    let registry = registry(&network, &Config { local_discovery: false, ..Config::default() });
    assert!(!registry.refresh().await);
    assert_eq!(ids(&registry), ["eca/guide"]);
    assert_eq!(*network.built.lock().unwrap(), [], "nothing was even tried");
}

#[tokio::test]
async fn a_configured_local_server_is_the_users_own() {
    let network = Network::default();
    network.lists("http://127.0.0.1:1/v1", &["default-port"]);
    network.lists("http://box:9", &["other-port"]);
    network.lists("http://127.0.0.1:7/v1", &["by-variable"]);
    let moved = ProviderConfig { api: None, ..openai_chat("http://box:9/", &[]) };
    let environment = vars(&[("LMSTUDIO_API_URL", "http://127.0.0.1:7")]);
    let (registry, problems) = Registry::new(&config(&[("ollama", moved)]), environment, network.wiring());
    assert_eq!(problems, []);
    assert!(registry.refresh().await);
    assert_eq!(ids(&registry), ["lmstudio/by-variable", "ollama/other-port", "eca/guide"]);
    assert!(!registry.describe()[1].local);
}
