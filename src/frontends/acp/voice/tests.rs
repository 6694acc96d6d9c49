//! Events in, lines out: what each becomes, and that frames made by hand are what the types write.

use std::io::{Read, Write};

use super::super::client::Facts;
use super::*;
use crate::base::ContentId;
use crate::engine::{ChatStatus, Ending, ToolCallOrigin};
use crate::llm::Usage;
use crate::tool::SubagentDetails;
use crate::transport::Id;
use crate::transport::newline::{self, Dialect};

struct Stage {
    voice: Arc<Voice>,
    from_server: std::io::PipeReader,
    _connection: newline::Connection,
    _to_server: std::io::PipeWriter,
}

fn stage(facts: Facts) -> Stage {
    let (input, to_server) = std::io::pipe().unwrap();
    let (from_server, output) = std::io::pipe().unwrap();
    let connection = newline::connect(input, output, Dialect::JSON_RPC).unwrap();
    let client = Client::new(connection.peer.clone());
    client.introduce(facts);
    Stage {
        voice: Voice::new(client, ChatId::new("c\"1")),
        from_server,
        _connection: connection,
        _to_server: to_server,
    }
}

impl Stage {
    fn hear(&self, event: ChatEvent) {
        let chat = ChatId::new("c\"1");
        assert!(self.voice.emit(Event::Chat { chat, event }).is_none(), "there is room");
    }

    fn hear_child(&self, event: ChatEvent) {
        let (chat, parent) = (ChatId::new("child"), ChatId::new("c\"1"));
        assert!(self.voice.emit(Event::Subagent { chat, parent, event }).is_none(), "there is room");
    }

    /// Everything that was written.
    fn lines(mut self) -> Vec<Value> {
        self._connection.peer.close();
        self._to_server.flush().unwrap();
        let mut text = String::new();
        self.from_server.read_to_string(&mut text).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn updates(self) -> Vec<Value> {
        self.lines().into_iter().map(|mut line| line["params"]["update"].take()).collect()
    }
}

fn call(id: &str, details: Option<Details>, stage: ToolCallStage) -> ChatEvent {
    ChatEvent::ToolCall(Box::new(ToolCallEvent {
        id: ToolCallId::new(id),
        name: "task".into(),
        server: "eca".into(),
        origin: ToolCallOrigin::Native,
        summary: None,
        details,
        stage,
    }))
}

fn prepare() -> ToolCallStage {
    ToolCallStage::Prepare { arguments_text: String::new() }
}

#[test]
fn hand_made_chunks_are_what_the_types_would_write() {
    let awkward = "a \"quoted\" \\ line\nwith \u{7} and ü";
    let stage = stage(Facts::default());
    let voice = Arc::clone(&stage.voice);
    let typed = |kind: fn(ContentChunk) -> SessionUpdate, id: &str| -> Value {
        let chunk = ContentChunk::new(ContentBlock::Text(TextContent::new(awkward)));
        let update = kind(chunk.message_id(MessageId::new(id.to_owned())));
        serde_json::from_slice(&voice.frame(update).body()).unwrap()
    };
    stage.hear(ChatEvent::Text(awkward.into()));
    stage.hear(ChatEvent::ReasonText { id: "r\"1".into(), text: awkward.into() });
    let lines = stage.lines();
    let id = lines[0]["params"]["update"]["messageId"].as_str().unwrap();
    assert_eq!(lines[0], typed(SessionUpdate::AgentMessageChunk, id));
    assert_eq!(lines[1], typed(SessionUpdate::AgentThoughtChunk, "r\"1"));
}

#[test]
fn a_message_ends_where_something_else_is_said() {
    let stage = stage(Facts::default());
    let text = || ChatEvent::Text("x".into());
    for event in [text(), text(), call("1", None, prepare()), text(), ChatEvent::SystemText("note".into()), text()] {
        stage.hear(event);
    }
    let updates = stage.updates();
    let ids: Vec<&Value> = updates.iter().map(|update| &update["messageId"]).collect();
    assert_eq!(ids[0], ids[1]);
    assert!(ids[2].is_null());
    let mut others = [ids[0], ids[3], ids[4], ids[5]].map(ToString::to_string).to_vec();
    others.sort();
    others.dedup();
    assert_eq!(others.len(), 4, "{updates:?}");
}

#[test]
fn the_users_own_words_are_shown_only_again() {
    let stage = stage(Facts::default());
    let user = || ChatEvent::UserText { text: "hi\n".into(), content_id: ContentId::random() };
    stage.hear(user());
    stage.hear(ChatEvent::Cleared);
    stage.hear(user());
    stage.hear(ChatEvent::Title("T".into()));
    stage.voice.expect(Id::Number(1));
    stage.hear(user());
    let updates = stage.updates();
    assert_eq!(updates.len(), 2, "{updates:?}");
    assert_eq!(updates[0]["content"]["text"], "hi");
    assert_eq!(updates[1], json!({"sessionUpdate": "session_info_update", "title": "T"}));
}

#[test]
fn the_end_of_a_turn_answers_its_prompt() {
    for (events, expected) in [
        (vec![], json!({"stopReason": "end_turn"})),
        (vec![ChatEvent::Ending(Ending::MaxTokens)], json!({"stopReason": "max_tokens"})),
        (vec![ChatEvent::Ending(Ending::MaxSteps)], json!({"stopReason": "max_turn_requests"})),
        (vec![ChatEvent::Ending(Ending::Refused)], json!({"stopReason": "refusal"})),
        (vec![ChatEvent::Ending(Ending::Stopped)], json!({"stopReason": "cancelled"})),
        (
            vec![ChatEvent::Failed("\n\nno".into()), ChatEvent::Ending(Ending::Stopped)],
            json!({"stopReason": "cancelled"}),
        ),
    ] {
        let stage = stage(Facts::default());
        stage.voice.expect(Id::Number(7));
        events.into_iter().for_each(|event| stage.hear(event));
        stage.hear(ChatEvent::Status(ChatStatus::Idle));
        stage.hear(ChatEvent::Finished);
        stage.hear(ChatEvent::Finished);
        assert_eq!(stage.lines(), [json!({"jsonrpc": "2.0", "id": 7, "result": expected})]);
    }
    let stage = stage(Facts::default());
    stage.voice.expect(Id::String("p".into()));
    stage.hear(ChatEvent::Failed("\n\nno\nmodel".into()));
    stage.hear(ChatEvent::Finished);
    let lines = stage.lines();
    assert_eq!(lines[0]["error"]["code"], -32603);
    assert_eq!(lines[0]["error"]["message"], "no model");
}

#[test]
fn prompts_are_answered_in_order_and_a_cancellation_is_for_all_of_them() {
    let stage = stage(Facts::default());
    stage.voice.expect(Id::Number(1));
    stage.voice.expect(Id::Number(2));
    stage.voice.expect(Id::Number(3));
    assert!(stage.voice.forget(&Id::Number(2)) && !stage.voice.forget(&Id::Number(2)));
    assert!(stage.voice.cancel());
    stage.hear(ChatEvent::SystemText("Stopped.".into()));
    stage.hear(ChatEvent::Finished);
    stage.hear(ChatEvent::Finished);
    assert!(!stage.voice.cancel(), "nothing is being done");
    let ids: Vec<Value> = stage.lines().into_iter().map(|line| line["id"].clone()).collect();
    assert_eq!(ids, [1, 3]);
}

#[test]
fn an_empty_task_list_is_a_plan_and_no_call() {
    let stage = stage(Facts::default());
    let done = ToolCallStage::Called { arguments: Default::default(), error: false, outputs: vec![], total_ms: 0 };
    stage.hear(call("x", Some(Details::Task(Default::default())), done));
    assert_eq!(stage.updates(), [json!({"sessionUpdate": "plan", "entries": []})]);
}

#[test]
fn calls_of_a_subagent_are_shown_under_its_caller() {
    let stage = stage(Facts::default());
    let subagent = SubagentDetails { chat: Some(ChatId::new("child")), agent: "a".into(), ..Default::default() };
    stage.hear_child(call("1", None, prepare()));
    stage.hear(call("parent", Some(Details::Subagent(subagent)), prepare()));
    stage.hear_child(call("1", None, prepare()));
    stage.hear_child(ChatEvent::Text("not yours".into()));
    let updates = stage.updates();
    assert_eq!(updates.len(), 2, "{updates:?}");
    assert_eq!(updates[1]["toolCallId"], "child:1");
    assert_eq!(updates[1]["_meta"], json!({"parentToolCallId": "parent"}));
}

#[test]
fn hooks_usage_links_and_images_have_their_updates() {
    let stage = stage(Facts::default());
    stage.hear(ChatEvent::HookStarted { id: "h".into(), name: "lint".into() });
    stage.hear(ChatEvent::HookFinished {
        id: "h".into(),
        name: "lint".into(),
        call: None,
        status: 2,
        output: None,
        error: Some("bad".into()),
    });
    let usage = |context_limit| {
        ChatEvent::Usage(UsageReport {
            last: Usage { input: 10, output: 5, cache_read: 0, cache_write: 0 },
            total: Usage::default(),
            last_cost: None,
            total_cost: Some(0.5),
            context_limit,
            output_limit: None,
            auto_compact_percentage: None,
            shares: Vec::new(),
        })
    };
    stage.hear(usage(None));
    stage.hear(usage(Some(100)));
    stage.hear(ChatEvent::Citation { title: String::new(), url: "https://x".into() });
    stage.hear(ChatEvent::Image { media_type: "image/png".into(), base64: "AA".into() });
    let updates = stage.updates();
    assert_eq!((&updates[0]["status"], &updates[1]["status"]), (&json!("in_progress"), &json!("failed")));
    assert_eq!(updates[1]["content"][0]["content"]["text"], "bad");
    let cost = json!({"amount": 0.5, "currency": "USD"});
    assert_eq!(updates[2], json!({"sessionUpdate": "usage_update", "used": 15, "size": 100, "cost": cost}));
    assert_eq!(updates[3]["content"], json!({"type": "resource_link", "name": "https://x", "uri": "https://x"}));
    assert_eq!(updates[4]["content"], json!({"type": "image", "data": "AA", "mimeType": "image/png"}));
}

#[test]
fn a_compaction_that_is_cut_short_is_cancelled() {
    let stage = stage(Facts { compaction: true, ..Facts::default() });
    stage.hear(ChatEvent::Compaction(Compaction::Started));
    stage.hear(ChatEvent::Finished);
    stage.hear(ChatEvent::Compaction(Compaction::Started));
    stage.hear(ChatEvent::Compaction(Compaction::Failed { reason: "full".into() }));
    let updates = stage.updates();
    let statuses: Vec<&Value> = updates.iter().map(|update| &update["status"]).collect();
    assert_eq!(statuses, ["in_progress", "cancelled", "in_progress", "failed"]);
    assert_eq!(updates[0]["compactionId"], updates[1]["compactionId"]);
    assert_ne!(updates[1]["compactionId"], updates[2]["compactionId"]);
    assert_eq!(updates[3]["error"], "full");
}

#[tokio::test]
async fn notices_are_shown_or_kept_for_the_next_turn() {
    let long = format!("{} and more", "x".repeat(300));
    let able = stage(Facts { notices: true, ..Facts::default() });
    able.voice.notice(NoticeLevel::Error, &long);
    able.voice.flush_notices();
    let updates = able.updates();
    assert_eq!((updates.len(), &updates[0]["severity"]), (1, &json!("error")));
    assert_eq!(updates[0]["description"], long);
    let plain = stage(Facts::default());
    for _ in 0..2 * MOST_NOTICES {
        plain.voice.notice(NoticeLevel::Info, "news");
    }
    plain.voice.flush_notices();
    plain.voice.flush_notices();
    let updates = plain.updates();
    assert_eq!(updates.len(), MOST_NOTICES);
    assert_eq!(updates[0]["content"]["text"], "news\n\n");
}
