//! Web pages as text that a model can read.

mod simplify;

use std::rc::Rc;
use std::time::Duration;

use encoding_rs::Encoding;
use htmd::{HtmlToMarkdown, Node};

use crate::base::task;
use crate::base::text::prefix;
use crate::http::{Client, Document, GetLimits};
use simplify::simplify;

const LIMITS: GetLimits = GetLimits { bytes: 2 * 1024 * 1024, time: Duration::from_secs(20), redirects: 5 };
/// Longer texts are cut; whoever shows one has a smaller limit.
const MAX_TEXT: usize = 512 * 1024;
/// What lies deeper is left out: the conversion takes a part of the stack for each level.
const MAX_DEPTH: usize = 256;
/// A page that is shorter without its surroundings is read with them.
const LEAST_TEXT: usize = 200;
/// Where a charset is announced in a page.
const HEAD: usize = 1_024;

/// What is around the text of a page.
const SURROUNDINGS: [&str; 3] = ["aside", "footer", "nav"];

/// A page that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebText {
    /// Where it was found in the end.
    pub url: String,
    pub title: Option<String>,
    /// Markdown where the page was HTML.
    pub text: String,
    /// Whether there is more than could be read.
    pub is_cut: bool,
}

/// Downloads a page and makes a text of it. The error is a sentence without the address.
pub async fn read(http: &Client, url: &str) -> Result<WebText, String> {
    let document = http.get(url, LIMITS).await.map_err(|error| error.to_string())?;
    // Large pages take a while to convert.
    let conversion = task::blocking(move || convert(document));
    match tokio::time::timeout(LIMITS.time, conversion).await {
        Ok(Ok(converted)) => converted,
        Ok(Err(_)) => Err("the page could not be converted to text".to_owned()),
        Err(_) => Err("the page took too long to be converted to text".to_owned()),
    }
}

fn convert(document: Document) -> Result<WebText, String> {
    let Document { url, media_type, charset, body, is_cut } = document;
    let form = form(&media_type, &body)?;
    let text = decode(&body, charset.as_deref(), form, is_cut);
    let (title, text) = match form {
        Form::Html => readable(&text),
        Form::Plain => (None, text),
    };
    let shown = prefix(text.trim(), MAX_TEXT);
    if shown.is_empty() {
        return Err("the page has no text".to_owned());
    }
    let is_cut = is_cut || shown.len() < text.trim().len();
    Ok(WebText { url, title, text: shown.to_owned(), is_cut })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Html,
    Plain,
}

fn form(media_type: &str, body: &[u8]) -> Result<Form, String> {
    let is_binary = || body.contains(&0) && !body.starts_with(b"\xff\xfe") && !body.starts_with(b"\xfe\xff");
    match media_type {
        "text/html" | "application/xhtml+xml" => return Ok(Form::Html),
        "" | "application/octet-stream" | "binary/octet-stream" if !is_binary() => {
            let start = String::from_utf8_lossy(&body[..body.len().min(HEAD)]).trim_start().to_ascii_lowercase();
            let is_html = start.starts_with("<!doctype html") || start.starts_with("<html");
            return Ok(if is_html { Form::Html } else { Form::Plain });
        }
        _ => {}
    }
    let kind = media_type.split_once('/').map_or("", |(_, kind)| kind);
    let known = ["json", "xml", "yaml", "toml", "javascript", "x-sh", "sql", "graphql"];
    let is_text = media_type.starts_with("text/")
        || known
            .iter()
            .any(|known| kind == *known || kind.ends_with(&format!("+{known}")) || kind == format!("x-{known}"))
        || kind == "x-ndjson";
    match media_type {
        _ if is_text && !is_binary() => Ok(Form::Plain),
        "application/pdf" => Err("it is a PDF, which cannot be read as text".to_owned()),
        "" => Err("it is a binary file".to_owned()),
        other => Err(format!("it is of type {other}, which cannot be read as text")),
    }
}

/// By the mark at the beginning, by what the server said, by what the page says, or as UTF-8 unless
/// it is none.
fn decode(body: &[u8], charset: Option<&str>, form: Form, is_cut: bool) -> String {
    let head = String::from_utf8_lossy(&body[..body.len().min(HEAD)]).to_ascii_lowercase();
    let announced = || {
        let (_, after) = head.split_once("charset").filter(|_| form == Form::Html)?;
        let value = after.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
        let end = value.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_')).unwrap_or(value.len());
        Encoding::for_label(&value.as_bytes()[..end])
    };
    let named = charset.and_then(|charset| Encoding::for_label(charset.as_bytes())).or_else(announced);
    // A page that could be read so far as to find its charset is not in UTF-16.
    let fallback = if is_utf8(body, is_cut) { encoding_rs::UTF_8 } else { encoding_rs::WINDOWS_1252 };
    named.unwrap_or(fallback).decode(body).0.into_owned()
}

/// What was cut may end within a character.
fn is_utf8(body: &[u8], is_cut: bool) -> bool {
    match std::str::from_utf8(body) {
        Ok(_) => true,
        Err(error) => is_cut && error.error_len().is_none(),
    }
}

/// The title and the text of a page.
fn readable(html: &str) -> (Option<String>, String) {
    let page = simplify(html);
    let whole = || markdown(&page.html, &[]);
    let inner = markdown(&page.html, &SURROUNDINGS);
    let text = if inner.trim().len() < LEAST_TEXT { whole() } else { inner };
    // The conversion resolves the entities.
    let title = page.title.as_deref().map(|title| markdown(&title.replace('<', "&lt;"), &[]));
    (title.map(|title| title.replace('\\', "")), squeezed(&text))
}

fn markdown(html: &str, without: &[&str]) -> String {
    let builder = HtmlToMarkdown::builder();
    let converter = if without.is_empty() { builder } else { builder.skip_tags(without.to_vec()) }.build();
    let Ok(tree) = converter.html_to_tree(html) else { return String::new() };
    prune(&tree);
    converter.tree_to_markdown(&tree)
}

fn prune(tree: &Rc<Node>) {
    let mut open = vec![(Rc::clone(tree), 0)];
    while let Some((node, depth)) = open.pop() {
        if depth >= MAX_DEPTH {
            node.children.borrow_mut().clear();
        }
        open.extend(node.children.borrow().iter().map(|child| (Rc::clone(child), depth + 1)));
    }
}

/// Without white space at the ends of lines and with at most one blank line in a row.
fn squeezed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut blank = 0;
    for line in text.lines().map(str::trim_end) {
        blank = if line.is_empty() { blank + 1 } else { 0 };
        if blank < 2 {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests;
