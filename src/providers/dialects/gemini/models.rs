//! The list of models, of which only those that can answer count.

use serde_json::Value;

use crate::providers::dialects::{Capabilities, ListedModel};

pub(super) struct Page {
    pub(super) models: Vec<ListedModel>,
    /// The token of the next page.
    pub(super) next: Option<String>,
}

/// `None` when the body is no list of models. An empty list may be left out.
pub(super) fn parse(body: &[u8]) -> Option<Page> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let body = body.as_object()?;
    let models = match body.get("models") {
        Some(list) => list.as_array()?.iter().filter_map(model).collect(),
        None if body.is_empty() => Vec::new(),
        None => return None,
    };
    let next = body.get("nextPageToken").and_then(Value::as_str).filter(|token| !token.is_empty());
    Some(Page { models, next: next.map(str::to_owned) })
}

fn model(entry: &Value) -> Option<ListedModel> {
    let name = entry.get("name").and_then(Value::as_str)?;
    let name = name.strip_prefix("models/").unwrap_or(name);
    let methods = entry.get("supportedGenerationMethods").and_then(Value::as_array)?;
    if name.is_empty() || !methods.iter().any(|method| method == "generateContent") {
        return None;
    }
    let limit = |key: &str| entry.get(key).and_then(Value::as_u64).filter(|limit| *limit > 0);
    // The list tells of thinking alone; the rest holds for all that speak and listen in general.
    let special = ["image", "tts", "audio", "embedding", "robotics", "computer-use"];
    let general = name.starts_with("gemini-") && !special.iter().any(|part| name.contains(part));
    let reasoning = entry.get("thinking").and_then(Value::as_bool).unwrap_or(false);
    Some(ListedModel {
        name: name.to_owned(),
        context_limit: limit("inputTokenLimit"),
        output_limit: limit("outputTokenLimit"),
        capabilities: general.then_some(Capabilities { tools: true, reasoning, vision: true }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_models_that_answer_are_listed() {
        let body = json!({"nextPageToken": "t", "models": [
            {"name": "models/gemini-2.5-pro", "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536,
             "supportedGenerationMethods": ["generateContent", "countTokens"], "thinking": true},
            {"name": "models/gemini-2.0-flash", "supportedGenerationMethods": ["generateContent"]},
            {"name": "models/gemma-3-27b-it", "supportedGenerationMethods": ["generateContent"]},
            {"name": "models/text-embedding-004", "supportedGenerationMethods": ["embedContent"]},
            {"name": "models/"}, {}, 7,
        ]});
        let page = parse(body.to_string().as_bytes()).unwrap();
        let rows: Vec<_> = page.models.iter().map(|m| (m.name.as_str(), m.context_limit, m.output_limit)).collect();
        let pro = ("gemini-2.5-pro", Some(1_048_576), Some(65_536));
        assert_eq!(rows, [pro, ("gemini-2.0-flash", None, None), ("gemma-3-27b-it", None, None)]);
        let thinking: Vec<_> = page.models.iter().map(|m| m.capabilities.map(|can| can.reasoning)).collect();
        assert_eq!((thinking, page.next.as_deref()), (vec![Some(true), Some(false), None], Some("t")));
        assert!(parse(b"{}").unwrap().next.is_none());
        for bad in ["", "[]", "null", r#"{"data":[]}"#, r#"{"models":{}}"#] {
            assert!(parse(bad.as_bytes()).is_none(), "{bad}");
        }
    }
}
