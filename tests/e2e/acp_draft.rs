//! The first draft of the Agent Client Protocol in process, against a model under the test's control:
//! every method, both readings of the document's headings, and versions of files.

mod errors;
mod files;
mod literal;
mod threads;
mod turns;

use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::lines::LineServer;
use crate::mock_llm::MockLlm;
use crate::peer::{Peer, text_of};
use crate::server::{Builder, TestDirs, TestServer};

/// A running server and its editor.
pub(super) struct Draft {
    server: LineServer,
    pub(super) dirs: Arc<TestDirs>,
}

/// A turn as the editor saw it.
#[derive(Debug)]
pub(super) struct Turn {
    /// The pieces of the answer.
    pub(super) chunks: Vec<String>,
    /// What was asked besides, in order.
    pub(super) asked: Vec<Value>,
    pub(super) response: Value,
}

impl Turn {
    pub(super) fn text(&self) -> String {
        self.chunks.concat()
    }

    pub(super) fn failed(&self) -> Option<&str> {
        self.response["error"]["message"].as_str()
    }
}

impl Draft {
    pub(super) fn with(model: &MockLlm) -> Self {
        Self::at_home(TestServer::with(model))
    }

    /// With this laid over the configuration.
    pub(super) fn configured(model: &MockLlm, config: Value) -> Self {
        Self::at_home(TestServer::with(model).config(config))
    }

    pub(super) fn at_home(home: Builder) -> Self {
        let (surroundings, dirs) = (home.surroundings(), Arc::clone(home.folders()));
        let folder = Some(dirs.workspace.clone());
        let server = LineServer::start_with(Peer::of_bare_lines, |input, output| {
            eca::frontends::acp_draft::serve(input, output, surroundings, folder)
        });
        Self { server, dirs }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dirs.workspace.join(name)
    }

    /// A request that succeeds.
    pub(super) async fn call(&mut self, method: &str, params: Value) -> Value {
        let response = self.request_raw(method, Some(params)).await;
        response.get("result").unwrap_or_else(|| panic!("{method}: {response}")).clone()
    }

    /// A request that fails: its code and its message.
    pub(super) async fn fails(&mut self, method: &str, params: Value) -> (i64, String) {
        let response = self.request_raw(method, Some(params)).await;
        let error = &response["error"];
        let code = error["code"].as_i64().unwrap_or_else(|| panic!("{method} works: {response}"));
        (code, error["message"].as_str().unwrap().to_owned())
    }

    pub(super) async fn thread(&mut self) -> String {
        self.call("createThread", Value::Null).await["threadId"].as_str().unwrap().to_owned()
    }

    /// Says something in the user's name.
    pub(super) fn say(&mut self, thread: &str, text: &str) -> i64 {
        self.start_raw("sendMessage", Some(message(thread, "user", text)))
    }

    pub(super) async fn turn(&mut self, thread: &str, text: &str) -> Turn {
        let id = self.say(thread, text);
        self.answered(id, |_, _| Value::Null).await
    }

    /// The rest of a turn. `answer` is what the editor says to each question about files.
    pub(super) async fn answered(&mut self, id: i64, answer: impl Fn(&str, &Value) -> Value) -> Turn {
        let mut turn = Turn { chunks: Vec::new(), asked: Vec::new(), response: Value::Null };
        loop {
            let message = self.next().await;
            let Some(method) = message["method"].as_str() else {
                assert_eq!(message["id"], id, "{message}");
                turn.response = message;
                return turn;
            };
            if method == "streamMessageChunk" {
                let chunk = &message["params"]["chunk"];
                assert_eq!(chunk["type"], "text");
                turn.chunks.push(chunk["chunk"].as_str().unwrap().to_owned());
                self.answer(&message, Value::Null);
            } else {
                let outcome = answer(method, &message["params"]);
                match outcome.get("code") {
                    Some(_) => self.send(&json!({"id": message["id"], "error": outcome})),
                    None => self.answer(&message, outcome),
                }
                turn.asked.push(message);
            }
        }
    }

    /// Leaves in the only way there is; nothing may be left to be read.
    pub(super) async fn finish(mut self) {
        self.close_input();
        self.server.wait_for_end().await;
        let unread: Vec<String> = self.take_unread().iter().map(text_of).collect();
        assert!(unread.is_empty(), "nobody read:\n  {}", unread.join("\n  "));
    }
}

impl Deref for Draft {
    type Target = Peer;
    fn deref(&self) -> &Peer {
        &self.server
    }
}

impl DerefMut for Draft {
    fn deref_mut(&mut self) -> &mut Peer {
        &mut self.server
    }
}

pub(super) fn text(chunk: &str) -> Value {
    json!({"type": "text", "chunk": chunk})
}

pub(super) fn message(thread: &str, role: &str, said: &str) -> Value {
    json!({"threadId": thread, "message": {"role": role, "chunks": [text(said)]}})
}

pub(super) fn entry(role: &str, chunks: &[&str]) -> Value {
    json!({"type": "message", "role": role, "chunks": chunks.iter().map(|chunk| text(chunk)).collect::<Vec<_>>()})
}
