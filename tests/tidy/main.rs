//! Holds the repository to the rules that `docs/architecture.md` states: who may name whom, where a
//! crate may appear, how long a file may be, and that the documents say what the code does.
//!
//! Each rule is a function from text to findings, so each is also tried on small texts that break
//! it. A failing test lists every finding with its file and line.

mod documents;
mod rules;
mod scan;
mod tree;

use rules::Finding;
use scan::Source;

fn demand_none(findings: &[Finding]) {
    let list: String = findings.iter().map(|finding| format!("\n  {finding}")).collect();
    assert!(findings.is_empty(), "{} findings:{list}", findings.len());
}

fn check_sources(rule: impl Fn(&Source) -> Vec<Finding>) {
    let sources = tree::sources();
    assert!(sources.len() > 50, "the source tree was not found");
    demand_none(&sources.iter().flat_map(rule).collect::<Vec<_>>());
}

#[test]
fn modules_name_only_modules_below_them() {
    check_sources(rules::dependency_direction);
}

#[test]
fn every_module_has_its_place() {
    check_sources(rules::known_modules);
}

#[test]
fn crates_appear_only_where_they_belong() {
    check_sources(rules::confined_crates);
}

#[test]
fn every_file_says_why_it_exists() {
    check_sources(rules::module_doc);
}

#[test]
fn no_file_is_called_mod() {
    check_sources(rules::no_mod_rs);
}

#[test]
fn files_keep_their_budget() {
    check_sources(rules::file_budget);
}

#[test]
fn functions_keep_their_budget() {
    check_sources(rules::function_budget);
}

#[test]
fn denied_lints_stay_denied() {
    check_sources(rules::no_lint_escape);
    demand_none(&rules::lint_table(&tree::read("Cargo.toml")));
    for manifest in ["Cargo.toml", "custom_methods/Cargo.toml", "guard/Cargo.toml"] {
        demand_none(&rules::inherits_lints(manifest, &tree::read(manifest)));
    }
}

#[test]
fn the_guard_stays_small() {
    check_sources(rules::small_programs);
    demand_none(&rules::guard_needs(&tree::read("guard/Cargo.toml")));
}

#[test]
fn exceptions_are_not_outlived() {
    let paths = tree::files(&["src", "custom_methods", "guard", "tests", "benches"]);
    demand_none(&rules::stale_exceptions(&paths));
}

#[test]
fn nothing_is_left_over() {
    let folders = ["src", "custom_methods", "guard", "tests", "benches", "editors", "docs", ".ci"];
    let written = [".rs", ".md", ".toml", ".sh", ".lua", ".el", ".js", ".ts", ".py", "/run"];
    let mut paths = tree::files(&folders);
    paths.retain(|path| written.iter().any(|ending| path.ends_with(ending)));
    paths.extend(tree::top_level().into_iter().filter(|name| name.ends_with(".md") || name.ends_with(".toml")));
    demand_none(&paths.iter().flat_map(|path| rules::no_leftovers(path, &tree::read(path))).collect::<Vec<_>>());
}

#[test]
fn the_top_level_stays_small() {
    demand_none(&rules::top_level(&tree::top_level()));
}

#[test]
fn the_lock_file_stays_small() {
    demand_none(&rules::lock_file(&tree::read("Cargo.lock")));
}

/// Each rule on a text that breaks it, and on a neighbour that does not.
mod each_rule_can_fail {
    use super::*;

    fn count(rule: fn(&Source) -> Vec<Finding>, path: &str, text: &str) -> usize {
        rule(&Source::new(path, text)).len()
    }

    #[test]
    fn dependency_direction() {
        let rule = rules::dependency_direction;
        for (path, text, findings) in [
            ("src/engine/chat.rs", "use crate::frontends::eca;", 1),
            ("src/engine/chat.rs", "use crate::{base::ChatId, transport::Outbox, cli};", 2),
            ("src/engine.rs", "fn f() { crate::cli::parse() }", 1),
            ("src/engine.rs", "use super::frontends::eca;", 1),
            ("src/engine/chat.rs", "use super::super::frontends::eca;", 1),
            ("src/engine/chat.rs", "use super::frontends::eca;", 0),
            ("src/engine/chat.rs", "use crate::base::ChatId;\nuse crate::engine::Event;", 0),
            ("src/engine/chat.rs", "#[cfg(test)]\nmod tests { use crate::frontends::eca; }", 0),
            ("src/config/decode.rs", "use crate::llm::Cost;", 0),
            ("src/config/decode.rs", "use crate::llm::{Cost, Message};", 1),
            ("src/config/decode.rs", "use crate::llm;", 1),
            ("src/frontends/assemble.rs", "use crate::providers::Registry;", 0),
            ("src/frontends/eca/sink.rs", "use crate::providers::Registry;", 1),
            ("src/transport/outbox.rs", "use crate::engine::Event;", 1),
            ("tests/e2e.rs", "use crate::frontends::eca;", 0),
        ] {
            assert_eq!(count(rule, path, text), findings, "{path}: {text}");
        }
        assert_eq!(count(rules::known_modules, "src/surprise/a.rs", ""), 1);
        assert_eq!(count(rules::known_modules, "src/base/ids.rs", ""), 0);
    }

    #[test]
    fn confined_crates() {
        for (path, text, findings) in [
            ("src/engine.rs", "use tower_lsp::LspService;", 1),
            ("src/engine.rs", "use custom_methods::chat::ChatPrompt;", 1),
            ("src/engine.rs", "let x = lsp_types::Url::parse(y);", 1),
            ("src/frontends/eca.rs", "use tower_lsp::LspService;", 0),
            ("src/store.rs", "use reqwest::Url;", 1),
            ("src/http.rs", "use reqwest::Url;", 0),
            ("src/engine.rs", "fn f(c: &rusqlite::Connection) {}", 1),
            ("src/engine.rs", "use std::env;\nfn f() { env::var_os(x) }", 2),
            ("src/engine.rs", "use std::{env, fs};", 1),
            ("src/engine.rs", "let version = env!(\"CARGO_PKG_VERSION\");", 0),
            ("src/cli.rs", "std::env::args_os()", 0),
            ("src/engine.rs", "use std::process::{Command, ExitCode};", 1),
            ("src/engine.rs", "use std::process::ExitCode;", 0),
            ("src/engine.rs", "use std::process;\nfn f() { process::Command::new(x) }", 1),
            ("src/engine.rs", "tokio::process::Command::new(x)", 1),
            ("src/process/guard.rs", "use std::process::Command;", 0),
            ("guard/src/tree.rs", "use std::process::Command;", 0),
            ("guard/src/tree.rs", "use std::env;", 1),
            ("src/engine.rs", "use process_guard::Order;", 1),
            ("src/process/parent.rs", "#[cfg(test)]\nmod tests { use std::env; }", 0),
            ("src/logging.rs", "Targets::new().with_target(\"custom_methods\", x)", 0),
            ("tests/e2e.rs", "use std::process::Command;", 0),
        ] {
            assert_eq!(count(rules::confined_crates, path, text), findings, "{path}: {text}");
        }
    }

    #[test]
    fn shape_of_files() {
        assert_eq!(count(rules::module_doc, "src/a.rs", "use b;"), 1);
        assert_eq!(count(rules::module_doc, "src/a.rs", "//! (placeholder)"), 1);
        assert_eq!(count(rules::module_doc, "src/a.rs", "//! Says why it exists."), 0);
        assert_eq!(count(rules::no_mod_rs, "src/a/mod.rs", ""), 1);
        assert_eq!(count(rules::no_mod_rs, "src/a/model.rs", ""), 0);
        let long = "x;\n".repeat(501);
        assert_eq!(count(rules::file_budget, "src/a.rs", &long), 1);
        assert_eq!(count(rules::file_budget, "src/a.rs", &long[3..]), 0);
        assert_eq!(count(rules::file_budget, "src/a.rs", &format!("x;\n#[cfg(test)]\nmod tests {{\n{long}}}")), 0);
        assert_eq!(count(rules::file_budget, "tests/a.rs", &long), 0);
        assert_eq!(count(rules::file_budget, "tests/a.rs", &"x;\n".repeat(801)), 1);
        let body = |lines: usize| format!("fn f() {{\n{}}}\n", "x;\n".repeat(lines - 2));
        assert_eq!(count(rules::function_budget, "src/a.rs", &body(81)), 1);
        assert_eq!(count(rules::function_budget, "src/a.rs", &body(80)), 0);
    }

    #[test]
    fn lints() {
        let escape = "#[allow(clippy::unwrap_used)]\nfn f() {}";
        assert_eq!(count(rules::no_lint_escape, "src/a.rs", escape), 1);
        assert_eq!(count(rules::no_lint_escape, "src/a.rs", "#![expect(clippy::panic, clippy::todo)]"), 2);
        assert_eq!(count(rules::no_lint_escape, "src/a.rs", "#[allow(clippy::unused_async)]\nfn f() {}"), 0);
        assert_eq!(count(rules::no_lint_escape, "tests/a.rs", escape), 0);
        let manifest = tree::read("Cargo.toml");
        assert_eq!(rules::lint_table(&manifest.replace("unwrap_used = \"deny\"", "unwrap_used = \"warn\"")).len(), 1);
        assert_eq!(rules::inherits_lints("Cargo.toml", "[lints]\n").len(), 1);
    }

    #[test]
    fn small_guard() {
        let manifest = tree::read("guard/Cargo.toml");
        let with =
            |line: &str| rules::guard_needs(&manifest.replace("landlock = ", &format!("{line}\nlandlock = "))).len();
        assert_eq!((with("# why"), with("serde.workspace = true"), with("tokio = \"1\"")), (0, 1, 1));
        assert_eq!(count(rules::small_programs, "src/bin/eca-guard.rs", "fn main() { eca::run() }"), 1);
        assert_eq!(count(rules::small_programs, "src/bin/eca-guard.rs", "fn main() { process_guard::run() }"), 0);
        assert_eq!(count(rules::small_programs, "src/run.rs", "eca::serve()"), 0);
    }

    #[test]
    fn leftovers() {
        let mark = concat!("TO", "DO");
        let path = concat!("/ro", "ot/");
        assert_eq!(rules::no_leftovers("a.rs", &format!("x\n// {mark}: later")).len(), 1);
        assert_eq!(rules::no_leftovers("a.rs", &format!("// {mark}S are not words")).len(), 0);
        assert_eq!(rules::no_leftovers("a.rs", &format!("search(\"{mark}\")")).len(), 0);
        assert_eq!(rules::no_leftovers("a.md", &format!("- {mark}: later")).len(), 1);
        assert_eq!(rules::no_leftovers("a.rs", &format!("open(\"{path}x\")")).len(), 1);
        assert_eq!(rules::no_leftovers("a.md", &format!("see `{path}x`")).len(), 1);
        assert_eq!(rules::no_leftovers("a.md", &format!("see tests{path}x")).len(), 0);
        assert_eq!(rules::top_level(&["notes.txt".to_owned(), ".ci".to_owned(), "src".to_owned()]).len(), 1);
        assert_eq!(rules::lock_file("").len(), 1);
        assert_eq!(rules::lock_file(&"[[package]]\n".repeat(401)).len(), 1);
        assert_eq!(rules::lock_file(&"[[package]]\n".repeat(400)).len(), 0);
        assert!(!rules::stale_exceptions(&[]).is_empty());
    }
}
