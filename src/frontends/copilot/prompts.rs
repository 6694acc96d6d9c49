//! The words with which models are asked.

use std::fmt::Write;

use serde_json::json;

use super::params::{By, Chat, Customize, Said, Wishes};
use crate::llm::{Message, Part, Role, ToolSpec};

/// What every module has to keep to.
const RULES: &str = "\
Rules for the module:
- One self-contained React module in TSX or JSX with a default export named App.
- Function components and hooks. Import from \"react\" and from nothing else.
- All styling inline or in one style element inside App.
- The module runs in a sandboxed frame without network access. Whatever talks to the API goes through the optional \
prop `request` of App: request({ method, path, query, headers, body }) returns a promise of the parsed answer. For \
GraphQL, body is { query, variables }. Without that prop, show sample data that fits the types.
- Show loading, empty and error states. Label every input.
- Never use eval, the Function constructor, dynamic import, require, cookies, browser storage, process, global or \
globalThis, and never touch the parent, top or opener window.";

pub(super) const SUBMIT: &str = "submit_interface";
pub(super) const ASK: &str = "ask_clarification";

pub(super) fn generate_system(wishes: &Wishes) -> String {
    let mut text = format!(
        "You write user interfaces for APIs. Given the description of an API, you write one React module with which \
         people can use it: lists as tables, single things as detail views, changes as forms.\n\n{RULES}\n- "
    );
    text.push_str(if wishes.dark { "Dark colours." } else { "Light colours." });
    if let Some(layout) = &wishes.layout {
        let _ = write!(text, "\n- Layout: {}.", crate::base::text::one_line(layout, 100));
    }
    if wishes.pagination {
        text.push_str("\n- Long lists have pages.");
    }
    if wishes.include_auth {
        text.push_str(
            "\n- A form for credentials comes first; they are kept in memory and sent as the API wants them.",
        );
    }
    text.push_str(
        "\n\nAnswer with the code of the module alone. Its first line is a comment of one sentence that says what the \
         interface offers.",
    );
    text
}

pub(super) fn generate_message(digest: &str, wishes: &Wishes) -> String {
    let options = json!({
        "theme": if wishes.dark { "dark" } else { "light" },
        "layout": wishes.layout.as_deref().unwrap_or("default"),
        "includeAuth": wishes.include_auth,
        "pagination": wishes.pagination,
    });
    format!("The API:\n\n{digest}\nOptions: {options}")
}

/// What is said to a model whose answer had no code in it.
pub(super) const NO_CODE: &str =
    "I found no code in your answer. Answer again, with nothing but the complete code of the module.";

/// What is said to a model whose answer ended in the middle.
pub(super) const GO_ON: &str =
    "Your answer ended in the middle of the code. Go on exactly where it ends, without repeating anything.";

pub(super) fn customize_system(with_tools: bool) -> String {
    let mut text = format!(
        "You change user interfaces that are written as one React module. You get the module, and what its user wants \
         changed. Keep everything else as it is.\n\n{RULES}\n\nIf the wish can mean clearly different things and the \
         module does not tell which, ask one question instead of guessing. Otherwise decide, and say what you assumed.\n\n"
    );
    if with_tools {
        let _ = write!(
            text,
            "Answer by calling one tool: {SUBMIT} with the complete changed module, or {ASK} with your question. If you \
             cannot call tools, answer in the following form.\n\n"
        );
    }
    text.push_str(
        "The form: the first line is one JSON object, {\"kind\":\"code\",\"description\":\"what you changed, one \
         sentence\",\"assumptions\":[\"...\"]}, and after it the complete changed module in a code block. For a question \
         it is {\"kind\":\"clarify\",\"question\":\"...\",\"options\":[\"...\"]} and nothing follows.",
    );
    text
}

pub(super) fn customize_tools() -> Vec<ToolSpec> {
    let texts = json!({"type": "array", "items": {"type": "string"}});
    vec![
        ToolSpec {
            name: SUBMIT.to_owned(),
            description: "Hands over the changed module.".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "code": {"type": "string", "description": "The complete module."},
                    "description": {"type": "string", "description": "What was changed, in one sentence."},
                    "assumptions": texts,
                },
                "required": ["code", "description"],
            }),
        },
        ToolSpec {
            name: ASK.to_owned(),
            description: "Asks the user what was meant, when the wish is ambiguous.".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "question": {"type": "string"},
                    "options": {"type": "array", "items": {"type": "string"}, "description": "Answers to choose from."},
                },
                "required": ["question"],
            }),
        },
    ]
}

pub(super) fn customize_message(customize: &Customize, digest: &str) -> String {
    let mut text = format!("The module:\n\n```tsx\n{}\n```\n", customize.code.trim_end());
    if !digest.is_empty() {
        let _ = write!(text, "\nThe API it is for:\n\n{digest}");
    }
    let _ = write!(text, "\nThe wish: {}", customize.prompt);
    if let Some(answer) = &customize.answer {
        let _ = write!(text, "\nYou asked what was meant. The answer: {answer}");
    }
    text
}

/// What is said to a model whose answer was neither code nor a question.
pub(super) const NEITHER: &str =
    "I found neither a module nor a question in your answer. Answer again, in the form you were given.";

pub(super) fn chat_system(chat: &Chat) -> String {
    let mut text = String::from(
        "You are the assistant of an application that turns API specifications into user interfaces. The application \
         takes OpenAPI 3, Swagger 2.0 and GraphQL schemas, from a file, from a URL or pasted, generates a React \
         interface for them, and changes it by request. Answer questions about that, briefly.\n",
    );
    text.push_str(match (chat.has_spec, chat.has_interface) {
        (_, true) => "A specification is loaded and its interface is shown.",
        (true, false) => "A specification is loaded; there is no interface for it yet.",
        (false, false) => "No specification is loaded yet.",
    });
    if !chat.stream {
        text.push_str(
            "\n\nAnswer with one JSON object: {\"message\": \"your answer\", \"suggestions\": [\"up to three short \
             things the user could do or ask next\"]}",
        );
    }
    text
}

pub(super) fn message(role: Role, text: impl Into<String>) -> Message {
    Message { role, parts: vec![Part::Text(text.into())] }
}

/// An earlier conversation, as the model sees it.
pub(super) fn earlier(history: &[Said]) -> Vec<Message> {
    let one = |said: &Said| match said.by {
        By::User => message(Role::User, said.text.as_str()),
        By::Assistant => message(Role::Assistant, said.text.as_str()),
        By::System => message(Role::User, format!("(A note of the application: {})", said.text)),
    };
    history.iter().map(one).collect()
}
