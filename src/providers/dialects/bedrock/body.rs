//! A request as the body of Converse, for whichever vendor's model answers it.

use serde_json::{Map, Value, json};

use super::NAME;
use crate::config::ModelConfig;
use crate::llm::{Request, Role, ToolSpec};
use crate::providers::dialects::turns::{self, Answer, Block, Picture, Rules, Turn};
use crate::providers::dialects::{claude, payload};

/// What Converse takes besides what is built here; anything else is refused by it.
const MEMBERS: [&str; 12] = [
    "additionalModelRequestFields",
    "additionalModelResponseFieldPaths",
    "guardrailConfig",
    "inferenceConfig",
    "messages",
    "outputConfig",
    "performanceConfig",
    "promptVariables",
    "requestMetadata",
    "serviceTier",
    "system",
    "toolConfig",
];

/// How Anthropic's own interface names what Converse passes on to a model as it is.
const PASSED_ON: [&str; 2] = ["thinking", "output_config"];
const ADDITIONAL: &str = "additionalModelRequestFields";

/// Whether the answer shall be streamed, and the whole body. `model` is the configuration of the
/// request's model.
pub(super) fn build(request: &Request, model: &ModelConfig) -> (bool, Map<String, Value>) {
    let name = model.model_name.as_deref().unwrap_or_else(|| request.model.model());
    let family = Family::of(name);
    let rules = Rules {
        dialect: NAME,
        model: &request.model,
        images: model.image_input != Some(false),
        images_in_results: family != Family::Other,
        // Calls in the conversation without tools in the request are refused.
        tools: !request.tools.is_empty(),
        max_name_chars: 64,
        may_end_with_assistant: false,
    };
    let turns = turns::strict(&request.messages, rules);
    let mut body = Map::new();
    let mut messages: Vec<Value> = turns.iter().map(|turn| message(turn, family)).collect();
    let cache = Cache::of(name);
    if cache.conversation
        && let Some(content) = messages.last_mut().and_then(|last| last["content"].as_array_mut())
    {
        content.push(cache_point());
    }
    body.insert("messages".to_owned(), Value::Array(messages));
    if !request.system.trim().is_empty() {
        let mut system = vec![json!({"text": request.system})];
        system.extend(cache.conversation.then(cache_point));
        body.insert("system".to_owned(), Value::Array(system));
    }
    if !request.tools.is_empty() {
        let mut tools: Vec<Value> = request.tools.iter().map(tool).collect();
        tools.extend(cache.tools.then(cache_point));
        body.insert("toolConfig".to_owned(), json!({"tools": tools}));
    }
    let limit = match (request.max_output_tokens, model.output_limit) {
        (Some(wanted), Some(possible)) => Some(wanted.min(possible)),
        (wanted, possible) => wanted.or(possible),
    };
    if let Some(limit) = limit {
        body.insert("inferenceConfig".to_owned(), json!({"maxTokens": limit}));
    }
    let mut streamed = true;
    for extra in [&model.extra_payload, &request.payload] {
        if let Some(wish) = extra.get("stream").and_then(Value::as_bool) {
            streamed = wish;
        }
        add(&mut body, extra);
    }
    settle_thinking(&mut body, request.reasoning, turns::answers_thoughtless_calls(&turns));
    (streamed, body)
}

/// Merges what the user adds, translated.
fn add(body: &mut Map<String, Value>, extra: &Map<String, Value>) {
    let mut translated = Map::new();
    let mut passed_on = Map::new();
    for (key, value) in extra {
        if PASSED_ON.contains(&key.as_str()) {
            passed_on.insert(key.clone(), value.clone());
        } else if MEMBERS.contains(&key.as_str()) {
            translated.insert(key.clone(), value.clone());
        } else if key != "stream" {
            tracing::debug!(key, "Converse has no such member; left out");
        }
    }
    // Halves of two different ways to think make none.
    if passed_on.contains_key("thinking")
        && let Some(Value::Object(before)) = body.get_mut(ADDITIONAL)
    {
        before.remove("thinking");
    }
    payload::merge(body, &translated);
    if !passed_on.is_empty() {
        payload::merge(body, &Map::from_iter([(ADDITIONAL.to_owned(), Value::Object(passed_on))]));
    }
}

/// Takes away what the request or the conversation does not allow.
fn settle_thinking(body: &mut Map<String, Value>, reasoning: bool, thoughtless: bool) {
    let Some(Value::Object(fields)) = body.get_mut(ADDITIONAL) else { return };
    if !reasoning {
        for key in ["thinking", "output_config", "reasoning_config"] {
            fields.remove(key);
        }
    }
    if thoughtless {
        for key in ["thinking", "reasoning_config"] {
            if fields.get(key).is_some_and(|thinking| thinking["type"] == "enabled") {
                fields.remove(key);
            }
        }
    }
    if fields.is_empty() {
        body.remove(ADDITIONAL);
    }
}

/// Whose model it is, as far as it makes a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Claude,
    Nova,
    Other,
}

impl Family {
    fn of(name: &str) -> Self {
        if name.contains("anthropic.claude") {
            Self::Claude
        } else if name.contains("amazon.nova") {
            Self::Nova
        } else {
            Self::Other
        }
    }
}

/// Where a model takes marks for its cache. A model that is not known to take them would refuse
/// the request, so a name that hides the model, as that of an inference profile, gets none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Cache {
    conversation: bool,
    tools: bool,
}

impl Cache {
    fn of(name: &str) -> Self {
        let nova = ["nova-micro", "nova-lite", "nova-pro", "nova-premier"];
        match Family::of(name) {
            Family::Claude => {
                let new = claude::version(name).is_some_and(|version| version >= (3, 7));
                let takes = new || name.contains("claude-3-5-haiku");
                Self { conversation: takes, tools: takes }
            }
            Family::Nova => {
                Self { conversation: nova.iter().any(|kind| name.contains(&format!("amazon.{kind}"))), tools: false }
            }
            Family::Other => Self::default(),
        }
    }
}

fn cache_point() -> Value {
    json!({"cachePoint": {"type": "default"}})
}

fn tool(spec: &ToolSpec) -> Value {
    let mut schema = spec.parameters.as_object().cloned().unwrap_or_default();
    schema.entry("type").or_insert_with(|| json!("object"));
    if schema.len() == 1 {
        schema.insert("properties".to_owned(), json!({}));
    }
    let mut tool = json!({"name": spec.name, "inputSchema": {"json": schema}});
    if !spec.description.trim().is_empty() {
        tool["description"] = json!(spec.description);
    }
    json!({"toolSpec": tool})
}

fn message(turn: &Turn<'_>, family: Family) -> Value {
    let role = match turn.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    json!({"role": role, "content": turn.blocks.iter().map(|part| block(part, family)).collect::<Vec<_>>()})
}

fn block(block: &Block<'_>, family: Family) -> Value {
    match block {
        Block::Text(text) => json!({"text": text}),
        Block::Picture(picture) => image(picture),
        Block::Call { id, name, input } => json!({"toolUse": {"toolUseId": id, "name": name, "input": input}}),
        Block::Answer(answer) => result(answer, family),
        Block::Thinking { text, signature } => {
            json!({"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}})
        }
        Block::Opaque(block) => (*block).clone(),
    }
}

fn result(answer: &Answer<'_>, family: Family) -> Value {
    // Only these vendors' models know a failed result; the others have to read it.
    let marked = answer.error && family != Family::Other;
    let mut content = Vec::new();
    if !answer.text.trim().is_empty() {
        let prefix = if answer.error && !marked { "Error: " } else { "" };
        content.push(json!({"text": format!("{prefix}{}", answer.text)}));
    }
    content.extend(answer.pictures.iter().map(image));
    let mut result = json!({"toolUseId": answer.id, "content": content});
    if marked {
        result["status"] = json!("error");
    }
    json!({"toolResult": result})
}

fn image(picture: &Picture<'_>) -> Value {
    json!({"image": {"format": picture.format, "source": {"bytes": picture.base64}}})
}
