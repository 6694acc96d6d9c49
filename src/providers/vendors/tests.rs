//! The table against its own rules.

use std::collections::BTreeSet;

use super::*;

/// Every dialect that is or will be there.
const DIALECTS: [&str; 6] = ["openai-chat", "openai-responses", "anthropic", "bedrock", "gemini", "ollama"];

#[test]
fn ids_are_unique_and_usable() {
    let ids: BTreeSet<&str> = VENDORS.iter().map(|vendor| vendor.id).collect();
    assert_eq!(ids.len(), VENDORS.len());
    for vendor in VENDORS {
        assert!(!vendor.id.is_empty() && !vendor.label.is_empty());
        assert!(!vendor.id.contains('/') && vendor.id != "eca", "{}", vendor.id);
        assert_eq!(find(vendor.id), Some(vendor));
    }
    assert_eq!(find("nobody"), None);
}

#[test]
fn every_row_can_be_reached() {
    for vendor in VENDORS {
        assert!(!vendor.endpoints.is_empty(), "{}", vendor.id);
        for endpoint in vendor.endpoints {
            assert!(DIALECTS.contains(&endpoint.api), "{}: {}", vendor.id, endpoint.api);
            let Some(text) = endpoint.url else { continue };
            let url = reqwest::Url::parse(text).unwrap_or_else(|error| panic!("{}: {error}", vendor.id));
            let local = vendor.place != Place::Remote;
            assert_eq!(url.scheme(), if local { "http" } else { "https" }, "{}", vendor.id);
            assert_eq!(url.host_str() == Some("127.0.0.1"), local, "{}", vendor.id);
            assert!(!text.ends_with('/') && url.query().is_none(), "{}", vendor.id);
        }
    }
}

#[test]
fn payloads_are_objects_and_defaults_are_listed() {
    for vendor in VENDORS {
        for payload in vendor.endpoints.iter().filter_map(|endpoint| endpoint.payload) {
            let value: serde_json::Value = serde_json::from_str(payload).expect("JSON");
            assert!(value.as_object().is_some_and(|object| !object.is_empty()), "{}", vendor.id);
        }
        if let Some(model) = vendor.default_model {
            assert!(vendor.models.contains(&model), "{}: {model}", vendor.id);
        }
        let models: BTreeSet<&&str> = vendor.models.iter().collect();
        assert_eq!(models.len(), vendor.models.len(), "{}", vendor.id);
    }
}

#[test]
fn variables_belong_to_one_vendor() {
    let all: Vec<String> = VENDORS.iter().flat_map(Vendor::all_key_variables).collect();
    let unique: BTreeSet<&String> = all.iter().collect();
    assert_eq!(unique.len(), all.len(), "{all:?}");
    let google: Vec<String> = find("google").expect("a row").all_key_variables().collect();
    assert_eq!(google, ["GOOGLE_API_KEY", "GEMINI_API_KEY"]);
}

#[test]
fn ids_become_names_of_variables() {
    for (id, name) in [
        ("github-copilot", "GITHUB_COPILOT_API_KEY"),
        ("myProvider", "MY_PROVIDER_API_KEY"),
        ("z.ai2", "Z_AI2_API_KEY"),
        ("llama.cpp", "LLAMA_CPP_API_KEY"),
    ] {
        assert_eq!(key_variable(id), name);
    }
    assert_eq!(url_variable("z-ai"), "Z_AI_API_URL");
}

#[test]
fn the_dialect_is_the_wanted_one_or_the_first_that_is_there() {
    let google = find("google").expect("a row");
    let api = |wanted, available: &[&str]| google.endpoint(wanted, available).map(|endpoint| endpoint.api);
    assert_eq!(api(None, &DIALECTS), Some("openai-chat"));
    assert_eq!(api(Some("gemini"), &DIALECTS), Some("gemini"));
    assert_eq!(api(Some("anthropic"), &DIALECTS), None);
    let openai = find("openai").expect("a row");
    assert_eq!(openai.endpoint(None, &DIALECTS).map(|endpoint| endpoint.api), Some("openai-responses"));
    assert_eq!(openai.endpoint(None, &["openai-chat"]).and_then(|e| e.url), Some("https://api.openai.com/v1"));
}

#[test]
fn only_two_ports_are_looked_at() {
    let looked_for: Vec<&str> =
        VENDORS.iter().filter(|vendor| vendor.place == Place::Discovered).map(|vendor| vendor.id).collect();
    assert_eq!(looked_for, ["ollama", "lmstudio"]);
}
