//! What a workspace's own configuration may say before the user trusts it.
//!
//! Such a file comes with somebody else's repository. Until its content is trusted, only a short
//! list of harmless keys counts and nothing in it is interpolated; a key that nobody thought of is
//! withheld, not allowed. Trust is given to a content: the file itself and every file of the
//! workspace that it includes, so that a later change asks again.

use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};
use serde_json::{Map, Value};

use super::files::{is_inside, read_bytes};
use super::interpolate::{self, MAX_FILE_BYTES};

/// A workspace file that is not trusted, and what of it does not count therefore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withheld {
    pub file: PathBuf,
    /// What the user would trust; `None` for a content that cannot be.
    pub hash: Option<String>,
    pub keys: Vec<WithheldKey>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithheldKey {
    pub key: String,
    /// Completes "It could …".
    pub could: &'static str,
}

/// Single values that neither run, read nor send anything, nor loosen what the user has set.
const HARMLESS: [&str; 6] =
    ["defaultModel", "defaultAgent", "defaultBehavior", "chat.title", "chat.defaultAgent", "chat.defaultBehavior"];

const RUN: &str = "run programs";
const SEND: &str = "send your keys and conversations elsewhere";
const READ: &str = "read files of yours";
const ACT: &str = "let the model act without asking you";
const SPEAK: &str = "put words into prompts or on your screen";
const UNKNOWN: &str = "do something that this server cannot judge";

/// By the first part of the key.
const DANGERS: &[(&str, &str)] = &[
    ("mcpServers", RUN),
    ("hooks", RUN),
    ("customTools", RUN),
    ("plugins", RUN),
    ("providers", SEND),
    ("network", SEND),
    ("remote", SEND),
    ("otlp", SEND),
    ("netrcFile", READ),
    ("extraConfigs", READ),
    ("includeParentAgentsFiles", READ),
    ("index", READ),
    ("toolCall", ACT),
    ("chat", ACT),
    ("agent", ACT),
    ("behavior", ACT),
    ("disabledTools", ACT),
    ("rules", SPEAK),
    ("commands", SPEAK),
    ("skills", SPEAK),
    ("prompts", SPEAK),
    ("compatRules", SPEAK),
    ("completion", SPEAK),
    ("rewrite", SPEAK),
    ("welcomeMessage", SPEAK),
];

/// A content that includes more files than this cannot be trusted: judging it would cost too much.
const MOST_INCLUDED: usize = 64;

/// Takes everything out of `values` that is not harmless, and says what that was.
pub(super) fn withhold(values: &mut Map<String, Value>) -> Vec<WithheldKey> {
    let mut withheld = Vec::new();
    values.remove("$schema");
    values.retain(|key, value| match value {
        Value::Object(inner) if key == "chat" => {
            inner.retain(|name, value| is_harmless(&format!("chat.{name}"), value, &mut withheld));
            true
        }
        value => is_harmless(key, value, &mut withheld),
    });
    withheld
}

fn is_harmless(key: &str, value: &Value, withheld: &mut Vec<WithheldKey>) -> bool {
    let is_single = !value.is_object() && !value.is_array();
    if HARMLESS.contains(&key) && is_single && !interpolate::has_forms(value) {
        return true;
    }
    let first = key.split('.').next().unwrap_or_default();
    let danger = DANGERS.iter().find(|(name, _)| *name == first).map_or(UNKNOWN, |(_, could)| could);
    let could = if HARMLESS.contains(&key) && is_single { READ } else { danger };
    withheld.push(WithheldKey { key: crate::base::text::one_line(key, 60), could });
    false
}

/// A form of interpolation in a text of a workspace that is not trusted.
pub(super) fn withheld_form(name: &str) -> WithheldKey {
    let could = match name {
        "cmd" => RUN,
        _ => READ,
    };
    WithheldKey { key: format!("${{{name}:…}}"), could }
}

impl WithheldKey {
    /// Consents that an agent of a workspace would give to tools.
    pub(crate) fn tools() -> Self {
        Self { key: "tools".to_owned(), could: ACT }
    }

    /// A name that the user already uses for something else.
    pub(crate) fn name() -> Self {
        Self { key: "name".to_owned(), could: SPEAK }
    }
}

/// What is trusted when this content is: a hash of the text and of each file in `root` that it
/// includes.
pub(super) fn content_hash(
    text: &str,
    values: &Map<String, Value>,
    directory: &Path,
    root: &Path,
    home: Option<&Path>,
) -> Option<String> {
    let mut hash = Context::new(&SHA256);
    hash.update(text.as_bytes());
    let mut included = interpolate::named_files(&Value::Object(values.clone()), directory, home);
    if included.len() > MOST_INCLUDED {
        return None;
    }
    // What lies elsewhere is the user's own and may change.
    included.retain(|file| is_inside(file, root));
    for file in included {
        // The length of each keeps one file's end from passing for the next one's beginning.
        let content = read_bytes(&file, MAX_FILE_BYTES);
        let (mark, bytes) = content.map_or((0, Vec::new()), |bytes| (1, bytes));
        hash.update(&[0, mark]);
        hash.update(&(bytes.len() as u64).to_le_bytes());
        hash.update(&bytes);
    }
    Some(hash.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_harmless_single_values_stay() {
        let mut values = json!({
            "$schema": "x", "defaultModel": "a/b", "defaultAgent": "plan",
            "chat": {"title": false, "maxSteps": 1000, "defaultTrust": true, "defaultAgent": ["x"]},
            "defaultBehavior": "${env:SECRET}", "welcomeMessage": "![](http://tracker)", "providers": {}, "noSuchKey": 1,
        });
        let withheld = withhold(values.as_object_mut().unwrap());
        assert_eq!(values, json!({"defaultModel": "a/b", "defaultAgent": "plan", "chat": {"title": false}}));
        let mut keys: Vec<&str> = withheld.iter().map(|key| key.key.as_str()).collect();
        keys.sort_unstable();
        let expected = [
            "chat.defaultAgent",
            "chat.defaultTrust",
            "chat.maxSteps",
            "defaultBehavior",
            "noSuchKey",
            "providers",
            "welcomeMessage",
        ];
        assert_eq!(keys, expected);
        let could = |key: &str| withheld.iter().find(|withheld| withheld.key == key).unwrap().could;
        assert_eq!((could("providers"), could("noSuchKey"), could("defaultBehavior")), (SEND, UNKNOWN, READ));
    }

    #[test]
    fn the_hash_covers_the_text_and_what_it_includes_from_the_workspace() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("repo");
        let directory = root.join(".eca");
        std::fs::create_dir_all(&directory).unwrap();
        let outside = folder.path().join("mine");
        std::fs::write(&outside, "1").unwrap();
        let values = json!({"a": "${file:in}", "b": format!("${{file:{}}}", outside.display())});
        let values = values.as_object().unwrap();
        let hash = |text: &str| content_hash(text, values, &directory, &root, None).unwrap();
        let before = hash("x");
        assert_eq!(before, hash("x"));
        assert_eq!(before.len(), 64);
        assert_ne!(before, hash("y"));
        std::fs::write(directory.join("in"), "").unwrap();
        let empty = hash("x");
        assert_ne!(before, empty, "a file that appears is a change");
        std::fs::write(directory.join("in"), "http://elsewhere").unwrap();
        assert_ne!(empty, hash("x"));
        let inside = hash("x");
        std::fs::write(&outside, "2").unwrap();
        assert_eq!(inside, hash("x"), "the user's own files may change");
        #[cfg(unix)]
        {
            std::fs::remove_file(directory.join("in")).unwrap();
            std::os::unix::fs::symlink(&outside, directory.join("in")).unwrap();
            let linked = hash("x");
            std::fs::write(&outside, "3").unwrap();
            assert_ne!(linked, hash("x"), "a link of the workspace is the workspace's");
        }
        let many: Map<String, Value> = (0..65).map(|n| (n.to_string(), json!(format!("${{file:{n}}}")))).collect();
        assert_eq!(content_hash("x", &many, &directory, &root, None), None);
    }
}
