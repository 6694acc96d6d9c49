//! The rules of `docs/architecture.md` on the source tree, as tables and as functions from sources
//! to findings.

use std::fmt;

use crate::scan::{Source, blank_literals, words};

/// A file may have this many lines without its tests.
const FILE_LINES: usize = 500;
/// No exception goes beyond this; it also bounds files that hold only tests.
const FILE_LINES_HARD_STOP: usize = 800;
const FUNCTION_LINES: usize = 80;

/// Files above [`FILE_LINES`], each with the reason why it is not cut.
const LONG_FILES: &[(&str, &str)] = &[];

/// Which modules below `src` a module may name.
const MAY_NAME: &[(&str, &[&str])] = &[
    ("main", &[]),
    ("bin", &[]),
    ("lib", &["run"]),
    ("run", &["cli", "config", "frontends", "logging", "process", "transport"]),
    ("cli", &["logging"]),
    (
        "frontends",
        &[
            "base",
            "config",
            "engine",
            "host",
            "llm",
            "logging",
            "mcp",
            "process",
            "state",
            "tool",
            "transport",
            "workspace",
        ],
    ),
    (
        "engine",
        &[
            "approval",
            "base",
            "config",
            "context",
            "customization",
            "host",
            "http",
            "llm",
            "mcp",
            "process",
            "providers",
            "state",
            "store",
            "tool",
            "tools",
            "workspace",
        ],
    ),
    ("providers", &["base", "config", "http", "llm", "state"]),
    ("mcp", &["base", "config", "host", "http", "llm", "process", "state", "tool", "workspace"]),
    ("tools", &["base", "config", "host", "http", "llm", "process", "tool", "workspace"]),
    ("context", &["base", "config", "http", "llm", "tool", "workspace"]),
    ("customization", &["base", "config", "process", "tool", "workspace"]),
    ("store", &["base", "llm"]),
    ("transport", &["base"]),
    ("state", &["base", "config"]),
    ("http", &["base", "config"]),
    ("config", &["base", "process"]),
    ("process", &["base"]),
    ("workspace", &["base"]),
    ("logging", &["base"]),
    ("tools", &["base", "config", "host", "http", "llm", "process", "tool", "workspace"]),
    ("approval", &["base", "config", "tool", "workspace"]),
    ("tool", &["base", "config", "host", "llm", "workspace"]),
    ("tools", &["base", "config", "host", "llm", "process", "tool", "workspace", "http"]),
    ("host", &["base"]),
    ("llm", &["base"]),
    ("base", &[]),
];

/// Names that cross a border of [`MAY_NAME`]: where, of which module, which ones, and why.
const CROSSINGS: &[(&str, &str, &[&str], &str)] = &[
    ("src/config", "llm", &["Cost"], "a price in the configuration is the price the model vocabulary computes with"),
    (
        "src/frontends/assemble.rs",
        "providers",
        &["Environment", "Registry", "Wiring", "oauth"],
        "builds the engine's parts",
    ),
    ("src/frontends/assemble.rs", "store", &["Store"], "builds the engine's parts"),
    ("src/frontends/assemble.rs", "customization", &["Customization", "self", "hooks"], "builds the engine's parts"),
    ("src/frontends/acp", "store", ACP_NEEDS, "sessions share one history, which outlives each of their engines"),
    ("src/frontends/eca/handlers/history.rs", "store", &["PageQuery", "StoreError"], "pages of a chat as data"),
    ("src/frontends/eca/handlers/jobs.rs", "tools", &["jobs"], "shows background jobs as data"),
    (
        "src/frontends/eca/handlers/providers.rs",
        "providers",
        &["KeySource", "ProviderState", "ProviderView"],
        "shows providers as data",
    ),
    ("src/frontends/eca/handlers/chat.rs", "store", &["ChatSummary", "ListQuery", "ListSort"], "lists chats as data"),
    (
        "src/frontends/acp_draft/threads.rs",
        "store",
        &["ChatSummary", "ListQuery", "PageQuery"],
        "lists threads and reads them as data",
    ),
    ("src/frontends/eca/handlers/query.rs", "context", &["Places", "query"], "offers files as data"),
    ("src/frontends/eca/session.rs", "context", &["Indexes", "index"], "holds the files of its folders"),
    ("src/tools/fetch.rs", "context", &["web"], "a page is read for a tool as it is for a context"),
    ("src/frontends/terminal", "cli", &["ChatArgs"], "the command line is this front end's wire"),
    ("src/frontends/chats.rs", "cli", &["ChatsCommand", "ChatsScope"], "the command line is its wire"),
    ("src/frontends/chats", "store", CHATS_NEED, "shows the chats that are kept; no engine runs"),
    ("src/frontends/manage.rs", "cli", &["ConfigArgs", "ConfigCommand", "TrustArgs"], "the command line is its wire"),
];

/// What the Agent Client Protocol takes from the store.
const ACP_NEEDS: &[&str] = &["ChatSummary", "ListQuery", "PageQuery", "Store", "StoreError", "StoredChat"];

/// What `eca chats` takes from the store.
const CHATS_NEED: &[&str] = &[
    "ChatSummary",
    "ListQuery",
    "MessageExtra",
    "MessageKind",
    "PublicChats",
    "SearchHit",
    "SearchQuery",
    "Store",
    "StoreError",
    "StoredChat",
    "StoredEntry",
];

/// Crates and parts of the standard library that belong to one place.
const CONFINED: &[(&[&str], &[&str])] = &[
    (&["tower_lsp"], &["src/frontends"]),
    (&["custom_methods"], &["src/frontends"]),
    (&["lsp_types"], &["src/frontends", "custom_methods/src"]),
    (&["agent_client_protocol_schema"], &["src/frontends/acp"]),
    (&["reqwest"], &["src/http", "src/mcp", "src/providers"]),
    (&["rmcp"], &["src/mcp", "benches/scenarios/mcp.rs"]),
    (&["sse_stream_of_rmcp"], &["src/mcp"]),
    (&["rustls"], &["src/http"]),
    (&["sse_stream"], &["src/providers"]),
    (&["saphyr_parser"], &["src/frontends/copilot/spec"]),
    (&["rusqlite"], &["src/store"]),
    (&["jsonc_parser"], &["src/config"]),
    (&["tree_sitter"], &["src/approval/shell"]),
    (&["tree_sitter_bash"], &["src/approval/shell"]),
    (&["clap"], &["src/cli"]),
    (&["landlock"], &["guard/src"]),
    (&["libc"], &["guard/src"]),
    (&["seccompiler"], &["guard/src"]),
    (&["reedline"], &["src/frontends/terminal"]),
    (&["crossterm"], &["src/frontends/terminal"]),
    (&["process_guard"], &["src/process", "src/bin/eca-guard.rs"]),
    (&["std", "env"], &["src/cli.rs", "src/config/load.rs", "src/bin/eca-guard.rs"]),
    (&["env", "var"], &["src/cli.rs", "src/config/load.rs"]),
    (&["env", "vars"], &["src/cli.rs", "src/config/load.rs"]),
    (&["env", "args"], &["src/cli.rs", "src/config/load.rs", "src/bin/eca-guard.rs"]),
    (&["std", "process", "Command"], &["src/process", "guard/src"]),
    (&["process", "Command"], &["src/process", "guard/src"]),
    (&["tokio", "process"], &["src/process"]),
    (&["tokio", "spawn"], &["src/base/task.rs"]),
    (&["tokio", "task", "spawn_blocking"], &["src/base/task.rs"]),
];

/// Lints that the workspace must deny, and that product code must not switch off.
const DENIED: [&str; 9] = [
    "await_holding_lock",
    "dbg_macro",
    "expect_used",
    "panic",
    "print_stderr",
    "print_stdout",
    "todo",
    "unimplemented",
    "unwrap_used",
];

/// The names that may stand at the top of the repository, beside dotfiles.
const TOP_LEVEL: [&str; 16] = [
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "benches",
    "build.rs",
    "custom_methods",
    "docs",
    "editors",
    "guard",
    "src",
    // The build's own output, ignored by git.
    "target",
    "tests",
];

/// What the guard may depend on: there is one per running program, and each pays for all of it.
const GUARD_NEEDS: [&str; 4] = ["landlock", "libc", "rustix", "seccompiler"];

/// About fifty of them are listed for other platforms and for switched-off features only.
const MOST_PACKAGES: usize = 400;

/// Written in two parts, because this file is searched too.
const UNFINISHED: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// The beginnings of paths that exist on one machine only.
const MACHINE_PATHS: [&str; 3] = [concat!("/wo", "rk/"), concat!("/tmp", "/w/"), concat!("/ro", "ot/")];

/// One broken rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) rule: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.rule)
    }
}

/// Modules name only modules below them.
pub(crate) fn dependency_direction(source: &Source) -> Vec<Finding> {
    let Some(below_src) = source.path.strip_prefix("src/") else { return Vec::new() };
    let depth = below_src.split('/').count();
    let own = below_src.trim_end_matches(".rs").split('/').next().unwrap_or_default();
    let allowed = MAY_NAME.iter().find(|(module, _)| *module == own).map_or(&[][..], |(_, names)| names);
    let mut named = source.paths("crate");
    // A chain of `super` as long as the file is deep ends at the crate's root.
    named.extend(source.paths("super").into_iter().filter_map(|mut path| {
        let chain = 1 + path.segments.iter().take_while(|segment| *segment == "super").count();
        path.segments.drain(..chain - 1);
        (chain == depth && own != "lib").then_some(path)
    }));
    named
        .into_iter()
        .filter(|path| {
            let module = path.segments.first().map_or("*", String::as_str);
            let item = path.segments.get(1).map_or("self", String::as_str);
            module != own && !allowed.contains(&module) && !crosses(&source.path, module, item)
        })
        .map(|path| finding(source, path.line, &format!("`{own}` must not name `{}`", path.segments.join("::"))))
        .collect()
}

/// Every top-level module has a line in the table, so that a new one is placed on purpose.
pub(crate) fn known_modules(source: &Source) -> Vec<Finding> {
    let Some(below_src) = source.path.strip_prefix("src/") else { return Vec::new() };
    let own = below_src.trim_end_matches(".rs").split('/').next().unwrap_or_default();
    let known = MAY_NAME.iter().any(|(module, _)| *module == own);
    (!known).then(|| finding(source, 1, &format!("`{own}` has no line in MAY_NAME"))).into_iter().collect()
}

/// Crates appear only where they belong.
pub(crate) fn confined_crates(source: &Source) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, places) in CONFINED {
        let allowed = places.iter().any(|place| source.path.starts_with(place));
        if allowed || source.path.starts_with("custom_methods/") && path[0] == "custom_methods" {
            continue;
        }
        let (root, rest) = (path[0], &path[1..]);
        for named in source.paths(root).iter().filter(|named| starts_with(&named.segments, rest)) {
            let rule = format!("`{}` belongs to {}", path.join("::"), places.join(", "));
            found.push(finding(source, named.line, &rule));
        }
    }
    found
}

/// The first line says why the file exists.
pub(crate) fn module_doc(source: &Source) -> Vec<Finding> {
    let first = source.text.lines().next().unwrap_or_default();
    let says_something = first.strip_prefix("//! ").is_some_and(|text| text.split_whitespace().count() >= 3);
    (!says_something)
        .then(|| finding(source, 1, "the file must open with `//!` and say why it exists"))
        .into_iter()
        .collect()
}

pub(crate) fn no_mod_rs(source: &Source) -> Vec<Finding> {
    let is_mod = source.path.ends_with("/mod.rs");
    is_mod.then(|| finding(source, 1, "`foo.rs` beside `foo/` instead of `mod.rs`")).into_iter().collect()
}

pub(crate) fn file_budget(source: &Source) -> Vec<Finding> {
    let (lines, limit) = if source.only_tests {
        (source.text.lines().count(), FILE_LINES_HARD_STOP)
    } else if LONG_FILES.iter().any(|(path, _)| *path == source.path) {
        (source.product_lines(), FILE_LINES_HARD_STOP)
    } else {
        (source.product_lines(), FILE_LINES)
    };
    (lines > limit).then(|| finding(source, 1, &format!("{lines} lines, at most {limit}"))).into_iter().collect()
}

pub(crate) fn function_budget(source: &Source) -> Vec<Finding> {
    let long = source.functions().into_iter().filter(|function| function.lines > FUNCTION_LINES);
    long.map(|function| {
        let rule = format!("`{}` has {} lines, at most {FUNCTION_LINES}", function.name, function.lines);
        finding(source, function.line, &rule)
    })
    .collect()
}

/// A denied lint stays denied in product code.
pub(crate) fn no_lint_escape(source: &Source) -> Vec<Finding> {
    let mut found = Vec::new();
    for attribute in ["allow", "expect"] {
        for at in source.words(attribute).into_iter().filter(|at| !source.is_test(*at)) {
            let before = source.code[..at].trim_end();
            if !before.ends_with('[') && !before.ends_with(',') {
                continue;
            }
            let inside = source.code[at..].split(')').next().unwrap_or_default();
            for lint in DENIED.iter().filter(|lint| inside.contains(&format!("clippy::{lint}"))) {
                found.push(finding(source, source.line_of(at), &format!("switches off `clippy::{lint}`")));
            }
        }
    }
    found
}

/// Nothing is left for later, and nothing points into one machine. In Rust a mark counts outside of
/// text literals: inside one it is data, such as a pattern to search for.
pub(crate) fn no_leftovers(path: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    let marked = if path.ends_with(".rs") { blank_literals(text) } else { text.to_owned() };
    for (index, (line, marked)) in text.lines().zip(marked.lines()).enumerate() {
        let mut add = |rule: String| found.push(Finding { path: path.to_owned(), line: index + 1, rule });
        for mark in UNFINISHED.iter().filter(|mark| !words(marked, mark).is_empty()) {
            add(format!("`{mark}` marks unfinished work"));
        }
        for start in MACHINE_PATHS.iter().filter(|start| names_machine_path(line, start)) {
            add(format!("`{start}` is a path of one machine"));
        }
    }
    found
}

pub(crate) fn top_level(names: &[String]) -> Vec<Finding> {
    let strange = names.iter().filter(|name| !name.starts_with('.') && !TOP_LEVEL.contains(&name.as_str()));
    strange.map(|name| Finding { path: name.clone(), line: 1, rule: "does not belong at the top".to_owned() }).collect()
}

/// What the workspace's manifest must say about lints.
pub(crate) fn lint_table(manifest: &str) -> Vec<Finding> {
    let mut section = "";
    let mut denied = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line.trim();
        } else if let Some((name, "\"deny\"" | "\"forbid\"")) = line.split_once(" = ") {
            denied.push((section, name.trim()));
        }
    }
    let wanted = DENIED.iter().map(|lint| ("[workspace.lints.clippy]", *lint));
    let wanted = wanted.chain([("[workspace.lints.rust]", "unsafe_code")]);
    let missing = wanted.filter(|lint| !denied.contains(lint));
    missing
        .map(|(section, lint)| Finding {
            path: "Cargo.toml".to_owned(),
            line: 1,
            rule: format!("{section} must deny `{lint}`"),
        })
        .collect()
}

/// A package takes its lints from the workspace.
pub(crate) fn inherits_lints(path: &str, manifest: &str) -> Vec<Finding> {
    let inherits = manifest.contains("[lints]\nworkspace = true");
    let rule = "must have `[lints] workspace = true`".to_owned();
    (!inherits).then(|| Finding { path: path.to_owned(), line: 1, rule }).into_iter().collect()
}

/// The guard depends on little.
pub(crate) fn guard_needs(manifest: &str) -> Vec<Finding> {
    let mut counts = false;
    let mut found = Vec::new();
    for (index, line) in manifest.lines().enumerate() {
        if line.starts_with('[') {
            counts = line.ends_with("dependencies]") && !line.ends_with("dev-dependencies]");
        } else if let (true, Some((name, _))) = (counts, line.split_once([' ', '.', '=']))
            && !line.starts_with('#')
            && !GUARD_NEEDS.contains(&name)
        {
            let rule = format!("`{name}` would be paid for by every running program");
            found.push(Finding { path: "guard/Cargo.toml".to_owned(), line: index + 1, rule });
        }
    }
    found
}

/// A small program that named the server would become as large.
pub(crate) fn small_programs(source: &Source) -> Vec<Finding> {
    let named = if source.path.starts_with("src/bin/") { source.paths("eca") } else { Vec::new() };
    named.iter().map(|path| finding(source, path.line, "a small program must not name `eca`")).collect()
}

pub(crate) fn lock_file(text: &str) -> Vec<Finding> {
    let packages = text.lines().filter(|line| *line == "[[package]]").count();
    let rule = format!("{packages} packages, from 1 to {MOST_PACKAGES}");
    let path = "Cargo.lock".to_owned();
    (!(1..=MOST_PACKAGES).contains(&packages)).then_some(Finding { path, line: 1, rule }).into_iter().collect()
}

/// An exception that names no file any more is taken out.
pub(crate) fn stale_exceptions(paths: &[String]) -> Vec<Finding> {
    let crossings = CROSSINGS.iter().map(|(path, ..)| *path);
    let listed = LONG_FILES.iter().map(|(path, _)| *path).chain(crossings);
    let stale = listed.filter(|listed| !paths.iter().any(|path| path.starts_with(listed)));
    stale
        .map(|path| Finding { path: path.to_owned(), line: 1, rule: "an exception for a file that is gone".to_owned() })
        .collect()
}

fn crosses(path: &str, module: &str, item: &str) -> bool {
    CROSSINGS.iter().any(|(place, of, items, _)| path.starts_with(place) && *of == module && items.contains(&item))
}

fn starts_with(segments: &[String], wanted: &[&str]) -> bool {
    // `var` also stands for `var_os`, `args` for `args_os`.
    let same = |(segment, wanted): (&String, &&str)| segment == wanted || *segment == format!("{wanted}_os");
    segments.len() >= wanted.len() && segments.iter().zip(wanted).all(same)
}

/// Absolute: not the end of a longer path or of a URL.
fn names_machine_path(line: &str, start: &str) -> bool {
    line.match_indices(start).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}' | ')'))
    })
}

fn finding(source: &Source, line: usize, rule: &str) -> Finding {
    Finding { path: source.path.clone(), line, rule: rule.to_owned() }
}
