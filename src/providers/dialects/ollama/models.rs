//! What Ollama has (`/api/tags`) and what each of it can do (`/api/show`).

use serde_json::Value;

use crate::providers::dialects::{Capabilities, ListedModel};

/// `None` when the body is no list of models.
pub(super) fn names(body: &[u8]) -> Option<Vec<ListedModel>> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let list = body.get("models")?;
    let list = if list.is_null() { &[] } else { list.as_array()?.as_slice() };
    let name = |entry: &Value| {
        let name = entry.get("name").or_else(|| entry.get("model")).and_then(Value::as_str)?;
        (!name.is_empty()).then(|| ListedModel { name: name.to_owned(), ..ListedModel::default() })
    };
    Some(list.iter().filter_map(name).collect())
}

/// Adds what the model's own description says. Servers from before capabilities were told leave
/// them open.
pub(super) fn add_details(model: &mut ListedModel, body: &[u8]) {
    let Ok(body) = serde_json::from_slice::<Value>(body) else { return };
    if let Some(list) = body.get("capabilities").and_then(Value::as_array) {
        let can = |what: &str| list.iter().any(|capability| capability == what);
        model.capabilities =
            Some(Capabilities { tools: can("tools"), reasoning: can("thinking"), vision: can("vision") });
    }
    let info = body.get("model_info").and_then(Value::as_object);
    let trained = info.and_then(|info| {
        let architecture = info.get("general.architecture").and_then(Value::as_str).unwrap_or_default();
        let own = info.get(&format!("{architecture}.context_length"));
        // A model with an eye or an ear has a second architecture, whose length is not meant.
        own.or_else(|| info.iter().find(|(key, _)| key.ends_with(".context_length")).map(|(_, value)| value))
    });
    // Set in the model file, this is what the model really runs with.
    let set = body.get("parameters").and_then(Value::as_str).and_then(|parameters| {
        let line = parameters.lines().find_map(|line| line.trim().strip_prefix("num_ctx"))?;
        line.trim().parse::<u64>().ok()
    });
    model.context_limit = set.or_else(|| trained.and_then(Value::as_u64)).filter(|limit| *limit > 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn details(body: &Value) -> ListedModel {
        let mut model = ListedModel { name: "m".to_owned(), ..ListedModel::default() };
        add_details(&mut model, body.to_string().as_bytes());
        model
    }

    #[test]
    fn names_are_read() {
        let body = br#"{"models":[{"name":"qwen3:8b","model":"qwen3:8b"},{"model":"b"},{"name":""},{},7]}"#;
        let found: Vec<String> = names(body).unwrap().into_iter().map(|model| model.name).collect();
        assert_eq!(found, ["qwen3:8b", "b"]);
        assert_eq!(names(br#"{"models":null}"#), Some(vec![]));
        for bad in ["", "{}", "[]", r#"{"models":{}}"#] {
            assert!(names(bad.as_bytes()).is_none(), "{bad}");
        }
    }

    #[test]
    fn details_are_read() {
        let model = details(&json!({
            "capabilities": ["completion", "tools", "thinking"],
            "model_info": {"clip.context_length": 77, "general.architecture": "qwen3", "qwen3.context_length": 40_960},
        }));
        let can = Capabilities { tools: true, reasoning: true, vision: false };
        assert_eq!((model.capabilities, model.context_limit), (Some(can), Some(40_960)));
        let set =
            json!({"parameters": "stop \"<x>\"\nnum_ctx                8192\n", "model_info": {"a.context_length": 9}});
        assert_eq!(details(&set).context_limit, Some(8192));
        assert_eq!(details(&json!({"model_info": {"a.context_length": 9}})).context_limit, Some(9));
        for nothing in [json!({}), json!([]), json!({"capabilities": 1, "model_info": [], "parameters": 7})] {
            let model = details(&nothing);
            assert_eq!((model.capabilities, model.context_limit), (None, None), "{nothing}");
        }
    }
}
