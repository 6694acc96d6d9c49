//! The catalogue inside the registry: what it adds, when it is fetched, and that nothing waits.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::base::time::now_ms;
use crate::providers::catalog::cache;
use crate::providers::catalog::fetch::{Fetch, Fetched};

const BODY: &str = r#"{
    "groq": {"id": "groq", "models": {
        "llama-9": {"limit": {"context": 9000, "output": 900}, "cost": {"input": 1, "output": 2}},
        "llama-1": {"status": "deprecated"}
    }},
    "openai": {"id": "openai", "models": {"gpt-5.2": {"limit": {"context": 123456}}}}
}"#;

/// Counts its calls and remembers the tag it was given.
#[derive(Clone, Default)]
struct Source {
    calls: Arc<AtomicUsize>,
    tags: Arc<Mutex<Vec<Option<String>>>>,
}

impl Source {
    fn fetch(&self, answer: Result<Fetched, String>) -> Fetch {
        let source = self.clone();
        Arc::new(move |tag| {
            source.calls.fetch_add(1, Ordering::Relaxed);
            source.tags.lock().unwrap().push(tag);
            ready(answer.clone()).boxed()
        })
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

fn body() -> Fetched {
    Fetched::Body { body: BODY.as_bytes().to_vec(), etag: Some("\"one\"".into()) }
}

fn start(folder: Option<&std::path::Path>, fetch: Fetch, keys: &[(&str, &str)]) -> Registry {
    let mut environment = vars(keys);
    environment.cache_dir = folder.map(Into::into);
    let wiring = Wiring { fetch_catalogue: Some(fetch), ..Network::default().wiring() };
    Registry::new(&Config::default(), environment, wiring).0
}

#[tokio::test]
async fn facts_are_built_in_then_fetched() {
    let source = Source::default();
    let folder = tempfile::tempdir().unwrap();
    let registry = start(Some(folder.path()), source.fetch(Ok(body())), &[("OPENAI_API_KEY", "sk")]);
    let info = registry.info(&id("openai/gpt-5.2")).unwrap();
    assert_eq!((info.context_limit, info.output_limit, info.vision), (Some(400_000), Some(128_000), true));
    assert!(info.cost.is_some_and(|cost| cost.input == 1.75 && cost.output == 14.0));
    assert_eq!(source.calls(), 0, "nothing is fetched before it is asked for");
    assert!(registry.refresh_catalogue().await);
    assert_eq!(registry.info(&id("openai/gpt-5.2")).unwrap().context_limit, Some(123_456));
    assert!(!registry.refresh_catalogue().await, "a fresh copy is not fetched again");
    assert_eq!(source.calls(), 1);

    let next = start(Some(folder.path()), source.fetch(Ok(body())), &[("OPENAI_API_KEY", "sk")]);
    assert!(next.refresh_catalogue().await, "the copy on disk is used");
    assert_eq!((next.info(&id("openai/gpt-5.2")).unwrap().context_limit, source.calls()), (Some(123_456), 1));
}

#[tokio::test]
async fn a_stale_copy_is_used_and_asked_about() {
    let source = Source::default();
    let folder = tempfile::tempdir().unwrap();
    let two_days_ago = now_ms() - 48 * 60 * 60 * 1000;
    cache::store(folder.path(), BODY.as_bytes(), Some("\"old\""), two_days_ago).unwrap();
    let registry = start(Some(folder.path()), source.fetch(Ok(Fetched::Unchanged)), &[("OPENAI_API_KEY", "sk")]);
    assert!(registry.refresh_catalogue().await);
    assert_eq!(registry.info(&id("openai/gpt-5.2")).unwrap().context_limit, Some(123_456));
    assert_eq!(*source.tags.lock().unwrap(), [Some("\"old\"".to_owned())]);
    assert!(!registry.refresh_catalogue().await);
    assert_eq!(source.calls(), 1, "an unchanged copy counts as fetched now");
}

#[tokio::test]
async fn failures_are_silent() {
    let source = Source::default();
    for answer in [Err("no network".to_owned()), Ok(Fetched::Body { body: b"<html>".to_vec(), etag: None })] {
        let folder = tempfile::tempdir().unwrap();
        let registry = start(Some(folder.path()), source.fetch(answer), &[("OPENAI_API_KEY", "sk")]);
        assert!(!registry.refresh_catalogue().await);
        assert_eq!(registry.info(&id("openai/gpt-5.2")).unwrap().context_limit, Some(400_000));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing broken is kept");
    }
    let registry = start(None, source.fetch(Ok(body())), &[("OPENAI_API_KEY", "sk")]);
    assert!(registry.refresh_catalogue().await, "it works without a disk");
}

#[tokio::test]
async fn it_can_be_turned_off() {
    let source = Source::default();
    let folder = tempfile::tempdir().unwrap();
    cache::store(folder.path(), BODY.as_bytes(), None, now_ms()).unwrap();
    let environment = Environment { cache_dir: Some(folder.path().into()), ..vars(&[("OPENAI_API_KEY", "sk")]) };
    let wiring = Wiring { fetch_catalogue: Some(source.fetch(Ok(body()))), ..Network::default().wiring() };
    let config = Config { models_dev: false, ..Config::default() };
    let (registry, _) = Registry::new(&config, environment, wiring);
    assert!(!registry.refresh_catalogue().await);
    assert_eq!(source.calls(), 0);
    assert_eq!(registry.info(&id("openai/gpt-5.2")).unwrap().context_limit, Some(400_000));
}

#[tokio::test]
async fn a_provider_that_lists_nothing_is_listed_from_the_catalogue() {
    let source = Source::default();
    let registry = start(None, source.fetch(Ok(body())), &[("GROQ_API_KEY", "sk")]);
    assert_eq!(ids(&registry), ["eca/guide"]);
    registry.refresh().await;
    assert!(registry.refresh_catalogue().await);
    assert_eq!(ids(&registry), ["groq/llama-9", "eca/guide"], "the deprecated one is left out");
    assert_eq!(registry.info(&id("groq/llama-9")).unwrap().output_limit, Some(900));
    assert!(!registry.refresh().await, "a second failure changes nothing");
}

#[tokio::test]
async fn a_server_on_this_machine_has_its_own_limits_and_no_price() {
    let network = Network::default();
    let local = config(&[("mine", openai_chat("http://127.0.0.1:8080/v1", &["gpt-4.1"]))]);
    let (registry, _) = Registry::new(&local, vars(&[]), network.wiring());
    let info = registry.info(&id("mine/gpt-4.1")).unwrap();
    assert_eq!((info.context_limit, info.cost, info.reasoning, info.vision), (None, None, false, true));
    let remote = config(&[("proxy", openai_chat("https://proxy/v1", &["gpt-4.1"]))]);
    let (registry, _) = Registry::new(&remote, vars(&[]), network.wiring());
    let info = registry.info(&id("proxy/gpt-4.1")).unwrap();
    assert_eq!((info.context_limit, info.cost.is_some()), (Some(1_047_576), true));
}
