//! HTML cut down to what a text needs, before a parser sees it.
//!
//! Strangers write pages, and some markup costs a parser far more than its length: thousands of
//! nested elements, or formatting that is opened again in every paragraph. So only known elements
//! are passed on, nested to a bounded depth, with formatting closed before a block begins or ends.
//! One pass over the text, whatever is in it.

use std::collections::HashMap;

/// Deeper elements are left out; their text is not. Half of what is converted later, since lists and
/// tables have items between them.
const MAX_DEPTH: usize = 120;
/// More attributes than these are not looked at.
const MAX_ATTRIBUTES: usize = 64;
const MAX_VALUE: usize = 2_048;

/// What is left of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Simplified {
    pub(super) html: String,
    pub(super) title: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    /// Has an end and may contain itself.
    Block,
    /// Ends by itself when its next one begins, so it is not counted.
    Item,
    /// Lives inside a line.
    Formatting,
    /// Has no content.
    Void,
    /// Its content is no text for people.
    Hidden,
    /// Only its content counts.
    Unknown,
}

fn element(name: &str) -> Element {
    match name {
        "address" | "article" | "aside" | "blockquote" | "center" | "details" | "div" | "dl" | "fieldset"
        | "figure" | "footer" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "header" | "main" | "nav" | "ol" | "pre"
        | "section" | "summary" | "table" | "ul" => Element::Block,
        "caption" | "dd" | "dt" | "figcaption" | "li" | "p" | "tbody" | "td" | "tfoot" | "th" | "thead" | "tr" => {
            Element::Item
        }
        "a" | "b" | "code" | "del" | "em" | "i" | "kbd" | "s" | "strike" | "strong" | "tt" => Element::Formatting,
        "br" | "hr" | "img" => Element::Void,
        "audio" | "canvas" | "iframe" | "math" | "noembed" | "noframes" | "noscript" | "object" | "script"
        | "select" | "style" | "svg" | "template" | "textarea" | "title" | "video" | "xmp" => Element::Hidden,
        _ => Element::Unknown,
    }
}

pub(super) fn simplify(html: &str) -> Simplified {
    let mut writer = Writer::default();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        writer.text(&rest[..at]);
        rest = writer.markup(&rest[at..]);
    }
    writer.text(rest);
    Simplified { html: writer.out, title: writer.title }
}

#[derive(Default)]
struct Writer {
    out: String,
    title: Option<String>,
    /// The counted elements that are open.
    open: Vec<String>,
    /// Those that were too deep, so that their ends do not end others.
    too_deep: HashMap<String, usize>,
    /// Elements of which no end follows any more.
    endless: Vec<String>,
}

impl Writer {
    fn text(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Takes the markup that `rest` begins with and returns what follows.
    fn markup<'a>(&mut self, rest: &'a str) -> &'a str {
        if let Some(comment) = rest.strip_prefix("<!--") {
            return comment.split_once("-->").map_or("", |(_, after)| after);
        }
        let mut letters = rest.chars().skip(1);
        match (letters.next(), letters.next()) {
            (Some('!' | '?'), _) => rest.split_once('>').map_or("", |(_, after)| after),
            (Some('/'), Some(letter)) if letter.is_ascii_alphabetic() => {
                let (name, after) = tag_name(&rest[2..]);
                self.end(&name);
                after.split_once('>').map_or("", |(_, after)| after)
            }
            (Some(letter), _) if letter.is_ascii_alphabetic() => {
                let (name, after) = tag_name(&rest[1..]);
                let (attributes, after) = attributes(after);
                self.start(name, &attributes, after)
            }
            _ => {
                self.out.push_str("&lt;");
                &rest[1..]
            }
        }
    }

    fn start<'a>(&mut self, name: String, attributes: &[(String, &str)], after: &'a str) -> &'a str {
        match element(&name) {
            Element::Hidden => return self.hidden(&name, after),
            Element::Unknown => self.out.push(' '),
            Element::Void => self.void(&name, attributes),
            Element::Item => {
                self.end_formatting();
                self.tag(&name, attributes);
            }
            Element::Block => {
                self.end_formatting();
                self.nest(name, attributes);
            }
            Element::Formatting => self.nest(name, attributes),
        }
        after
    }

    fn nest(&mut self, name: String, attributes: &[(String, &str)]) {
        if self.open.len() < MAX_DEPTH {
            self.tag(&name, attributes);
            self.open.push(name);
        } else {
            self.out.push(' ');
            *self.too_deep.entry(name).or_default() += 1;
        }
    }

    fn end(&mut self, name: &str) {
        match element(name) {
            Element::Block | Element::Formatting => {
                if let Some(deep) = self.too_deep.get_mut(name).filter(|deep| **deep > 0) {
                    *deep -= 1;
                    return;
                }
                let is_formatting = |open: &String| element(open) == Element::Formatting;
                // Formatting does not reach over the block that it stands in.
                let reach = match element(name) {
                    Element::Formatting => self.open.iter().rev().take_while(|open| is_formatting(open)).count(),
                    _ => self.open.len(),
                };
                let found = self.open.iter().rev().take(reach).position(|open| open == name);
                for _ in 0..found.map_or(0, |above| above + 1) {
                    self.end_last();
                }
            }
            Element::Item => {
                self.end_formatting();
                self.out.push_str(&format!("</{name}>"));
            }
            Element::Void | Element::Hidden | Element::Unknown => {}
        }
    }

    fn end_formatting(&mut self) {
        while self.open.last().is_some_and(|open| element(open) == Element::Formatting) {
            self.end_last();
        }
    }

    fn end_last(&mut self) {
        if let Some(name) = self.open.pop() {
            self.out.push_str(&format!("</{name}>"));
        }
    }

    /// Passes over everything up to the end of the element.
    fn hidden<'a>(&mut self, name: &str, after: &'a str) -> &'a str {
        let end = if self.endless.iter().any(|endless| endless == name) { None } else { find_end(after, name) };
        let Some(end) = end else {
            self.endless.push(name.to_owned());
            // Nothing is shown after a script that does not end; others are closed by the parser.
            return if matches!(name, "script" | "style") { "" } else { after };
        };
        if name == "title" && self.title.is_none() {
            let title = after[..end].split_whitespace().collect::<Vec<_>>().join(" ");
            self.title = Some(title).filter(|title| !title.is_empty());
        }
        after[end..].split_once('>').map_or("", |(_, after)| after)
    }

    fn void(&mut self, name: &str, attributes: &[(String, &str)]) {
        let alt = attributes.iter().any(|(key, value)| key == "alt" && !value.trim().is_empty());
        if name != "img" || alt {
            self.tag(name, attributes);
        }
    }

    fn tag(&mut self, name: &str, attributes: &[(String, &str)]) {
        let kept: &[&str] = match name {
            "a" => &["href"],
            "img" => &["src", "alt"],
            "pre" | "code" => &["class"],
            "ol" => &["start"],
            _ => &[],
        };
        self.out.push('<');
        self.out.push_str(name);
        for (key, value) in attributes.iter().filter(|(key, _)| kept.contains(&key.as_str())) {
            let is_inline_data = value.trim_start().starts_with("data:");
            if value.len() <= MAX_VALUE && !is_inline_data {
                self.out.push_str(&format!(" {key}=\"{}\"", value.replace('"', "&quot;")));
            }
        }
        self.out.push('>');
    }
}

/// The name in lower case, and what follows it.
fn tag_name(text: &str) -> (String, &str) {
    let end = text.find(|c: char| c.is_whitespace() || matches!(c, '/' | '>')).unwrap_or(text.len());
    // No known name is long.
    (text[..end].chars().take(32).collect::<String>().to_ascii_lowercase(), &text[end..])
}

/// The attributes, and what follows the tag.
fn attributes(mut rest: &str) -> (Vec<(String, &str)>, &str) {
    let mut found = Vec::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '/');
        if let Some(after) = rest.strip_prefix('>') {
            return (found, after);
        }
        if rest.is_empty() {
            return (found, rest);
        }
        let is_end = |c: char| c.is_whitespace() || matches!(c, '=' | '/' | '>');
        // A sign of equality at the beginning belongs to the name.
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let end = rest[first..].find(is_end).map_or(rest.len(), |at| first + at);
        let (name, after) = rest.split_at(end);
        rest = after.trim_start();
        let mut value = "";
        if let Some(after) = rest.strip_prefix('=') {
            rest = after.trim_start();
            let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
            (value, rest) = match quote {
                Some(quote) => rest[1..].split_once(quote).unwrap_or((&rest[1..], "")),
                None => {
                    let end = rest.find(|c: char| c.is_whitespace() || c == '>').unwrap_or(rest.len());
                    rest.split_at(end)
                }
            };
        }
        if found.len() < MAX_ATTRIBUTES && name.len() <= 32 {
            found.push((name.to_ascii_lowercase(), value));
        }
    }
}

/// Where the end tag of `name` begins.
fn find_end(text: &str, name: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = text[from..].find("</") {
        let start = from + at;
        let rest = &text.as_bytes()[start + 2..];
        let after = rest.get(name.len()).copied().unwrap_or(b'>');
        let is_name = rest.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()));
        if is_name && (after.is_ascii_whitespace() || matches!(after, b'/' | b'>')) {
            return Some(start);
        }
        from = start + 2;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_text_needs_is_kept() {
        for (html, expected) in [
            ("plain", "plain"),
            ("a < b && c <3", "a &lt; b && c &lt;3"),
            ("<P CLASS=x>hi</P >", "<p>hi</p>"),
            ("<a href='/x' onclick=\"evil()\" title=t>y</a>", "<a href=\"/x\">y</a>"),
            ("<a href=/x/y>z</a>", "<a href=\"/x/y\">z</a>"),
            ("<a href='say \"x\"'>z</a>", "<a href=\"say &quot;x&quot;\">z</a>"),
            ("<img src=a.png><img src=b.png alt='B'>", "<img src=\"b.png\" alt=\"B\">"),
            ("<img src='data:image/png;base64,AA' alt=x>", "<img alt=\"x\">"),
            ("<pre class=language-rust>x</pre>", "<pre class=\"language-rust\">x</pre>"),
            ("a<!-- <p> -->b<!doctype html>c<?php x ?>d", "abcd"),
            ("a<!-- never ends <p>b", "a"),
            ("a<script>if (a</b) '</p>'</script >b", "ab"),
            ("a<style>x", "a"),
            ("a<svg><path/></svg>b<svg>c", "abc"),
            ("<custom-thing>a</custom-thing>b", " ab"),
            ("<br/><hr>", "<br><hr>"),
            ("</b></div>x", "x"),
            ("<p", "<p>"),
            ("<a href=\"x", "<a href=\"x\">"),
            ("a<", "a&lt;"),
            ("<=x>", "&lt;=x>"),
            ("<p =x =y>z", "<p>z"),
        ] {
            assert_eq!(simplify(html).html, expected, "{html}");
        }
    }

    #[test]
    fn formatting_ends_where_its_block_does() {
        for (html, expected) in [
            ("<b>x<p>y", "<b>x</b><p>y"),
            ("<div><i>x</div>y</i>", "<div><i>x</i></div>y"),
            ("<b><i>x</b>y</i>", "<b><i>x</i></b>y"),
            ("<div><b></div>", "<div><b></b></div>"),
            ("<li><a href=1>x<li>y", "<li><a href=\"1\">x</a><li>y"),
        ] {
            assert_eq!(simplify(html).html, expected, "{html}");
        }
    }

    #[test]
    fn depth_is_bounded_and_no_text_is_lost() {
        let deep = format!("{}text{}after", "<div>".repeat(1_000), "</div>".repeat(1_000));
        let html = simplify(&deep).html;
        assert_eq!(html.matches("<div>").count(), MAX_DEPTH);
        assert_eq!(html.matches("</div>").count(), MAX_DEPTH);
        assert!(html.contains("text") && html.ends_with("</div>after"), "{html}");
    }

    #[test]
    fn the_title_is_kept_apart() {
        let simplified = simplify("<head><title>\n A &amp; B </title><title>no</title></head><body>x");
        assert_eq!(simplified.title.as_deref(), Some("A &amp; B"));
        assert_eq!(simplified.html.trim(), "x");
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic_or_nest_too_deep(html in "(<[/!]?[a-zA-Z!/= \"'é-]{0,8}>?|[ -~é]{0,3}){0,80}") {
            let html = simplify(&html).html;
            let again = simplify(&html).html;
            proptest::prop_assert!(again.len() <= 2 * html.len() + 16);
        }
    }
}
