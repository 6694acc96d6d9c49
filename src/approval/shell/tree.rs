//! All commands of a command line, wherever they stand, found with a grammar of bash.
//!
//! This is what rules that forbid are held against, so it looks into everything: substitutions,
//! loops, functions, here-documents. Whether the finding can be relied on to allow something is
//! decided elsewhere. The tree is walked without recursion, however deep it is.

use std::ops::ControlFlow;
use std::time::Instant;

use tree_sitter::{Node, ParseOptions, Parser, Tree};

use super::plain::{Simple, is_no_file};
use super::words::{Word, whole_word, word_at};

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) commands: Vec<Simple>,
    /// The files that output goes to.
    pub(super) writes: Vec<String>,
    /// Whether the grammar could not make sense of a part.
    pub(super) is_broken: bool,
}

/// `None` when there was no time to parse it.
pub(super) fn find(text: &str, most: usize, deadline: Instant) -> Option<Found> {
    let tree = parse(text, deadline)?;
    let root = tree.root_node();
    let mut found = Found { is_broken: root.has_error(), ..Found::default() };
    let mut cursor = root.walk();
    loop {
        visit(text, cursor.node(), &mut found);
        if found.commands.len() > most || Instant::now() > deadline {
            return None;
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return Some(found);
            }
        }
    }
}

fn parse(text: &str, deadline: Instant) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    let mut in_time =
        |_: &_| if Instant::now() > deadline { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let options = ParseOptions::new().progress_callback(&mut in_time);
    // The grammar's scanner reads outside of its tables when it meets other characters. To a shell
    // they are letters like any others, and the places of everything else stay the same.
    let bytes: Vec<u8> = text.bytes().map(|byte| if byte.is_ascii() { byte } else { b'x' }).collect();
    parser.parse_with_options(&mut |at, _| bytes.get(at..).unwrap_or_default(), None, Some(options))
}

fn visit(text: &str, node: Node<'_>, found: &mut Found) {
    match node.kind() {
        "command" | "declaration_command" | "unset_command" => {
            let words = words_of(text, node);
            if !words.is_empty() {
                found.commands.push(Simple { words, ..Simple::default() });
            }
        }
        "test_command" => found.commands.push(Simple { words: words_of_test(text, node), ..Simple::default() }),
        "file_redirect" => found.writes.extend(target_of(text, node)),
        _ => found.is_broken |= node.is_error() || node.is_missing(),
    }
}

fn slice<'a>(text: &'a str, node: Node<'_>) -> &'a str {
    text.get(node.byte_range()).unwrap_or_default()
}

fn words_of(text: &str, node: Node<'_>) -> Vec<Word> {
    let mut words = Vec::new();
    let mut cursor = node.walk();
    for child in node.children(&mut cursor) {
        let is_word = match child.kind() {
            // Before the name they are for the environment, after it they are arguments.
            "variable_assignment" => node.kind() == "declaration_command",
            "file_redirect" | "herestring_redirect" | "heredoc_redirect" | "subshell" | "comment" => false,
            _ => true,
        };
        // The grammar puts in what it misses.
        if is_word && child.end_byte() > child.start_byte() {
            words.push(whole_word(slice(text, child), child.start_byte()));
        }
    }
    words
}

/// `[ … ]` is a command like others, but the grammar reads it as an expression.
fn words_of_test(text: &str, node: Node<'_>) -> Vec<Word> {
    let (mut at, end) = (node.start_byte(), node.end_byte());
    let mut words = Vec::new();
    while at < end {
        let word = word_at(text.get(..end).unwrap_or_default(), at);
        at = if word.end > at { word.end } else { at + text[at..].chars().next().map_or(1, char::len_utf8) };
        if word.end > word.start {
            words.push(word);
        }
    }
    words
}

fn target_of(text: &str, node: Node<'_>) -> Option<String> {
    let mut cursor = node.walk();
    let writes =
        node.children(&mut cursor).any(|child| matches!(child.kind(), ">" | ">>" | "&>" | "&>>" | ">|" | ">&"));
    let target = node.child_by_field_name("destination")?;
    let word = whole_word(slice(text, target), target.start_byte());
    let is_descriptor = word.text == "-" || word.text.bytes().all(|byte| byte.is_ascii_digit());
    (writes && !is_descriptor && !is_no_file(&word.text)).then_some(word.text)
}
