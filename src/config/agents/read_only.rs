//! What agents that must change nothing may run: the rules of `plan` and `explorer`.
//!
//! The patterns see a command line as `approval` takes it apart: each command by itself, and each
//! file that output goes to as `> file`. So a `>` inside quotes is no redirection, and a command
//! cannot hide behind another one.

use std::collections::BTreeMap;

use super::super::{ApprovalOverride, ApprovalRule, ToolCallConfig};

const SHELL: &str = "eca__shell_command";
const PREVIEW: &str = "eca__preview_file_change";

/// Git accepts abbreviated options; these are the shortest beginnings of those that write or run.
const ALLOWED_COMMANDS: [&str; 4] = [
    r"pwd( -[LP])?",
    r"ls( .*)?",
    r"git (status|diff|log|show)(?!.* --(ou|ext|textc|open|upload|exec))( .*)?",
    r"find(?!.* -(delete|exec|ok|fprint|fls))( .*)?",
];

/// Everything here writes, deletes or publishes; what is merely unknown is asked about anyway.
const DENIED_COMMANDS: [&str; 11] = [
    // Output into files, except scratch files.
    r"> (?!/tmp/(?!.*\.\.)).*",
    r"(rm|rmdir|unlink|shred|mv|cp|ln|install|touch|mkdir|mkfifo|mknod|truncate|tee|dd|patch|rsync|scp)( .*)?",
    r"(chmod|chown|chgrp|chattr|setfacl|mkfs(\.[a-z0-9]+)?|mount|umount)( .*)?",
    r"(sed|perl|ruby) (.* )?(-[A-Za-z0-9]*i.*|--in-place.*)",
    r"g?awk (.* )?(-i|--include)[ =]?inplace.*",
    r"find (.* )?-(delete|fprint|fls).*",
    r"git( -[cC] [^ ]+| --?[A-Za-z][^ ]*)* (add|am|apply|bisect|cherry-pick|clean|clone|commit|fetch|gc|init|merge|mv|pull|push|rebase|reset|restore|revert|rm|stash|submodule|switch|update-index|update-ref|worktree|checkout)( .*)?",
    r"(npm|pnpm|yarn|bun) (.* )?(i|in|install|ci|add|remove|rm|uninstall|update|upgrade|link|publish|dedupe)( .*)?",
    r"(pip|pip3|pipx|uv|poetry|conda|gem|bundle|composer|cargo|go|dotnet) (.* )?(install|uninstall|add|remove|update|upgrade|publish|get|sync)( .*)?",
    r"(apt|apt-get|dnf|yum|pacman|apk|zypper|brew|snap|port|nix-env) .*",
    r"(python[0-9.]*|node|deno|bun|ruby|perl|php) (.* )?(-[A-Za-z]*[cepr]|--eval|--print)\b.*(open ?\(.*,.*[wax+]|write|unlink|remove|rmtree|rename|mkdir|system|exec|spawn|popen|subprocess).*",
];

pub(super) fn approval() -> ApprovalOverride {
    let shell = |patterns: &[&str]| (SHELL.to_owned(), ApprovalRule::matching("command", patterns));
    let mut allow = ToolCallConfig::default().approval.allow;
    allow.extend([shell(&ALLOWED_COMMANDS), (PREVIEW.to_owned(), ApprovalRule::default())]);
    ApprovalOverride {
        allow: Some(allow),
        ask: None,
        deny: Some(BTreeMap::from([shell(&DENIED_COMMANDS)])),
        by_default: None,
    }
}
