//! A request as Gemini wants it: turns that alternate, beginning with the user's, each function
//! call answered in the next turn, and every signature back at the part that it came with.

use serde_json::{Map, Value, json};

use super::{NAME, generation, schema};
use crate::config::ModelConfig;
use crate::llm::{Image, Request};
use crate::providers::dialects::endpoint::output_limit;
use crate::providers::dialects::history::{self, Answer, Call, Did, Outcome, Rules, Said, Turn};
use crate::providers::dialects::payload;

/// What Google documents for calls that another model made and that have no signature.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// The whole body. `model` is the configuration of the request's model; `thinks` is what the
/// provider said about it.
pub(super) fn build(request: &Request, model: &ModelConfig, thinks: Option<bool>) -> Map<String, Value> {
    let name = model.model_name.as_deref().unwrap_or_else(|| request.model.model());
    let newest = generation(name).is_some_and(|generation| generation >= 30);
    let mut body = Map::new();
    let mut set = |key: &str, value: Value| {
        body.insert(key.to_owned(), value);
    };
    set("contents", contents(request, model.image_input != Some(false), newest));
    if !request.system.trim().is_empty() {
        set("systemInstruction", json!({"parts": [{"text": request.system}]}));
    }
    // Older models refuse a search of their own beside functions, and functions are needed more.
    let search = request.web_search && (newest || request.tools.is_empty());
    let mut tools = Vec::new();
    if !request.tools.is_empty() {
        let declarations: Vec<Value> = request
            .tools
            .iter()
            .map(|tool| {
                let key = if takes_json_schema(name) { "parametersJsonSchema" } else { "parameters" };
                let parameters = if takes_json_schema(name) {
                    schema::json_schema(&tool.parameters)
                } else {
                    schema::open_api(&tool.parameters)
                };
                json!({"name": tool.name, "description": tool.description, key: parameters})
            })
            .collect();
        tools.push(json!({"functionDeclarations": declarations}));
    }
    if search {
        tools.push(json!({"googleSearch": {}}));
    }
    if tools.len() > 1 {
        set("toolConfig", json!({"includeServerSideToolInvocations": true}));
    }
    if !tools.is_empty() {
        set("tools", Value::Array(tools));
    }
    let mut generation_config = Map::new();
    if let Some(limit) = output_limit(request.max_output_tokens, model.output_limit) {
        generation_config.insert("maxOutputTokens".to_owned(), json!(limit));
    }
    if request.reasoning && thinks.unwrap_or_else(|| may_think(name)) {
        generation_config.insert("thinkingConfig".to_owned(), json!({"includeThoughts": true}));
    }
    if !generation_config.is_empty() {
        set("generationConfig", Value::Object(generation_config));
    }
    payload::merge(&mut body, &model.extra_payload);
    payload::merge(&mut body, &request.payload);
    body
}

/// Models before 2.5 refuse to be asked for thoughts.
fn may_think(name: &str) -> bool {
    let special = ["image", "tts", "audio"];
    let known = generation(name).map_or(name.starts_with("gemini-"), |generation| generation >= 25);
    known && !special.iter().any(|part| name.contains(part))
}

/// Models before 2.0 only know the older form.
fn takes_json_schema(name: &str) -> bool {
    generation(name).is_none_or(|generation| generation >= 20)
}

fn contents(request: &Request, images: bool, newest: bool) -> Value {
    let rules = Rules { dialect: NAME, source: Some(request.model.as_str()), images };
    let mut list: Vec<Value> = Vec::new();
    for turn in history::turns(&request.messages, rules) {
        match turn {
            Turn::User(said) => add(&mut list, "user", said.iter().map(said_part).collect()),
            Turn::Assistant(answer) => {
                if list.is_empty() {
                    add(&mut list, "user", vec![json!({"text": "(the conversation goes on)"})]);
                }
                add(&mut list, "model", model_parts(&answer, newest));
                add(&mut list, "user", outcome_parts(&answer.outcomes, newest));
            }
        }
    }
    Value::Array(list)
}

/// Turns of the same side are one.
fn add(list: &mut Vec<Value>, role: &str, parts: Vec<Value>) {
    if parts.is_empty() {
        return;
    }
    let last = list.last_mut().filter(|last| last["role"] == role);
    match last.and_then(|last| last["parts"].as_array_mut()) {
        Some(before) => before.extend(parts),
        None => list.push(json!({"role": role, "parts": parts})),
    }
}

fn model_parts(answer: &Answer<'_>, newest: bool) -> Vec<Value> {
    let mut parts: Vec<Value> = Vec::new();
    let mut called = false;
    for part in &answer.parts {
        match part {
            Did::Text(text) => parts.push(json!({"text": text})),
            Did::Image(image) => parts.push(image_part(image)),
            Did::Reasoning { text, replay } => {
                if let Some(signature) = signature(replay) {
                    parts.push(json!({"text": text, "thought": true, "thoughtSignature": signature}));
                }
            }
            Did::Call(call) => {
                parts.push(call_part(call, newest && !called));
                called = true;
            }
            Did::Opaque(replay) => sign(replay, &mut parts),
        }
    }
    // Calls come last, as the model made them: what follows in the same turn would part them from
    // their answers.
    parts.sort_by_key(|part| part.get("functionCall").is_some());
    parts
}

fn call_part(call: &Call<'_>, needs_signature: bool) -> Value {
    let mut function = json!({"name": call.name, "args": call.arguments});
    if let Some(id) = given_id(call.replay) {
        function["id"] = json!(id);
    }
    let mut part = json!({"functionCall": function});
    match call.replay.and_then(signature) {
        Some(signature) => part["thoughtSignature"] = json!(signature),
        None if needs_signature => part["thoughtSignature"] = json!(NO_SIGNATURE),
        None => {}
    }
    part
}

/// Puts a signature back on the part that it came with, or a whole part back in its place.
fn sign(replay: &Value, parts: &mut Vec<Value>) {
    if let Some(part) = replay.get("part").filter(|part| part.is_object()) {
        return parts.push(part.clone());
    }
    let Some(signature) = signature(replay) else { return };
    let on = replay.get("on").and_then(Value::as_str).unwrap_or_default();
    let signed_bytes = replay.get("bytes").and_then(Value::as_u64).and_then(|bytes| usize::try_from(bytes).ok());
    let last = parts.last_mut().filter(|last| last.get("thoughtSignature").is_none());
    match last {
        Some(last) if on == "image" && last.get("inlineData").is_some() => last["thoughtSignature"] = json!(signature),
        Some(last) if on == "text" && last.get("text").is_some() => {
            // The parts of a stream were joined into one text; only its end was signed.
            let text = last["text"].as_str().unwrap_or_default().to_owned();
            let cut =
                signed_bytes.and_then(|bytes| text.len().checked_sub(bytes)).filter(|at| text.is_char_boundary(*at));
            match cut {
                Some(0) => last["thoughtSignature"] = json!(signature),
                Some(at) => {
                    last["text"] = json!(&text[..at]);
                    parts.push(json!({"text": &text[at..], "thoughtSignature": signature}));
                }
                None => parts.push(json!({"text": "", "thoughtSignature": signature})),
            }
        }
        _ => {
            let mut part = json!({"text": "", "thoughtSignature": signature});
            if on == "thought" {
                part["thought"] = json!(true);
            }
            parts.push(part);
        }
    }
}

fn outcome_parts(outcomes: &[Outcome<'_>], newest: bool) -> Vec<Value> {
    let mut parts = Vec::new();
    let mut pictures = Vec::new();
    for outcome in outcomes {
        let key = if outcome.error { "error" } else { "output" };
        let mut response = json!({"name": outcome.name, "response": {key: outcome.text}});
        if let Some(id) = given_id(outcome.replay) {
            response["id"] = json!(id);
        }
        let images: Vec<Value> = outcome.images.iter().map(|image| image_part(image)).collect();
        // Older models only see pictures beside the results.
        if newest && !images.is_empty() {
            response["parts"] = Value::Array(images);
        } else {
            pictures.extend(images);
        }
        parts.push(json!({"functionResponse": response}));
    }
    parts.extend(pictures);
    parts
}

fn said_part(said: &Said<'_>) -> Value {
    match said {
        Said::Text(text) => json!({"text": text}),
        Said::Image(image) => image_part(image),
    }
}

fn image_part(Image { media_type, base64 }: &Image) -> Value {
    json!({"inlineData": {"mimeType": media_type, "data": base64}})
}

fn signature(replay: &Value) -> Option<&str> {
    replay.get("signature").and_then(Value::as_str).filter(|signature| !signature.is_empty())
}

/// The id that the provider itself gave; others it does not expect.
fn given_id(replay: Option<&Value>) -> Option<&str> {
    replay?.get("id").and_then(Value::as_str).filter(|id| !id.is_empty())
}
