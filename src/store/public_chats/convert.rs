//! From the public server's messages to ours.
//!
//! There every thought, text, call and result is a message of its own; here an answer of the model
//! is one message with all its parts, and what the calls of an answer brought is another. What a
//! vendor signed or encrypted is left behind: it belongs to the conversation it was made in.

use std::collections::HashSet;

use serde_json::{Map, Number, Value as Json};

use super::files::{self, Candidate, Layout};
use crate::base::ChatId;
use crate::base::transit::{self, Value};
use crate::llm::{Image, Message, Part, Role};
use crate::store::extra::{CallRecord, Compaction, MessageExtra, ServerToolRecord};
use crate::store::record::StoredMessage;
use crate::store::transfer::{ChatDocument, FlagDocument, MessageDocument};
use crate::store::types::MessageKind;

/// The versions whose meaning is known.
const ONE_CHAT_VERSION: i64 = 7;
const ALL_CHATS_VERSION: i64 = 6;

/// A chat, and the chat it worked for.
pub(super) type Converted = (ChatDocument, Option<ChatId>);

/// Reads a file and converts what is in it. The errors never quote the file.
pub(super) fn chats(candidate: &Candidate) -> Result<Vec<Result<Converted, String>>, String> {
    let bytes = files::read(&candidate.file)?;
    let document = transit::decode(&bytes).map_err(|error| error.to_string())?;
    drop(bytes);
    let version = match document.get("version") {
        Some(Value::Integer(version)) => *version,
        _ => return Err("it has no version".to_owned()),
    };
    match (candidate.layout, version) {
        (Layout::OneChat, ONE_CHAT_VERSION) => {
            let chat = document.get("chat").ok_or("there is no chat in it")?;
            let id = chat.get("id").and_then(Value::text).ok_or("the chat has no id")?;
            Ok(vec![convert(id, chat)])
        }
        (Layout::AllChats, ALL_CHATS_VERSION) => {
            let chats = document.get("chats").and_then(Value::entries).unwrap_or_default();
            let of_one = |(at, (id, chat)): (usize, &(Value, Value))| {
                let id = id.name().ok_or("it has no id".to_owned());
                id.and_then(|id| convert(id, chat)).map_err(|why| format!("chat {} of them: {why}", at + 1))
            };
            Ok(chats.iter().enumerate().map(of_one).collect())
        }
        _ => Err(format!("it is of version {version}, which is not known")),
    }
}

fn convert(id: &str, chat: &Value) -> Result<Converted, String> {
    if chat.entries().is_none() {
        return Err("the chat is no map".to_owned());
    }
    let text = |name: &str| chat.get(name).and_then(Value::name).map(str::to_owned);
    let updated_at = time(chat.get("updated-at")).or(time(chat.get("created-at"))).unwrap_or(0);
    let created_at = time(chat.get("created-at")).unwrap_or(updated_at);
    let messages = chat.get("messages").and_then(Value::items).unwrap_or_default();
    let answered = messages
        .iter()
        .filter(|message| message.get("role").and_then(Value::name) == Some("tool_call_output"))
        .filter_map(|message| message.get("content"))
        .map(|content| owned(content, "id"));
    let mut builder = Builder { now: created_at, answered: answered.collect(), ..Builder::default() };
    messages.iter().for_each(|message| builder.add(message));
    builder.end();
    let is_named = chat.get("title-custom?") == Some(&Value::Bool(true));
    let title = text("title");
    let document = ChatDocument {
        id: id.to_owned(),
        title_source: title.as_ref().map(|_| if is_named { "user" } else { "auto" }.to_owned()),
        title,
        model: text("model"),
        agent: text("agent"),
        variant: text("variant"),
        created_at,
        updated_at,
        messages: builder.messages,
        flags: builder.flags,
        ..ChatDocument::default()
    };
    Ok((document, text("parent-chat-id").map(ChatId::new)))
}

/// Puts messages together.
#[derive(Default)]
struct Builder {
    messages: Vec<MessageDocument>,
    flags: Vec<FlagDocument>,
    /// The answer that is being put together.
    answer: Open,
    /// The results of its calls.
    results: Open,
    /// The calls that have a result, and are described with it.
    answered: HashSet<String>,
    /// The time of the message at hand.
    now: i64,
}

#[derive(Default)]
struct Open {
    parts: Vec<Part>,
    extra: MessageExtra,
    created_at: i64,
}

impl Open {
    fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.extra == MessageExtra::default()
    }
}

impl Builder {
    fn add(&mut self, message: &Value) {
        let role = message.get("role").and_then(Value::name).unwrap_or_default();
        let content = message.get("content").unwrap_or(&Value::Null);
        let content_id = message.get("content-id").and_then(Value::text);
        self.now = time(message.get("created-at")).unwrap_or(self.now);
        match role {
            "assistant" => self.answer(spoken(content)),
            "image_generation_call" => self.answer(image(content).into_iter().collect()),
            "reason" => self.reason(content),
            "tool_call" => self.call(content),
            "server_tool_use" => self.server_tool(content),
            "server_tool_result" => self.server_tool_result(content),
            "tool_call_output" => self.result(content),
            "user" | "system" => {
                let kind = if role == "user" { MessageKind::User } else { MessageKind::SystemNote };
                self.end();
                let parts = spoken(content);
                if !parts.is_empty() {
                    self.push(
                        kind,
                        content_id,
                        Message { role: Role::User, parts },
                        &MessageExtra::default(),
                        self.now,
                    );
                }
            }
            "compact_marker" => {
                self.end();
                let auto = content.get("auto?") == Some(&Value::Bool(true));
                let extra = MessageExtra { compaction: Some(Compaction { auto }), ..MessageExtra::default() };
                self.push(MessageKind::Marker, None, Message { role: Role::User, parts: Vec::new() }, &extra, self.now);
            }
            "flag" => {
                self.end();
                let text = content.get("text").and_then(Value::text).unwrap_or_default().to_owned();
                let content_id = content_id.map_or_else(|| format!("flag-{}", self.flags.len() + 1), str::to_owned);
                self.flags.push(FlagDocument { after: self.messages.len(), content_id, text, created_at: self.now });
            }
            // A kind that nobody knows yet is no reason to lose the rest.
            _ => {}
        }
    }

    /// More of the model's answer; what its earlier calls brought comes before it.
    fn answer(&mut self, parts: Vec<Part>) {
        self.end_results();
        if self.answer.is_empty() {
            self.answer.created_at = self.now;
        }
        self.answer.parts.extend(parts);
    }

    fn reason(&mut self, content: &Value) {
        // Without a text it was for the vendor's eyes only.
        let Some(text) = content.get("text").and_then(Value::text).filter(|text| !text.is_empty()) else { return };
        self.answer(vec![Part::Reasoning { text: text.to_owned(), replay: None }]);
        self.answer.extra.reasoning_ms.push(number(content.get("total-time-ms")));
    }

    fn call(&mut self, content: &Value) {
        let record = call_record(content);
        let full_name = content.get("full-name").and_then(Value::name).map(str::to_owned);
        self.answer(vec![Part::ToolCall {
            id: record.id.clone(),
            name: full_name.unwrap_or_else(|| record.name.clone()),
            arguments: Json::Object(record.arguments.clone()).to_string(),
            replay: None,
        }]);
        if !self.answered.contains(&record.id) {
            self.answer.extra.calls.push(record);
        }
    }

    fn server_tool(&mut self, content: &Value) {
        self.answer(Vec::new());
        self.answer.extra.server_tools.push(ServerToolRecord {
            id: owned(content, "id"),
            name: owned(content, "name"),
            input: object(content.get("input")),
            ..ServerToolRecord::default()
        });
    }

    fn server_tool_result(&mut self, content: &Value) {
        let id = owned(content, "tool-use-id");
        let Some(tool) = self.answer.extra.server_tools.iter_mut().find(|tool| tool.id == id) else { return };
        let items = content.get("raw-content").and_then(Value::items).unwrap_or_default();
        let line = |item: &Value| {
            let part = |name: &str| item.get(name).and_then(Value::text);
            match (part("title"), part("url")) {
                (Some(title), Some(url)) => Some(format!("{title}: {url}")),
                (title, url) => title.or(url).or(part("text")).map(str::to_owned),
            }
        };
        tool.output = items.iter().filter_map(line).collect::<Vec<_>>().join("\n");
    }

    fn result(&mut self, content: &Value) {
        let record = call_record(content);
        self.end_answer();
        if self.results.is_empty() {
            self.results.created_at = self.now;
        }
        let output = content.get("output").unwrap_or(&Value::Null);
        let is_true = |value: Option<&Value>| value == Some(&Value::Bool(true));
        let contents = output.get("contents").unwrap_or(&Value::Null);
        let (mut texts, mut images) = (Vec::new(), Vec::new());
        for part in spoken(contents) {
            match part {
                Part::Text(text) => texts.push(text),
                Part::Image(image) => images.push(image),
                _ => {}
            }
        }
        self.results.parts.push(Part::ToolResult {
            call_id: record.id.clone(),
            text: texts.join("\n"),
            images,
            error: is_true(content.get("error")) || is_true(output.get("error")),
        });
        self.results.extra.calls.push(record);
    }

    fn end(&mut self) {
        self.end_answer();
        self.end_results();
    }

    fn end_answer(&mut self) {
        let Open { parts, extra, created_at } = std::mem::take(&mut self.answer);
        if !parts.is_empty() || extra != MessageExtra::default() {
            self.push(MessageKind::Assistant, None, Message { role: Role::Assistant, parts }, &extra, created_at);
        }
    }

    fn end_results(&mut self) {
        let Open { parts, extra, created_at } = std::mem::take(&mut self.results);
        if !parts.is_empty() {
            self.push(MessageKind::ToolResult, None, Message { role: Role::User, parts }, &extra, created_at);
        }
    }

    fn push(
        &mut self,
        kind: MessageKind,
        content_id: Option<&str>,
        message: Message,
        extra: &MessageExtra,
        created_at: i64,
    ) {
        self.messages.push(MessageDocument {
            kind: kind.as_str().to_owned(),
            content_id: content_id.map(str::to_owned),
            created_at,
            body: StoredMessage::new(message, extra.to_value()),
        });
    }
}

fn call_record(content: &Value) -> CallRecord {
    let details = content.get("details").map(json).filter(|details| !details.is_null());
    let subagent = content.get("details").and_then(|details| details.get("subagent-chat-id"));
    CallRecord {
        id: owned(content, "id"),
        name: owned(content, "name"),
        server: owned(content, "server"),
        origin: owned(content, "origin"),
        arguments: object(content.get("arguments")),
        summary: content.get("summary").and_then(Value::text).map(str::to_owned),
        details,
        total_time_ms: number(content.get("total-time-ms")),
        rejected: None,
        subagent_chat: subagent.and_then(Value::text).map(str::to_owned),
    }
}

/// Texts and images of a content, which is a text, or a list of maps with a type each.
fn spoken(content: &Value) -> Vec<Part> {
    if let Some(text) = content.text() {
        return vec![Part::Text(text.to_owned())];
    }
    let part = |item: &Value| match item.get("type").and_then(Value::name) {
        Some("image") => image(item),
        Some("text") => {
            // Older versions called it `content`.
            let text = item.get("text").or_else(|| item.get("content")).and_then(Value::text)?;
            Some(Part::Text(text.to_owned()))
        }
        _ => None,
    };
    content.items().unwrap_or_default().iter().filter_map(part).collect()
}

fn image(content: &Value) -> Option<Part> {
    let base64 = content.get("base64").and_then(Value::text)?.to_owned();
    let media_type = content.get("media-type").and_then(Value::text).unwrap_or("image/png").to_owned();
    Some(Part::Image(Image { media_type, base64 }))
}

fn owned(content: &Value, name: &str) -> String {
    content.get(name).and_then(Value::name).unwrap_or_default().to_owned()
}

fn number(value: Option<&Value>) -> Option<u64> {
    match value {
        Some(Value::Integer(number)) => u64::try_from(*number).ok(),
        _ => None,
    }
}

/// Milliseconds since 1970.
fn time(value: Option<&Value>) -> Option<i64> {
    match value {
        Some(Value::Integer(millis)) if *millis >= 0 => Some(*millis),
        _ => None,
    }
}

fn object(value: Option<&Value>) -> Map<String, Json> {
    match value.map(json) {
        Some(Json::Object(map)) => map,
        _ => Map::new(),
    }
}

/// As JSON, in which keywords are texts and what has a type of its own is what it is made of.
fn json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(flag) => Json::Bool(*flag),
        Value::Integer(number) => Json::from(*number),
        Value::Float(number) => Number::from_f64(*number).map_or(Json::Null, Json::Number),
        Value::Text(text) | Value::Keyword(text) | Value::Symbol(text) => Json::String((**text).to_owned()),
        Value::Array(items) => Json::Array(items.iter().map(json).collect()),
        Value::Map(entries) => {
            let key = |key: &Value| key.name().map_or_else(|| json(key).to_string(), str::to_owned);
            Json::Object(entries.iter().map(|(name, value)| (key(name), json(value))).collect())
        }
        Value::Tagged(_, inner) => json(inner),
    }
}
