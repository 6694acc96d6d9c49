//! A request as the body of a response to be made.
//!
//! Items go back without the ids that the server gave them: it keeps nothing and looks up what
//! has an id. Reasoning is the exception, because its encrypted content is bound to it.

use serde_json::{Map, Value, json};

use super::NAME;
use crate::base::text;
use crate::config::ModelConfig;
use crate::llm::{Image, Request, ToolSpec};
use crate::providers::dialects::endpoint::output_limit;
use crate::providers::dialects::history::{self, Answer, Did, Rules, Said, Turn};
use crate::providers::dialects::payload;

/// The whole body. `model` is the configuration of the request's model.
pub(super) fn build(request: &Request, model: &ModelConfig) -> Map<String, Value> {
    let name = model.model_name.as_deref().unwrap_or_else(|| request.model.model());
    let mut body = Map::new();
    let mut set = |key: &str, value: Value| {
        body.insert(key.to_owned(), value);
    };
    set("model", json!(name));
    set("input", input(request, model.image_input != Some(false)));
    if !request.system.trim().is_empty() {
        set("instructions", json!(request.system));
    }
    set("store", json!(false));
    set("stream", json!(true));
    if let Some(limit) = output_limit(request.max_output_tokens, model.output_limit) {
        // Less is refused.
        set("max_output_tokens", json!(limit.max(16)));
    }
    if let Some(key) = request.cache_key.as_deref().filter(|key| !key.is_empty()) {
        set("prompt_cache_key", json!(text::prefix(key, 64)));
    }
    let mut tools: Vec<Value> = request.tools.iter().map(tool).collect();
    if request.web_search {
        tools.push(json!({"type": "web_search"}));
    }
    if !tools.is_empty() {
        set("tools", Value::Array(tools));
        set("parallel_tool_calls", json!(true));
    }
    let reasons = request.reasoning && may_reason(name);
    if reasons {
        set("reasoning", json!({"effort": "medium", "summary": "auto"}));
    }
    for extra in [&model.extra_payload, &request.payload] {
        payload::replace(&mut body, extra);
    }
    if !request.reasoning {
        body.remove("reasoning");
    }
    // Whoever reasons must be able to read its thoughts again, also where the user set the effort.
    let is_set = model.extra_payload.contains_key("include") || request.payload.contains_key("include");
    if body.contains_key("reasoning") && !is_set {
        body.insert("include".to_owned(), json!(["reasoning.encrypted_content"]));
    }
    body
}

/// OpenAI refuses to be asked for reasoning by the families that have none. A model that nobody
/// here knows is asked.
fn may_reason(name: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or(name).to_lowercase();
    let without = ["gpt-3", "gpt-4", "chatgpt-4", "gpt-5-chat", "gpt-image"];
    !without.iter().any(|family| name.starts_with(family))
}

fn tool(spec: &ToolSpec) -> Value {
    let parameters = match &spec.parameters {
        Value::Object(schema) if !schema.is_empty() => spec.parameters.clone(),
        _ => json!({"type": "object", "properties": {}}),
    };
    json!({
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": parameters,
        "strict": false,
    })
}

fn input(request: &Request, images: bool) -> Value {
    let rules = Rules { dialect: NAME, source: Some(request.model.as_str()), images };
    let mut items = Vec::new();
    for turn in history::turns(&request.messages, rules) {
        match turn {
            Turn::User(said) => items.push(user(said.iter().map(said_block).collect())),
            Turn::Assistant(answer) => push_answer(&answer, &mut items),
        }
    }
    Value::Array(items)
}

fn push_answer(answer: &Answer<'_>, items: &mut Vec<Value>) {
    let start = items.len();
    // A search is bound to the thoughts before it, so it can only go back with them.
    let complete =
        answer.parts.iter().all(|part| !matches!(part, Did::Reasoning { replay, .. } if own_item(replay).is_none()));
    let mut pictures = Vec::new();
    for part in &answer.parts {
        match part {
            Did::Text(text) => push_text(text, start, items),
            Did::Image(image) => pictures.push(image_block(image)),
            Did::Call(call) => items.push(json!({
                "type": "function_call",
                "call_id": call.id,
                "name": call.name,
                "arguments": Value::Object(call.arguments.clone()).to_string(),
            })),
            Did::Reasoning { replay, .. } => items.extend(own_item(replay)),
            Did::Opaque(replay) => items.extend(own_item(replay).filter(|item| complete || is_reasoning(item))),
        }
    }
    // Thoughts that led to nothing are refused.
    while items.len() > start && items.last().is_some_and(is_reasoning) {
        items.pop();
    }
    for outcome in &answer.outcomes {
        items.push(json!({"type": "function_call_output", "call_id": outcome.call_id, "output": outcome.text}));
        pictures.extend(outcome.images.iter().map(|image| image_block(image)));
    }
    // Neither an answer nor a result carries pictures everywhere, so they follow as the user's.
    if !pictures.is_empty() {
        items.push(user(pictures));
    }
}

/// Texts in a row are one message.
fn push_text(text: &str, start: usize, items: &mut Vec<Value>) {
    let block = json!({"type": "output_text", "text": text});
    match items[start..].last_mut().filter(|last| last["role"] == "assistant") {
        Some(last) => {
            if let Some(content) = last["content"].as_array_mut() {
                content.push(block);
            }
        }
        None => items.push(json!({"type": "message", "role": "assistant", "content": [block]})),
    }
}

fn user(content: Vec<Value>) -> Value {
    json!({"type": "message", "role": "user", "content": content})
}

fn said_block(said: &Said<'_>) -> Value {
    match said {
        Said::Text(text) => json!({"type": "input_text", "text": text}),
        Said::Image(image) => image_block(image),
    }
}

fn image_block(Image { media_type, base64 }: &Image) -> Value {
    json!({"type": "input_image", "image_url": format!("data:{media_type};base64,{base64}")})
}

/// The item to send back, if it is one that will be accepted.
fn own_item(replay: &Value) -> Option<Value> {
    let item = replay.get("item")?.as_object()?;
    let has = |key: &str| match item.get(key) {
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(list)) => !list.is_empty(),
        _ => false,
    };
    let fits = match item.get("type").and_then(Value::as_str)? {
        "reasoning" => item.get("summary").is_some_and(Value::is_array) && (has("encrypted_content") || has("content")),
        "web_search_call" => has("id"),
        _ => false,
    };
    fits.then(|| Value::Object(item.clone()))
}

fn is_reasoning(item: &Value) -> bool {
    item["type"] == "reasoning"
}
