//! One spelling for the keys of incoming messages.
//!
//! The public server reads `docText`, `doc-text` and `doc_text` as the same key, and eca-emacs relies on it. The types
//! of this crate know camelCase only, so the server runs [`normalise_keys`] over parameters (and over the results that
//! clients return) first. What a user wrote must pass untouched: the name of an environment variable is not ours to
//! respell.

use serde_json::{Map, Value};

use crate::methods::{FRAMEWORK_METHODS, METHODS};

/// Keys whose value belongs to the user: neither the value's own keys nor anything below them is respelled.
const USER_DATA: &[&str] = &["arguments", "data", "env", "experimental", "headers", "initializationOptions"];

/// Respells kebab-case and snake_case keys of `params` in camelCase, in place.
///
/// A key that is already there in camelCase wins over its other spellings. Methods outside the protocol (an LSP
/// client's `workspace/didChangeConfiguration`, say) are left alone.
pub fn normalise_keys(method: &str, params: &mut Value) {
    if METHODS.iter().chain(FRAMEWORK_METHODS).any(|known| known.name == method) {
        normalise(params);
    }
}

fn normalise(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(normalise),
        Value::Object(fields) => {
            respell(fields);
            for (key, field) in fields {
                if !USER_DATA.contains(&key.as_str()) {
                    normalise(field);
                }
            }
        }
        _ => {}
    }
}

fn respell(fields: &mut Map<String, Value>) {
    let spellings: Vec<(String, String)> =
        fields.keys().filter_map(|key| Some((key.clone(), camel_case(key)?))).collect();
    for (key, camel) in spellings {
        if let Some(value) = fields.remove(&key) {
            fields.entry(camel).or_insert(value);
        }
    }
}

/// The camelCase form, or nothing if the key is in that form or cannot be a protocol key at all (a path, a sentence,
/// `_private`).
fn camel_case(key: &str) -> Option<String> {
    let is_separator = |c: char| c == '-' || c == '_';
    let is_word = key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.chars().all(|c| c.is_ascii_alphanumeric() || is_separator(c))
        && !key.ends_with(is_separator);
    if !is_word || !key.contains(is_separator) {
        return None;
    }
    let mut camel = String::with_capacity(key.len());
    let mut after_separator = false;
    for c in key.chars() {
        if is_separator(c) {
            after_separator = true;
        } else {
            camel.push(if after_separator { c.to_ascii_uppercase() } else { c });
            after_separator = false;
        }
    }
    Some(camel)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::normalise_keys;

    fn normalised(method: &str, mut params: Value) -> Value {
        normalise_keys(method, &mut params);
        params
    }

    #[test]
    fn the_spellings_of_emacs_are_understood() {
        let sent =
            json!({"doc-text": "(fn", "doc-version": 3, "position": {"line": 1, "character": 4}, "path": "/w/a.clj"});
        let read =
            json!({"docText": "(fn", "docVersion": 3, "position": {"line": 1, "character": 4}, "path": "/w/a.clj"});
        assert_eq!(normalised("completion/inline", sent), read);
        assert_eq!(
            normalised("chat/prompt", json!({"request-id": 1, "chat_id": "a"})),
            json!({"requestId": 1, "chatId": "a"})
        );
    }

    #[test]
    fn lists_and_nested_objects_are_reached() {
        let sent = json!({"contexts": [{"type": "file", "path": "/a_b-c", "lines-range": {"start": 1, "end": 2}}]});
        let read = json!({"contexts": [{"type": "file", "path": "/a_b-c", "linesRange": {"start": 1, "end": 2}}]});
        assert_eq!(normalised("chat/prompt", sent), read);
    }

    #[test]
    fn camel_case_wins() {
        let sent = json!({"chat-id": "kebab", "chat_id": "snake", "chatId": "camel"});
        assert_eq!(normalised("chat/prompt", sent), json!({"chatId": "camel"}));
    }

    #[test]
    fn user_data_is_left_alone() {
        let env = json!({"API_KEY": "k", "low_er": {"a-b": 1}});
        let headers = json!({"x-api-key": "k"});
        let sent = json!({"name": "my-server", "env": env, "headers": headers, "oauth-port": 1});
        let read = json!({"name": "my-server", "env": env, "headers": headers, "oauthPort": 1});
        assert_eq!(normalised("mcp/addServer", sent), read);
        let login = json!({"provider": "p", "data": {"api-key": "k"}});
        assert_eq!(normalised("providers/loginInput", login.clone()), login);
    }

    #[test]
    fn initialization_options_are_left_alone() {
        let options = json!({"mcp-servers": {"a_b": {}}});
        let sent = json!({"initialization-options": options, "capabilities": {"code-assistant": {"chat": true}}});
        let read = json!({"initializationOptions": options, "capabilities": {"codeAssistant": {"chat": true}}});
        assert_eq!(normalised("initialize", sent), read);
    }

    #[test]
    fn foreign_methods_and_odd_keys_are_left_alone() {
        let settings = json!({"settings": {"some-thing": 1}});
        assert_eq!(normalised("workspace/didChangeConfiguration", settings.clone()), settings);
        let odd = json!({"_meta": 1, "a b-c": 2, "/x_y": 3, "trailing_": 4, "": 5});
        assert_eq!(normalised("chat/prompt", odd.clone()), odd);
        assert_eq!(normalised("chat/list", Value::Null), Value::Null);
    }
}
