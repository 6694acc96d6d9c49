//! Precedence, problems and names of the configuration, seen through `load`.

mod workspace;

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::config::{CacheRetention, ChatConfig, ModelConfig, ProviderConfig, RetryConfig, Secret};
use crate::llm::Cost;

struct Setup {
    dir: tempfile::TempDir,
    options: Option<Value>,
    eca_config: Option<String>,
    config_file: Option<PathBuf>,
    roots: Vec<PathBuf>,
    trusted: BTreeMap<PathBuf, String>,
    memory: Memory,
}

impl Setup {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            options: None,
            eca_config: None,
            config_file: None,
            roots: Vec::new(),
            trusted: BTreeMap::new(),
            memory: Memory::default(),
        }
    }

    /// A file of a workspace folder, which becomes a root.
    fn in_workspace(mut self, folder: &str, file: &str, text: &str) -> Self {
        let root = dunce::canonicalize(self.dir.path()).unwrap().join(folder);
        let file = root.join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
        if !self.roots.contains(&root) {
            self.roots.push(root);
        }
        self
    }

    fn workspace(self, text: &str) -> Self {
        self.in_workspace("repo", ".eca/config.json", text)
    }

    /// Trusts everything that is withheld now, as `eca trust --yes` does.
    fn trust_all(&mut self) {
        loop {
            let withheld = self.load().withheld;
            if withheld.is_empty() {
                return;
            }
            self.trusted.extend(withheld.into_iter().map(|withheld| (withheld.file, withheld.hash.unwrap())));
        }
    }

    fn global(self, text: &str) -> Self {
        let dirs = self.dirs();
        std::fs::create_dir_all(&dirs.config).unwrap();
        std::fs::write(dirs.config.join("config.json"), text).unwrap();
        self
    }

    fn options(mut self, options: Value) -> Self {
        self.options = Some(options);
        self
    }

    fn eca_config(mut self, text: &str) -> Self {
        self.eca_config = Some(text.to_owned());
        self
    }

    fn dirs(&self) -> Dirs {
        let base = |name: &str| self.dir.path().join(name).join("eca");
        Dirs { config: base("config"), data: base("data"), cache: base("cache") }
    }

    fn load(&self) -> Loaded {
        let home = self.dir.path().to_str().map(str::to_owned);
        load(&Sources {
            initialization_options: self.options.clone(),
            eca_config: self.eca_config.clone(),
            config_file: self.config_file.clone(),
            workspace_roots: self.roots.clone(),
            trusted: self.trusted.clone(),
            memory: &self.memory,
            dirs: self.dirs(),
            env: &|name| match name {
                "HOME" => home.clone(),
                "MY_KEY" => Some("sk-from-env".to_owned()),
                _ => None,
            },
        })
    }
}

fn messages(loaded: &Loaded) -> Vec<String> {
    loaded.problems.iter().map(|p| format!("{}:{}", p.line.unwrap_or(0), p.message)).collect()
}

#[test]
fn nothing_at_all_gives_the_defaults() {
    let loaded = Setup::new().load();
    assert_eq!((loaded.config, loaded.problems), (Config::default(), vec![]));
    assert_eq!((loaded.withheld, loaded.commands), (vec![], vec![]));
}

#[test]
fn later_sources_win_and_maps_are_merged() {
    let setup = Setup::new()
        .options(json!({"defaultModel": "o/1", "welcomeMessage": "from options", "localDiscovery": false,
            "providers": {"p": {"url": "http://options", "models": {"a": {"limit": {"context": 10}}},
                "extraHeaders": {"x": "1", "y": "1"}}}}))
        .eca_config(
            r#"{"defaultModel": "e/1", "chat": {"maxSteps": 7},
            "providers": {"p": {"key": "from-env-config", "models": {
                "a": {"extraPayload": {"t": {"b": 1, "a": 2}, "n": null}}}}}}"#,
        )
        .global(
            r#"{
            // the file is the strongest
            "defaultModel": "f/1",
            "chat": {"title": false,},
            "providers": {"p": {"api": "anthropic", "models": {
                "a": {"limit": {"output": 5}, "extraPayload": {"t": {"a": [3]}}}, "b": null, "c": {}},
                "extraHeaders": {"y": "2", "x": null}}},
        }"#,
        );
    let loaded = setup.load();
    assert_eq!(loaded.problems, vec![]);
    let config = loaded.config;
    assert_eq!(config.default_model.as_deref(), Some("f/1"));
    assert_eq!(config.welcome_message.as_deref(), Some("from options"));
    assert!(!config.local_discovery);
    assert_eq!((config.chat.title, config.chat.max_steps), (false, 7));
    let provider = &config.providers["p"];
    assert_eq!(provider.url.as_deref(), Some("http://options"));
    assert_eq!(provider.key, Some(Secret::new("from-env-config")));
    assert_eq!(provider.api.as_deref(), Some("anthropic"));
    assert_eq!(provider.extra_headers, BTreeMap::from([("y".to_owned(), "2".to_owned())]));
    assert_eq!(provider.models.keys().collect::<Vec<_>>(), ["a", "b", "c"]);
    let model = &provider.models["a"];
    assert_eq!((model.context_limit, model.output_limit), (Some(10), Some(5)));
    assert_eq!(Value::Object(model.extra_payload.clone()), json!({"t": {"a": [3], "b": 1}, "n": null}));
}

#[test]
fn every_key_is_read() {
    let loaded = Setup::new()
        .global(
            r#"{"providers": {"my_LLM": {"api": "openai-responses", "url": "http://h/v1", "key": "k",
            "completionUrlRelativePath": "", "thinkTagStart": "<t>", "thinkTagEnd": "</t>", "fetchModels": false,
            "cacheRetention": "long",
            "retry": {"maxRetries": 0, "baseDelayMs": 250, "backoffMultiplier": 1.5, "maxDelayMs": 1e3,
                "maxAutoContinues": 1},
            "models": {"gpt-4.1": {"modelName": "real", "extraHeaders": {"h": "v"}, "imageInput": true,
                "limit": {"context": 1e6, "output": 32000.0},
                "cost": {"input": 1, "output": 2.5, "cacheRead": 0.1}}}}},
            "defaultAgent": "plan", "welcomeMessage": "hi", "chat": {"title": false, "maxSteps": 3},
            "localDiscovery": false, "streamIdleTimeoutSeconds": 0.5, "connectTimeoutSeconds": 3,
            "$schema": "x", "mcpServers": {"s": {"command": "x", "type": "stdio"}}, "toolCall": {}}"#,
        )
        .load();
    assert_eq!(loaded.problems, vec![]);
    let expected_model = ModelConfig {
        model_name: Some("real".to_owned()),
        extra_headers: BTreeMap::from([("h".to_owned(), "v".to_owned())]),
        context_limit: Some(1_000_000),
        output_limit: Some(32_000),
        cost: Some(Cost { input: 1.0, output: 2.5, cache_read: 0.1, cache_write: 0.0 }),
        image_input: Some(true),
        ..Default::default()
    };
    let expected_provider = ProviderConfig {
        api: Some("openai-responses".to_owned()),
        url: Some("http://h/v1".to_owned()),
        key: Some(Secret::new("k")),
        completion_url_relative_path: Some(String::new()),
        think_tag_start: Some("<t>".to_owned()),
        think_tag_end: Some("</t>".to_owned()),
        extra_headers: BTreeMap::new(),
        fetch_models: false,
        cache_retention: CacheRetention::Long,
        retry: RetryConfig {
            max_retries: 0,
            base_delay: Duration::from_millis(250),
            backoff_multiplier: 1.5,
            max_delay: Duration::from_secs(1),
            max_auto_continues: 1,
            ..RetryConfig::default()
        },
        models: BTreeMap::from([("gpt-4.1".to_owned(), expected_model)]),
        ..Default::default()
    };
    let expected = Config {
        providers: BTreeMap::from([("my_LLM".to_owned(), expected_provider)]),
        default_model: None,
        default_agent: "plan".to_owned(),
        welcome_message: Some("hi".to_owned()),
        chat: ChatConfig { title: false, max_steps: 3, ..Config::default().chat },
        local_discovery: false,
        stream_idle_timeout: Duration::from_millis(500),
        connect_timeout: Duration::from_secs(3),
        ..Default::default()
    };
    let mut config = loaded.config;
    assert_eq!(config.mcp.servers.remove("s").and_then(|server| server.command).as_deref(), Some("x"));
    assert_eq!(config, expected);
}

#[test]
fn fetching_models_is_the_default() {
    let loaded = Setup::new().global(r#"{"providers": {"p": {}}}"#).load();
    assert!(loaded.config.providers["p"].fetch_models);
}

#[test]
fn a_broken_source_is_reported_and_the_others_still_work() {
    let setup = Setup::new().options(json!({"defaultModel": "o/1"})).eca_config("{\n nope").global("{\n\n \"a\": }");
    let loaded = setup.load();
    assert_eq!(loaded.config.default_model.as_deref(), Some("o/1"));
    let places: Vec<_> = loaded.problems.iter().map(|p| (p.source.clone(), p.line)).collect();
    let file = setup.dirs().config.join("config.json").display().to_string();
    assert_eq!(places, [("ECA_CONFIG".to_owned(), Some(2)), (file, Some(3))]);

    let options = Setup::new().options(json!([1])).global(r#"{"defaultModel": "f/1"}"#).load();
    assert_eq!(options.config.default_model.as_deref(), Some("f/1"));
    assert_eq!(options.problems, [], "any JSON is accepted there; what is no object configures nothing");
}

#[test]
fn a_wrong_value_costs_only_itself() {
    let text = r#"{
  "defaultModel": 5,
  "defaultAgent": ["x"],
  "welcomeMessage": {},
  "chat": {"title": "yes",
    "maxSteps": 0},
  "localDiscovery": 1,
  "streamIdleTimeoutSeconds": -1,
  "connectTimeoutSeconds": 1e300,
  "providers": {
    "p": {
      "url": "http://good",
      "key": {"sk-secret": "sk-secret"},
      "api": 1,
      "fetchModels": "no",
      "extraHeaders": {"Authorization": 77, "ok": "1"},
      "retry": {"maxRetries": 1.5,
        "baseDelayMs": "2s", "backoffMultiplier": 0, "maxDelayMs": -5},
      "models": {
        "gpt-4.1": {"limit": {"context": "big", "output": 9}, "imageInput": "x", "modelName": []},
        "bad": 7,
        "priced": {"cost": {"input": "cheap", "output": 2}}
      }
    },
    "q": "sk-secret",
    "r": null
  }
}"#;
    let setup = Setup::new()
        .options(json!({"defaultModel": "o/1", "chat": {"maxSteps": 9}, "providers": {"p": {"key": "kept"}}}))
        .global(text);
    let loaded = setup.load();
    let mut keys: Vec<String> =
        messages(&loaded).iter().map(|m| m.split(": ").next().unwrap_or_default().to_owned()).collect();
    keys.sort_by_key(|key| key.split(':').next().unwrap().parse::<usize>().unwrap());
    assert_eq!(
        keys,
        [
            "2:defaultModel",
            "3:defaultAgent",
            "4:welcomeMessage",
            "5:chat.title",
            "6:chat.maxSteps",
            "7:localDiscovery",
            "8:streamIdleTimeoutSeconds",
            "9:connectTimeoutSeconds",
            "13:providers.p.key",
            "14:providers.p.api",
            "15:providers.p.fetchModels",
            "16:providers.p.extraHeaders.Authorization",
            "17:providers.p.retry.maxRetries",
            "18:providers.p.retry.baseDelayMs",
            "18:providers.p.retry.maxDelayMs",
            "18:providers.p.retry.backoffMultiplier",
            "20:providers.p.models.gpt-4.1.modelName",
            "20:providers.p.models.gpt-4.1.imageInput",
            "20:providers.p.models.gpt-4.1.limit.context",
            "21:providers.p.models.bad",
            "22:providers.p.models.priced.cost.input",
            "25:providers.q",
        ]
    );
    assert!(!format!("{:?}", loaded.problems).contains("sk-secret"), "{:?}", loaded.problems);
    let config = loaded.config;
    let provider = &config.providers["p"];
    assert_eq!((config.default_model.as_deref(), config.chat.max_steps), (Some("o/1"), 9));
    assert_eq!(provider.key, Some(Secret::new("kept")));
    assert_eq!(provider.url.as_deref(), Some("http://good"));
    assert_eq!(provider.extra_headers.get("ok").map(String::as_str), Some("1"));
    assert_eq!(provider.retry, RetryConfig::default());
    assert_eq!(provider.models["gpt-4.1"].output_limit, Some(9));
    assert_eq!(provider.models["priced"].cost, None);
    assert_eq!(config.providers.keys().collect::<Vec<_>>(), ["p"]);
    let reset = Config { providers: BTreeMap::new(), default_model: None, ..config };
    assert_eq!(reset, Config { chat: reset.chat.clone(), ..Config::default() });
}

#[test]
fn null_goes_back_to_the_default() {
    let options = json!({"defaultModel": "o/1", "chat": {"title": false}, "connectTimeoutSeconds": 1,
        "providers": {"p": {"key": "k", "models": {"m": {"limit": {"context": 1}}}}}});
    let text = r#"{"defaultModel": null, "chat": {"title": null}, "connectTimeoutSeconds": null,
        "providers": {"p": {"key": null, "retry": null, "models": {"m": null}}}}"#;
    let loaded = Setup::new().options(options).global(text).load();
    assert_eq!(loaded.problems, vec![]);
    assert_eq!(loaded.config.default_model, None);
    assert_eq!(loaded.config.chat, Config::default().chat);
    assert_eq!(loaded.config.connect_timeout, Config::default().connect_timeout);
    assert_eq!(loaded.config.providers["p"].key, None);
    assert_eq!(loaded.config.providers["p"].models["m"].context_limit, Some(1));
}

#[test]
fn old_names_are_understood() {
    for (options, agent) in [
        (json!({"defaultAgent": "plan"}), "plan"),
        (json!({"defaultBehavior": "plan"}), "plan"),
        (json!({"chat": {"defaultAgent": "plan"}}), "plan"),
        (json!({"chat": {"defaultBehavior": "plan"}}), "plan"),
        (json!({"defaultAgent": "new", "defaultBehavior": "old"}), "new"),
        (json!({"defaultAgent": null, "defaultBehavior": "old"}), "old"),
        (json!({"defaultAgent": "agent"}), "code"),
        (json!({"defaultBehavior": "build"}), "code"),
        (json!({"chatAgent": "plan"}), "plan"),
        (json!({"chatBehavior": "plan"}), "plan"),
        (json!({"chatAgent": null, "chatBehavior": null}), "code"),
        (json!({"chat-agent": "plan"}), "plan"),
        (json!({"default_agent": "plan"}), "plan"),
    ] {
        let loaded = Setup::new().options(options.clone()).load();
        assert_eq!((loaded.config.default_agent.as_str(), loaded.problems), (agent, vec![]), "{options}");
    }
    // Only clients send these; in a file they are unknown keys.
    let loaded = Setup::new().global(r#"{"chatAgent": "plan", "default-agent": "plan"}"#).load();
    assert_eq!((loaded.config, loaded.problems.len()), (Config::default(), 2));

    let text = r#"{"chat": {"welcomeMessage": "old"}, "providers": {"p": {"api": "openai"}}}"#;
    let loaded = Setup::new().global(text).load();
    assert_eq!(loaded.config.welcome_message.as_deref(), Some("old"));
    assert_eq!(loaded.config.providers["p"].api.as_deref(), Some("openai-responses"));
}

#[test]
fn pure_configuration_reads_no_other_source() {
    let setup = Setup::new()
        .options(json!({"pureConfig": true, "defaultModel": "o/1"}))
        .eca_config("broken")
        .global(r#"{"defaultModel": "f/1"}"#);
    let loaded = setup.load();
    assert_eq!((loaded.config.default_model.as_deref(), loaded.problems), (Some("o/1"), vec![]));
}

#[test]
fn a_named_file_replaces_the_global_one_and_must_exist() {
    let mut setup = Setup::new().global(r#"{"defaultModel": "global/1", "welcomeMessage": "global"}"#);
    let file = setup.dir.path().join("mine.json");
    setup.config_file = Some(file.clone());
    let missing = setup.load();
    assert_eq!(missing.config, Config::default());
    assert_eq!(missing.problems.len(), 1);
    assert_eq!(missing.problems[0].source, file.display().to_string());

    std::fs::write(&file, r#"{"defaultModel": "mine/1"}"#).unwrap();
    let loaded = setup.load();
    assert_eq!((loaded.config.default_model.as_deref(), loaded.config.welcome_message), (Some("mine/1"), None));

    for unusable in [vec![0xff, 0xfe], vec![b' '; 1024 * 1024 + 1]] {
        std::fs::write(&file, unusable).unwrap();
        assert_eq!(setup.load().problems.len(), 1);
    }
}

#[test]
fn strings_of_files_are_interpolated_and_those_of_clients_are_not() {
    let setup = Setup::new()
        .options(json!({"welcomeMessage": "${env:MY_KEY}"}))
        .eca_config(r#"{"providers": {"e": {"key": "${file:key}"}}}"#)
        .global(
            "{\"providers\": {\"p\": {\"key\": \"${env:MY_KEY}\",\n \"url\": \"${env:NOT_SET}\"},\n\
             \"q\": {\"key\": \"${cmd:pass}\", \"url\": \"http://${env:NOT_SET:host}\"},\n\
             \"r\": {\"key\": \"${file:~/home-key}\"}}}",
        );
    std::fs::write(setup.dirs().config.join("key"), "file-key\n").unwrap();
    std::fs::write(setup.dir.path().join("home-key"), "home-key").unwrap();
    let loaded = setup.load();
    assert_eq!(loaded.config.welcome_message.as_deref(), Some("${env:MY_KEY}"));
    let key = |id: &str| loaded.config.providers[id].key.as_ref().map(|key| key.expose().to_owned());
    assert_eq!(key("e").as_deref(), Some("file-key"));
    assert_eq!(key("p").as_deref(), Some("sk-from-env"));
    assert_eq!((key("q"), key("r").as_deref()), (None, Some("home-key")));
    assert_eq!(loaded.config.providers["p"].url, None);
    assert_eq!(loaded.config.providers["q"].url.as_deref(), Some("http://host"));
    let found = messages(&loaded);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("2:providers.p.url: ") && found[0].contains("NOT_SET"), "{found:?}");
    assert_eq!(loaded.commands.iter().map(|call| call.text.as_str()).collect::<Vec<_>>(), ["pass"]);
}

#[test]
fn directories_and_variables_of_the_environment() {
    let from = |pairs: &[(&str, &str)], account: Option<&str>| {
        let pairs: Vec<_> = pairs.iter().map(|(k, v)| (OsString::from(k), OsString::from(v))).collect();
        environment_from(pairs.into_iter(), account.map(PathBuf::from))
    };
    #[cfg(unix)]
    for (pairs, account, config, data) in [
        (vec![("HOME", "/h")], None, "/h/.config/eca", "/h/.local/share/eca"),
        (vec![("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")], None, "/x/eca", "/h/.local/share/eca"),
        (
            vec![("HOME", "/h"), ("XDG_CONFIG_HOME", "rel"), ("XDG_DATA_HOME", "")],
            None,
            "/h/.config/eca",
            "/h/.local/share/eca",
        ),
        (vec![("HOME", "")], Some("/acc"), "/acc/.config/eca", "/acc/.local/share/eca"),
        (vec![], None, "/nonexistent/.config/eca", "/nonexistent/.local/share/eca"),
    ] {
        let dirs = from(&pairs, account).dirs;
        assert_eq!((dirs.config, dirs.data), (PathBuf::from(config), PathBuf::from(data)), "{pairs:?}");
    }
    let environment = from(
        &[
            ("A_API_KEY", "sk-secret"),
            ("A_API_URL", "u"),
            ("ECA_X", "1"),
            ("ECA_CONFIG", "{}"),
            ("B_API_KEY", " "),
            ("PATH", "p"),
        ],
        None,
    );
    assert_eq!(environment.vars.keys().collect::<Vec<_>>(), ["A_API_KEY", "A_API_URL", "ECA_X"]);
    assert_eq!(environment.eca_config.as_deref(), Some("{}"));
    assert!(!format!("{environment:?}").contains("sk-secret"));
    assert_eq!(from(&[("ECA_CONFIG", " ")], None).eca_config, None);
    assert_eq!(process_variable("A=B"), None);
    assert_eq!(process_variable(""), None);
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,200}", broken in "[\\[\\]{}\",:$ a-z0-9\n/*]{0,80}") {
        for text in [text, broken] {
            let _ = Setup::new().eca_config(&text).load();
        }
    }
}

#[test]
fn the_life_of_a_cache_is_short_long_or_a_problem() {
    let read = |value: &str| {
        let text = format!(r#"{{"providers": {{"p": {{"cacheRetention": {value}}}}}}}"#);
        let loaded = Setup::new().global(&text).load();
        (loaded.config.providers["p"].cache_retention, loaded.problems.len())
    };
    assert_eq!(read("\"long\""), (CacheRetention::Long, 0));
    assert_eq!(read("\" short \""), (CacheRetention::Short, 0));
    assert_eq!(read("null"), (CacheRetention::Short, 0));
    assert_eq!(read("\"forever\""), (CacheRetention::Short, 1));
    assert_eq!(read("1"), (CacheRetention::Short, 1));
}
