//! The merged configuration for a person to read: as it is written, so that `${env:…}` stays what
//! it is, with secrets masked, and with the sources of each value.

use serde_json::{Map, Value};

use super::decode::deep_merge;
use super::interpolate::has_forms;
use super::load::Loaded;

const MASK: &str = "****";

/// What `eca config show` prints: JSON with comments.
pub fn show(loaded: &Loaded) -> String {
    let mut merged = Map::new();
    for (_, values) in &loaded.written {
        deep_merge(&mut merged, values);
    }
    let mut lines = vec!["{".to_owned()];
    for (key, value) in &mut merged {
        let says = |(_, values): &&(String, Map<String, Value>)| values.contains_key(key);
        // A single value is the last one's; an object may have parts from several.
        let mut from: Vec<&str> = loaded.written.iter().filter(says).map(|(source, _)| source.as_str()).collect();
        if !value.is_object() {
            from = from.split_off(from.len().saturating_sub(1));
        }
        mask(key, value, false);
        lines.push(format!("  // from {}", from.join(", ")));
        let name = Value::from(key.as_str());
        let text = serde_json::to_string_pretty(value).unwrap_or_default();
        lines.push(format!("  {name}: {},", text.replace('\n', "\n  ")));
    }
    lines.push("}".to_owned());
    lines.join("\n")
}

/// `inside` an object of which every value may be a secret.
fn mask(name: &str, value: &mut Value, inside: bool) {
    match value {
        Value::Object(entries) => {
            let inside =
                inside || ["extraHeaders", "headers", "env", "extraPayload", "authorizationParams"].contains(&name);
            entries.iter_mut().for_each(|(name, value)| mask(name, value, inside));
        }
        Value::Array(elements) => elements.iter_mut().for_each(|element| mask(name, element, inside)),
        Value::String(text) => {
            if (inside || is_secret(name)) && !names_its_source(text) {
                MASK.clone_into(text);
            } else if let Some(shown) = without_credentials(text) {
                *text = shown;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    // The address that tokens come from is no secret; what it may carry is cut off all the same.
    let is_address = name == "tokenurl";
    let parts = ["apikey", "token", "secret", "password", "passphrase"];
    name == "key" || !is_address && parts.iter().any(|part| name.contains(part))
}

/// A form says where a secret is, not what it is; a default would be the secret itself.
fn names_its_source(text: &str) -> bool {
    let body = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    body.is_some_and(|body| !(body.contains('}') || body.starts_with("env:") && body.matches(':').count() > 1))
        && has_forms(&Value::from(text))
}

/// The address without user name, password and query, if it has them.
fn without_credentials(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let (rest, query) = rest.split_once('?').map_or((rest, ""), |(rest, _)| (rest, "?****"));
    let end = rest.find('/').unwrap_or(rest.len());
    let host =
        rest[..end].rsplit_once('@').map_or_else(|| rest[..end].to_owned(), |(_, host)| format!("{MASK}@{host}"));
    Some(format!("{scheme}://{host}{}{query}", &rest[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_masked_and_sources_named() {
        let source = |name: &str, values: Value| (name.to_owned(), values.as_object().unwrap().clone());
        let loaded = Loaded {
            written: vec![
                source("a.json", json!({"defaultModel": "x", "providers": {"p": {"key": "sk-1"}}})),
                source(
                    "b.json",
                    json!({"defaultModel": "y/z", "providers": {
                        "p": {"url": "https://me:pw@h/v1?key=sk-4", "extraHeaders": {"X": "sk-2"}},
                        "q": {"key": "${env:K}", "url": "http://h/v1"}, "r": {"key": "${env:K:sk-3}"},
                        "s": {"key": "sk-5${env:K}", "extraHeaders": {"A": "${cmd:pass show a}"}},
                        "t": {"oauth": {"clientId": "mine", "clientSecret": "sk-6", "tokenUrl": "https://as/token?k=sk-7",
                            "authorizationParams": {"hint": "sk-8"}}}}}),
                ),
            ],
            ..Loaded::default()
        };
        let shown = show(&loaded);
        for secret in ["sk-1", "sk-2", "sk-3", "sk-4", "sk-5", "sk-6", "sk-7", "sk-8", "me:pw"] {
            assert!(!shown.contains(secret), "{secret}: {shown}");
        }
        for part in [
            "  // from b.json\n  \"defaultModel\": \"y/z\",",
            "// from a.json, b.json\n  \"providers\": {",
            "\"key\": \"${env:K}\"",
            "\"url\": \"http://h/v1\"",
            "https://****@h/v1?****",
            "${cmd:pass show a}",
            "\"clientId\": \"mine\"",
            "https://as/token?****",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(super::super::document::Document::parse("shown", shown).is_ok());
    }
}
