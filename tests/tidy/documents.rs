//! The documents say what the code does: the protocol's tables, the configuration's keys and
//! example, and links that lead somewhere.

use std::collections::BTreeMap;

use custom_methods::{Direction, FRAMEWORK_METHODS, METHODS, MethodInfo, MethodKind};
use eca::config::commands::Memory;
use eca::config::keys::KEYS;
use eca::config::load::{Sources, load};
use eca::config::{Config, ConfigProblem, Dirs};
use eca::frontends::{Method, acp, acp_draft, copilot};
use eca::providers::{Environment, Registry, Wiring};

use crate::scan::words;
use crate::tree;

/// One line of a method table.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    area: String,
    name: String,
    kind: String,
    direction: String,
    status: String,
    remark: String,
}

#[test]
fn every_method_is_listed_once_and_as_it_is() {
    let text = tree::read("docs/protocol.md");
    let all: Vec<MethodInfo> = METHODS.iter().chain(FRAMEWORK_METHODS).copied().collect();
    let problems = compare(&method_rows(&text), &all);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

const COPILOT: &str = "The Copilot CLI contract";
const ACP_DRAFT: &str = "The first draft of the Agent Client Protocol";

#[test]
fn every_method_of_the_copilot_contract_is_listed_once_and_as_it_is() {
    contract_is_listed(COPILOT, copilot::METHODS, "copilot", &["desk", "params", "chunks"]);
}

#[test]
fn every_method_of_the_agent_client_protocol_is_listed_once_and_as_it_is() {
    let files = ["desk", "client", "host", "permission", "sessions", "terminals"];
    contract_is_listed("The Agent Client Protocol", acp::METHODS, "acp", &files);
}

#[test]
fn every_method_of_the_draft_is_listed_once_and_as_it_is() {
    contract_is_listed(ACP_DRAFT, acp_draft::METHODS, "acp_draft", &["params"]);
    // And what is sent, is sent.
    let sending: String = ["turns", "threads", "editor"].map(|file| source("acp_draft", file)).concat();
    for method in acp_draft::METHODS {
        let is_sent = !words(&sending, &constant("acp_draft", method)).is_empty();
        assert_eq!(is_sent, method.direction == "both", "{}", method.name);
    }
}

/// The table below a heading is the one of the code, and each of its methods stands in one of the files
/// where requests and notifications are told apart.
fn contract_is_listed(heading: &str, methods: &[Method], module: &str, files: &[&str]) {
    let text = tree::read("docs/contracts.md");
    let rows = method_rows(section(&text, heading));
    let listed: Vec<[&str; 3]> = rows.iter().map(|row| [&*row.name, &*row.kind, &*row.direction]).collect();
    let real: Vec<[&str; 3]> = methods.iter().map(|method| [method.name, method.kind, method.direction]).collect();
    assert_eq!(listed, real);
    assert!(rows.iter().all(|row| row.status == "works" && !row.remark.is_empty()), "{rows:?}");
    let served: String = files.iter().map(|file| source(module, file)).collect();
    for method in methods {
        assert!(!words(&served, &constant(module, method)).is_empty(), "{} is not served", method.name);
    }
}

fn source(module: &str, file: &str) -> String {
    tree::read(&format!("src/frontends/{module}/{file}.rs"))
}

/// The constant that holds a method's name.
fn constant(module: &str, method: &Method) -> String {
    let table = source(module, "methods");
    let found = table.split_once(&format!(": &str = \"{}\"", method.name));
    assert!(found.is_some(), "no constant for {}", method.name);
    let (before, _) = found.unwrap_or_default();
    before.rsplit(' ').next().unwrap_or_default().to_owned()
}

/// What stands below a heading, up to the next one of its kind.
fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let found = text.split_once(&format!("\n## {heading}\n"));
    assert!(found.is_some(), "no heading {heading}");
    let (_, below) = found.unwrap_or_default();
    below.split_once("\n## ").map_or(below, |(section, _)| section)
}

#[test]
fn every_error_of_a_contract_is_listed() {
    let text = tree::read("docs/contracts.md");
    let general = [-32700, -32600, -32601, -32602, -32603];
    for (heading, own) in [(COPILOT, &[-32000, -32001, -32002, -32003, -32004][..]), (ACP_DRAFT, &[])] {
        let codes: Vec<String> = cells_below(section(&text, heading), "Code");
        let expected: Vec<String> = general.iter().chain(own).map(|code: &i64| code.to_string()).collect();
        assert_eq!(codes, expected, "{heading}");
    }
}

#[test]
fn what_the_server_may_send_is_sent_somewhere() {
    let markers = markers(&tree::read("custom_methods/src/methods.rs"));
    let front_end: String = tree::sources()
        .into_iter()
        .filter(|source| source.path.starts_with("src/frontends/") && !source.only_tests)
        .map(|source| source.code)
        .collect();
    for method in METHODS.iter().filter(|method| method.direction == Direction::ServerToClient) {
        let marker = markers.get(method.name).unwrap_or_else(|| panic!("no marker type for {}", method.name));
        assert!(!words(&front_end, marker).is_empty(), "{} is never sent", method.name);
    }
}

#[test]
fn every_type_of_content_context_and_details_is_listed_once() {
    let text = tree::read("docs/protocol.md");
    for (column, file, union) in [
        ("Content", "custom_methods/src/chat/content.rs", "ChatContent"),
        ("Context", "custom_methods/src/chat/context.rs", "ChatContext"),
        ("Details", "custom_methods/src/chat/details.rs", "ToolCallDetails"),
    ] {
        let listed = first_cells(&text, column);
        let tags = union_tags(&tree::read(file), union);
        assert!(!tags.is_empty(), "no union {union} in {file}");
        assert_eq!(sorted(&listed), sorted(&tags), "{column}");
    }
}

#[test]
fn the_example_configuration_has_no_problems() {
    let example = fenced(&tree::read("docs/config.md"), "jsonc").expect("an example in docs/config.md");
    let (config, problems) = read_config(&example).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    assert!(config.providers.len() >= 3, "an example should show something: {config:?}");
    let (_, problems) = read_config(&example.replace("\"openai-chat\"", "\"no-such-api\"")).unwrap();
    assert!(!problems.is_empty(), "a wrong example must be noticed");
}

#[test]
fn the_readme_configuration_has_no_problems() {
    let example = fenced(&tree::read("README.md"), "jsonc").expect("an example in README.md");
    let (config, problems) = read_config(&example).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(config.providers.len(), 1);
}

#[test]
fn every_key_of_the_configuration_is_documented() {
    let text = tree::read("docs/config.md");
    let decoders = ["src/config/decode.rs", "src/config/decode/providers.rs"];
    let keys = literals(&decoders.map(tree::read).concat());
    assert!(keys.iter().any(|key| key == "streamIdleTimeoutSeconds"), "the decoder was not found");
    let documented = |key: &String| inline_code(&text).any(|code| !words(code, key).is_empty());
    let missing: Vec<_> = keys.iter().filter(|key| !documented(key)).collect();
    assert!(missing.is_empty(), "not in docs/config.md: {missing:?}");
    // One table says what exists: the decoder reads nothing that is not in it, and the document
    // lists all of it that this server reads.
    let names = |path: &str| path.split('.').map(str::to_owned).collect::<Vec<_>>();
    // Keys of clients alone, and words that are no keys.
    let of_clients =
        ["chatAgent", "chatBehavior", "code", "agent", "build", "openai", "number", "status", "errorPattern", "label"];
    let in_table = |key: &String| KEYS.iter().any(|entry| names(entry.path).contains(key));
    let missing: Vec<_> = keys.iter().filter(|key| !in_table(key) && !of_clients.contains(&key.as_str())).collect();
    assert!(missing.is_empty(), "not in the table of src/config/keys.rs: {missing:?}");
    let read =
        KEYS.iter().filter(|entry| entry.is_read()).flat_map(|entry| names(entry.path)).filter(|name| name != "*");
    let missing: Vec<_> = read.filter(|name| !documented(name)).collect();
    assert!(missing.is_empty(), "not in docs/config.md: {missing:?}");
}

#[test]
fn documented_defaults_are_the_real_ones() {
    let rows: Vec<Vec<String>> = tree::read("docs/config.md").lines().map(cells).filter(|row| row.len() == 4).collect();
    let mut seen = 0;
    for entry in KEYS.iter().filter(|entry| !entry.default.is_empty()) {
        let name = entry.path.rsplit_once("*.").map_or(entry.path, |(_, name)| name);
        let row = rows.iter().find(|row| inline_code(&row[0]).any(|code| code == name));
        let row = row.unwrap_or_else(|| panic!("{} has no row", entry.path));
        let default = entry.default.trim_matches('"');
        assert!(
            row[2] == "none" && default == "[]" || row[2].contains(default),
            "{}: {default}, not {}",
            entry.path,
            row[2]
        );
        seen += 1;
    }
    assert!(seen > 8);
}

#[test]
fn links_lead_somewhere() {
    let mut documents = tree::files(&["docs"]);
    documents.extend(["README.md".to_owned(), "CONTRIBUTING.md".to_owned()]);
    let mut broken = Vec::new();
    for document in documents.iter().filter(|path| path.ends_with(".md")) {
        let folder = document.rsplit_once('/').map_or("", |(folder, _)| folder);
        for target in links(&tree::read(document)) {
            if !tree::root().join(folder).join(&target).exists() {
                broken.push(format!("{document}: {target}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// What differs between the document and the code.
fn compare(rows: &[Row], methods: &[MethodInfo]) -> Vec<String> {
    let mut problems = Vec::new();
    for method in methods {
        let found: Vec<&Row> = rows.iter().filter(|row| row.name == method.name).collect();
        let [row] = found[..] else {
            problems.push(format!("{} is listed {} times", method.name, found.len()));
            continue;
        };
        let kind = match method.kind {
            MethodKind::Request => "request",
            MethodKind::Notification => "notification",
        };
        let direction = match method.direction {
            Direction::ClientToServer => "to server",
            Direction::ServerToClient => "to client",
        };
        for (what, written, real) in
            [("kind", &row.kind, kind), ("direction", &row.direction, direction), ("area", &row.area, method.area)]
        {
            if written != real {
                problems.push(format!("{}: {what} is {real}, not {written}", method.name));
            }
        }
        if row.status != "works" {
            problems.push(format!("{}: unknown status {}", method.name, row.status));
        }
        if row.remark.is_empty() {
            problems.push(format!("{}: no remark", method.name));
        }
    }
    let unknown = rows.iter().filter(|row| !methods.iter().any(|method| method.name == row.name));
    problems.extend(unknown.map(|row| format!("{} is no method", row.name)));
    problems
}

/// The rows of all tables whose first column is `Method`; the heading above names the area.
fn method_rows(text: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut area = String::new();
    let mut inside = false;
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            area = heading.trim().trim_matches('`').to_owned();
        }
        let cells = cells(line);
        inside = !cells.is_empty() && (inside || cells[0] == "Method");
        if let (true, [name, kind, direction, status, remark]) = (inside, &cells[..])
            && let Some(name) = in_backticks(name)
        {
            rows.push(Row {
                area: area.clone(),
                name: name.to_owned(),
                kind: kind.clone(),
                direction: direction.clone(),
                status: status.clone(),
                remark: remark.clone(),
            });
        }
    }
    rows
}

/// The first cells of the table whose first column has this title.
fn first_cells(text: &str, title: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in text.lines() {
        let cells = cells(line);
        inside = !cells.is_empty() && (inside || cells[0] == title);
        if inside && let Some(name) = in_backticks(&cells[0]) {
            found.push(name.to_owned());
        }
    }
    found
}

/// The first cells, of any kind, of the table whose first column has this title.
fn cells_below(text: &str, title: &str) -> Vec<String> {
    let rows = text.lines().map(cells).skip_while(|row| row.first().is_none_or(|first| first != title));
    rows.skip(2).take_while(|row| !row.is_empty()).filter_map(|row| row.into_iter().next()).collect()
}

fn cells(line: &str) -> Vec<String> {
    let Some(row) = line.trim().strip_prefix('|').and_then(|row| row.strip_suffix('|')) else { return Vec::new() };
    row.split('|').map(|cell| cell.trim().to_owned()).collect()
}

fn in_backticks(cell: &str) -> Option<&str> {
    cell.strip_prefix('`')?.strip_suffix('`')
}

/// Method name to marker type, from lines such as `ChatList = "chat/list"(…`.
fn markers(table: &str) -> BTreeMap<String, String> {
    let entry = |line: &str| {
        let (marker, rest) = line.trim().split_once(" = \"")?;
        let (name, _) = rest.split_once("\"(")?;
        Some((name.to_owned(), marker.to_owned()))
    };
    table.lines().filter_map(entry).collect()
}

/// The tags of a tagged union, from lines such as `Text(TextContext) = "text",`.
fn union_tags(source: &str, union: &str) -> Vec<String> {
    let Some((_, body)) = source.split_once(&format!("pub enum {union}:")) else { return Vec::new() };
    let body = body.split("\n    }").next().unwrap_or_default();
    let tag = |line: &str| Some(line.split_once(") = \"")?.1.trim_end_matches(['"', ',']).to_owned());
    body.lines().filter_map(tag).collect()
}

fn fenced(text: &str, language: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("```{language}\n"))?;
    rest.split_once("\n```").map(|(inside, _)| inside.to_owned())
}

/// Texts in the product part of a source that are nothing but letters: the keys it reads.
fn literals(source: &str) -> Vec<String> {
    let product = source.split("#[cfg(test)]").next().unwrap_or_default();
    let code = product.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut found: Vec<String> = code
        .flat_map(|line| line.split('"').skip(1).step_by(2))
        .filter(|text| text.len() > 1 && text.chars().all(char::is_alphabetic))
        .map(str::to_owned)
        .collect();
    found.sort();
    found.dedup();
    found
}

fn inline_code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// Targets of links into the repository, without their anchors.
fn links(text: &str) -> Vec<String> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    targets
        .filter(|target| !target.contains("://") && !target.starts_with('#'))
        .map(|target| target.split('#').next().unwrap_or_default().to_owned())
        .collect()
}

fn sorted(names: &[String]) -> Vec<&str> {
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// Loads a text as the global file would be loaded, and builds its providers.
fn read_config(text: &str) -> std::io::Result<(Config, Vec<ConfigProblem>)> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("config.json");
    std::fs::write(&file, text)?;
    std::fs::write(folder.path().join("key.txt"), "a key\n")?;
    let path = folder.path().to_owned();
    let loaded = load(&Sources {
        initialization_options: None,
        eca_config: None,
        config_file: Some(file.clone()),
        workspace_roots: Vec::new(),
        trusted: BTreeMap::new(),
        memory: &Memory::default(),
        dirs: Dirs { config: path.clone(), data: path.clone(), cache: path },
        env: &|name| name.ends_with("_API_KEY").then(|| "a key".to_owned()),
    });
    let environment = Environment { config_path: file, ..Environment::default() };
    let wiring = Wiring::standard(&loaded.config, &environment);
    let (_, more) = Registry::new(&loaded.config, environment, wiring);
    Ok((loaded.config, loaded.problems.into_iter().chain(more).collect()))
}

/// The readers above on small documents that are wrong.
mod each_comparison_can_fail {
    use super::*;

    const METHOD: MethodInfo =
        MethodInfo { name: "a/b", kind: MethodKind::Request, direction: Direction::ClientToServer, area: "chat" };

    fn problems(row: &str) -> usize {
        let text =
            format!("### `chat`\n\n| Method | Kind | Direction | Status | Remark |\n|---|---|---|---|---|\n{row}\n");
        compare(&method_rows(&text), &[METHOD]).len()
    }

    #[test]
    fn methods() {
        let right = "| `a/b` | request | to server | works | Does it. |";
        assert_eq!(problems(right), 0);
        assert_eq!(problems(&right.replace("works", "maybe")), 1);
        assert_eq!(problems(&right.replace("request", "notification")), 1);
        assert_eq!(problems(&right.replace("to server", "to client")), 1);
        assert_eq!(problems(&right.replace("Does it.", "")), 1);
        assert_eq!(problems(&format!("{right}\n{right}")), 1);
        assert_eq!(problems(""), 1);
        assert_eq!(problems(&format!("{right}\n{}", right.replace("a/b", "c/d"))), 1);
    }

    #[test]
    fn small_readers() {
        assert_eq!(markers("    ChatList = \"chat/list\"(P) -> R;\n")["chat/list"], "ChatList");
        let union =
            "    pub enum U: \"x\" by \"type\" {\n        /// Doc.\n        A(B) = \"a\",\n    }\n    C(D) = \"d\",";
        assert_eq!(union_tags(union, "U"), ["a"]);
        assert_eq!(first_cells("| Context | x |\n|---|---|\n| `a` | b |\n\n| `c` | d |\n", "Context"), ["a"]);
        assert_eq!(literals("f(\"oneKey\", \"not this\"); // \"x\n//! \"nor this\"\n\"kebab-case\""), ["oneKey"]);
        assert_eq!(cells_below("x\n| Code | y |\n|---|---|\n| -1 | b |\n\n| -2 | c |", "Code"), ["-1"]);
        assert_eq!(links("[a](b.md#c) [d](https://e) [f](#g)"), ["b.md"]);
        assert_eq!(fenced("x\n```jsonc\n{}\n```\n", "jsonc").as_deref(), Some("{}"));
    }
}
