//! The list of models at `/models`, with the limits that some servers add to it.

use serde_json::Value;

use crate::providers::dialects::ListedModel;

/// The list lies beside the completions: a server whose completions are under `/v1` has it there.
pub(super) fn path(completion_path: Option<&str>) -> String {
    let path = completion_path.unwrap_or_default().split('?').next().unwrap_or_default();
    let folder = path.trim_end_matches('/').strip_suffix("/chat/completions").unwrap_or_default();
    format!("{folder}/models")
}

/// `None` when the body is no list of models.
pub(in crate::providers::dialects) fn parse(body: &[u8]) -> Option<Vec<ListedModel>> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let list = body.get("data").unwrap_or(&body).as_array()?;
    Some(list.iter().filter_map(model).collect())
}

fn model(entry: &Value) -> Option<ListedModel> {
    let name = entry.get("id").and_then(Value::as_str).filter(|name| !name.trim().is_empty())?;
    // What the server runs with comes before what the model was trained with.
    let context = [
        "/meta/n_ctx",
        "/context_length",
        "/max_model_len",
        "/context_window",
        "/max_context_length",
        "/meta/n_ctx_train",
    ];
    let output = ["/top_provider/max_completion_tokens", "/max_completion_tokens", "/max_output_tokens"];
    let first = |places: &[&str]| {
        places.iter().find_map(|place| entry.pointer(place).and_then(Value::as_u64).filter(|limit| *limit > 0))
    };
    Some(ListedModel {
        name: name.to_owned(),
        context_limit: first(&context),
        output_limit: first(&output),
        ..ListedModel::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_follows_the_completions() {
        assert_eq!(path(None), "/models");
        assert_eq!(path(Some("/v1/chat/completions")), "/v1/models");
        assert_eq!(path(Some("/v1/chat/completions?api-version=1")), "/v1/models");
        assert_eq!(path(Some("/generate")), "/models");
    }

    #[test]
    fn limits_are_found_where_servers_put_them() {
        let body = br#"{"object":"list","data":[
            {"id":"plain"},
            {"id":"vllm","max_model_len":4096},
            {"id":"llama","meta":{"n_ctx_train":131072,"n_ctx":8192}},
            {"id":"router","context_length":200000,"top_provider":{"max_completion_tokens":64000}},
            {"id":""},{"name":"no id"},7]}"#;
        let found: Vec<_> =
            parse(body).unwrap().into_iter().map(|m| (m.name, m.context_limit, m.output_limit)).collect();
        let expected = vec![
            ("plain".to_owned(), None, None),
            ("vllm".to_owned(), Some(4096), None),
            ("llama".to_owned(), Some(8192), None),
            ("router".to_owned(), Some(200_000), Some(64_000)),
        ];
        assert_eq!(found, expected);
        assert_eq!(parse(br#"[{"id":"bare"}]"#).unwrap().len(), 1);
        for bad in ["", "{}", "null", "\"x\"", r#"{"data":{}}"#] {
            assert!(parse(bad.as_bytes()).is_none(), "{bad}");
        }
    }
}
