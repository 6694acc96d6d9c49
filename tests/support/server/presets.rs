//! The clients that exist, as they introduce themselves.

use serde_json::{Value, json};

use super::TestDirs;
use crate::peer::Style;

/// One client: its `initialize` and its habits.
#[derive(Debug, Clone)]
pub struct ClientPreset {
    pub initialize: Value,
    pub style: Style,
    pub announced: Announced,
}

/// What a client of this kind is sent after `initialized`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Announced {
    /// Configuration, tools, then the progress of start-up tasks.
    WithProgress,
    /// Configuration and tools.
    Plain,
}

pub fn emacs(dirs: &TestDirs) -> ClientPreset {
    ClientPreset {
        initialize: json!({
            "processId": std::process::id(),
            "clientInfo": {"name": "emacs", "version": "30.1"},
            "capabilities": {"codeAssistant": {
                "chat": true,
                "chatCapabilities": {"askQuestion": true},
                "editor": {"diagnostics": true, "definition": true, "references": true},
            }},
            "initializationOptions": {"chatAgent": null},
            "workspaceFolders": dirs.workspace_folders(),
        }),
        style: Style { no_params: Some(Value::Null), trailing_newline: true },
        announced: Announced::WithProgress,
    }
}

pub fn vscode(dirs: &TestDirs) -> ClientPreset {
    ClientPreset {
        initialize: json!({
            "processId": std::process::id(),
            "clientInfo": {"name": "VsCode", "version": "XXX"},
            "capabilities": {"codeAssistant": {
                "chat": true,
                "rewrite": true,
                "editor": {"diagnostics": true, "definition": true, "references": true},
                "chatCapabilities": {"askQuestion": true},
            }},
            "initializationOptions": {},
            "workspaceFolders": dirs.workspace_folders(),
        }),
        style: Style { no_params: Some(json!({})), trailing_newline: false },
        announced: Announced::WithProgress,
    }
}

pub fn neovim(dirs: &TestDirs) -> ClientPreset {
    ClientPreset {
        initialize: json!({
            "processId": std::process::id(),
            "clientInfo": {"name": "Neovim", "version": "0.10"},
            "capabilities": {"codeAssistant": {"chat": true}},
            "workspaceFolders": dirs.workspace_folders(),
        }),
        style: Style { no_params: Some(json!([])), trailing_newline: false },
        announced: Announced::WithProgress,
    }
}

/// Without `processId`, and with a folder written with one slash.
pub fn intellij(dirs: &TestDirs) -> ClientPreset {
    ClientPreset {
        initialize: json!({
            "clientInfo": {"name": "IntelliJ", "version": "0.29.0"},
            "capabilities": {"codeAssistant": {
                "chat": true,
                "editor": {"diagnostics": true, "definition": true, "references": true},
                "chatCapabilities": {"askQuestion": true},
            }},
            "initializationOptions": {"serverPath": "/x", "serverArgs": "", "usageStringFormat": "%s"},
            "workspaceFolders": [{"uri": format!("file:{}", dirs.workspace.display()), "name": "workspace"}],
        }),
        style: Style { no_params: Some(json!({})), trailing_newline: false },
        announced: Announced::WithProgress,
    }
}

pub fn cli(_: &TestDirs) -> ClientPreset {
    ClientPreset {
        initialize: json!({
            "processId": null,
            "clientInfo": {"name": "eca-cli", "version": "0.1.0"},
            "capabilities": {"codeAssistant": {"chat": true}},
        }),
        style: Style { no_params: Some(json!({})), trailing_newline: false },
        announced: Announced::WithProgress,
    }
}

/// An editor's own LSP client, which announced nothing of ECA.
pub fn plain_lsp(dirs: &TestDirs) -> ClientPreset {
    ClientPreset {
        initialize: json!({
            "processId": std::process::id(),
            "rootUri": format!("file://{}", dirs.workspace.display()),
            "rootPath": dirs.workspace.display().to_string(),
            "clientInfo": {"name": "Neovim", "version": "0.10.4"},
            "trace": "off",
            "capabilities": {
                "general": {"positionEncodings": ["utf-16"]},
                "textDocument": {"hover": {"contentFormat": ["markdown"]}},
                "window": {"showMessage": {}, "workDoneProgress": false},
                "workspace": {"workspaceFolders": true, "configuration": true},
            },
            "workspaceFolders": dirs.workspace_folders(),
        }),
        style: Style { no_params: None, trailing_newline: false },
        announced: Announced::Plain,
    }
}

/// As the first version of the protocol describes a client.
pub fn seed_000(dirs: &TestDirs) -> ClientPreset {
    ClientPreset {
        initialize: json!({
            "processId": std::process::id(),
            "clientInfo": {"name": "seed", "version": "0"},
            "initializationOptions": ["any", {"json": true}],
            "capabilities": {"codeAssistant": {"chat": true, "doc": true, "edit": true, "fix": true}},
            "workspaceFolders": dirs.workspace_folders(),
        }),
        style: Style { no_params: Some(json!({})), trailing_newline: false },
        announced: Announced::Plain,
    }
}

/// As the second version describes it.
pub fn seed_001(dirs: &TestDirs) -> ClientPreset {
    ClientPreset {
        initialize: json!({
            "processId": null,
            "clientInfo": {"name": "seed", "version": "1"},
            "initializationOptions": {"chatBehavior": "agent"},
            "capabilities": {"codeAssistant": {"chat": true, "editor": {"diagnostics": true}}},
            "workspaceFolders": dirs.workspace_folders(),
        }),
        style: Style { no_params: None, trailing_newline: false },
        announced: Announced::WithProgress,
    }
}

/// As the third version describes it.
pub fn seed_002(dirs: &TestDirs) -> ClientPreset {
    ClientPreset {
        initialize: json!({
            "processId": null,
            "initializationOptions": {"chatBehavior": "plan"},
            "capabilities": {"codeAssistant": {"chat": true, "editor": {"diagnostics": false}}},
            "workspaceFolders": dirs.workspace_folders(),
        }),
        style: Style { no_params: Some(json!({})), trailing_newline: false },
        announced: Announced::WithProgress,
    }
}
