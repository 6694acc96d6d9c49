//! From the protocol's words to the engine's. Pure.

use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1::{ContentBlock, EmbeddedResourceResource, ResourceLink};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::failure::Failure;
use crate::engine::Context;
use crate::workspace::path_from_uri;

/// The params of a method; absent ones are an empty object.
pub(super) fn params<T: DeserializeOwned>(params: Option<Value>) -> Result<T, Failure> {
    let params = params.filter(|params| !params.is_null()).unwrap_or_else(|| json!({}));
    serde_path_to_error::deserialize(params).map_err(|error| {
        let path = error.path().to_string();
        let problem = error.into_inner();
        Failure::params(if path == "." { problem.to_string() } else { format!("{path}: {problem}") })
    })
}

/// A field that must be a text.
pub(super) fn text_field(params: &Value, name: &str) -> Result<String, Failure> {
    match params.get(name) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(Failure::params(format!("{name}: a text is expected"))),
        None => Err(Failure::params(format!("{name} is missing"))),
    }
}

/// A field that must be a list; absent is empty where it may be.
pub(super) fn list_field(params: &Value, name: &str, required: bool) -> Result<Vec<Value>, Failure> {
    match params.get(name) {
        Some(Value::Array(items)) => Ok(items.clone()),
        None | Some(Value::Null) if !required => Ok(Vec::new()),
        Some(_) => Err(Failure::params(format!("{name}: a list is expected"))),
        None => Err(Failure::params(format!("{name} is missing"))),
    }
}

/// A path that must be absolute.
pub(super) fn folder(text: &str, name: &str) -> Result<PathBuf, Failure> {
    let path = PathBuf::from(text);
    if path.is_absolute() && !text.contains('\0') {
        return Ok(path);
    }
    Err(Failure::params(format!("{name}: {text:?} is no absolute path")))
}

/// What the user wrote, and what they point at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) text: String,
    pub(super) contexts: Vec<Context>,
}

/// Blocks are read one by one, so that one of a kind that is not known yet loses itself and nothing
/// else.
pub(super) fn said(blocks: Vec<Value>) -> Result<Said, Failure> {
    let mut said = Said::default();
    for (at, block) in blocks.into_iter().enumerate() {
        let kind = block.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        match serde_json::from_value::<ContentBlock>(block) {
            Ok(block) => said.add(block),
            Err(_) if !kind.is_empty() && !KNOWN_BLOCKS.contains(&kind.as_str()) => {
                said.contexts.push(Context::Unsupported { kind });
            }
            Err(error) => return Err(Failure::params(format!("prompt[{at}]: {error}"))),
        }
    }
    if said.text.trim().is_empty() && said.contexts.is_empty() {
        return Err(Failure::params("prompt is empty"));
    }
    Ok(said)
}

const KNOWN_BLOCKS: [&str; 5] = ["text", "image", "audio", "resource_link", "resource"];

impl Said {
    fn add(&mut self, block: ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.text.push_str(&text.text),
            ContentBlock::Image(image) => {
                self.contexts.push(Context::Image { media_type: image.mime_type, base64: image.data });
            }
            ContentBlock::Audio(_) => self.contexts.push(Context::Unsupported { kind: "audio".to_owned() }),
            ContentBlock::ResourceLink(link) => self.link(link),
            ContentBlock::Resource(embedded) => match embedded.resource {
                EmbeddedResourceResource::TextResourceContents(text) => {
                    let label = self.mention(&text.uri);
                    self.contexts.push(Context::Text { label, content: text.text });
                }
                EmbeddedResourceResource::BlobResourceContents(blob) => {
                    let label = self.mention(&blob.uri);
                    self.contexts.push(of_blob(label, blob.mime_type.unwrap_or_default(), blob.blob));
                }
                _ => self.contexts.push(Context::Unsupported { kind: "resource".to_owned() }),
            },
            _ => self.contexts.push(Context::Unsupported { kind: "content".to_owned() }),
        }
    }

    /// A link stands in the text where the user put it; what it leads to is attached.
    fn link(&mut self, link: ResourceLink) {
        let label = self.mention(&link.uri);
        let context = match place_of(&link.uri) {
            Some((path, _)) if is_folder(&link, &path) => Context::Directory { path: shown(&path) },
            Some((path, lines)) => Context::File { path: shown(&path), lines },
            None if link.uri.starts_with("http://") || link.uri.starts_with("https://") => {
                Context::Web { url: link.uri }
            }
            // The address of something that only the client knows; its name is all there is to say.
            None => Context::Text { label, content: link.description.unwrap_or(link.name) },
        };
        self.contexts.push(context);
    }

    fn mention(&mut self, uri: &str) -> String {
        let label = match place_of(uri) {
            Some((path, None)) => shown(&path),
            Some((path, Some((from, to)))) => format!("{}:{from}-{to}", shown(&path)),
            None => uri.to_owned(),
        };
        self.text.push('`');
        self.text.push_str(&label);
        self.text.push('`');
        label
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn is_folder(link: &ResourceLink, path: &Path) -> bool {
    link.mime_type.as_deref() == Some("inode/directory")
        || link.uri.split('#').next().is_some_and(|uri| uri.ends_with('/'))
        || path.parent().is_none()
}

/// The file that a URI means, and the lines in it: `#L3-9`, `#L3:9`, `#L3-L9` or `#L3`.
fn place_of(uri: &str) -> Option<(PathBuf, Option<(u64, u64)>)> {
    if !uri.starts_with("file:") && !uri.starts_with('/') {
        return None;
    }
    let (plain, lines) = match uri.rsplit_once('#') {
        Some((plain, fragment)) => match lines_of(fragment) {
            Some(lines) => (plain, Some(lines)),
            None => (uri, None),
        },
        None => (uri, None),
    };
    Some((path_from_uri(plain).ok()?, lines))
}

fn lines_of(fragment: &str) -> Option<(u64, u64)> {
    let number = |text: &str| text.trim_start_matches(['L', 'l']).parse::<u64>().ok().filter(|line| *line > 0);
    let fragment = fragment.strip_prefix(['L', 'l'])?;
    match fragment.split_once(['-', ':']) {
        Some((from, to)) => Some((number(from)?, number(to)?)).filter(|(from, to)| from <= to),
        None => number(fragment).map(|line| (line, line)),
    }
}

fn of_blob(label: String, media_type: String, base64: String) -> Context {
    if media_type.starts_with("image/") {
        return Context::Image { media_type, base64 };
    }
    let text = STANDARD.decode(base64.as_bytes()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    match text {
        Some(content) if !content.contains('\0') => Context::Text { label, content },
        _ if media_type.is_empty() => Context::Unsupported { kind: label },
        _ => Context::Unsupported { kind: format!("{media_type} ({label})") },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(blocks: Value) -> Said {
        said(blocks.as_array().unwrap().clone()).unwrap()
    }

    #[test]
    fn links_stand_in_the_text_and_are_attached() {
        let found = read(json!([
            {"type": "text", "text": "look at "},
            {"type": "resource_link", "uri": "file:///a%20b/c.rs#L3-9", "name": "c.rs"},
            {"type": "text", "text": " and "},
            {"type": "resource_link", "uri": "file:///a/", "name": "a"},
            {"type": "resource_link", "uri": "https://x.org/p", "name": "p"},
            {"type": "resource_link", "uri": "zed:///thread/1", "name": "Thread 1"},
        ]));
        assert_eq!(found.text, "look at `/a b/c.rs:3-9` and `/a``https://x.org/p``zed:///thread/1`");
        assert_eq!(
            found.contexts,
            [
                Context::File { path: "/a b/c.rs".into(), lines: Some((3, 9)) },
                Context::Directory { path: "/a".into() },
                Context::Web { url: "https://x.org/p".into() },
                Context::Text { label: "zed:///thread/1".into(), content: "Thread 1".into() },
            ]
        );
    }

    #[test]
    fn embedded_resources_are_texts_images_or_named() {
        let found = read(json!([
            {"type": "text", "text": "what is "},
            {"type": "resource", "resource": {"uri": "file:///x.py", "text": "print()", "mimeType": "text/x-python"}},
            {"type": "resource", "resource": {"uri": "file:///x.png", "blob": "iVBO", "mimeType": "image/png"}},
            {"type": "resource", "resource": {"uri": "file:///x.txt", "blob": "aGk="}},
            {"type": "resource", "resource": {"uri": "file:///x.bin", "blob": "AAE=", "mimeType": "application/x-bin"}},
            {"type": "image", "data": "AAAA", "mimeType": "image/jpeg"},
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
            {"type": "hologram", "data": 1},
        ]));
        assert!(found.text.starts_with("what is `/x.py`"));
        assert_eq!(
            found.contexts,
            [
                Context::Text { label: "/x.py".into(), content: "print()".into() },
                Context::Image { media_type: "image/png".into(), base64: "iVBO".into() },
                Context::Text { label: "/x.txt".into(), content: "hi".into() },
                Context::Unsupported { kind: "application/x-bin (/x.bin)".into() },
                Context::Image { media_type: "image/jpeg".into(), base64: "AAAA".into() },
                Context::Unsupported { kind: "audio".into() },
                Context::Unsupported { kind: "hologram".into() },
            ]
        );
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let problem = |blocks: Value| said(blocks.as_array().unwrap().clone()).unwrap_err().message;
        assert_eq!(problem(json!([])), "prompt is empty");
        assert_eq!(problem(json!([{"type": "text", "text": " "}])), "prompt is empty");
        assert!(problem(json!([{"type": "text"}])).starts_with("prompt[0]: "));
        assert!(problem(json!([{"type": "text", "text": "a"}, 7])).starts_with("prompt[1]: "));
    }

    #[test]
    fn lines_are_read_in_every_form() {
        for (fragment, lines) in [
            ("L3", Some((3, 3))),
            ("L3-9", Some((3, 9))),
            ("L3:9", Some((3, 9))),
            ("L3-L9", Some((3, 9))),
            ("l3", Some((3, 3))),
            ("L9-3", None),
            ("L0", None),
            ("3", None),
            ("section", None),
            ("L", None),
        ] {
            assert_eq!(lines_of(fragment), lines, "{fragment}");
        }
        assert_eq!(place_of("file:///a#section"), Some((PathBuf::from("/a#section"), None)));
        assert_eq!(place_of("relative"), None);
    }
}
