//! What servers give back, in the words of tools: text and images for the model, and the name of
//! everything else.

use rmcp::model::{CallToolResult, ContentBlock, Resource, ResourceContents};
use serde_json::Value;

use crate::base::text::{one_line, prefix};
use crate::llm::Image;
use crate::tool::{Content, ToolOutput};

/// What models take.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// A larger image is refused by every model.
const MOST_IMAGE_BYTES: usize = 20 * 1024 * 1024;
const SHOWN_NAME: usize = 200;

/// The outcome of a call.
pub(super) fn output(result: CallToolResult, sees_images: bool) -> ToolOutput {
    let mut contents: Vec<Content> = result.content.into_iter().flat_map(|block| content(block, sees_images)).collect();
    if let Some(structured) = result.structured_content {
        add_structured(structured, &mut contents);
    }
    finish(contents, result.is_error == Some(true))
}

/// The outcome of a call in a form that the library does not know, such as content of a new kind.
pub(super) fn unknown_output(value: &Value, sees_images: bool) -> ToolOutput {
    let blocks = value.get("content").and_then(Value::as_array);
    let mut contents = Vec::new();
    for block in blocks.into_iter().flatten() {
        match serde_json::from_value::<ContentBlock>(block.clone()) {
            Ok(block) => contents.extend(content(block, sees_images)),
            Err(_) => contents.push(unknown_block(block)),
        }
    }
    if let Some(structured) = value.get("structuredContent") {
        add_structured(structured.clone(), &mut contents);
    }
    if blocks.is_none() && contents.is_empty() && !value.is_null() {
        contents.push(Content::Text(value.to_string()));
    }
    finish(contents, value.get("isError") == Some(&Value::Bool(true)))
}

/// One block; an embedded resource may need two parts.
pub(super) fn content(block: ContentBlock, sees_images: bool) -> Vec<Content> {
    match block {
        ContentBlock::Text(text) => vec![Content::Text(text.text)],
        ContentBlock::Image(image) => vec![self::image(image.mime_type, image.data, sees_images)],
        ContentBlock::Audio(audio) => {
            vec![Content::Text(named("Audio", &audio.mime_type, base64_length(&audio.data)))]
        }
        ContentBlock::Resource(embedded) => resource(embedded.resource, sees_images),
        ContentBlock::ResourceLink(link) => vec![Content::Text(resource_link(&link))],
        other => vec![Content::Text(serde_json::to_string(&other).unwrap_or_default())],
    }
}

/// The content of a resource, headed by its address.
pub(super) fn resource(contents: ResourceContents, sees_images: bool) -> Vec<Content> {
    match contents {
        ResourceContents::TextResourceContents { uri, text, .. } => {
            vec![Content::Text(format!("Resource {}:\n{text}", one_line(&uri, SHOWN_NAME)))]
        }
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            let mime_type = mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
            let uri = one_line(&uri, SHOWN_NAME);
            if !mime_type.starts_with("image/") {
                return vec![Content::Text(named(&format!("Resource {uri}"), &mime_type, base64_length(&blob)))];
            }
            vec![Content::Text(format!("Resource {uri}:")), image(mime_type, blob, sees_images)]
        }
        _ => vec![Content::Text("[Resource of an unknown kind]".to_owned())],
    }
}

fn image(mime_type: String, data: String, sees_images: bool) -> Content {
    let mime_type = if mime_type == "image/jpg" { "image/jpeg".to_owned() } else { mime_type };
    let length = base64_length(&data);
    let is_usable = IMAGE_TYPES.contains(&mime_type.as_str()) && is_base64(&data) && length <= MOST_IMAGE_BYTES;
    if sees_images && is_usable {
        return Content::Image(Image { media_type: mime_type, base64: data });
    }
    Content::Text(named("Image", &mime_type, length))
}

fn resource_link(link: &Resource) -> String {
    let mut text =
        format!("[Resource link: {} <{}>", one_line(&link.name, SHOWN_NAME), one_line(&link.uri, SHOWN_NAME));
    if let Some(mime_type) = &link.mime_type {
        text.push_str(&format!(", {}", one_line(mime_type, SHOWN_NAME)));
    }
    text.push(']');
    if let Some(description) = &link.description {
        text.push_str(&format!(" {}", one_line(description, 2 * SHOWN_NAME)));
    }
    text
}

fn unknown_block(block: &Value) -> Content {
    let kind = block.get("type").and_then(Value::as_str).unwrap_or("unknown");
    match block.get("text").and_then(Value::as_str) {
        Some(text) => Content::Text(text.to_owned()),
        None => Content::Text(format!("[Content of the kind {:?} cannot be shown]", one_line(kind, SHOWN_NAME))),
    }
}

/// Servers are asked to say the same in text; it is said once.
fn add_structured(structured: Value, contents: &mut Vec<Content>) {
    let says_it = |content: &Content| match content {
        Content::Text(text) => serde_json::from_str::<Value>(text).is_ok_and(|value| value == structured),
        Content::Image(_) => false,
    };
    if !structured.is_null() && !contents.iter().any(says_it) {
        contents.push(Content::Text(serde_json::to_string_pretty(&structured).unwrap_or_default()));
    }
}

fn finish(mut contents: Vec<Content>, error: bool) -> ToolOutput {
    if contents.is_empty() {
        contents.push(Content::Text(if error { "The tool failed and did not say why." } else { "(no output)" }.into()));
    }
    ToolOutput { error, contents, ..ToolOutput::default() }
}

fn named(what: &str, mime_type: &str, bytes: usize) -> String {
    let size = if bytes < 1024 { format!("{bytes} bytes") } else { format!("{} KiB", bytes.div_ceil(1024)) };
    format!("[{what}: {}, {size}, not shown]", prefix(&one_line(mime_type, 80), 80))
}

fn base64_length(data: &str) -> usize {
    data.trim_end_matches('=').len() / 4 * 3 + [0, 0, 1, 2][data.trim_end_matches('=').len() % 4]
}

fn is_base64(data: &str) -> bool {
    let body = data.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !data.is_empty() && data.len().is_multiple_of(4) && data.len() - body.len() <= 2 && body.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(value: Value, sees_images: bool) -> ToolOutput {
        output(serde_json::from_value(value).unwrap(), sees_images)
    }

    fn texts(output: &ToolOutput) -> Vec<String> {
        let text = |content: &Content| match content {
            Content::Text(text) => text.clone(),
            Content::Image(image) => format!("<{}:{}>", image.media_type, image.base64),
        };
        output.contents.iter().map(text).collect()
    }

    #[test]
    fn every_kind_of_content_reaches_the_model_or_is_named() {
        let value = json!({"content": [
            {"type": "text", "text": "hi"},
            {"type": "image", "mimeType": "image/png", "data": "aGk="},
            {"type": "image", "mimeType": "image/jpg", "data": "aGk="},
            {"type": "image", "mimeType": "image/svg+xml", "data": "aGk="},
            {"type": "image", "mimeType": "image/png", "data": "not base64!"},
            {"type": "audio", "mimeType": "audio/wav", "data": "AAAA".repeat(1000)},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "body"}},
            {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "application/pdf", "blob": "aGk="}},
            {"type": "resource", "resource": {"uri": "file:///c", "mimeType": "image/png", "blob": "aGk="}},
            {"type": "resource_link", "uri": "file:///d", "name": "d", "mimeType": "text/plain", "description": "more"},
        ]});
        let expected = [
            "hi",
            "<image/png:aGk=>",
            "<image/jpeg:aGk=>",
            "[Image: image/svg+xml, 2 bytes, not shown]",
            "[Image: image/png, 8 bytes, not shown]",
            "[Audio: audio/wav, 3 KiB, not shown]",
            "Resource file:///a:\nbody",
            "[Resource file:///b: application/pdf, 2 bytes, not shown]",
            "Resource file:///c:",
            "<image/png:aGk=>",
            "[Resource link: d <file:///d>, text/plain] more",
        ];
        let output = call(value.clone(), true);
        assert_eq!(texts(&output), expected);
        assert!(!output.error);
        assert_eq!(texts(&call(value.clone(), false))[1], "[Image: image/png, 2 bytes, not shown]");
        assert_eq!(texts(&unknown_output(&value, true)), expected, "both ways say the same");
    }

    #[test]
    fn structured_content_is_said_once() {
        let same = json!({"content": [{"type": "text", "text": "{\"b\": 2, \"a\": 1}"}], "structuredContent": {"a": 1, "b": 2}});
        assert_eq!(texts(&call(same, true)).len(), 1);
        let alone = json!({"content": [], "structuredContent": {"a": 1}});
        assert_eq!(texts(&call(alone, true)), ["{\n  \"a\": 1\n}"]);
        let other = json!({"content": [{"type": "text", "text": "done"}], "structuredContent": [1]});
        assert_eq!(texts(&call(other, true)), ["done", "[\n  1\n]"]);
    }

    #[test]
    fn failures_and_empty_outputs_say_so() {
        let failed = call(json!({"content": [], "isError": true}), true);
        assert!(failed.error && !texts(&failed)[0].is_empty());
        assert_eq!(texts(&call(json!({"content": []}), true)), ["(no output)"]);
        let odd = json!({"content": [{"type": "video", "data": "x"}, {"type": "text", "text": "t"}, {"type": "new", "text": "n"}, 7],
            "isError": true});
        let odd = unknown_output(&odd, true);
        assert!(odd.error);
        assert_eq!(texts(&odd)[..3], ["[Content of the kind \"video\" cannot be shown]", "t", "n"]);
        assert_eq!(texts(&unknown_output(&json!({"answer": 42}), true)), ["{\"answer\":42}"]);
        assert_eq!(texts(&unknown_output(&json!(null), true)), ["(no output)"]);
    }
}
