//! A small reader of Rust source: enough to find paths, functions and test code without a parser.
//!
//! It works on a copy of the text in which comments and literals are blanked, byte for byte, so
//! that offsets and lines stay true and nothing inside a text or a comment can be mistaken for
//! code.

/// One file under inspection.
#[derive(Debug)]
pub(crate) struct Source {
    /// Relative to the repository, with forward slashes.
    pub(crate) path: String,
    pub(crate) text: String,
    /// The text with comments and literals blanked.
    pub(crate) code: String,
    /// Byte ranges of items under `#[cfg(test)]`.
    tests: Vec<std::ops::Range<usize>>,
    /// Modules in files of their own that are declared under `#[cfg(test)]`.
    pub(crate) test_modules: Vec<String>,
    /// Nothing in the file is part of the product.
    pub(crate) only_tests: bool,
}

/// A function's name, the line it starts on, and how many lines it has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) lines: usize,
}

/// One path such as `crate::llm::Cost`, without its root, and the line it stands on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NamedPath {
    pub(crate) line: usize,
    pub(crate) segments: Vec<String>,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let code = blank(text);
        let (tests, test_modules) = test_items(&code);
        let product = ["src/", "custom_methods/src/", "guard/src/"].iter().any(|folder| path.starts_with(folder));
        Self { path: path.to_owned(), text: text.to_owned(), code, tests, test_modules, only_tests: !product }
    }

    /// The 1-based line of a byte offset.
    pub(crate) fn line_of(&self, offset: usize) -> usize {
        self.code.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count() + 1
    }

    pub(crate) fn is_test(&self, offset: usize) -> bool {
        self.only_tests || self.tests.iter().any(|range| range.contains(&offset))
    }

    /// How many lines are not under `#[cfg(test)]`.
    pub(crate) fn product_lines(&self) -> usize {
        let of_tests: usize = self.tests.iter().map(|range| self.text[range.clone()].lines().count()).sum();
        self.text.lines().count() - of_tests
    }

    /// Offsets of `word` in code, as a whole word.
    pub(crate) fn words(&self, word: &str) -> Vec<usize> {
        words(&self.code, word)
    }

    /// Every path in product code that begins with `root`, with groups in braces spread out.
    pub(crate) fn paths(&self, root: &str) -> Vec<NamedPath> {
        let mut found = Vec::new();
        for at in self.words(root) {
            let before = self.code[..at].trim_end();
            if before.ends_with("::") || before.ends_with('$') || self.is_test(at) {
                continue;
            }
            let mut leaves = Vec::new();
            let mut rest = self.code[at + root.len()..].trim_start();
            if let Some(tree) = rest.strip_prefix("::") {
                rest = tree;
                read_tree(&mut rest, &[], &mut leaves);
            }
            let line = self.line_of(at);
            found.extend(leaves.into_iter().map(|segments| NamedPath { line, segments }));
        }
        found
    }

    pub(crate) fn functions(&self) -> Vec<Function> {
        let mut found = Vec::new();
        for at in self.words("fn") {
            let name = leading_identifier(self.code[at + 2..].trim_start());
            if name.is_empty() {
                continue;
            }
            let Some(open) = body_start(&self.code, at) else { continue };
            let Some(close) = closing(&self.code, open) else { continue };
            let lines = self.code[at..close].matches('\n').count() + 1;
            found.push(Function { name: name.to_owned(), line: self.line_of(at), lines });
        }
        found
    }
}

/// Comments, texts and characters become spaces; line breaks and quotes stay.
pub(crate) fn blank(text: &str) -> String {
    blank_where(text, |_| true)
}

/// Texts and characters become spaces, comments stay: where marks of unfinished work stand.
pub(crate) fn blank_literals(text: &str) -> String {
    blank_where(text, |first| first != b'/')
}

fn blank_where(text: &str, blanked: impl Fn(u8) -> bool) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let Some((from, to, next)) = skipped(text, at) else {
            at += 1;
            continue;
        };
        if blanked(bytes[at]) {
            out[from..to].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        }
        at = next;
    }
    // Whole characters were replaced or none of their bytes, except inside blanked ranges.
    String::from_utf8_lossy(&out).into_owned()
}

/// What begins at `at` and is not code: from where to where it is blanked, and where code goes on.
fn skipped(text: &str, at: usize) -> Option<(usize, usize, usize)> {
    let bytes = text.as_bytes();
    let after_quote = |(from, to): (usize, usize)| (from, to, to + 1);
    let comment = |end: usize| (at, end, end);
    match bytes[at] {
        b'/' if bytes.get(at + 1) == Some(&b'/') => Some(comment(end_of_line(bytes, at))),
        b'/' if bytes.get(at + 1) == Some(&b'*') => Some(comment(end_of_block_comment(bytes, at))),
        b'"' => Some(after_quote((at + 1, end_of_text(bytes, at + 1)))),
        b'r' if may_open_raw_text(bytes, at) => raw_text(bytes, at).map(after_quote),
        b'\'' => end_of_character(text, at).map(|end| after_quote((at + 1, end))),
        _ => None,
    }
}

fn end_of_line(bytes: &[u8], from: usize) -> usize {
    bytes[from..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |length| from + length)
}

fn end_of_block_comment(bytes: &[u8], from: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = from;
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => {
                depth += 1;
                at += 2;
            }
            b"*/" => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

fn end_of_text(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at.min(bytes.len())
}

/// The inside of a raw text whose `r` stands at `at`.
fn raw_text(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let marks = bytes[at + 1..].iter().take_while(|byte| **byte == b'#').count();
    let from = at + 1 + marks + 1;
    if bytes.get(from - 1) != Some(&b'"') {
        return None;
    }
    let end: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', marks)).collect();
    let length = bytes[from..].windows(end.len()).position(|window| window == end);
    Some((from, length.map_or(bytes.len(), |length| from + length)))
}

/// The end of a character literal that opens at `at`; `None` for a lifetime.
fn end_of_character(text: &str, at: usize) -> Option<usize> {
    let inside = &text[at + 1..];
    let first = inside.chars().next()?;
    if first == '\\' {
        let escaped = inside.chars().nth(1)?.len_utf8();
        return inside[1 + escaped..].find('\'').map(|length| at + 1 + 1 + escaped + length);
    }
    let end = first.len_utf8();
    (inside[end..].starts_with('\'') && first != '\'').then_some(at + 1 + end)
}

/// Not the last letter of a name, except of the prefixes `br` and `cr`.
fn may_open_raw_text(bytes: &[u8], at: usize) -> bool {
    let prefixed = at > 0 && matches!(bytes[at - 1], b'b' | b'c');
    let name_before = if prefixed { at - 1 } else { at };
    name_before == 0 || !is_identifier(char::from(bytes[name_before - 1]))
}

fn is_identifier(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn leading_identifier(text: &str) -> &str {
    &text[..text.find(|c| !is_identifier(c)).unwrap_or(text.len())]
}

/// Offsets of `word` in `text`, where it is not part of a longer word.
pub(crate) fn words(text: &str, word: &str) -> Vec<usize> {
    text.match_indices(word)
        .map(|(at, _)| at)
        .filter(|at| !text[..*at].chars().next_back().is_some_and(is_identifier))
        .filter(|at| !text[at + word.len()..].chars().next().is_some_and(is_identifier))
        .collect()
}

/// Reads one branch of a path or of a `use` tree and adds its leaves.
fn read_tree(rest: &mut &str, prefix: &[String], leaves: &mut Vec<Vec<String>>) {
    *rest = rest.trim_start();
    if let Some(inside) = rest.strip_prefix('{') {
        *rest = inside;
        loop {
            *rest = rest.trim_start();
            if let Some(after) = rest.strip_prefix('}') {
                *rest = after;
                return;
            }
            if let Some(after) = rest.strip_prefix(',') {
                *rest = after;
                continue;
            }
            let before = rest.len();
            read_tree(rest, prefix, leaves);
            if rest.len() == before {
                return;
            }
        }
    }
    let mut path = prefix.to_vec();
    if let Some(after) = rest.strip_prefix('*') {
        *rest = after;
        path.push("*".to_owned());
        return leaves.push(path);
    }
    let name = leading_identifier(rest);
    if name.is_empty() {
        return leaves.push(path);
    }
    *rest = &rest[name.len()..];
    path.push(name.to_owned());
    let after = rest.trim_start();
    if let Some(deeper) = after.strip_prefix("::")
        && !deeper.trim_start().starts_with('<')
    {
        *rest = deeper;
        return read_tree(rest, &path, leaves);
    }
    if let Some(renamed) = after.strip_prefix("as ") {
        *rest = &renamed.trim_start()[leading_identifier(renamed.trim_start()).len()..];
    }
    leaves.push(path);
}

/// Where the body of the function at `at` opens; `None` for a declaration.
fn body_start(code: &str, at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (offset, character) in code[at..].char_indices() {
        match character {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            '{' if depth == 0 => return Some(at + offset),
            ';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// One past the bracket that closes the one at `open`.
fn closing(code: &str, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (offset, character) in code[open..].char_indices() {
        match character {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(open + offset + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// The items under `#[cfg(test)]`, attributes included, and the test modules in other files.
fn test_items(code: &str) -> (Vec<std::ops::Range<usize>>, Vec<String>) {
    let mut ranges: Vec<std::ops::Range<usize>> = Vec::new();
    let mut modules = Vec::new();
    for (at, _) in code.match_indices("#[cfg(") {
        if ranges.iter().any(|range| range.contains(&at)) {
            continue;
        }
        let Some(mut end) = closing(code, at + 1) else { continue };
        let condition = &code[at..end];
        if words(condition, "test").is_empty() || condition.contains("not(test") {
            continue;
        }
        while code[end..].trim_start().starts_with("#[") {
            let open = end + code[end..].find('[').unwrap_or_default();
            let Some(after) = closing(code, open) else { break };
            end = after;
        }
        let item = code[end..].trim_start();
        let (semicolon, brace) = (item.find(';'), item.find('{'));
        let start = code.len() - item.len();
        let is_use = item.trim_start_matches("pub ").starts_with("use ");
        let stop = match (semicolon, brace) {
            (Some(semicolon), Some(brace)) if semicolon < brace || is_use => start + semicolon + 1,
            (_, Some(brace)) => closing(code, start + brace).unwrap_or(code.len()),
            (Some(semicolon), None) => start + semicolon + 1,
            (None, None) => code.len(),
        };
        if code[start..stop].ends_with(';')
            && let Some(name) = code[start..stop].trim_end_matches(';').split("mod ").nth(1)
        {
            modules.push(name.trim().to_owned());
        }
        ranges.push(at..stop);
    }
    (ranges, modules)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source::new("src/a.rs", text)
    }

    fn leaves(text: &str, root: &str) -> Vec<String> {
        source(text).paths(root).into_iter().map(|path| path.segments.join("::")).collect()
    }

    #[test]
    fn comments_and_literals_are_blanked_in_place() {
        for (text, expected) in [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            (r#"f("x\"y", z)"#, r#"f("    ", z)"#),
            (r##"f(r#"x"y"#, z)"##, r##"f(r#"   "#, z)"##),
            (r#"f(br"x", z)"#, r#"f(br" ", z)"#),
            (r#"f("", "x")"#, r#"f("", " ")"#),
            ("f('x', '\\'', '\\u{1}', 'a)", "f(' ', '  ', '     ', 'a)"),
            ("fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)"),
            ("var\"x\"", "var\" \""),
            ("'\"' y", "' ' y"),
        ] {
            assert_eq!(blank(text), expected, "{text}");
        }
        assert_eq!(blank_literals("a // \"b\"\n\"c\""), "a // \"b\"\n\" \"");
        assert_eq!(blank("\"é\nü\" x").len(), "\"é\nü\" x".len());
    }

    #[test]
    fn paths_are_found_in_uses_groups_and_expressions() {
        assert_eq!(leaves("use crate::a::{self, b::C, d as e, F};", "crate"), ["a::self", "a::b::C", "a::d", "a::F"]);
        assert_eq!(leaves("let x = crate::a::B { c: crate::d::e::<F>() };", "crate"), ["a::B", "d::e"]);
        assert_eq!(leaves("use crate::{a::B, c};", "crate"), ["a::B", "c"]);
        assert_eq!(leaves("use crate::a::*;", "crate"), ["a::*"]);
        assert_eq!(leaves("use super::super::a::B;", "super"), ["super::a::B"]);
        assert!(leaves("// crate::a\nlet x = \"crate::b\"; $crate::c; my_crate::d; x::crate_::e", "crate").is_empty());
        assert!(leaves("#[cfg(test)]\nmod tests { use crate::a; }", "crate").is_empty());
        assert_eq!(source("\n\nuse crate::a;").paths("crate")[0].line, 3);
    }

    #[test]
    fn functions_are_measured_from_their_name_to_their_brace() {
        let text = "trait T { fn declared(&self); }\nfn one() {}\nfn three(\n    x: [u8; 3],\n) -> fn() { if x {}\n}\n";
        let found: Vec<_> = source(text).functions().into_iter().map(|f| (f.name, f.line, f.lines)).collect();
        assert_eq!(found, [("one".to_owned(), 2, 1), ("three".to_owned(), 3, 4)]);
    }

    #[test]
    fn test_items_end_where_they_end() {
        let text = "fn a() {}\n#[cfg(test)]\n#[cfg(unix)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
        let file = source(text);
        assert_eq!(file.product_lines(), 2);
        assert!(file.is_test(file.words("b")[0]) && !file.is_test(file.words("c")[0]));
        let file = source("#[cfg(test)]\nmod tests;\n#[cfg(test)]\nuse a::{b};\n#[cfg(not(test))]\nfn d() {}\n");
        assert_eq!(file.test_modules, ["tests"]);
        assert!(file.is_test(file.words("b")[0]) && !file.is_test(file.words("d")[0]));
        assert!(Source::new("tests/a.rs", "fn a() {}").is_test(0));
    }
}
