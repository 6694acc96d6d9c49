//! The catalogue's lookups, limits and disk rules, without a network.

use std::fs;
use std::time::{Duration, SystemTime};

use super::*;
use crate::base::time::now_ms;

const FIXTURE: &str = r#"{
    "maker": {"id": "openai", "models": {
        "gpt-x": {"reasoning": true, "tool_call": true, "modalities": {"input": ["text", "image"]},
                  "limit": {"context": 1000, "output": 100}, "cost": {"input": 1.75, "output": 14, "cache_read": 0.175}}
    }},
    "aaa-reseller": {"id": "aaa-reseller", "models": {
        "GPT-X": {"reasoning": false, "cost": {"input": 99, "output": 99}},
        "only-here": {"limit": {"context": 5}}
    }},
    "box": {"id": "box", "api": "https://box.example/v1/", "models": {
        "m": {"tool_call": false},
        "old": {"status": "deprecated"}
    }},
    "broken": 7, "empty": {}, "odd": {"models": []},
    "strange": {"id": "strange", "models": {
        "n": 1,
        "zero": {"limit": {"context": 0, "output": -3}, "cost": {"input": 1}},
        "whole": {"limit": {"context": 10, "output": 10}, "cost": "free", "reasoning": "yes"}
    }}
}"#;

fn wanted(id: &str, url: Option<&str>) -> Wanted {
    Wanted { id: id.into(), catalogue_id: id.into(), url: url.map(Into::into) }
}

fn fixture() -> Catalog {
    let wanted = [wanted("openai", None), wanted("mine", Some("https://BOX.example/v1")), wanted("strange", None)];
    Catalog::from_body(FIXTURE.as_bytes(), &wanted).expect("a catalogue")
}

#[test]
fn facts_are_found_by_provider_then_by_name() {
    let catalog = fixture();
    let facts = catalog.facts("openai", "gpt-x", "alias");
    assert_eq!((facts.context, facts.output), (Some(1000), Some(100)));
    assert_eq!((facts.reasoning, facts.tools, facts.vision), (Some(true), Some(true), Some(true)));
    assert_eq!(facts.cost, Some(Cost { input: 1.75, output: 14.0, cache_read: 0.175, cache_write: 1.75 }));
    assert_eq!(catalog.facts("openai", "unknown", "gpt-x"), facts, "the written name counts as well");
    assert_eq!(catalog.facts("proxy", "Gpt-X", "a"), facts, "the maker's facts, not the reseller's");
    assert_eq!(catalog.facts("proxy", "only-here", "a").context, Some(5));
    assert_eq!(catalog.facts("proxy", "nothing", "nothing"), ModelFacts::default());
    assert_eq!(catalog.own_facts("proxy", "gpt-x", "gpt-x"), None);
}

#[test]
fn an_entry_with_the_same_address_is_the_same_provider() {
    let catalog = fixture();
    assert_eq!(catalog.own_facts("mine", "m", "m").and_then(|facts| facts.tools), Some(false));
    assert_eq!(catalog.names_of("mine").collect::<Vec<_>>(), ["m"], "a deprecated model is not offered");
    assert_eq!(catalog.names_of("box").count(), 0);
    let same_name = [wanted("box", Some("http://127.0.0.1:8080/v1"))];
    let catalog = Catalog::from_body(FIXTURE.as_bytes(), &same_name).expect("a catalogue");
    assert_eq!(catalog.own_facts("box", "m", "m"), None, "another server that happens to have the name");
}

#[test]
fn what_makes_no_sense_is_unknown() {
    let catalog = fixture();
    assert_eq!(catalog.facts("strange", "zero", "zero"), ModelFacts::default());
    assert_eq!(catalog.facts("strange", "whole", "whole"), ModelFacts { context: Some(10), ..ModelFacts::default() });
    for bad in ["", "[]", "7", "{\"a\":", "{} x"] {
        assert!(Catalog::from_body(bad.as_bytes(), &[]).is_err(), "{bad}");
    }
    assert!(Catalog::from_body(&vec![b' '; MAX_BYTES + 1], &[]).is_err());
}

#[test]
fn the_built_in_copy_knows_the_main_models() {
    for vendor in crate::providers::vendors::VENDORS {
        let catalog = Catalog::embedded(&[wanted(vendor.id, None)]);
        if let Some(model) = vendor.default_model {
            let facts = catalog.own_facts(vendor.id, model, model).unwrap_or_default();
            assert!(facts.context.is_some() && facts.output.is_some() && facts.cost.is_some(), "{}", vendor.id);
        }
    }
    let catalog = Catalog::embedded(&[]);
    assert_eq!(catalog.facts("proxy", "claude-sonnet-4-6", "").context, Some(1_000_000));
    assert_eq!(catalog.facts("proxy", "gpt-4.1", "").reasoning, Some(false));
}

#[test]
fn facts_survive_packing() {
    let cost = Cost { input: 0.0, output: 0.25, cache_read: 0.007, cache_write: 12.5 };
    for facts in [
        ModelFacts::default(),
        ModelFacts { context: Some(1), cost: Some(cost), reasoning: Some(false), ..ModelFacts::default() },
        ModelFacts { output: Some(7), tools: Some(true), vision: Some(false), ..ModelFacts::default() },
    ] {
        assert_eq!(PackedFacts::pack(&facts).unpack(), facts);
    }
    let extreme = Cost { input: f64::INFINITY, output: -1.0, cache_read: 1e300, cache_write: f64::NAN };
    let facts = ModelFacts { context: Some(u64::MAX), cost: Some(extreme), ..ModelFacts::default() };
    assert_eq!(PackedFacts::pack(&facts).unpack().context, None);
}

#[test]
fn memory_stays_bounded() {
    let mut body = String::from("{");
    for provider in 0..20 {
        body.push_str(&format!("\"p{provider}\":{{\"models\":{{"));
        for model in 0..1_500 {
            body.push_str(&format!("\"a-model-of-usual-length-{provider}-{model}\":{{\"limit\":{{\"context\":1}}}},"));
        }
        body.pop();
        body.push_str("}},");
    }
    body.pop();
    body.push('}');
    let catalog = Catalog::from_body(body.as_bytes(), &[wanted("p3", None)]).expect("a catalogue");
    assert_eq!(catalog.names_of("p3").count(), 1_500);
    assert!(catalog.names.len() <= MAX_NAMES + 100, "{}", catalog.names.len());
    assert!(catalog.approximate_bytes() < 800_000, "{}", catalog.approximate_bytes());
}

#[test]
fn our_own_copy_is_fresh_for_a_day() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(cache::load(folder.path(), &[]), None);
    let now = now_ms();
    cache::store(folder.path(), FIXTURE.as_bytes(), Some("\"tag\""), now).expect("written");
    let cached = cache::load(folder.path(), &[wanted("openai", None)]).expect("a copy");
    assert_eq!(cached.etag.as_deref(), Some("\"tag\""));
    assert_eq!(cached.catalog.facts("openai", "gpt-x", "").context, Some(1000));
    let hours = |n: i64| now + n * 60 * 60 * 1000;
    for (at, fresh) in [(hours(0), true), (hours(23), true), (hours(25), false), (hours(-2), false)] {
        assert_eq!(cached.is_fresh(at), fresh, "{at}");
    }
    cache::touch(folder.path(), hours(25)).expect("written");
    let touched = cache::load(folder.path(), &[]).expect("a copy");
    assert!(touched.is_fresh(hours(25)) && touched.etag == cached.etag);
    let left: Vec<_> = fs::read_dir(folder.path()).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    assert_eq!(left.len(), 1, "no temporary file is left: {left:?}");
}

#[test]
fn a_broken_copy_is_passed_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = folder.path().join("models-dev.cache");
    for broken in ["", "no header", "{\"fetched_at\":1}\n{\"cut", "{}\n{}"] {
        fs::write(&own, broken).expect("written");
        assert_eq!(cache::load(folder.path(), &[]), None, "{broken:?}");
    }
    cache::store(folder.path(), b"{\"cut", None, now_ms()).expect("written");
    fs::write(folder.path().join("models-dev.json"), FIXTURE).expect("written");
    let cached = cache::load(folder.path(), &[]).expect("the public server's copy");
    assert_eq!(cached.catalog.facts("any", "only-here", "").context, Some(5));
}

#[test]
fn the_public_servers_file_is_read_and_never_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let public = folder.path().join("models-dev.json");
    fs::write(&public, FIXTURE).expect("written");
    let cached = cache::load(folder.path(), &[]).expect("a copy");
    assert!(cached.is_fresh(now_ms() + 1000) && cached.etag.is_none());
    let week_ago = SystemTime::now() - Duration::from_secs(7 * 24 * 3600);
    fs::File::options().write(true).open(&public).and_then(|file| file.set_modified(week_ago)).expect("an older file");
    let stale = cache::load(folder.path(), &[]).expect("a stale copy is better than none");
    assert!(!stale.is_fresh(now_ms()));
    cache::store(folder.path(), b"{}", None, now_ms()).expect("written");
    let newer = cache::load(folder.path(), &[]).expect("the newer copy");
    assert!(newer.is_fresh(now_ms()) && newer.catalog.facts("any", "only-here", "").context.is_none());
    assert_eq!(fs::read_to_string(&public).expect("still there"), FIXTURE);
}
