//! A request as the body of Ollama's chat.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::NAME;
use crate::config::ModelConfig;
use crate::llm::{Image, Request};
use crate::providers::dialects::endpoint::output_limit;
use crate::providers::dialects::history::{self, Answer, Did, Rules, Said, Turn};
use crate::providers::dialects::{Capabilities, payload};

/// The whole body. `model` is the configuration of the request's model, `can` what the server
/// said about it.
pub(super) fn build(request: &Request, model: &ModelConfig, can: Option<Capabilities>) -> Map<String, Value> {
    let name = model.model_name.as_deref().unwrap_or_else(|| request.model.model());
    let mut body = Map::new();
    let mut set = |key: &str, value: Value| {
        body.insert(key.to_owned(), value);
    };
    set("model", json!(name));
    let images = model.image_input.or(can.map(|can| can.vision)).unwrap_or(true);
    set("messages", messages(request, images));
    set("stream", json!(true));
    // A model that cannot is refused with the whole request, so only what is known is asked for.
    let thinks = can.is_some_and(|can| can.reasoning);
    if thinks {
        set("think", json!(request.reasoning));
    }
    if !request.tools.is_empty() && can.is_none_or(|can| can.tools) {
        set("tools", request.tools.iter().map(payload::function_tool).collect());
    }
    let mut options = Map::new();
    if let Some(limit) = output_limit(request.max_output_tokens, model.output_limit) {
        options.insert("num_predict".to_owned(), json!(limit));
    }
    // Only what the user set: a larger context takes memory that the machine may not have.
    if let Some(limit) = model.context_limit {
        options.insert("num_ctx".to_owned(), json!(limit));
    }
    if !options.is_empty() {
        set("options", Value::Object(options));
    }
    payload::merge(&mut body, &model.extra_payload);
    payload::merge(&mut body, &request.payload);
    if !request.reasoning {
        body.remove("think");
        if thinks {
            body.insert("think".to_owned(), json!(false));
        }
    }
    body
}

fn messages(request: &Request, images: bool) -> Value {
    // Thoughts are plain text here, so those of another local model are as good.
    let rules = Rules { dialect: NAME, source: None, images };
    let mut list = Vec::new();
    if !request.system.trim().is_empty() {
        list.push(json!({"role": "system", "content": request.system}));
    }
    // Pictures of results, which the next words of the user take along.
    let mut pictures: Vec<&Image> = Vec::new();
    for turn in history::turns(&request.messages, rules) {
        match turn {
            Turn::User(said) => push_user(&said, std::mem::take(&mut pictures), &mut list),
            Turn::Assistant(answer) => {
                push_user(&[], std::mem::take(&mut pictures), &mut list);
                push_answer(&answer, &mut list);
                for outcome in &answer.outcomes {
                    list.push(json!({
                        "role": "tool",
                        "tool_name": outcome.name,
                        "tool_call_id": outcome.call_id,
                        "content": outcome.text,
                    }));
                    pictures.extend(&outcome.images);
                }
            }
        }
    }
    push_user(&[], pictures, &mut list);
    Value::Array(list)
}

fn push_user<'a>(said: &[Said<'a>], mut pictures: Vec<&'a Image>, list: &mut Vec<Value>) {
    let mut texts: Vec<&str> = Vec::new();
    if !pictures.is_empty() {
        texts.push("(images from the tool results above)");
    }
    for said in said {
        match said {
            Said::Text(text) => texts.push(text),
            Said::Image(image) => pictures.push(image),
        }
    }
    if texts.is_empty() && pictures.is_empty() {
        return;
    }
    let mut message = json!({"role": "user", "content": texts.join("\n\n")});
    if !pictures.is_empty() {
        message["images"] = pictures.iter().map(|image| json!(image.base64)).collect();
    }
    list.push(message);
}

fn push_answer(answer: &Answer<'_>, list: &mut Vec<Value>) {
    let mut texts: Vec<Cow<'_, str>> = Vec::new();
    let mut thoughts: Vec<&str> = Vec::new();
    let mut calls = Vec::new();
    for part in &answer.parts {
        match part {
            Did::Text(text) => texts.push(Cow::Borrowed(text)),
            Did::Image(_) => texts.push(Cow::Borrowed("[an image]")),
            Did::Reasoning { text, .. } if !text.is_empty() => thoughts.push(text),
            Did::Reasoning { .. } | Did::Opaque(_) => {}
            Did::Call(call) => calls.push(json!({
                "id": call.id,
                "function": {"name": call.name, "arguments": call.arguments},
            })),
        }
    }
    let mut message = json!({"role": "assistant", "content": texts.join("\n\n")});
    if !thoughts.is_empty() {
        message["thinking"] = json!(thoughts.join("\n"));
    }
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    list.push(message);
}
