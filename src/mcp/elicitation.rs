//! A server's form becomes questions to the user, one per field, and the answers become the form's
//! content.

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::{Map, Number, Value};

use super::calls::Call;
use crate::base::text::prefix;
use crate::host::{Choice, HostError, Question, Reply};

/// A longer form is not for a chat.
const MOST_FIELDS: usize = 20;
/// How often an answer that does not fit is asked for again.
const TRIES: usize = 3;
const MOST_TEXT: usize = 4_000;
const MOST_CHOICES: usize = 100;

const YES: &str = "Yes";
const NO: &str = "No";
const SKIP: &str = "Skip";
const DONE: &str = "Done";
const DECLINE: &str = "Decline";

/// What a field takes.
#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Text {
        least: usize,
        most: usize,
    },
    Number {
        whole: bool,
        least: f64,
        most: f64,
    },
    Flag,
    /// The value and what it is called.
    One(Vec<(String, String)>),
    Several(Vec<(String, String)>),
}

#[derive(Debug, Clone, PartialEq)]
struct Field {
    name: String,
    /// What the user reads about it.
    about: String,
    required: bool,
    kind: Kind,
}

/// Why there is no content.
enum Ending {
    Declined,
    Cancelled,
}

/// Asks on behalf of `call`. The caller bounds the waiting.
pub(super) async fn ask(server: &str, request: ElicitRequestParams, call: &Call) -> ElicitResult {
    let content = match request {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            let order = requested_schema.property_order.clone();
            let schema = serde_json::to_value(&requested_schema).unwrap_or_default();
            form(server, &message, &schema, order, call).await.map(|content| Some(Value::Object(content)))
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
            address(server, &message, &url, call).await.map(|()| None)
        }
        _ => Err(Ending::Declined),
    };
    match content {
        Ok(Some(content)) => ElicitResult::new(ElicitationAction::Accept).with_content(content),
        Ok(None) => ElicitResult::new(ElicitationAction::Accept),
        Err(Ending::Declined) => ElicitResult::new(ElicitationAction::Decline),
        Err(Ending::Cancelled) => ElicitResult::new(ElicitationAction::Cancel),
    }
}

async fn form(
    server: &str,
    message: &str,
    schema: &Value,
    order: Option<Vec<String>>,
    call: &Call,
) -> Result<Map<String, Value>, Ending> {
    let opening = opening(server, message);
    let Some(fields) = fields(schema, order) else {
        tracing::info!(server, "a form of an MCP server is declined: it cannot be asked in a chat");
        return Err(Ending::Declined);
    };
    let mut content = Map::new();
    if fields.is_empty() {
        return match put(call, opening, &[YES, NO], false).await?.trim() {
            answer if is_same(answer, YES) => Ok(content),
            _ => Err(Ending::Declined),
        };
    }
    for (index, field) in fields.iter().enumerate() {
        // The server's message is not repeated with each of its fields.
        let start = if index == 0 { format!("{opening}\n\n") } else { String::new() };
        if let Some(value) = one_field(&start, field, call).await? {
            content.insert(field.name.clone(), value);
        }
    }
    Ok(content)
}

async fn one_field(start: &str, field: &Field, call: &Call) -> Result<Option<Value>, Ending> {
    let mut complaint = String::new();
    for _ in 0..TRIES {
        let text = format!("{start}{complaint}{}", field.about);
        let mut options: Vec<&str> = match &field.kind {
            Kind::Flag => vec![YES, NO],
            Kind::One(choices) | Kind::Several(choices) => choices.iter().map(|(_, label)| label.as_str()).collect(),
            Kind::Text { .. } | Kind::Number { .. } => Vec::new(),
        };
        if !field.required {
            options.push(SKIP);
        }
        let is_open = !matches!(field.kind, Kind::Flag | Kind::One(_));
        let answer = put(call, text, &options, is_open).await?;
        if !field.required && (answer.trim().is_empty() || is_same(&answer, SKIP)) {
            return Ok(None);
        }
        match value_of(&field.kind, answer.trim()) {
            Ok(value) => return Ok(Some(value)),
            Err(reason) => complaint = format!("That does not fit: {reason}.\n"),
        }
    }
    Err(Ending::Declined)
}

async fn address(server: &str, message: &str, url: &str, call: &Call) -> Result<(), Ending> {
    // Anything else could start a program on the user's machine.
    if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err(Ending::Declined);
    }
    let text = format!("{}\n\nIt asks you to open this address:\n{}", opening(server, message), prefix(url, MOST_TEXT));
    match put(call, text, &[DONE, DECLINE], false).await? {
        answer if is_same(&answer, DONE) => Ok(()),
        _ => Err(Ending::Declined),
    }
}

async fn put(call: &Call, text: String, options: &[&str], allow_freeform: bool) -> Result<String, Ending> {
    let question = Question {
        chat: call.context.chat.clone(),
        call: Some(call.context.call.clone()),
        text,
        options: options.iter().map(|label| Choice { label: (*label).to_owned(), description: None }).collect(),
        allow_freeform: allow_freeform || options.is_empty(),
    };
    match call.context.host.ask(question).await {
        Ok(Reply::Answer(answer)) => Ok(answer),
        Ok(Reply::Cancelled) | Err(HostError::Gone) => Err(Ending::Cancelled),
        Err(error) => {
            tracing::info!(%error, "the user could not be asked for an MCP server");
            Err(Ending::Declined)
        }
    }
}

/// Who asks comes first: the rest is a stranger's text.
fn opening(server: &str, message: &str) -> String {
    format!("The MCP server {server} asks: {}", prefix(message.trim(), MOST_TEXT))
}

/// The fields in their order; nothing for a form that cannot be asked.
fn fields(schema: &Value, order: Option<Vec<String>>) -> Option<Vec<Field>> {
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    if properties.len() > MOST_FIELDS {
        return None;
    }
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let names = order.unwrap_or_else(|| properties.keys().cloned().collect());
    let known = names.iter().filter_map(|name| properties.get_key_value(name.as_str()));
    known.map(|(name, property)| field(name, property, required.contains(&name.as_str()))).collect()
}

fn field(name: &str, property: &Value, required: bool) -> Option<Field> {
    let text = |key: &str| property.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    let kind = kind(property)?;
    let mut about = text("title").unwrap_or(name).to_owned();
    if let Some(description) = text("description") {
        about.push_str(&format!(": {description}"));
    }
    let hint = match &kind {
        Kind::Number { whole: true, .. } => Some("a whole number".to_owned()),
        Kind::Number { .. } => Some("a number".to_owned()),
        Kind::Several(_) => Some("one or more, with commas between".to_owned()),
        Kind::Text { .. } => text("format").map(str::to_owned),
        Kind::Flag | Kind::One(_) => None,
    };
    let optional = (!required).then(|| "optional".to_owned());
    let default = property.get("default").filter(|value| !value.is_null()).map(|value| format!("default {value}"));
    let notes: Vec<String> = [hint, optional, default].into_iter().flatten().collect();
    if !notes.is_empty() {
        about.push_str(&format!(" ({})", notes.join(", ")));
    }
    Some(Field { name: name.to_owned(), about: prefix(&about, MOST_TEXT).to_owned(), required, kind })
}

fn kind(property: &Value) -> Option<Kind> {
    let number = |key: &str, otherwise: f64| property.get(key).and_then(Value::as_f64).unwrap_or(otherwise);
    let length = |key: &str, otherwise: usize| {
        let length = property.get(key).and_then(Value::as_u64);
        length.map_or(otherwise, |length| usize::try_from(length).unwrap_or(usize::MAX))
    };
    if let Some(choices) = choices(property) {
        return choices.map(Kind::One);
    }
    match property.get("type").and_then(Value::as_str)? {
        "string" => Some(Kind::Text { least: length("minLength", 0), most: length("maxLength", usize::MAX) }),
        kind @ ("number" | "integer") => Some(Kind::Number {
            whole: kind == "integer",
            least: number("minimum", f64::NEG_INFINITY),
            most: number("maximum", f64::INFINITY),
        }),
        "boolean" => Some(Kind::Flag),
        "array" => choices(property.get("items")?)?.map(Kind::Several),
        _ => None,
    }
}

/// The values to choose from, if that is what it is; the inner option says whether they can be shown.
fn choices(property: &Value) -> Option<Option<Vec<(String, String)>>> {
    let list = |key: &str| property.get(key).and_then(Value::as_array);
    let found: Vec<(String, String)> = if let Some(values) = list("enum") {
        let names: Vec<&str> = list("enumNames").into_iter().flatten().filter_map(Value::as_str).collect();
        let values = values.iter().filter_map(Value::as_str).enumerate();
        values.map(|(index, value)| (value.to_owned(), names.get(index).unwrap_or(&value).to_string())).collect()
    } else {
        let titled = list("oneOf").or_else(|| list("anyOf"))?;
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        titled
            .iter()
            .filter_map(|value| Some((text(value, "const")?, text(value, "title").or(text(value, "const"))?)))
            .collect()
    };
    Some((!found.is_empty() && found.len() <= MOST_CHOICES).then_some(found))
}

/// What an answer means; the error completes "That does not fit: …".
fn value_of(kind: &Kind, answer: &str) -> Result<Value, String> {
    let chosen = |choices: &[(String, String)], answer: &str| {
        let found = choices.iter().find(|(value, label)| is_same(label, answer) || is_same(value, answer));
        found.map(|(value, _)| Value::from(value.as_str())).ok_or_else(|| "it is not one of the choices".to_owned())
    };
    match kind {
        Kind::Text { least, most } => match answer.chars().count() {
            length if length < *least => Err(format!("it needs at least {least} characters")),
            length if length > *most => Err(format!("it may have at most {most} characters")),
            _ => Ok(answer.into()),
        },
        Kind::Number { whole, least, most } => {
            let number = answer.parse::<f64>().ok().filter(|number| number.is_finite());
            let number = number.ok_or_else(|| "it is not a number".to_owned())?;
            if *whole && number.fract() != 0.0 {
                return Err("it is not a whole number".to_owned());
            }
            if number < *least || number > *most {
                return Err(format!("it must be from {least} to {most}"));
            }
            let exact = answer.parse::<i64>().ok().map(Number::from);
            exact.or_else(|| Number::from_f64(number)).map(Value::Number).ok_or_else(|| "it is not a number".to_owned())
        }
        Kind::Flag => match answer.to_lowercase().as_str() {
            "yes" | "y" | "true" => Ok(true.into()),
            "no" | "n" | "false" => Ok(false.into()),
            _ => Err("it is neither yes nor no".to_owned()),
        },
        Kind::One(choices) => chosen(choices, answer),
        Kind::Several(choices) => {
            let parts = answer.split(',').map(str::trim).filter(|part| !part.is_empty());
            parts.map(|part| chosen(choices, part)).collect::<Result<Vec<_>, _>>().map(Value::Array)
        }
    }
}

fn is_same(a: &str, b: &str) -> bool {
    a.trim().to_lowercase() == b.trim().to_lowercase()
}

#[cfg(test)]
mod tests;
