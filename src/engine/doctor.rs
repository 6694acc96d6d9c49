//! `/doctor`: how this server is set up, and what is wrong. No secret in it.

use super::Shared;
use crate::process::sandbox::{self, NetworkBlock};
use crate::providers::vendors::VENDORS;
use crate::providers::{KeySource, ProviderState, ProviderView};
use crate::workspace::Workspace;

pub(super) async fn report(shared: &Shared, workspace: &Workspace) -> String {
    let settings = shared.settings();
    let mut text = format!("## eca {}\n", env!("CARGO_PKG_VERSION"),);
    for root in workspace.roots() {
        text.push_str(&format!("- workspace: `{}`\n", root.path.display()));
    }
    let default = settings.registry.default_model();
    text.push_str(&format!("- default model: `{default}`\n- sandbox: {}\n", sandbox_words().await));
    text.push_str("\n### Providers\n");
    for view in settings.registry.with_keys() {
        text.push_str(&format!("- **{}**: {}\n", view.id, provider_words(&view)));
    }
    text.push_str("\n### Logins that do not carry over\n");
    for option in shared.login_options() {
        if let Some(reason) = option.unavailable {
            text.push_str(&format!("- {}: {reason}\n", option.label));
        }
    }
    for vendor in VENDORS {
        if let Some(reason) = vendor.no_subscription {
            text.push_str(&format!("- {}: {reason}\n", vendor.label));
        }
    }
    let loaded = &settings.loaded;
    text.push_str("\n### Configuration\n");
    for file in &loaded.files {
        if file.exists() {
            text.push_str(&format!("- read: `{}`\n", file.display()));
        }
    }
    for problem in &loaded.problems {
        text.push_str(&format!("- problem: {problem}\n"));
    }
    for withheld in &loaded.withheld {
        let keys: Vec<String> =
            withheld.keys.iter().map(|key| format!("`{}` (could {})", key.key, key.could)).collect();
        text.push_str(&format!(
            "- not trusted, so not used: {} of `{}`; `eca trust` in a terminal trusts it\n",
            keys.join(", "),
            withheld.file.display()
        ));
    }
    text.push_str(&withheld_texts(shared, workspace).await);
    text.push_str("\n### MCP servers\n");
    let servers = shared.servers.statuses();
    if servers.is_empty() {
        text.push_str("- none configured\n");
    }
    for server in servers {
        text.push_str(&format!("- {}: {:?}\n", server.name, server.status));
    }
    text
}

/// What of rules, skills, commands and agents is withheld until the user trusts it.
async fn withheld_texts(shared: &Shared, workspace: &Workspace) -> String {
    let settings = shared.settings();
    let customization = shared.instructions.of(workspace, settings.config(), &*shared.sink).await;
    let line = |withheld: &crate::config::trust::Withheld| {
        let keys: Vec<&str> = withheld.keys.iter().map(|key| key.key.as_str()).collect();
        let (keys, file) = (keys.join(", "), withheld.file.display());
        format!("- not trusted, so only text: {keys} of `{file}`; `eca trust` in a terminal trusts it\n")
    };
    customization.withheld().iter().map(line).collect()
}

async fn sandbox_words() -> String {
    let support = sandbox::support().await;
    if support.landlock == 0 {
        return "not supported by this system".to_owned();
    }
    let network = match support.network {
        NetworkBlock::All => "the network can be cut off",
        NetworkBlock::TcpOnly => "TCP only can be cut off",
        NetworkBlock::Nothing => "the network cannot be cut off",
    };
    format!("Landlock {}, {network}", support.landlock)
}

fn provider_words(view: &ProviderView) -> String {
    let key = match &view.key_source {
        KeySource::Config => "key from the configuration".to_owned(),
        KeySource::Login => "key entered by login".to_owned(),
        KeySource::OAuth if view.state == ProviderState::Expired => "login has ended".to_owned(),
        KeySource::OAuth => "logged in".to_owned(),
        KeySource::Env(name) => format!("key from `{name}`"),
        KeySource::Netrc => "key from netrc".to_owned(),
        KeySource::None if view.state == ProviderState::Local => "needs no key".to_owned(),
        KeySource::None if view.state == ProviderState::NotRunning => "is not running".to_owned(),
        KeySource::None if !view.ways.is_empty() => "not logged in".to_owned(),
        KeySource::None => "no key".to_owned(),
    };
    format!("{key}, {} models, {}", view.model_count, view.url)
}
