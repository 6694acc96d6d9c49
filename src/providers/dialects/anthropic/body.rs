//! A request as the body of a message that the strict original accepts.

use serde_json::{Map, Value, json};

use super::NAME;
use crate::config::ModelConfig;
use crate::llm::{Request, Role, ToolSpec};
use crate::providers::dialects::claude::{self, Thinking};
use crate::providers::dialects::payload;
use crate::providers::dialects::turns::{self, Answer, Block, Picture, Rules, Turn};

/// What is not said by the request and its model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// Whether the cache shall live for an hour instead of five minutes.
    pub long_cache: bool,
    /// Whether the last message is an answer that the provider itself interrupted.
    pub resumed: bool,
}

const DEFAULT_MAX_TOKENS: u64 = 32_000;
const THINKING_BUDGET: u64 = 2048;
const MAX_SEARCHES: u64 = 10;
const SEARCH: &str = "web_search";

/// The whole body. `model` is the configuration of the request's model.
pub(super) fn build(request: &Request, model: &ModelConfig, options: Options) -> Map<String, Value> {
    let name = model.model_name.as_deref().unwrap_or_else(|| request.model.model());
    let rules = Rules {
        dialect: NAME,
        model: &request.model,
        images: model.image_input != Some(false),
        images_in_results: true,
        tools: true,
        max_name_chars: 128,
        may_end_with_assistant: options.resumed,
    };
    let turns = turns::strict(&request.messages, rules);
    let max_tokens = max_tokens(request, model, name);
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(name));
    body.insert("max_tokens".to_owned(), json!(max_tokens));
    body.insert("stream".to_owned(), json!(true));
    body.insert("messages".to_owned(), turns.iter().map(message).collect());
    if !request.system.trim().is_empty() {
        body.insert("system".to_owned(), json!([{"type": "text", "text": request.system}]));
    }
    let mut tools: Vec<Value> = request.tools.iter().map(tool).collect();
    // Two tools of one name are refused, and ours is the one that the user can see and stop.
    if request.web_search && request.tools.iter().all(|tool| tool.name != SEARCH) {
        tools.push(json!({"type": "web_search_20250305", "name": SEARCH, "max_uses": MAX_SEARCHES}));
    }
    if !tools.is_empty() {
        body.insert("tools".to_owned(), Value::Array(tools));
    }
    mark_for_cache(&mut body, options.long_cache);
    let extra = combined(&model.extra_payload, &request.payload);
    payload::replace(&mut body, &extra);
    think(&mut body, request.reasoning, &extra, name);
    // A model that must think before calls cannot be made to go on with calls made without it.
    let has_budget = body.get("thinking").is_some_and(|thinking| thinking["type"] == "enabled");
    if has_budget && turns::answers_thoughtless_calls(&turns) {
        body.remove("thinking");
    }
    body
}

/// Says how to think, unless the user's own words in `extra` already do.
fn think(body: &mut Map<String, Value>, reasoning: bool, extra: &Map<String, Value>, name: &str) {
    if !reasoning {
        body.remove("thinking");
        return;
    }
    if extra.contains_key("thinking") || extra.contains_key("output_config") {
        return;
    }
    let room = body.get("max_tokens").and_then(Value::as_u64).unwrap_or_default();
    let thinking = match claude::thinking(name) {
        Thinking::Never => return,
        Thinking::Budget if room <= THINKING_BUDGET => return,
        Thinking::Budget => json!({"type": "enabled", "budget_tokens": THINKING_BUDGET}),
        Thinking::Adaptive => json!({"type": "adaptive", "display": "summarized"}),
    };
    body.insert("thinking".to_owned(), thinking);
}

fn max_tokens(request: &Request, model: &ModelConfig, name: &str) -> u64 {
    match (request.max_output_tokens, model.output_limit) {
        (Some(wanted), Some(possible)) => wanted.min(possible),
        (Some(tokens), None) | (None, Some(tokens)) => tokens,
        (None, None) => claude::small_output_limit(name).unwrap_or(DEFAULT_MAX_TOKENS),
    }
}

/// Marks the ends of what stays the same: the tools, the instructions, the conversation so far.
fn mark_for_cache(body: &mut Map<String, Value>, long: bool) {
    let mark = if long { json!({"type": "ephemeral", "ttl": "1h"}) } else { json!({"type": "ephemeral"}) };
    for place in ["tools", "system"] {
        let list = body.get_mut(place).and_then(Value::as_array_mut);
        if let Some(Value::Object(entry)) = list.and_then(|list| list.last_mut()) {
            entry.insert("cache_control".to_owned(), mark.clone());
        }
    }
    let messages = body.get_mut("messages").and_then(Value::as_array_mut);
    let last_message = messages.and_then(|messages| messages.last_mut()).filter(|last| last["role"] == "user");
    let content = last_message.and_then(|message| message.get_mut("content")).and_then(Value::as_array_mut);
    if let Some(Value::Object(block)) = content.and_then(|content| content.last_mut()) {
        block.insert("cache_control".to_owned(), mark);
    }
}

/// The variant's payload over the model's own. The two go into each other, except where they say
/// how to think: halves of two different ways make none.
fn combined(model: &Map<String, Value>, variant: &Map<String, Value>) -> Map<String, Value> {
    let mut combined = model.clone();
    for (key, value) in variant {
        match (combined.get_mut(key), value) {
            (Some(Value::Object(before)), Value::Object(value)) if key != "thinking" => payload::merge(before, value),
            _ => drop(combined.insert(key.clone(), value.clone())),
        }
    }
    combined
}

fn tool(spec: &ToolSpec) -> Value {
    let mut schema = spec.parameters.as_object().cloned().unwrap_or_default();
    schema.entry("type").or_insert_with(|| json!("object"));
    if schema.len() == 1 {
        schema.insert("properties".to_owned(), json!({}));
    }
    let mut tool = json!({"name": spec.name, "input_schema": schema});
    if !spec.description.trim().is_empty() {
        tool["description"] = json!(spec.description);
    }
    tool
}

fn message(turn: &Turn<'_>) -> Value {
    let role = match turn.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    json!({"role": role, "content": turn.blocks.iter().map(block).collect::<Vec<_>>()})
}

fn block(block: &Block<'_>) -> Value {
    match block {
        Block::Text(text) => json!({"type": "text", "text": text}),
        Block::Picture(picture) => image(picture),
        Block::Call { id, name, input } => json!({"type": "tool_use", "id": id, "name": name, "input": input}),
        Block::Answer(answer) => result(answer),
        Block::Thinking { text, signature } => json!({"type": "thinking", "thinking": text, "signature": signature}),
        Block::Opaque(block) => (*block).clone(),
    }
}

fn result(answer: &Answer<'_>) -> Value {
    let mut result = json!({"type": "tool_result", "tool_use_id": answer.id});
    result["content"] = if answer.pictures.is_empty() {
        json!(answer.text)
    } else {
        let text = Some(&answer.text).filter(|text| !text.trim().is_empty());
        let text = text.map(|text| json!({"type": "text", "text": text}));
        text.into_iter().chain(answer.pictures.iter().map(image)).collect()
    };
    if answer.error {
        result["is_error"] = json!(true);
    }
    result
}

fn image(picture: &Picture<'_>) -> Value {
    let media_type = format!("image/{}", picture.format);
    json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": picture.base64}})
}
