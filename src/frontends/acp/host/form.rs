//! A question to the user as a form, and the form's content as their answer.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1::{
    ElicitationAction, ElicitationContentValue, ElicitationSchema, EnumOption, StringPropertySchema,
};

use crate::host::{Question, Reply};

/// The field for what the user writes.
const ANSWER: &str = "answer";
/// The field for what the user chooses.
const CHOICE: &str = "choice";

/// One field to choose from, one to write in, or both; at least one of them is there.
pub(super) fn schema(question: &Question) -> ElicitationSchema {
    let options: Vec<EnumOption> = question
        .options
        .iter()
        .map(|choice| {
            EnumOption::new(choice.label.clone(), choice.label.clone()).description(choice.description.clone())
        })
        .collect();
    let has_options = !options.is_empty();
    let mut schema = ElicitationSchema::new();
    if has_options {
        let mut choice = StringPropertySchema::new().title("Choose".to_owned());
        choice.one_of = Some(options);
        schema = schema.property(CHOICE, choice, !question.allow_freeform);
    }
    if question.allow_freeform || !has_options {
        let title = if has_options { "Or write another answer" } else { "Answer" };
        schema = schema.property(ANSWER, StringPropertySchema::new().title(title.to_owned()), !has_options);
    }
    schema
}

/// What the user wrote counts more than what they chose.
pub(super) fn reply(question: &Question, action: ElicitationAction) -> Reply {
    let ElicitationAction::Accept(accepted) = action else { return Reply::Cancelled };
    let content: BTreeMap<String, ElicitationContentValue> = accepted.content.unwrap_or_default();
    let text = |name: &str| match content.get(name) {
        Some(ElicitationContentValue::String(text)) => Some(text.clone()),
        Some(ElicitationContentValue::Integer(number)) => Some(number.to_string()),
        Some(ElicitationContentValue::Number(number)) => Some(number.to_string()),
        Some(ElicitationContentValue::Boolean(flag)) => Some(flag.to_string()),
        Some(ElicitationContentValue::StringArray(texts)) => Some(texts.join(", ")),
        _ => None,
    };
    let said = |name: &str| text(name).filter(|text| !text.trim().is_empty());
    let known =
        |label: &String| question.allow_freeform || question.options.iter().any(|choice| choice.label == *label);
    match said(ANSWER).or_else(|| said(CHOICE).filter(known)) {
        Some(answer) => Reply::Answer(answer),
        None => Reply::Cancelled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ChatId;
    use crate::host::Choice;
    use serde_json::{Value, json};

    fn question(options: &[&str], allow_freeform: bool) -> Question {
        let choice = |label: &&str| Choice { label: (*label).to_owned(), description: None };
        Question {
            chat: ChatId::new("c"),
            call: None,
            text: "?".into(),
            options: options.iter().map(choice).collect(),
            allow_freeform,
        }
    }

    fn fields(options: &[&str], allow_freeform: bool) -> (Vec<String>, Value) {
        let schema = serde_json::to_value(schema(&question(options, allow_freeform))).unwrap();
        (schema["properties"].as_object().unwrap().keys().cloned().collect(), schema["required"].clone())
    }

    #[test]
    fn there_is_always_a_way_to_answer() {
        assert_eq!(fields(&[], true), (vec!["answer".into()], json!(["answer"])));
        assert_eq!(fields(&[], false), (vec!["answer".into()], json!(["answer"])));
        assert_eq!(fields(&["a"], false), (vec!["choice".into()], json!(["choice"])));
        let (names, required) = fields(&["a", "b"], true);
        assert_eq!(names, ["answer", "choice"]);
        assert!(required.is_null() || required == json!([]), "{required}");
    }

    #[test]
    fn answers_are_read_and_unknown_choices_are_none() {
        let read = |question: &Question, action: Value| reply(question, serde_json::from_value(action).unwrap());
        let accept = |content: Value| json!({"action": "accept", "content": content});
        let open = question(&["a", "b"], true);
        assert_eq!(read(&open, accept(json!({"choice": "a"}))), Reply::Answer("a".into()));
        assert_eq!(read(&open, accept(json!({"choice": "a", "answer": "c"}))), Reply::Answer("c".into()));
        assert_eq!(read(&open, accept(json!({"answer": " "}))), Reply::Cancelled);
        assert_eq!(read(&question(&["a"], false), accept(json!({"choice": "z"}))), Reply::Cancelled);
        assert_eq!(read(&open, json!({"action": "decline"})), Reply::Cancelled);
        assert_eq!(read(&open, json!({"action": "cancel"})), Reply::Cancelled);
        assert_eq!(read(&open, json!({"action": "accept"})), Reply::Cancelled);
    }
}
