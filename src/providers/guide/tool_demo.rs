//! The guide's tool demonstration: one real call of a tool that only reads, then its summary.
//!
//! The call is chosen from what the engine offers and goes through the engine like any model's,
//! so approval, display and history are the real ones.

use serde_json::{Map, Value, json};

use super::Step;
use crate::base::text;
use crate::llm::{Message, Part, Request, ToolSpec};

/// Names of tools that change nothing, best first: looking at a folder needs no file to exist.
const READ_ONLY: [&str; 7] =
    ["directory_tree", "list_directory", "list_dir", "list_files", "read_file", "grep", "search_files"];
/// Of these, the ones that want a file, so they are only used when the user named one.
const NEEDS_FILE: &str = "read_file";
const SHOWN_LINES: usize = 12;
const SHOWN_BYTES: usize = 1_500;

/// Results of tool calls that the guide has to speak about now.
pub(super) fn results(messages: &[Message]) -> Vec<(&str, bool)> {
    let parts = messages.last().map(|message| message.parts.as_slice()).unwrap_or_default();
    // A user's words in the same message are newer than the results and count for more.
    if parts.iter().any(|part| matches!(part, Part::Text(text) if !text.trim().is_empty())) {
        return Vec::new();
    }
    parts
        .iter()
        .filter_map(|part| match part {
            Part::ToolResult { text, error, .. } => Some((text.as_str(), *error)),
            _ => None,
        })
        .collect()
}

pub(super) fn summary(results: &[(&str, bool)]) -> String {
    let mut out = String::new();
    for (result, error) in results {
        let lines = result.lines().count();
        let cut = text::prefix(result, SHOWN_BYTES).lines().take(SHOWN_LINES).collect::<Vec<_>>().join("\n");
        let fence = fence_for(&cut);
        let more = if cut.trim_end().len() < result.trim_end().len() { " Its beginning:" } else { " Here it is:" };
        out.push_str(&match error {
            false => format!("The tool ran and returned {lines} line(s), {} characters.", result.chars().count()),
            true => "The tool call did not succeed, which is shown to a model in the same way.".to_owned(),
        });
        out.push_str(&format!("{more}\n\n{fence}text\n{cut}\n{fence}\n\n"));
    }
    out.push_str("A real model would now work with this. I only report it, because I am a guide and not a model.\n");
    out
}

pub(super) fn call(request: &Request, asked: &str) -> Vec<Step> {
    if request.tools.is_empty() {
        return vec![Step::Text(
            "You asked for a tool call, but this chat offers me no tools, so I cannot make one. Once tools are \
             available here, the same request makes a real call.\n"
                .to_owned(),
        )];
    }
    let Some((tool, arguments)) = choose(request, asked) else {
        let names: Vec<String> = request.tools.iter().take(8).map(|tool| format!("`{}`", tool.name)).collect();
        return vec![Step::Text(format!(
            "You asked for a tool call. I only call tools that read and whose arguments I can fill in, and none of \
             the {} offered ones is such a tool ({}).\n",
            request.tools.len(),
            names.join(", ")
        ))];
    };
    let earlier = request.messages.iter().flat_map(|message| &message.parts);
    let number = earlier.filter(|part| matches!(part, Part::ToolCall { .. })).count() + 1;
    vec![
        Step::Text(format!("Here is a real call of `{}`, made as a model would make it.\n", tool.name)),
        Step::Call {
            id: format!("guide_call_{number}"),
            name: tool.name.clone(),
            arguments: Value::Object(arguments).to_string(),
        },
    ]
}

/// A tool the user named comes first, then the order of [`READ_ONLY`].
fn choose<'a>(request: &'a Request, asked: &str) -> Option<(&'a ToolSpec, Map<String, Value>)> {
    let named = find_path(asked, true);
    let path = named.or_else(|| find_path(&request.system, false)).unwrap_or_else(|| ".".to_owned());
    let has_file = find_path(asked, true).is_some();
    let mut ranked: Vec<(bool, usize, &ToolSpec)> = request
        .tools
        .iter()
        .filter_map(|tool| {
            let own_name = tool.name.rsplit("__").next().unwrap_or(&tool.name);
            let rank = READ_ONLY.iter().position(|known| own_name == *known || own_name == format!("eca_{known}"))?;
            (own_name != NEEDS_FILE || has_file).then(|| (!asked.contains(own_name), rank, tool))
        })
        .collect();
    ranked.sort_by_key(|(unnamed, rank, _)| (*unnamed, *rank));
    ranked.into_iter().find_map(|(_, _, tool)| Some((tool, fill_in(tool, &path)?)))
}

/// Arguments for the required properties of a tool; `None` when one of them cannot be guessed.
fn fill_in(tool: &ToolSpec, path: &str) -> Option<Map<String, Value>> {
    let schema = &tool.parameters;
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut names: Vec<&str> = required.iter().filter_map(Value::as_str).collect();
    // A folder tool without required arguments still shows more when it is told where to look.
    if names.is_empty() && schema["properties"]["path"].is_object() {
        names.push("path");
    }
    let mut arguments = Map::new();
    for name in names {
        let is_list = schema["properties"][name]["type"] == "array";
        let value = match name {
            "path" | "dir" | "directory" | "root" | "file" | "file_path" | "paths" => path,
            "pattern" | "query" => "fn main",
            _ => return None,
        };
        arguments.insert(name.to_owned(), if is_list { json!([value]) } else { json!(value) });
    }
    if schema["properties"]["max_depth"].is_object() {
        arguments.insert("max_depth".to_owned(), json!(2));
    }
    Some(arguments)
}

/// The first thing in `text` that looks like a path. The first word of what a user types may be
/// a command such as `/tool`, which is none.
fn find_path(text: &str, is_typed: bool) -> Option<String> {
    // Closing tags of a structured prompt look like absolute paths otherwise.
    let text = text.replace("</", " ");
    let separators = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>' | '(' | ')' | ',' | ';');
    let words = text.split(separators).map(|word| word.trim_end_matches(['.', ':', '?', '!'])).enumerate();
    let is_path = |word: &str| {
        let drive = matches!(word.as_bytes(), [letter, b':', b'\\' | b'/', ..] if letter.is_ascii_alphabetic());
        let from_root = word.len() > 1 && word.starts_with('/') && !word.starts_with("//");
        let relative = is_typed && ["./", "../", "~/"].iter().any(|start| word.starts_with(start));
        drive || from_root || relative
    };
    let mut found = words.filter(|(index, word)| !(is_typed && *index == 0 && word.starts_with('/')) && is_path(word));
    found.next().map(|(_, word)| word.to_owned())
}

/// A code fence longer than any in the text.
fn fence_for(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat((longest + 1).max(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_what_people_write() {
        for (text, path) in [
            ("use a tool on /tmp/x.", Some("/tmp/x")),
            ("tool on `./src`", Some("./src")),
            (r"tool on C:\work, please", Some(r"C:\work")),
            ("/tool please", None),
            ("a tool and/or two", None),
            ("see https://example.org/a", None),
        ] {
            assert_eq!(find_path(text, true).as_deref(), path, "{text}");
        }
        let system = "<env></env>\n<folder>/home/me/project</folder>";
        assert_eq!(find_path(system, false).as_deref(), Some("/home/me/project"));
    }

    #[test]
    fn a_fence_is_longer_than_those_inside() {
        assert_eq!(fence_for("plain"), "```");
        assert_eq!(fence_for("a ```` b"), "`````");
    }
}
