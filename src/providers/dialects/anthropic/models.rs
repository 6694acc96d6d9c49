//! The list of models at `/v1/models`, with limits where the server tells them.

use serde_json::Value;

use crate::providers::dialects::ListedModel;

/// The list lies beside the messages. One page of a thousand holds every list there is.
pub(super) fn path(completion_path: Option<&str>) -> String {
    let path = completion_path.unwrap_or_default().split('?').next().unwrap_or_default();
    let folder = path.trim_end_matches('/').strip_suffix("/messages").unwrap_or("/v1");
    format!("{folder}/models?limit=1000")
}

/// `None` when the body is no list of models.
pub(super) fn parse(body: &[u8]) -> Option<Vec<ListedModel>> {
    let body: Value = serde_json::from_slice(body).ok()?;
    Some(body.get("data")?.as_array()?.iter().filter_map(model).collect())
}

fn model(entry: &Value) -> Option<ListedModel> {
    let name = entry.get("id").and_then(Value::as_str).filter(|name| !name.trim().is_empty())?;
    let first = |places: &[&str]| {
        places.iter().find_map(|place| entry.get(*place).and_then(Value::as_u64).filter(|limit| *limit > 0))
    };
    Some(ListedModel {
        name: name.to_owned(),
        context_limit: first(&["max_input_tokens", "context_length"]),
        output_limit: first(&["max_tokens", "max_output_tokens"]),
        capabilities: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_follows_the_messages() {
        assert_eq!(path(None), "/v1/models?limit=1000");
        assert_eq!(path(Some("/v1/messages")), "/v1/models?limit=1000");
        assert_eq!(path(Some("/anthropic/v2/messages?beta=true")), "/anthropic/v2/models?limit=1000");
        assert_eq!(path(Some("/generate")), "/v1/models?limit=1000");
    }

    #[test]
    fn names_and_limits() {
        let body = br#"{"data":[
            {"type":"model","id":"claude-a","display_name":"A","created_at":"2026-01-01T00:00:00Z"},
            {"type":"model","id":"claude-b","max_input_tokens":1000000,"max_tokens":128000},
            {"id":"claude-c","max_input_tokens":0,"max_tokens":null},
            {"id":" "},{},null
        ],"has_more":false,"first_id":"claude-a","last_id":"claude-c"}"#;
        let found: Vec<_> =
            parse(body).unwrap().into_iter().map(|m| (m.name, m.context_limit, m.output_limit)).collect();
        let expected = vec![
            ("claude-a".to_owned(), None, None),
            ("claude-b".to_owned(), Some(1_000_000), Some(128_000)),
            ("claude-c".to_owned(), None, None),
        ];
        assert_eq!(found, expected);
        for bad in ["", "{}", "[]", r#"{"data":{}}"#] {
            assert!(parse(bad.as_bytes()).is_none(), "{bad}");
        }
    }
}
