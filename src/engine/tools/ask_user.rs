//! `ask_user`: the model asks the person in front of the editor, and waits.

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::base::text;
use crate::host::{Choice, HostError, Question, Reply};
use crate::tool::{Arguments, Preview, Tool, ToolContext, ToolOutput, ToolSpec};

const MAX_OPTIONS: usize = 20;

pub(crate) struct AskUser {
    spec: ToolSpec,
}

impl AskUser {
    pub(crate) fn new() -> Self {
        let description = "Ask the user a question when you cannot go on without an answer only they can give. \
                           Offer options where you can.";
        let parameters = json!({
            "type": "object",
            "required": ["question"],
            "properties": {
                "question": {"type": "string"},
                "options": {"type": "array", "items": {
                    "type": "object",
                    "required": ["label"],
                    "properties": {"label": {"type": "string"}, "description": {"type": "string"}},
                }},
                "allowFreeform": {"type": "boolean", "description": "Whether another answer than the options is possible (default true)."},
            },
        });
        Self { spec: ToolSpec::native("ask_user", description, parameters) }
    }
}

impl Tool for AskUser {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn summary(&self, arguments: &Arguments) -> Option<String> {
        let question = arguments.get("question").and_then(Value::as_str);
        Some(
            question.map_or_else(
                || "Preparing question".to_owned(),
                |question| format!("Q: {}", text::one_line(question, 50)),
            ),
        )
    }

    fn preview<'a>(&'a self, arguments: &'a Arguments, _: &'a ToolContext) -> BoxFuture<'a, Result<Preview, String>> {
        let summary = self.summary(arguments);
        Box::pin(std::future::ready(Ok(Preview { summary, ..Preview::default() })))
    }

    fn run<'a>(&'a self, arguments: Arguments, context: ToolContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let question = Question {
                chat: context.chat.clone(),
                call: Some(context.call.clone()),
                text: arguments.get("question").and_then(Value::as_str).unwrap_or_default().to_owned(),
                options: options(arguments.get("options")),
                allow_freeform: arguments.get("allowFreeform").and_then(Value::as_bool).unwrap_or(true),
            };
            let reply = tokio::select! {
                biased;
                () = context.stop.cancelled() => return ToolOutput::error("The user stopped before answering."),
                reply = context.host.ask(question) => reply,
            };
            match reply {
                Ok(Reply::Answer(answer)) => ToolOutput::text(answer),
                Ok(Reply::Cancelled) => ToolOutput::error("The user closed the question without an answer."),
                Err(HostError::Unsupported) => {
                    ToolOutput::error("This client cannot ask questions; decide yourself or ask in your answer.")
                }
                Err(error) => ToolOutput::error(format!("The question could not be asked: {error}.")),
            }
        })
    }
}

/// Models write options as objects, as plain texts, or as all of that inside a text.
fn options(value: Option<&Value>) -> Vec<Choice> {
    let parsed: Option<Value> = value.and_then(Value::as_str).and_then(|text| serde_json::from_str(text).ok());
    let list = parsed.as_ref().or(value).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let choice = |value: &Value| {
        let label = value.as_str().or_else(|| value.get("label")?.as_str())?.trim();
        let description = value.get("description").and_then(Value::as_str).map(str::to_owned);
        (!label.is_empty()).then(|| Choice { label: label.to_owned(), description })
    };
    list.iter().filter_map(choice).take(MAX_OPTIONS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_in_many_forms() {
        let labels = |value: Value| options(Some(&value)).into_iter().map(|choice| choice.label).collect::<Vec<_>>();
        assert_eq!(labels(json!(["a", {"label": "b", "description": "d"}, 3, {"label": " "}])), ["a", "b"]);
        assert_eq!(labels(json!("[\"x\", {\"label\": \"y\"}]")), ["x", "y"]);
        assert!(labels(json!("not json")).is_empty() && labels(json!(null)).is_empty());
        assert_eq!(options(Some(&json!([{"label": "b", "description": "d"}])))[0].description.as_deref(), Some("d"));
    }
}
