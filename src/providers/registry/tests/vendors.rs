//! Vendors without configuration, keys and their order, defaults, variants, and what is shown.

use serde_json::json;

use super::*;
use crate::providers::vendors::{self, Auth, Place, VENDORS};

fn environment_only(environment: Environment) -> (Registry, Network) {
    let network = Network::default();
    let (registry, problems) = Registry::new(&Config::default(), environment, network.wiring());
    assert_eq!(problems, []);
    (registry, network)
}

fn payload(registry: &Registry, model: &str, variant: Option<&str>) -> Value {
    Value::Object(registry.variant(&id(model), variant).into_payload())
}

#[test]
fn a_key_in_the_environment_is_enough() {
    for vendor in VENDORS.iter().filter(|vendor| vendor.place == Place::Remote) {
        for variable in vendor.all_key_variables() {
            let (registry, network) = environment_only(vars(&[(variable.as_str(), "sk")]));
            let built: Vec<String> = network.built.lock().unwrap().iter().map(|(id, ..)| id.clone()).collect();
            let has_address = vendor.endpoints[0].url.is_some() || vendor.endpoints[0].api == "bedrock";
            let expected: &[&str] = if has_address && vendor.no_login.is_none() { &[vendor.id] } else { &[] };
            assert_eq!(built, expected, "{variable}");
            let listed = registry.models().iter().filter(|model| model.id.provider() == vendor.id).count();
            assert_eq!(listed, if expected.is_empty() { 0 } else { vendor.models.len() }, "{variable}");
            for view in registry.describe() {
                assert_eq!((view.key_source, view.configured), (KeySource::Env(variable.clone()), false));
            }
        }
    }
    let (registry, _) = environment_only(vars(&[("OPENAI_API_KEY", " "), ("UNHEARD_OF_API_KEY", "sk")]));
    assert!(registry.describe().is_empty());
}

#[test]
fn an_address_in_the_environment_is_enough_for_servers_of_ones_own() {
    let environment = vars(&[
        ("LLAMA_CPP_API_URL", "http://127.0.0.1:9000"),
        ("LITELLM_API_URL", "http://proxy:4000"),
        ("AZURE_API_URL", "https://mine.openai.azure.com"),
        ("AZURE_API_KEY", "sk"),
    ]);
    let (registry, network) = environment_only(environment);
    let built: Vec<(String, String)> =
        network.built.lock().unwrap().iter().map(|(id, url, _)| (id.clone(), url.clone())).collect();
    let row = |id: &str, url: &str| (id.to_owned(), url.to_owned());
    assert_eq!(
        built,
        [
            row("azure", "https://mine.openai.azure.com"),
            row("llama.cpp", "http://127.0.0.1:9000/v1"),
            row("litellm", "http://proxy:4000"),
        ]
    );
    let apis: Vec<String> = registry.describe().into_iter().map(|view| view.api).collect();
    assert_eq!(apis, ["openai-responses", "openai-responses", "openai-chat"]);
}

#[test]
fn a_key_travels_as_its_vendor_wants() {
    let environment =
        vars(&[("AZURE_API_URL", "https://a"), ("AZURE_API_KEY", "sk-azure"), ("GROQ_API_KEY", "sk-groq")]);
    let (registry, network) = environment_only(environment);
    let built = network.built.lock().unwrap().clone();
    let keys: Vec<_> = built.iter().map(|(id, _, key)| (id.as_str(), key.as_deref())).collect();
    assert_eq!(keys, [("azure", None), ("groq", Some("sk-groq"))]);
    let azure = &registry.inner.snapshot().entries["azure"];
    assert_eq!(vendors::find("azure").map(|vendor| vendor.auth), Some(Auth::Header("api-key")));
    assert_eq!(azure.config.extra_headers.get("api-key").map(String::as_str), Some("sk-azure"));
    assert_eq!(
        azure.config.completion_url_relative_path.as_deref(),
        Some("/openai/responses?api-version=2025-04-01-preview")
    );
}

#[test]
fn the_configuration_overrides_a_row_field_by_field() {
    let network = Network::default();
    let native = ProviderConfig { api: Some("gemini".into()), ..ProviderConfig::default() };
    let tagged = ProviderConfig { think_tag_start: Some(String::new()), ..ProviderConfig::default() };
    let moved = ProviderConfig { url: Some("https://proxy/v1".into()), ..ProviderConfig::default() };
    for (provider, api, url, tags) in [
        (native, "gemini", "https://generativelanguage.googleapis.com", None),
        (tagged, "openai-chat", "https://generativelanguage.googleapis.com/v1beta/openai", Some("")),
        (moved, "openai-chat", "https://proxy/v1", Some("<thought>")),
    ] {
        let (registry, problems) =
            Registry::new(&config(&[("google", provider)]), vars(&[("GEMINI_API_KEY", "sk")]), network.wiring());
        assert_eq!(problems, []);
        let entry = &registry.inner.snapshot().entries["google"];
        assert_eq!((entry.config.api.as_deref(), entry.config.url.as_deref()), (Some(api), Some(url)));
        assert_eq!(entry.config.think_tag_start.as_deref(), tags);
        assert_eq!(entry.payload.is_empty(), api == "gemini");
        assert!(ids(&registry).contains(&"google/gemini-2.5-pro".to_owned()));
    }
}

#[test]
fn keys_are_looked_for_in_order() {
    let netrc: Lookup<Secret> = Arc::new(|machine| (machine == "me@host").then(|| Secret::new("from-netrc")));
    let named: Lookup<String> = Arc::new(|name| (name == "MY_OLD_VARIABLE").then(|| "from-old".to_owned()));
    let mut provider = ProviderConfig {
        key: Some(Secret::new("from-config")),
        key_rc: Some("me@host".into()),
        key_env: Some("MY_OLD_VARIABLE".into()),
        ..openai_chat("http://p", &[])
    };
    let mut environment = vars(&[("P_API_KEY", "from-env")]);
    environment.logins.insert("p".into(), Secret::new("from-login"));
    environment.netrc = Some(netrc);
    environment.variable = Some(named);
    let found = |provider: &ProviderConfig, environment: &Environment| {
        let network = Network::default();
        let config = config(&[("p", provider.clone())]);
        let (registry, _) = Registry::new(&config, environment.clone(), network.wiring());
        let key = network.built.lock().unwrap()[0].2.clone();
        (key, registry.describe()[0].key_source.clone())
    };
    let key = |text: &str| Some(text.to_owned());
    assert_eq!(found(&provider, &environment), (key("from-config"), KeySource::Config));
    provider.key = None;
    assert_eq!(found(&provider, &environment), (key("from-login"), KeySource::Login));
    environment.logins.clear();
    assert_eq!(found(&provider, &environment), (key("from-env"), KeySource::Env("P_API_KEY".into())));
    environment.vars.clear();
    assert_eq!(found(&provider, &environment), (key("from-netrc"), KeySource::Netrc));
    provider.key_rc = Some("other".into());
    assert_eq!(found(&provider, &environment), (key("from-old"), KeySource::Env("MY_OLD_VARIABLE".into())));
    provider.key_env = None;
    assert_eq!(found(&provider, &environment), (None, KeySource::None));
}

#[test]
fn models_that_need_a_key_are_listed_only_with_one() {
    let config = config(&[("openai", ProviderConfig::default()), ("groq", openai_chat("https://g", &["m"]))]);
    let (registry, problems) = Registry::new(&config, vars(&[]), Network::default().wiring());
    assert_eq!(problems, []);
    assert_eq!(ids(&registry), ["groq/m", "eca/guide"]);
    assert_eq!(registry.resolve("openai/gpt-5", None), Ok(id("openai/gpt-5")), "its error will say what is missing");
    let (registry, _) = Registry::new(&config, vars(&[("OPENAI_API_KEY", "sk")]), Network::default().wiring());
    assert!(ids(&registry).contains(&"openai/gpt-5".to_owned()));
}

#[tokio::test]
async fn the_default_is_the_vendors_main_model() {
    let anthropic = ("ANTHROPIC_API_KEY", "sk");
    let openai = ("OPENAI_API_KEY", "sk");
    let google = ("GOOGLE_API_KEY", "sk");
    for (keys, expected) in [
        (&[anthropic, openai][..], "anthropic/claude-sonnet-4-6"),
        (&[openai, google], "openai/gpt-5.2"),
        (&[google], "google/gemini-2.5-pro"),
        (&[], "eca/guide"),
    ] {
        assert_eq!(environment_only(vars(keys)).0.default_model(), id(expected), "{keys:?}");
    }
    let own = config(&[("mine", openai_chat("http://m", &["written"]))]);
    let network = Network::default();
    network.lists("http://127.0.0.1:1/v1", &["qwen3"]);
    network.lists("http://g", &["aaa"]);
    let (registry, _) = Registry::new(&own, vars(&[google]), network.wiring());
    assert_eq!(registry.default_model(), id("mine/written"), "before a vendor's model, the user's own");
    assert!(registry.refresh().await);
    assert_eq!(registry.default_model(), id("mine/written"), "and before what was found");
    let other = config(&[("google", openai_chat("http://g", &[]))]);
    let (registry, _) = Registry::new(&other, vars(&[google]), network.wiring());
    assert!(registry.refresh().await);
    assert_eq!(registry.default_model(), id("ollama/qwen3"));
    assert!(!registry.has_configured_default());
    let wished = Config { default_model: Some("google/gemini-2.5-pro".into()), ..other };
    let (registry, _) = Registry::new(&wished, vars(&[google]), network.wiring());
    assert!(registry.has_configured_default());
}

#[test]
fn payloads_are_the_vendors_then_the_users_then_the_variants() {
    let mut provider = ProviderConfig::default();
    let extra = json!({"temperature": 1, "parallel_tool_calls": null});
    let variant = json!({"temperature": 2});
    provider.models.insert(
        "gemini-2.5-pro".into(),
        ModelConfig {
            extra_payload: extra.as_object().cloned().unwrap(),
            variants: BTreeMap::from([("hot".to_owned(), variant.as_object().cloned().unwrap())]),
            ..ModelConfig::default()
        },
    );
    let config = config(&[("google", provider), ("plain", openai_chat("http://p", &["m"]))]);
    let (registry, _) = Registry::new(&config, vars(&[("GOOGLE_API_KEY", "sk")]), Network::default().wiring());
    let thoughts = json!({"google": {"thinking_config": {"include_thoughts": true}}});
    assert_eq!(
        payload(&registry, "google/gemini-2.5-pro", Some("hot")),
        json!({"temperature": 2, "parallel_tool_calls": null, "extra_body": thoughts})
    );
    assert_eq!(
        payload(&registry, "google/unlisted", None),
        json!({"parallel_tool_calls": false, "extra_body": thoughts})
    );
    assert_eq!(payload(&registry, "plain/m", None), json!({}));
    assert_eq!(payload(&registry, "eca/guide", None), json!({}));
    assert_eq!(registry.variants(&id("google/gemini-2.5-pro")), ["hot"]);
}

#[test]
fn variants_follow_the_model_and_unknown_ones_are_noticed() {
    let (registry, _) = environment_only(vars(&[("ANTHROPIC_API_KEY", "sk"), ("OPENAI_API_KEY", "sk")]));
    assert_eq!(registry.variants(&id("anthropic/claude-opus-4-8")), ["high", "low", "max", "medium", "xhigh"]);
    assert_eq!(registry.variants(&id("openai/gpt-4.1")), [] as [String; 0]);
    assert_eq!(registry.variants(&id("nobody/x")), [] as [String; 0]);
    let summarized = json!({"thinking": {"type": "adaptive", "display": "summarized"}});
    assert_eq!(payload(&registry, "anthropic/claude-opus-4-8", None), summarized, "the hidden default");
    assert_eq!(payload(&registry, "anthropic/claude-opus-4-8", Some(" ")), summarized);
    let unknown = registry.variant(&id("anthropic/claude-opus-4-8"), Some("none"));
    assert_eq!(unknown, VariantChoice::Unknown(summarized.as_object().cloned().unwrap()));
    assert_eq!(
        payload(&registry, "openai/gpt-5.2", Some("low")),
        json!({"reasoning": {"effort": "low", "summary": "auto"}})
    );
}

#[test]
fn unreadable_patterns_are_reported() {
    let rules = BTreeMap::from([("(".to_owned(), crate::config::VariantRule::default())]);
    let config = Config { variants_by_model: rules, ..Config::default() };
    let (_, problems) = Registry::new(&config, vars(&[]), Network::default().wiring());
    assert_eq!(problems.len(), 1);
    assert!(problems[0].message.contains("variantsByModel"));
}

#[tokio::test]
async fn the_overview_names_what_could_be_used() {
    let network = Network::default();
    network.lists("http://127.0.0.1:1/v1", &["qwen3"]);
    let config = config(&[("deepseek", ProviderConfig::default()), ("mine", openai_chat("http://m", &[]))]);
    let (registry, _) = Registry::new(&config, vars(&[("OPENAI_API_KEY", "sk")]), network.wiring());
    registry.refresh().await;
    let shown = registry.overview();
    let states: Vec<(&str, ProviderState)> = shown.iter().map(|view| (view.id.as_str(), view.state)).collect();
    let copilot = vendors::find("github-copilot").and_then(|vendor| vendor.no_login).expect("a reason");
    assert_eq!(
        states,
        [
            ("anthropic", ProviderState::Unauthenticated),
            ("deepseek", ProviderState::Unauthenticated),
            ("github-copilot", ProviderState::NoLogin(copilot)),
            ("google", ProviderState::Unauthenticated),
            ("lmstudio", ProviderState::NotRunning),
            ("mine", ProviderState::Local),
            ("ollama", ProviderState::Local),
            ("openai", ProviderState::Authenticated),
        ]
    );
    assert_eq!(shown[7].label, Some("OpenAI"));
    assert!(registry.describe().len() == 4, "a diagnosis speaks of real providers only");
}

#[test]
fn only_the_vendor_itself_searches_the_web() {
    let searches = |config: serde_json::Value, variable: &str, model: &str| {
        let loaded = crate::config::load::load(&crate::config::load::Sources {
            initialization_options: Some(serde_json::json!({"providers": config, "pureConfig": true})),
            eca_config: None,
            config_file: None,
            workspace_roots: Vec::new(),
            trusted: Default::default(),
            dirs: crate::config::Dirs { config: "/c".into(), data: "/d".into(), cache: "/k".into() },
            env: &|_| None,
            memory: &Default::default(),
        });
        let vars = std::collections::BTreeMap::from([(variable.to_owned(), "sk".to_owned())]);
        let environment = Environment { vars, ..Environment::default() };
        let wiring = Wiring::standard(&loaded.config, &environment);
        let (registry, _) = Registry::new(&loaded.config, environment, wiring);
        registry.info(&ModelId::parse(model).unwrap()).unwrap().web_search
    };
    assert!(searches(json!({}), "OPENAI_API_KEY", "openai/gpt-5.2"));
    assert!(searches(json!({}), "ANTHROPIC_API_KEY", "anthropic/claude-sonnet-4-6"));
    assert!(searches(json!({"google": {"api": "gemini"}}), "GOOGLE_API_KEY", "google/gemini-2.5-pro"));
    let alias = json!({"openai": {"models": {"mine": {"modelName": "gpt-5"}}}});
    assert!(searches(alias, "OPENAI_API_KEY", "openai/mine"));
    for (config, variable, model) in [
        (json!({}), "OPENAI_API_KEY", "openai/gpt-3.5"),
        (json!({"openai": {"api": "openai-chat"}}), "OPENAI_API_KEY", "openai/gpt-5"),
        (json!({"openai": {"url": "https://proxy.example"}}), "OPENAI_API_KEY", "openai/gpt-5"),
        (json!({}), "GOOGLE_API_KEY", "google/gemini-2.5-pro"),
        (json!({}), "GROQ_API_KEY", "groq/gpt-5"),
    ] {
        assert!(!searches(config, variable, model), "{model}");
    }
}
