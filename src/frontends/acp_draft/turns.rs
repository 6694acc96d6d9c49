//! Answers on their way to the client: whose turn it is that the engine speaks of, and how its words
//! reach whoever asked.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::entries::chunk;
use super::failure::failed;
use super::methods::{SEND_MESSAGE, STREAM_MESSAGE_CHUNK};
use crate::base::{ChatId, text};
use crate::engine::{ChatEvent, Event, EventSink, NoticeLevel, RejectReason, ToolCallEvent, ToolCallStage};
use crate::frontends::queue::queue;
use crate::transport::newline::Peer;
use crate::transport::{Frame, Id};

/// A longer text is sent in several chunks.
const LONGEST_CHUNK: usize = 32 * 1024;
/// An answer that is sent whole is cut here.
const LONGEST_ANSWER: usize = 8 * 1024 * 1024;
const CUT: &str = "\n\n[The rest of this answer is too long to be sent.]";

/// How an answer is delivered.
#[derive(Debug)]
pub(super) enum Answer {
    /// Piece by piece while it is written; then the request is answered.
    Streamed { request: Id },
    /// As one message when it is complete.
    Whole,
}

/// A turn that somebody waits for.
#[derive(Debug)]
struct Turn {
    answer: Answer,
    failed: Option<String>,
    /// What was said so far, of an answer that is sent whole.
    said: String,
}

/// The turns of one connection. A chat's turns end in the order in which they were asked for, and
/// each of them ends exactly once.
#[derive(Debug)]
pub(super) struct Turns {
    peer: Peer,
    waiting: Mutex<HashMap<ChatId, VecDeque<Turn>>>,
}

impl Turns {
    pub(super) fn new(peer: Peer) -> Self {
        Self { peer, waiting: Mutex::default() }
    }

    /// Somebody waits for another turn of this chat. Said before the turn is asked for.
    pub(super) fn expect(&self, chat: &ChatId, answer: Answer) {
        let turn = Turn { answer, failed: None, said: String::new() };
        self.waiting().entry(chat.clone()).or_default().push_back(turn);
    }

    /// The last turn that was expected will not be.
    pub(super) fn take_back(&self, chat: &ChatId) {
        let mut waiting = self.waiting();
        if let Some(turns) = waiting.get_mut(chat) {
            turns.pop_back();
            if turns.is_empty() {
                waiting.remove(chat);
            }
        }
    }

    /// Answers those whose turn will not come any more, as far as there is room.
    pub(super) fn abandon(&self) {
        let left: Vec<Turn> = self.waiting().drain().flat_map(|(_, turns)| turns).collect();
        for turn in left {
            if let Answer::Streamed { request } = turn.answer {
                let _ = self.peer.respond_now(&request, &Err(failed("the server is shutting down")));
            }
        }
    }

    /// What the client is told when this happens.
    fn frames(&self, chat: &ChatId, event: ChatEvent) -> Vec<Frame> {
        match event {
            ChatEvent::Text(text) | ChatEvent::SystemText(text) => self.say(chat, &text),
            ChatEvent::Citation { title, url } => self.say(chat, &format!(" [{title}]({url})")),
            ChatEvent::ToolCall(call) => match rejection(&call) {
                Some(note) => self.say(chat, &note),
                None => Vec::new(),
            },
            ChatEvent::Failed(text) => {
                if let Some(turn) = self.waiting().get_mut(chat).and_then(VecDeque::front_mut) {
                    turn.failed = Some(text.trim().to_owned());
                }
                Vec::new()
            }
            ChatEvent::Finished => self.finish(chat),
            _ => Vec::new(),
        }
    }

    fn say(&self, chat: &ChatId, text: &str) -> Vec<Frame> {
        let mut waiting = self.waiting();
        let Some(turn) = waiting.get_mut(chat).and_then(VecDeque::front_mut) else { return Vec::new() };
        match turn.answer {
            Answer::Whole if turn.said.len() <= LONGEST_ANSWER => {
                let room = (LONGEST_ANSWER + 1).saturating_sub(turn.said.len());
                let fits = text::prefix(text, room);
                turn.said.push_str(fits);
                if fits.len() < text.len() {
                    turn.said.push_str(CUT);
                }
                Vec::new()
            }
            Answer::Whole => Vec::new(),
            Answer::Streamed { .. } => {
                let key: Arc<str> = Arc::from(chat.as_str());
                let frame = |piece: &str| {
                    let params = json!({"threadId": chat.as_str(), "chunk": chunk(piece)});
                    self.peer.unawaited(STREAM_MESSAGE_CHUNK, &params, Some(Arc::clone(&key)))
                };
                text::pieces(text, LONGEST_CHUNK).map(frame).collect()
            }
        }
    }

    fn finish(&self, chat: &ChatId) -> Vec<Frame> {
        let turn = {
            let mut waiting = self.waiting();
            let Some(turns) = waiting.get_mut(chat) else { return Vec::new() };
            let turn = turns.pop_front();
            if turns.is_empty() {
                waiting.remove(chat);
            }
            turn
        };
        let Some(Turn { answer, failed: problem, said }) = turn else { return Vec::new() };
        match answer {
            Answer::Streamed { request } => {
                let outcome = problem.map_or(Ok(Value::Null), |problem| Err(failed(problem)));
                vec![self.peer.response(&request, &outcome)]
            }
            Answer::Whole => {
                let text = match problem {
                    Some(problem) if said.is_empty() => problem,
                    Some(problem) => format!("{said}\n\n{problem}"),
                    None => said,
                };
                let mut chunks: Vec<Value> = text::pieces(&text, LONGEST_CHUNK).map(chunk).collect();
                if chunks.is_empty() {
                    chunks.push(chunk(""));
                }
                let message = json!({"role": "assistant", "chunks": chunks});
                let params = json!({"threadId": chat.as_str(), "message": message});
                vec![self.peer.unawaited(SEND_MESSAGE, &params, Some(Arc::from(chat.as_str())))]
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<ChatId, VecDeque<Turn>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventSink for Turns {
    /// A client that does not read makes the turn wait; nothing is dropped.
    fn emit(&self, event: Event) -> Option<BoxFuture<'static, ()>> {
        match event {
            Event::Chat { chat, event } => queue(self.peer.outbox(), self.frames(&chat, event)),
            // A subagent's words are its caller's affair; what it found comes with the caller's answer.
            Event::Subagent { .. } => None,
            // The contract has no place for what belongs to no thread.
            Event::Notice { level: NoticeLevel::Info, text } => {
                tracing::info!("{text}");
                None
            }
            Event::Notice { text, .. } => {
                tracing::warn!("{text}");
                None
            }
            Event::ModelsChanged | Event::ProviderChanged { .. } => None,
        }
    }
}

/// The user should know why something was not done that they asked for.
fn rejection(call: &ToolCallEvent) -> Option<String> {
    let ToolCallStage::Rejected { reason: RejectReason::Config | RejectReason::Hook, .. } = call.stage else {
        return None;
    };
    Some(format!("\n\n[`{}` was not allowed to run.]\n\n", call.name))
}

#[cfg(test)]
mod tests {
    use std::io::{PipeReader, Read};

    use super::*;
    use crate::transport::newline::{self, Connection, Dialect};

    struct Ends {
        turns: Turns,
        output: PipeReader,
    }

    impl Ends {
        fn new() -> Self {
            let (input, _) = std::io::pipe().unwrap();
            let (output, server_output) = std::io::pipe().unwrap();
            let Connection { peer, .. } = newline::connect(input, server_output, Dialect::UNVERSIONED).unwrap();
            Self { turns: Turns::new(peer), output }
        }

        fn happens(&self, chat: &str, event: ChatEvent) {
            assert!(self.turns.emit(Event::Chat { chat: ChatId::new(chat), event }).is_none(), "there is room");
        }

        fn said(mut self) -> Vec<String> {
            self.turns.abandon();
            self.turns.peer.close();
            drop(self.turns);
            let mut text = String::new();
            self.output.read_to_string(&mut text).unwrap();
            text.lines().map(str::to_owned).collect()
        }
    }

    fn text(text: &str) -> ChatEvent {
        ChatEvent::Text(text.into())
    }

    #[test]
    fn a_streamed_answer_ends_with_the_answer_to_its_request() {
        let ends = Ends::new();
        let chat = ChatId::new("t");
        ends.happens("t", text("nobody waits"));
        ends.turns.expect(&chat, Answer::Streamed { request: Id::Number(0) });
        ends.turns.expect(&chat, Answer::Streamed { request: Id::String("x".into()) });
        ends.happens("other", text("nobody waits"));
        ends.happens("t", text("a\n"));
        ends.happens("t", ChatEvent::Finished);
        ends.happens("t", text("b"));
        ends.happens("t", ChatEvent::Failed("\n\nno\nmodel".into()));
        ends.happens("t", ChatEvent::Finished);
        ends.happens("t", ChatEvent::Finished);
        assert_eq!(
            ends.said(),
            [
                r#"{"id":1,"method":"streamMessageChunk","params":{"threadId":"t","chunk":{"type":"text","chunk":"a\n"}}}"#,
                r#"{"id":0,"result":null}"#,
                r#"{"id":2,"method":"streamMessageChunk","params":{"threadId":"t","chunk":{"type":"text","chunk":"b"}}}"#,
                r#"{"id":"x","error":{"code":-32603,"message":"no model"}}"#,
            ]
        );
    }

    #[test]
    fn a_whole_answer_is_one_message() {
        let ends = Ends::new();
        let chat = ChatId::new("t");
        for _ in 0..3 {
            ends.turns.expect(&chat, Answer::Whole);
        }
        ends.turns.take_back(&chat);
        let long = "é".repeat(LONGEST_CHUNK);
        ends.happens("t", text("a"));
        ends.happens("t", text(&long));
        ends.happens("t", ChatEvent::Finished);
        ends.happens("t", ChatEvent::Failed("no".into()));
        ends.happens("t", ChatEvent::Finished);
        let messages: Vec<Value> = ends.said().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(messages.len(), 2, "the third was taken back");
        assert!(messages.iter().all(|message| message["method"] == "sendMessage"));
        let joined = |message: &Value| -> String {
            assert_eq!(message["params"]["message"]["role"], "assistant");
            let chunks = message["params"]["message"]["chunks"].as_array().unwrap();
            chunks.iter().map(|chunk| chunk["chunk"].as_str().unwrap()).collect()
        };
        assert_eq!(joined(&messages[0]), format!("a{long}"));
        assert_eq!(joined(&messages[1]), "no");
    }

    #[test]
    fn an_endless_answer_is_cut_once() {
        let ends = Ends::new();
        let chat = ChatId::new("t");
        ends.turns.expect(&chat, Answer::Whole);
        for _ in 0..20 {
            ends.happens("t", text(&"x".repeat(LONGEST_ANSWER / 8)));
        }
        let said = ends.turns.waiting()[&chat][0].said.clone();
        assert!(said.ends_with(CUT) && said.matches(CUT).count() == 1 && said.len() < LONGEST_ANSWER + 100);
    }

    #[test]
    fn who_still_waits_at_the_end_is_told() {
        let ends = Ends::new();
        ends.turns.expect(&ChatId::new("t"), Answer::Streamed { request: Id::Number(7) });
        let said = ends.said();
        assert!(matches!(&said[..], [line] if line.starts_with(r#"{"id":7,"error":{"code":-32603"#)), "{said:?}");
    }
}
