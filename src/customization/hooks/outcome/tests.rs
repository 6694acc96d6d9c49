//! What exit codes and answers mean, for every type of hook.

use serde_json::json;

use super::*;

const KINDS: [HookType; 13] = HookType::ALL;

fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

#[test]
fn each_type_honours_its_own_fields() {
    let all = json!({"systemMessage": "m", "suppressOutput": true, "additionalContext": "c", "replacedPrompt": "p",
        "replacedOutput": "o", "followUp": "f", "updatedInput": {"a": 1}, "approval": "deny"});
    let text = |text: &str| Some(text.to_owned());
    for kind in KINDS {
        let outcome = interpret(kind, &Exit::Code(0), &format!("\n{all}\n"), "noise");
        let mut expected = HookOutcome { display: outcome.display.clone(), ..HookOutcome::default() };
        match kind {
            HookType::ChatStart | HookType::SubagentStart | HookType::PostCompact => {
                expected.additional_context = text("c");
            }
            HookType::PreRequest => {
                expected.additional_context = text("c");
                expected.replaced_prompt = text("p");
            }
            HookType::PostRequest | HookType::SubagentPostRequest => expected.follow_up = text("f"),
            HookType::PreToolCall => {
                expected.updated_input = object(json!({"a": 1}));
                expected.approval = Some(Ruling::Deny);
                expected.rejection = text("c");
            }
            HookType::PostToolCall => {
                expected.replaced_output = text("o");
                expected.additional_context = text("c");
            }
            HookType::PreCompact => {}
            HookType::SessionStart | HookType::SessionEnd | HookType::ChatEnd | HookType::ChatStatusChanged => {
                assert_eq!(outcome, HookOutcome::default(), "{kind:?} has no effect and no face");
                continue;
            }
        }
        expected.system_message = text("m");
        expected.suppress_output = true;
        assert_eq!(outcome, expected, "{kind:?}");
    }
}

#[test]
fn exit_code_two_steps_in() {
    for kind in KINDS {
        let outcome = interpret(kind, &Exit::Code(2), r#"{"approval": "allow", "continue": false}"#, " because\n");
        let silent = interpret(kind, &Exit::Code(2), "", "");
        let said = Some("because".to_owned());
        assert_eq!(outcome.stop, None, "{kind:?}: the other hooks go on");
        match kind {
            HookType::PreRequest | HookType::PreCompact => {
                assert_eq!((outcome.block, silent.block), (said, Some(String::new())));
            }
            HookType::PostRequest | HookType::SubagentPostRequest => {
                assert_eq!((outcome.follow_up, silent.follow_up), (said, None));
            }
            HookType::PreToolCall => {
                assert_eq!((outcome.approval, outcome.rejection), (Some(Ruling::Deny), said));
                assert_eq!((silent.approval, silent.rejection), (Some(Ruling::Deny), None));
            }
            HookType::PostToolCall => {
                assert_eq!((outcome.replaced_output, silent.replaced_output.as_deref()), (said, Some(HIDDEN_OUTPUT)));
            }
            _ => {
                assert!(outcome.error.unwrap().ends_with("here: because"), "{kind:?}");
                assert!(silent.error.is_some(), "{kind:?}");
            }
        }
    }
}

#[test]
fn other_ends_are_errors_that_change_nothing_but_an_unanswered_question() {
    for kind in KINDS {
        let failed = interpret(kind, &Exit::Code(1), r#"{"approval": "allow"}"#, "oops");
        let expected = HookOutcome {
            error: Some("it ended with exit code 1: oops".into()),
            display: Some(r#"{"approval": "allow"}"#.into()),
            ..HookOutcome::default()
        };
        assert_eq!(failed, expected, "{kind:?}");
        for exit in [Exit::TimedOut(Duration::from_millis(1500)), Exit::NotStarted("no bash".into())] {
            let outcome = interpret(kind, &exit, "", "");
            let asks = (kind == HookType::PreToolCall).then_some(Ruling::Ask);
            assert_eq!((outcome.approval, outcome.error.is_some()), (asks, true), "{kind:?}: {exit:?}");
        }
        assert_eq!(interpret(kind, &Exit::Signal, "", "").approval, None);
    }
    let late = interpret(HookType::ChatEnd, &Exit::TimedOut(Duration::from_millis(1500)), "", "");
    assert_eq!(late.error.as_deref(), Some("it did not end within 1.5 s"));
    let codes = [
        Exit::Code(3),
        Exit::TimedOut(Duration::ZERO),
        Exit::NotStarted(String::new()),
        Exit::Signal,
        Exit::Interrupted,
    ];
    assert_eq!(codes.map(|exit| exit.status()), [3, 124, 127, 137, 130]);
}

#[test]
fn answers_that_are_no_object_are_only_shown() {
    for (stdout, shown) in [
        ("", None),
        (" \n", None),
        ("just words\n", Some("just words")),
        ("[1]", Some("[1]")),
        ("\"followUp\"", Some("\"followUp\"")),
        ("{\"followUp\": \"x\"} and more", Some("{\"followUp\": \"x\"} and more")),
        ("{\"followUp\": ", Some("{\"followUp\":")),
    ] {
        let outcome = interpret(HookType::PostRequest, &Exit::Code(0), stdout, "");
        assert_eq!((outcome.follow_up, outcome.display.as_deref()), (None, shown), "{stdout}");
    }
    let deep = "[".repeat(100_000);
    assert_eq!(interpret(HookType::PostRequest, &Exit::Code(0), &deep, "").display, Some(deep));
}

#[test]
fn fields_of_the_wrong_kind_are_named() {
    let wrong =
        r#"{"continue": "no", "suppressOutput": 1, "systemMessage": [], "updatedInput": 7, "approval": "maybe"}"#;
    let outcome = interpret(HookType::PreToolCall, &Exit::Code(0), wrong, "");
    assert_eq!(outcome.approval, Some(Ruling::Ask), "whoever writes something does not mean that all is well");
    assert_eq!((outcome.stop, outcome.updated_input.len()), (None, 0));
    let error = outcome.error.unwrap();
    for key in ["continue", "suppressOutput", "systemMessage", "updatedInput", "approval"] {
        assert!(error.contains(&format!("`{key}`")), "{error}");
    }
    let nulls = r#"{"continue": null, "systemMessage": null, "updatedInput": null, "approval": null, "followUp": " "}"#;
    assert_eq!(interpret(HookType::PreToolCall, &Exit::Code(0), nulls, ""), HookOutcome::default());
    let hidden = interpret(HookType::PostToolCall, &Exit::Code(0), r#"{"replacedOutput": ""}"#, "");
    assert_eq!(hidden.replaced_output.as_deref(), Some(""));
    let stop = interpret(HookType::ChatEnd, &Exit::Code(0), r#"{"continue": false, "stopReason": "why"}"#, "");
    assert_eq!(stop.stop, Some(StopRequest { reason: Some("why".into()) }));
    let context = r#"{"approval": "ask", "additionalContext": "c"}"#;
    assert_eq!(interpret(HookType::PreToolCall, &Exit::Code(0), context, "").rejection, None);
}

#[test]
fn several_hooks_come_to_one_verdict() {
    let first = HookOutcome {
        system_message: Some("hello".into()),
        approval: Some(Ruling::Ask),
        updated_input: object(json!({"a": 1, "b": 1})),
        additional_context: Some("c1".into()),
        replaced_prompt: Some("p1".into()),
        follow_up: Some("f1".into()),
        error: Some("e".into()),
        ..HookOutcome::default()
    };
    let second = HookOutcome {
        approval: Some(Ruling::Allow),
        rejection: Some("r".into()),
        updated_input: object(json!({"b": 2})),
        additional_context: Some("c2".into()),
        replaced_prompt: Some("p2".into()),
        replaced_output: Some("o".into()),
        block: Some("b".into()),
        follow_up: Some("f2".into()),
        ..HookOutcome::default()
    };
    let named = |outcomes: &[&HookOutcome]| {
        let named = outcomes.iter().enumerate().map(|(index, outcome)| (format!("h{index}"), (*outcome).clone()));
        named.collect::<Vec<_>>()
    };
    let said = |hook: &str, text: &str| Said { hook: hook.into(), text: text.into() };
    let verdict = combine(HookType::PreToolCall, named(&[&first, &second]));
    assert_eq!(
        verdict,
        Verdict {
            messages: vec![said("h0", "hello")],
            stopped: None,
            blocked: Some(said("h1", "b")),
            approval: Some(Ruling::Ask),
            rejections: vec!["r".into()],
            updated_input: object(json!({"a": 1, "b": 2})),
            additional_context: vec![said("h0", "c1"), said("h1", "c2")],
            replaced_prompt: Some("p2".into()),
            replaced_output: Some("o".into()),
            follow_up: Some("f1\n\nf2".into()),
            errors: vec![said("h0", "e")],
        }
    );
    let stop = HookOutcome { stop: Some(StopRequest { reason: Some("enough".into()) }), ..HookOutcome::default() };
    let stopped = combine(HookType::PostRequest, named(&[&first, &stop]));
    assert_eq!(stopped.stopped, Some(Stopped { hook: "h1".into(), reason: Some("enough".into()) }));
    assert_eq!(stopped.follow_up, None, "who ends the turn does not want another one");
    for kind in [HookType::SessionStart, HookType::SessionEnd, HookType::ChatEnd, HookType::ChatStatusChanged] {
        assert_eq!(combine(kind, named(&[&stop])).stopped, None, "{kind:?} has no turn to stop");
    }
    assert_eq!(combine(HookType::PreRequest, Vec::new()), Verdict::default());
}

#[test]
fn no_hook_can_loosen() {
    let rulings = [Ruling::Allow, Ruling::Ask, Ruling::Deny];
    let rank = |ruling: Ruling| rulings.iter().position(|known| *known == ruling).unwrap();
    for given in rulings {
        for said in rulings {
            let verdict = Verdict { approval: Some(said), ..Verdict::default() };
            assert_eq!(rank(verdict.approval_over(given)), rank(given).max(rank(said)));
        }
        assert_eq!(Verdict::default().approval_over(given), given);
    }
}
