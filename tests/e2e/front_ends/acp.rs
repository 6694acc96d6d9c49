//! A client of the Agent Client Protocol in the scenarios: an editor that can do nothing but ask.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{FrontEnd, Outcome, broken_lines};
use crate::acp;
use crate::peer::Peer;
use crate::server::Builder;

pub(super) struct Acp {
    client: acp::Acp,
    session: String,
    /// Prompts whose turns are not over.
    turns: VecDeque<i64>,
}

impl FrontEnd for Acp {
    async fn start(home: Builder) -> Self {
        let dirs = Arc::clone(home.folders());
        let mut client = acp::Acp::at(home, &dirs, json!({})).await;
        let session = client.session().await;
        Self { client, session, turns: VecDeque::new() }
    }

    fn peer(&mut self) -> &mut Peer {
        &mut self.client
    }

    fn workspace(&self) -> PathBuf {
        self.client.workspace()
    }

    async fn prompt(&mut self, text: &str) {
        self.turns.push_back(self.client.start_prompt(&self.session, text));
    }

    async fn first_words(&mut self) {
        let session = Value::from(self.session.as_str());
        let words = |message: &Value| acp::is_update(message, &session, "agent_message_chunk");
        self.client.find("the first words", words).await;
    }

    async fn outcome(&mut self) -> Outcome {
        let id = self.turns.pop_front().expect("a turn");
        let turn = self.client.rest_of(id).await;
        let failed = turn.response["error"]["message"].as_str();
        let ended = failed.unwrap_or_else(|| turn.stop_reason()).to_owned();
        Outcome { said: turn.text(), noted: if ended == "end_turn" { String::new() } else { ended } }
    }

    async fn decide(&mut self, allow: bool) {
        let is_question = |message: &Value| message["method"] == "session/request_permission";
        let question = self.client.find("the question", is_question).await;
        let option = if allow { "allow_once" } else { "reject_once" };
        self.client.answer(&question, acp::selected(option));
    }

    fn stop(&mut self) {
        self.client.cancel(&self.session);
    }

    fn garbage() -> Vec<(&'static [u8], usize)> {
        broken_lines()
    }

    async fn leave(mut self) {
        self.client.close_input();
        self.client.end_of_output().await;
        let _: Vec<Value> = self.client.take_unread();
        self.client.wait_for_end().await;
    }
}
