//! The order that comes out, by table and for any history.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::providers::dialects::testing::{any_history, assistant, called, image, replay as own, result, said, user};

const RULES: Rules<'static> = Rules { dialect: "gemini", source: Some("acme/m"), images: true };

/// The turns as short words: `u:text`, `a:text`, `call id`, `id=outcome`.
fn shape(messages: &[Message], rules: Rules<'_>) -> Vec<String> {
    let mut words = Vec::new();
    for turn in turns(messages, rules) {
        match turn {
            Turn::User(said) => words.extend(said.iter().map(|said| match said {
                Said::Text(text) => format!("u:{text}"),
                Said::Image(_) => "u:image".to_owned(),
            })),
            Turn::Assistant(answer) => {
                words.extend(answer.parts.iter().map(|part| match part {
                    Did::Text(text) => format!("a:{text}"),
                    Did::Image(_) => "a:image".to_owned(),
                    Did::Reasoning { text, .. } => format!("thought {text}"),
                    Did::Call(call) => format!("call {}", call.id),
                    Did::Opaque(_) => "opaque".to_owned(),
                }));
                words.extend(answer.outcomes.iter().map(|outcome| format!("{}={}", outcome.call_id, outcome.text)));
            }
        }
    }
    words
}

#[test]
fn outcomes_follow_their_calls_in_order_and_words_wait() {
    let found = shape(
        &[
            assistant(vec![called("a", "{}", None), called("b", "{}", None)]),
            user(vec![said("hurry"), result("b", "2", vec![])]),
            user(vec![result("a", "1", vec![]), result("gone", "3", vec![])]),
        ],
        RULES,
    );
    assert_eq!(found, ["call a", "call b", "a=1", "b=2", "u:hurry", "u:Result of an earlier tool call: 3"]);
}

#[test]
fn a_second_result_for_the_same_call_is_told_in_words() {
    let results = user(vec![result("a", "1", vec![]), result("a", "2", vec![])]);
    let found = shape(&[assistant(vec![called("a", "{}", None)]), results], RULES);
    assert_eq!(found, ["call a", "a=1", "u:Result of an earlier tool call: 2"]);
}

#[test]
fn what_is_missing_is_filled_in() {
    let interrupted = "a=(the call was interrupted and has no result)";
    let messages = [assistant(vec![called("a", "{}", None)]), user(vec![said("x")]), assistant(vec![said("y")])];
    assert_eq!(shape(&messages, RULES), ["call a", interrupted, "u:x", "a:y"]);
    assert_eq!(shape(&messages[..1], RULES), ["call a", interrupted]);
}

#[test]
fn ids_are_unique_and_plain() {
    let round = |id: &str| vec![assistant(vec![called(id, "{}", None)]), user(vec![result(id, "r", vec![])])];
    let found = shape(&[round("a"), round("a"), round("é"), round("")].concat(), RULES);
    let expected = ["call a", "a=r", "call call_2", "call_2=r", "call call_3", "call_3=r", "call call_4", "call_4=r"];
    assert_eq!(found, expected);
}

#[test]
fn only_the_models_own_replays_stay() {
    let thought = |dialect: &str, source: &str| Part::Reasoning {
        text: format!("{dialect} {source}"),
        replay: Some(own(dialect, json!({"source": source}))),
    };
    let parts = vec![
        thought("gemini", "acme/m"),
        thought("gemini", "acme/other"),
        thought("anthropic", "acme/m"),
        Part::Reasoning { text: "bare".to_owned(), replay: None },
        said("x"),
    ];
    let messages = [assistant(parts)];
    assert_eq!(shape(&messages, RULES), ["thought gemini acme/m", "a:x"]);
    let any = Rules { source: None, ..RULES };
    assert_eq!(shape(&messages, any), ["thought gemini acme/m", "thought gemini acme/other", "a:x"]);
    let alone = [user(vec![said("a")]), assistant(vec![thought("gemini", "acme/m")]), user(vec![said("b")])];
    assert_eq!(turns(&alone, RULES).len(), 1, "thoughts alone are no turn");
}

#[test]
fn images_become_words_for_a_model_that_takes_none() {
    let messages = [
        user(vec![Part::Image(image("QUJD"))]),
        assistant(vec![Part::Image(image("QUJD")), called("a", "{}", None)]),
        user(vec![result("a", "r", vec![image("QUJD")])]),
    ];
    let found = shape(&messages, Rules { images: false, ..RULES });
    let unseen = "[an image that this model cannot see]";
    assert_eq!(found, [format!("u:{unseen}"), "a:[an image]".into(), "call a".into(), format!("a=r\n\n{unseen}")]);
}

#[test]
fn names_are_plain() {
    for (name, expected) in [("ls", "ls"), ("", "unknown"), ("a.b/c d", "a_b_c_d"), ("1x", "_1x"), ("é", "_")] {
        assert_eq!(plain_name(name), expected);
    }
    assert_eq!((plain_name(&"n".repeat(99)).len(), plain_name(&"1".repeat(99)).len()), (64, 64));
}

proptest! {
    #[test]
    fn any_history_becomes_a_strict_one(messages in any_history(), images in any::<bool>()) {
        let turns = turns(&messages, Rules { images, ..RULES });
        let mut ids = HashSet::new();
        let mut users_side = true;
        for (at, turn) in turns.iter().enumerate() {
            match turn {
                Turn::User(said) => {
                    prop_assert!(!said.is_empty());
                    prop_assert!(at == 0 || !matches!(turns[at - 1], Turn::User(_)));
                    users_side = true;
                }
                Turn::Assistant(answer) => {
                    prop_assert!(users_side, "two answers in a row");
                    let calls: Vec<&Call<'_>> =
                        answer.parts.iter().filter_map(|part| if let Did::Call(call) = part { Some(call) } else { None }).collect();
                    prop_assert_eq!(calls.len(), answer.outcomes.len());
                    for (call, outcome) in calls.iter().zip(&answer.outcomes) {
                        prop_assert_eq!(&call.id, &outcome.call_id);
                        prop_assert!(!call.name.is_empty() && ids.insert(call.id.clone()) && !outcome.text.is_empty());
                    }
                    users_side = !answer.outcomes.is_empty();
                }
            }
        }
    }

    /// Nothing that a person or a tool said is lost.
    #[test]
    fn nothing_said_is_lost(messages in any_history()) {
        let found = shape(&messages, RULES).join("\n");
        let results: usize = messages.iter().filter(|message| message.role == Role::User).flat_map(|message| &message.parts)
            .filter(|part| matches!(part, Part::ToolResult { text, .. } if text == "é€😀")).count();
        let words: usize = messages.iter().flat_map(|message| &message.parts)
            .filter(|part| matches!(part, Part::Text(text) if text == "é€😀")).count();
        let thoughts = found.matches("thought é€😀").count();
        prop_assert_eq!(found.matches("é€😀").count() - thoughts, results + words);
    }
}
