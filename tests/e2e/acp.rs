//! The Agent Client Protocol in process, against a model and an editor under the test's control.

mod bad_input;
mod choices;
mod editor;
mod handshake;
mod history;
mod permissions;
mod servers;
mod stop;
mod turns;

use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::lines::LineServer;
use crate::mock_llm::MockLlm;
use crate::peer::{Peer, text_of};
use crate::server::{Builder, KEY, TestDirs, TestServer};

/// Updates that may come at any time and belong to no turn.
const OF_THE_SESSION: [&str; 4] =
    ["available_commands_update", "config_option_update", "session_info_update", "current_mode_update"];

/// A running server and its editor.
pub(super) struct Acp {
    server: LineServer,
    pub(super) dirs: Arc<TestDirs>,
    /// What the editor answered to requests of the server, by method.
    pub(super) asked: Vec<Value>,
}

/// A turn, from its prompt to its response.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) messages: Vec<Value>,
    pub(super) response: Value,
}

impl Acp {
    /// An editor that can do nothing, with the handshake behind it.
    pub(super) async fn with(model: &MockLlm) -> Self {
        Self::capable(model, json!({})).await
    }

    pub(super) async fn capable(model: &MockLlm, capabilities: Value) -> Self {
        Self::configured(model, capabilities, json!({})).await
    }

    pub(super) async fn configured(model: &MockLlm, capabilities: Value, config: Value) -> Self {
        let dirs = Arc::new(TestDirs::new());
        Self::at(TestServer::with(model).dirs(&dirs).config(config), &dirs, capabilities).await
    }

    /// In the folders of an earlier server.
    pub(super) async fn again(model: &MockLlm, dirs: &Arc<TestDirs>) -> Self {
        Self::at(TestServer::with(model).dirs(dirs), dirs, json!({})).await
    }

    pub(super) async fn at(home: Builder, dirs: &Arc<TestDirs>, capabilities: Value) -> Self {
        let mut acp = Self::silent(&home, dirs);
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"}});
        let response = acp.request_raw("initialize", Some(params)).await;
        assert_eq!(response["result"]["protocolVersion"], 1, "{response}");
        acp
    }

    /// Nothing was said yet.
    pub(super) fn silent(home: &Builder, dirs: &Arc<TestDirs>) -> Self {
        // What starts commands is the program, which a test is not.
        eca::process::guard::use_executable(env!("CARGO_BIN_EXE_eca").into());
        let surroundings = home.surroundings();
        let server = LineServer::start(|input, output| eca::frontends::acp::serve(input, output, surroundings));
        Self { server, dirs: Arc::clone(dirs), asked: Vec::new() }
    }

    pub(super) fn workspace(&self) -> PathBuf {
        self.dirs.workspace.clone()
    }

    pub(super) fn session_params(&self) -> Value {
        json!({"cwd": self.workspace(), "mcpServers": []})
    }

    /// A new session; the first thing after its answer is what can be typed.
    pub(super) async fn session(&mut self) -> String {
        let params = self.session_params();
        self.session_with(params).await["sessionId"].as_str().unwrap().to_owned()
    }

    /// The same; returns the whole answer.
    pub(super) async fn session_with(&mut self, params: Value) -> Value {
        let id = self.start_raw("session/new", Some(params));
        let mut messages = self.everything_until("the new session", |message| message["id"] == id).await;
        let response = messages.pop().unwrap();
        assert!(response.get("error").is_none(), "{response}");
        let session = response["result"]["sessionId"].clone();
        let early = messages.iter().find(|message| message["params"]["sessionId"] == session);
        assert!(early.is_none(), "something overtook the response: {early:?}");
        self.find("the commands", |message| is_update(message, &session, "available_commands_update")).await;
        response["result"].clone()
    }

    pub(super) fn start_prompt(&mut self, session: &str, text: &str) -> i64 {
        self.start_blocks(session, json!([{"type": "text", "text": text}]))
    }

    pub(super) fn start_blocks(&mut self, session: &str, blocks: Value) -> i64 {
        self.start_raw("session/prompt", Some(json!({"sessionId": session, "prompt": blocks})))
    }

    pub(super) async fn turn(&mut self, session: &str, text: &str) -> Turn {
        let id = self.start_prompt(session, text);
        self.rest_of(id).await
    }

    /// Everything up to the response; requests of the server are an error.
    pub(super) async fn rest_of(&mut self, id: i64) -> Turn {
        self.rest_with(id, |request| panic!("the server asked: {request}")).await
    }

    /// The same; requests of the server are answered. `Err` is an error's code.
    pub(super) async fn rest_with(&mut self, id: i64, answer: impl Fn(&Value) -> Result<Value, i64>) -> Turn {
        let mut messages = Vec::new();
        loop {
            let message = self.next().await;
            if message.get("method").is_none() {
                assert_eq!(message["id"], id, "{message}");
                return Turn { messages, response: message };
            }
            if message.get("id").is_some() {
                match answer(&message) {
                    Ok(result) => self.answer(&message, result),
                    Err(code) => self.send(&json!({"jsonrpc": "2.0", "id": message["id"],
                        "error": {"code": code, "message": "no"}})),
                }
                self.asked.push(message.clone());
            }
            messages.push(message);
        }
    }

    pub(super) fn cancel(&self, session: &str) {
        self.notify_raw("session/cancel", Some(json!({"sessionId": session})));
    }

    /// What the server asked of the editor with this method.
    pub(super) fn asked_for(&self, method: &str) -> Vec<&Value> {
        self.asked.iter().filter(|request| request["method"] == method).map(|request| &request["params"]).collect()
    }

    /// Leaves as editors do; nothing of a turn may be left to be read.
    pub(super) async fn finish(mut self) {
        self.close_input();
        self.wait_for_end().await;
    }

    pub(super) async fn wait_for_end(&mut self) {
        self.server.wait_for_end().await;
        let kind = |message: &Value| message["params"]["update"]["sessionUpdate"].as_str().unwrap_or("").to_owned();
        let unread: Vec<Value> = self.take_unread();
        assert!(!unread.iter().any(|message| message.to_string().contains(KEY)), "the key leaked");
        let odd = unread.iter().filter(|message| !OF_THE_SESSION.contains(&kind(message).as_str()));
        let odd: Vec<String> = odd.map(text_of).collect();
        assert!(odd.is_empty(), "nobody read:\n  {}", odd.join("\n  "));
    }
}

impl Turn {
    pub(super) fn stop_reason(&self) -> &str {
        self.response["result"]["stopReason"].as_str().unwrap_or_else(|| panic!("{}", self.response))
    }

    /// The updates of a kind.
    pub(super) fn updates(&self, kind: &str) -> Vec<&Value> {
        let update = self.messages.iter().map(|message| &message["params"]["update"]);
        update.filter(|update| update["sessionUpdate"] == kind).collect()
    }

    /// What the model said, put together.
    pub(super) fn text(&self) -> String {
        text_in(&self.updates("agent_message_chunk"))
    }

    /// What happened, in short words, without what belongs to no turn.
    pub(super) fn outline(&self) -> Vec<String> {
        outline(&self.messages)
    }

    /// The updates of one tool call, its beginning first.
    pub(super) fn call(&self, id: &str) -> Vec<&Value> {
        let update = self.messages.iter().map(|message| &message["params"]["update"]);
        update.filter(|update| update["toolCallId"] == id).collect()
    }
}

pub(super) fn text_in(chunks: &[&Value]) -> String {
    chunks.iter().filter_map(|chunk| chunk["content"]["text"].as_str()).collect()
}

pub(super) fn outline(messages: &[Value]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for message in messages {
        let update = &message["params"]["update"];
        let line = match update["sessionUpdate"].as_str() {
            None => message["method"].as_str().unwrap_or("response").to_owned(),
            Some(kind) if OF_THE_SESSION.contains(&kind) || kind == "usage_update" => continue,
            Some(kind @ ("tool_call" | "tool_call_update")) => {
                // A call that is announced without a word is pending.
                let status = update["status"].as_str().or((kind == "tool_call").then_some("pending"));
                let status = status.map(|status| format!(" {status}")).unwrap_or_default();
                format!("{kind} {}{status}", update["toolCallId"].as_str().unwrap())
            }
            Some(kind) => kind.to_owned(),
        };
        // How a text is cut is nobody's affair.
        if !(line.ends_with("_chunk") && lines.last() == Some(&line)) {
            lines.push(line);
        }
    }
    lines
}

pub(super) fn is_update(message: &Value, session: &Value, kind: &str) -> bool {
    message["method"] == "session/update"
        && message["params"]["sessionId"] == *session
        && message["params"]["update"]["sessionUpdate"] == kind
}

/// The answer of a user to a question about a call.
pub(super) fn selected(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

impl Deref for Acp {
    type Target = Peer;
    fn deref(&self) -> &Peer {
        &self.server
    }
}

impl DerefMut for Acp {
    fn deref_mut(&mut self) -> &mut Peer {
        &mut self.server
    }
}
