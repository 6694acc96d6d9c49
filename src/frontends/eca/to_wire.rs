//! From engine events to ECA's messages.
//!
//! Text and reasoning come in thousands of small pieces, so their frames are put together by hand
//! and left open for merging; everything else goes through the typed protocol.

mod details;
mod v0;

use std::sync::Arc;

use custom_methods::chat::{
    ChatClearedParams, ChatContent, ChatContentReceivedParams, ChatDeletedParams, ChatFlagContent,
    ChatHookActionFinishedContent, ChatHookActionStartedContent, ChatImageContent, ChatMetadataContent,
    ChatOpenedParams, ChatProgressContent, ChatProgressState, ChatReasonFinishedContent, ChatReasonStartedContent,
    ChatRole, ChatStatus as WireStatus, ChatStatusChangedParams, ChatTextContent, ChatToolCallPrepareContent,
    ChatToolCallRejectedContent, ChatToolCallRunContent, ChatToolCallRunningContent, ChatToolCalledContent,
    ChatUrlContent, ChatUsageContent, ContextBreakdown, ContextCategory, HookActionType, ToolCallOrigin,
    ToolCallOutput, ToolCallRejectReason, ToolCallTextOutput, UsageLimit,
};
use custom_methods::methods::{ChatCleared, ChatContentReceived, ChatDeleted, ChatOpened, ChatStatusChanged};
use custom_methods::{ContentId, ReasonId, ToolCallId};
use lsp_types::notification::Notification;

use super::client::notification;
use crate::base::{ChatId, text};
use crate::engine::{self, ChatEvent, ChatStatus, RejectReason, ToolCallEvent, ToolCallStage, UsageReport};
use crate::transport::{Frame, TextFrame, escape_json_into};

/// Some clients read no frame above 64 KiB, and a byte of text may become six when it is escaped.
const MAX_TEXT_BYTES: usize = 10 * 1024;
/// What a tool printed is cut for the wire; the model and the store have all of it.
const MAX_OUTPUT_BYTES: usize = 32 * 1024;

/// Translates for one connection.
#[derive(Default)]
pub(super) struct Translator {
    v0: v0::Translator,
}

impl Translator {
    pub(super) fn chat_event(&self, whose: Whose<'_>, event: ChatEvent, v0: bool) -> Vec<Frame> {
        match event {
            // That dialect knows nothing of chats that work for others.
            _ if v0 && whose.parent.is_some() => Vec::new(),
            event if v0 => self.v0.chat_event(whose.chat, event),
            ChatEvent::Text(text) => text_frames(whose, &text),
            ChatEvent::ReasonText { id, text } => reason_frames(whose, &id, &text),
            ChatEvent::ToolCall(call) => tool_call_frames(whose, call),
            // ECA has no message for these: the end of a call has all of its output, and texts say
            // the rest.
            ChatEvent::ToolOutput { .. } | ChatEvent::Ending(_) | ChatEvent::Compaction(_) => Vec::new(),
            other => vec![frame(whose, other)],
        }
    }
}

/// The chat that an event belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whose<'a> {
    pub(super) chat: &'a ChatId,
    /// The chat that it works for.
    pub(super) parent: Option<&'a ChatId>,
}

impl<'a> Whose<'a> {
    /// A chat that works for nobody else.
    pub(super) fn own(chat: &'a ChatId) -> Self {
        Self { chat, parent: None }
    }
}

/// The legacy word for an agent.
pub(super) fn behavior(agent: &str) -> &str {
    if agent == "code" { "agent" } else { agent }
}

pub(super) fn wire_chat_id(chat: &ChatId) -> custom_methods::ChatId {
    custom_methods::ChatId::from(chat.as_str())
}

pub(super) fn status(status: ChatStatus) -> WireStatus {
    match status {
        ChatStatus::Idle => WireStatus::Idle,
        ChatStatus::Running => WireStatus::Running,
        ChatStatus::Stopping => WireStatus::Stopping,
        ChatStatus::Login => WireStatus::Login,
    }
}

/// The same content, as part of an answer instead of a notification.
pub(super) fn received(whose: Whose<'_>, event: ChatEvent) -> ChatContentReceivedParams {
    let (role, content) = content(event);
    ChatContentReceivedParams {
        chat_id: wire_chat_id(whose.chat),
        role: Some(role),
        content,
        parent_chat_id: whose.parent.map(wire_chat_id),
        is_complete: None,
        metadata: None,
    }
}

fn frame(whose: Whose<'_>, event: ChatEvent) -> Frame {
    let chat_id = wire_chat_id(whose.chat);
    let key: Option<Arc<str>> = Some(Arc::from(whose.chat.as_str()));
    let params = match event {
        ChatEvent::Opened { title } => {
            return notification(ChatOpened::METHOD, &ChatOpenedParams { chat_id, title }, key);
        }
        ChatEvent::Deleted => return notification(ChatDeleted::METHOD, &ChatDeletedParams { chat_id }, key),
        ChatEvent::Cleared => {
            return notification(ChatCleared::METHOD, &ChatClearedParams { chat_id, messages: true }, key);
        }
        ChatEvent::Status(now) => {
            let params = ChatStatusChangedParams { chat_id, status: status(now) };
            return notification(ChatStatusChanged::METHOD, &params, key);
        }
        other => received(whose, other),
    };
    notification(ChatContentReceived::METHOD, &params, key)
}

fn content(event: ChatEvent) -> (ChatRole, ChatContent) {
    use ChatRole::{Assistant, System, User};
    let plain = |text: String, content_id| ChatTextContent { text, content_id, code_blocks: None }.into();
    match event {
        ChatEvent::UserText { text, content_id } => (User, plain(text, Some(ContentId::from(content_id.as_str())))),
        ChatEvent::SystemText(text) | ChatEvent::Failed(text) => (System, plain(text, None)),
        ChatEvent::Text(text) => (Assistant, plain(text, None)),
        ChatEvent::Progress(text) => (System, ChatProgressContent { state: ChatProgressState::Running, text }.into()),
        ChatEvent::Finished => {
            (System, ChatProgressContent { state: ChatProgressState::Finished, text: String::new() }.into())
        }
        ChatEvent::ReasonStarted { id } => (Assistant, ChatReasonStartedContent { id: ReasonId(id) }.into()),
        ChatEvent::ReasonText { id, text } => {
            (Assistant, custom_methods::chat::ChatReasonTextContent { id: ReasonId(id), text }.into())
        }
        ChatEvent::ReasonFinished { id, total_ms } => {
            (Assistant, ChatReasonFinishedContent { id: ReasonId(id), total_time_ms: total_ms }.into())
        }
        ChatEvent::Citation { title, url } => (Assistant, ChatUrlContent { title, url }.into()),
        ChatEvent::Image { media_type, base64 } => (Assistant, ChatImageContent { media_type, base64 }.into()),
        ChatEvent::ToolCall(call) => (Assistant, tool_call(call)),
        ChatEvent::Usage(report) => (System, usage(&report).into()),
        ChatEvent::Title(title) => (System, ChatMetadataContent { title }.into()),
        ChatEvent::HookStarted { id, name } => {
            let action_type = HookActionType::Shell;
            (System, ChatHookActionStartedContent { id, name, action_type }.into())
        }
        ChatEvent::HookFinished { id, name, call, status, output, error } => {
            let content = ChatHookActionFinishedContent {
                id,
                name,
                action_type: HookActionType::Shell,
                status,
                output,
                error,
                tool_call_id: call.map(|call| call.as_str().into()),
            };
            (System, content.into())
        }
        ChatEvent::Flag { text, content_id } => {
            (System, ChatFlagContent { text, content_id: ContentId::from(content_id.as_str()) }.into())
        }
        // Those have notifications of their own; see `frame`.
        ChatEvent::Opened { .. }
        | ChatEvent::Deleted
        | ChatEvent::Cleared
        | ChatEvent::Status(_)
        | ChatEvent::Ending(_)
        | ChatEvent::Compaction(_)
        | ChatEvent::ToolOutput { .. } => (System, plain(String::new(), None)),
    }
}

fn tool_call(call: Box<ToolCallEvent>) -> ChatContent {
    let origin = match call.origin {
        engine::ToolCallOrigin::Native => ToolCallOrigin::Native,
        engine::ToolCallOrigin::Mcp => ToolCallOrigin::Mcp,
        engine::ToolCallOrigin::Provider => ToolCallOrigin::Server,
    };
    let id = ToolCallId::from(call.id.as_str());
    let details = call.details.as_ref().map(details::details);
    let ToolCallEvent { name, server, summary, stage, .. } = *call;
    match stage {
        ToolCallStage::Prepare { arguments_text } => {
            ChatToolCallPrepareContent { origin, id, name, server, arguments_text, summary, details }.into()
        }
        ToolCallStage::Run { arguments, manual_approval } => {
            ChatToolCallRunContent { origin, id, name, server, arguments, manual_approval, summary, details }.into()
        }
        ToolCallStage::Running { arguments } => {
            ChatToolCallRunningContent { origin, id, name, server, arguments, summary, details }.into()
        }
        ToolCallStage::Called { arguments, error, outputs, total_ms } => {
            let outputs = outputs
                .iter()
                .map(|output| ToolCallTextOutput { text: text::prefix(output, MAX_OUTPUT_BYTES).to_owned() })
                .map(ToolCallOutput::from)
                .collect();
            let total_time_ms = total_ms;
            ChatToolCalledContent {
                origin,
                id,
                name,
                server,
                arguments,
                error,
                outputs,
                total_time_ms,
                summary,
                details,
            }
            .into()
        }
        ToolCallStage::Rejected { arguments, reason } => {
            let reason = match reason {
                RejectReason::User => ToolCallRejectReason::UserChoice,
                RejectReason::Config => ToolCallRejectReason::UserConfig,
                RejectReason::Hook => ToolCallRejectReason::HookRejected,
                RejectReason::PromptStop => ToolCallRejectReason::UserPromptStop,
            };
            ChatToolCallRejectedContent { origin, id, name, server, arguments, reason, summary, details }.into()
        }
    }
}

fn usage(report: &UsageReport) -> ChatUsageContent {
    let money = |dollars: f64| format!("{dollars:.2}");
    ChatUsageContent {
        session_tokens: report.last.occupancy(),
        total_tokens: Some(report.total.occupancy()),
        last_message_cost: report.last_cost.map(money),
        session_cost: report.total_cost.map(money),
        // Without a limit of its own, an answer may fill the whole window.
        limit: report
            .context_limit
            .map(|context| UsageLimit { context, output: report.output_limit.unwrap_or(context) }),
        auto_compact_percentage: report.auto_compact_percentage,
        context_breakdown: (!report.shares.is_empty()).then(|| breakdown(report)),
    }
}

fn breakdown(report: &UsageReport) -> ContextBreakdown {
    let used_tokens = report.last.occupancy();
    ContextBreakdown {
        categories: report.shares.iter().map(category).collect(),
        used_tokens,
        free_tokens: report.context_limit.map(|limit| limit.saturating_sub(used_tokens)),
        context_limit: report.context_limit,
        free_color: Some("#6b7280".into()),
        free_emoji: Some("⬜".into()),
    }
}

fn category(share: &engine::Share) -> ContextCategory {
    let (name, color, emoji) = match share.kind {
        engine::ShareKind::Instructions => ("Instructions", "#8b5cf6", "🟪"),
        engine::ShareKind::User => ("Your messages", "#3b82f6", "🟦"),
        engine::ShareKind::Assistant => ("Answers", "#22c55e", "🟩"),
        engine::ShareKind::Reasoning => ("Reasoning", "#eab308", "🟨"),
        engine::ShareKind::Tools => ("Tools", "#f97316", "🟧"),
    };
    ContextCategory { name: name.into(), tokens: share.tokens, color: color.into(), emoji: emoji.into() }
}

fn text_frames(whose: Whose<'_>, text: &str) -> Vec<Frame> {
    mergeable(whose, r#""type":"text","text":""#, r#""}}}"#, text)
}

fn reason_frames(whose: Whose<'_>, id: &str, text: &str) -> Vec<Frame> {
    let mut fields = String::from(r#""type":"reasonText","id":""#);
    escape_json_into(id, &mut fields);
    fields.push_str(r#"","text":""#);
    mergeable(whose, &fields, r#""}}}"#, text)
}

/// The arguments of a call come in pieces anyway, so a long piece may become several.
fn tool_call_frames(whose: Whose<'_>, call: Box<ToolCallEvent>) -> Vec<Frame> {
    let one = |call| frame(whose, ChatEvent::ToolCall(call));
    match &call.stage {
        ToolCallStage::Prepare { arguments_text } if arguments_text.len() > MAX_TEXT_BYTES => {
            text::pieces(arguments_text, MAX_TEXT_BYTES)
                .map(|piece| ToolCallStage::Prepare { arguments_text: piece.to_owned() })
                .map(|stage| one(Box::new(ToolCallEvent { stage, ..ToolCallEvent::clone(&call) })))
                .collect()
        }
        _ => vec![one(call)],
    }
}

/// Frames whose text may grow while they wait. `fields` ends inside the text's quotes and `tail`
/// closes them.
fn mergeable(whose: Whose<'_>, fields: &str, tail: &'static str, text: &str) -> Vec<Frame> {
    let mut head = String::with_capacity(160);
    head.push_str(r#"{"jsonrpc":"2.0","method":"chat/contentReceived","params":{"chatId":""#);
    escape_json_into(whose.chat.as_str(), &mut head);
    if let Some(parent) = whose.parent {
        head.push_str(r#"","parentChatId":""#);
        escape_json_into(parent.as_str(), &mut head);
    }
    head.push_str(r#"","role":"assistant","content":{"#);
    head.push_str(fields);
    let (key, head): (Arc<str>, Arc<str>) = (Arc::from(whose.chat.as_str()), Arc::from(head));
    text::pieces(text, MAX_TEXT_BYTES)
        .map(|piece| {
            let mut escaped = String::with_capacity(piece.len() + 8);
            escape_json_into(piece, &mut escaped);
            Frame::Text(TextFrame { key: Arc::clone(&key), head: Arc::clone(&head), text: escaped, tail })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::Usage;
    use serde_json::{Value, json};

    fn wire(event: ChatEvent) -> Vec<Value> {
        Translator::default()
            .chat_event(Whose::own(&ChatId::new("c\"1")), event, false)
            .iter()
            .map(|frame| serde_json::from_slice(&frame.body()).unwrap())
            .collect()
    }

    #[test]
    fn hand_made_text_is_what_the_types_would_write() {
        let awkward = "a \"quoted\" \\ line\nwith \u{7} and ü";
        let typed: Value = {
            let Frame::Plain { body, .. } = frame(Whose::own(&ChatId::new("c\"1")), ChatEvent::Text(awkward.into()))
            else {
                panic!("a plain frame")
            };
            serde_json::from_slice(&body).unwrap()
        };
        assert_eq!(wire(ChatEvent::Text(awkward.into())), [typed]);
    }

    #[test]
    fn hand_made_reasoning_is_what_the_types_would_write() {
        let event = ChatEvent::ReasonText { id: "r".into(), text: "hm".into() };
        let (chat, parent) = (ChatId::new("c\"1"), ChatId::new("p\"1"));
        for parent in [None, Some(&parent)] {
            let whose = Whose { chat: &chat, parent };
            let Frame::Plain { body, .. } = frame(whose, event.clone()) else { panic!("a plain frame") };
            let frames = Translator::default().chat_event(whose, event.clone(), false);
            let by_hand: Vec<Value> =
                frames.iter().map(|frame| serde_json::from_slice(&frame.body()).unwrap()).collect();
            assert_eq!(by_hand, [serde_json::from_slice::<Value>(&body).unwrap()]);
            assert_eq!(by_hand[0]["params"].get("parentChatId").is_some(), parent.is_some());
        }
    }

    #[test]
    fn long_text_is_cut_into_frames_that_every_client_reads() {
        let long = "\u{1}é".repeat(40_000);
        let frames =
            Translator::default().chat_event(Whose::own(&ChatId::new("c")), ChatEvent::Text(long.clone()), false);
        assert!(frames.len() > 1);
        assert!(frames.iter().all(|frame| frame.body().len() < 64 * 1024));
        let joined: String = frames
            .iter()
            .map(|frame| serde_json::from_slice::<Value>(&frame.body()).unwrap())
            .map(|value| value["params"]["content"]["text"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(joined, long);
    }

    #[test]
    fn finished_has_an_empty_text() {
        let [message] = &wire(ChatEvent::Finished)[..] else { panic!("one message") };
        assert_eq!(
            message["params"],
            json!({"chatId": "c\"1", "role": "system", "content": {"type": "progress", "state": "finished", "text": ""}})
        );
    }

    #[test]
    fn usage_tells_occupancy_and_total_apart() {
        let last = Usage { input: 10, output: 5, cache_read: 2, cache_write: 1 };
        let report = UsageReport {
            last,
            total: last + last,
            last_cost: Some(0.014),
            total_cost: Some(1.5),
            context_limit: Some(1000),
            output_limit: None,
            auto_compact_percentage: None,
            shares: vec![engine::Share { kind: engine::ShareKind::User, tokens: 18 }],
        };
        let [message] = &wire(ChatEvent::Usage(report))[..] else { panic!("one message") };
        assert_eq!(
            message["params"]["content"],
            json!({"type": "usage", "sessionTokens": 18, "totalTokens": 36, "lastMessageCost": "0.01",
                   "sessionCost": "1.50", "limit": {"context": 1000, "output": 1000},
                   "contextBreakdown": {
                       "categories": [{"name": "Your messages", "tokens": 18, "color": "#3b82f6", "emoji": "🟦"}],
                       "usedTokens": 18, "freeTokens": 982, "contextLimit": 1000,
                       "freeColor": "#6b7280", "freeEmoji": "⬜"}})
        );
    }
}
