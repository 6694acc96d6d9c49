//! Folders and configuration of a server under test.

use std::path::PathBuf;

use eca::config::Dirs;
use serde_json::{Value, json};

/// The key of the mock provider; it must never leave the server except in its header.
pub const KEY: &str = "sk-test-0f9a71d2c4b8e6";

/// A home of its own, removed with the last server that uses it.
#[derive(Debug)]
pub struct TestDirs {
    pub root: tempfile::TempDir,
    pub workspace: PathBuf,
    pub eca: Dirs,
}

impl TestDirs {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let workspace = root.path().join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        let below = |name: &str| root.path().join(name).join("eca");
        let eca = Dirs { config: below("config"), data: below("data"), cache: below("cache") };
        Self { workspace, eca, root }
    }

    pub fn workspace_folders(&self) -> Value {
        json!([{"uri": format!("file://{}", self.workspace.display()), "name": "workspace"}])
    }

    /// A file in the workspace.
    pub fn file(&self, name: &str, content: &str) -> String {
        let path = self.workspace.join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    }
}

pub fn default_config(url: &str) -> Value {
    json!({
        "defaultModel": "mock/m1",
        "localDiscovery": false,
        "modelsDev": false,
        "chat": {"title": false},
        "providers": {"mock": {
            "api": "openai-chat",
            "url": url,
            "key": KEY,
            "fetchModels": false,
            "retry": {"maxRetries": 2, "baseDelayMs": 1, "maxDelayMs": 1},
            "models": {"m1": {}, "m2": {}},
        }},
    })
}

pub fn merge(target: &mut Value, from: Value) {
    match (target, from) {
        (Value::Object(target), Value::Object(from)) => {
            for (key, value) in from {
                merge(target.entry(key).or_insert(Value::Null), value);
            }
        }
        (target, from) => *target = from,
    }
}
