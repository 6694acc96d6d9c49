//! An ECA client in the scenarios.

use std::path::PathBuf;

use custom_methods::chat::{ChatToolCallApproveParams, ChatToolCallRejectParams};
use custom_methods::methods::{ChatToolCallApprove, ChatToolCallReject};
use serde_json::Value;

use super::{FrontEnd, Outcome};
use crate::peer::outline::{contents, text_by};
use crate::peer::{Peer, frame};
use crate::server::{Builder, TestServer};

const CHAT: &str = "c";

pub(super) struct Eca(TestServer);

impl FrontEnd for Eca {
    async fn start(home: Builder) -> Self {
        Self(home.start().await)
    }

    fn peer(&mut self) -> &mut Peer {
        &mut self.0
    }

    fn workspace(&self) -> PathBuf {
        self.0.dirs.workspace.clone()
    }

    async fn prompt(&mut self, text: &str) {
        // Its response says only that it was taken, and is awaited nowhere: a client may not read now.
        self.0.start_prompt(Some(CHAT), text);
    }

    async fn first_words(&mut self) {
        self.0.find("the first words", |message| message["params"]["role"] == "assistant").await;
    }

    async fn outcome(&mut self) -> Outcome {
        let turn = self.0.collect_turn(CHAT).await;
        self.0.find("the response", |message| message["result"]["chatId"] == CHAT).await;
        Outcome { said: text_by("assistant", &turn), noted: text_by("system", &turn) }
    }

    async fn decide(&mut self, allow: bool) {
        let is_question = |message: &Value| message["params"]["content"]["manualApproval"] == true;
        let question = self.0.find("the question", is_question).await;
        let [call] = contents("toolCallRun", std::slice::from_ref(&question))[..] else { panic!("{question}") };
        let (chat_id, tool_call_id) = (CHAT.into(), call["id"].as_str().unwrap().into());
        if allow {
            self.0.notify::<ChatToolCallApprove>(ChatToolCallApproveParams { chat_id, tool_call_id, save: None });
        } else {
            self.0.notify::<ChatToolCallReject>(ChatToolCallRejectParams { chat_id, tool_call_id });
        }
    }

    fn stop(&mut self) {
        self.0.stop(CHAT);
    }

    fn garbage() -> Vec<(&'static [u8], usize)> {
        let framed = |body: &str| -> &'static [u8] { Vec::leak(frame(body)) };
        vec![
            (b"garbage\r\n\r\n", 1),
            (framed("garbage"), 1),
            (framed("[]"), 1),
            (framed("{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":null}"), 0),
            (framed("{\"jsonrpc\":\"2.0\",\"id\":78,\"method\":\"no/such\"}"), 1),
        ]
    }

    async fn leave(mut self) {
        self.0.ignore_rest();
        self.0.finish().await;
    }
}
