//! Messages as short lines, so that a test can state an order as a list.

use serde_json::Value;

/// One line per message; the pieces of one text become one line, whatever their number.
pub fn outline(messages: &[Value]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut answer: Option<String> = None;
    for message in messages {
        let params = &message["params"];
        let is_answer = params["role"] == "assistant" && params["content"]["type"] == "text";
        if is_answer {
            let text = params["content"]["text"].as_str().unwrap_or_default();
            answer.get_or_insert_default().push_str(text);
            continue;
        }
        lines.extend(answer.take().map(|text| format!("assistant {text:?}")));
        let line = line(message);
        let repeats = lines.last() == Some(&line) && (line.starts_with("toolCallPrepare") || line == "reasonText");
        if !repeats {
            lines.push(line);
        }
    }
    lines.extend(answer.map(|text| format!("assistant {text:?}")));
    lines
}

/// Whether this message ends a turn of `chat`.
pub fn is_finished(message: &Value, chat: &str) -> bool {
    message["params"]["chatId"] == chat && line(message) == "finished"
}

/// The texts of one role, joined.
pub fn text_by(role: &str, messages: &[Value]) -> String {
    let texts = messages.iter().map(|message| &message["params"]);
    let texts = texts.filter(|params| params["role"] == role && params["content"]["type"] == "text");
    texts.filter_map(|params| params["content"]["text"].as_str()).collect()
}

/// The contents of one type, in order.
pub fn contents<'a>(kind: &str, messages: &'a [Value]) -> Vec<&'a Value> {
    let all = messages.iter().map(|message| &message["params"]["content"]);
    all.filter(|content| content["type"] == kind).collect()
}

fn line(message: &Value) -> String {
    let Some(method) = message["method"].as_str() else {
        return match message.get("error") {
            Some(error) => format!("error {}", error["code"]),
            None => "response".to_owned(),
        };
    };
    let params = &message["params"];
    match method {
        "chat/statusChanged" => format!("status {}", word(&params["status"])),
        "chat/contentReceived" => {
            let content = &params["content"];
            match word(&content["type"]) {
                "text" if params["role"] == "user" => format!("user {}", content["text"]),
                "text" => format!("{} text", word(&params["role"])),
                "progress" if content["state"] == "finished" => "finished".to_owned(),
                "progress" => format!("progress {}", word(&content["text"])),
                kind if kind.starts_with("toolCall") => format!("{kind} {}", word(&content["id"])),
                kind => kind.to_owned(),
            }
        }
        other => other.to_owned(),
    }
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}
