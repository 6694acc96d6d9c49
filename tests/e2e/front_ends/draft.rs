//! A client of the Agent Client Protocol's first draft in the scenarios.

use std::collections::VecDeque;
use std::path::PathBuf;

use serde_json::Value;

use super::{FrontEnd, Outcome, broken_lines};
use crate::acp_draft;
use crate::peer::Peer;
use crate::server::Builder;

pub(super) struct Draft {
    client: acp_draft::Draft,
    thread: String,
    /// Requests whose turns are not over.
    turns: VecDeque<i64>,
}

impl FrontEnd for Draft {
    async fn start(home: Builder) -> Self {
        let mut client = acp_draft::Draft::at_home(home);
        let thread = client.thread().await;
        Self { client, thread, turns: VecDeque::new() }
    }

    fn peer(&mut self) -> &mut Peer {
        &mut self.client
    }

    fn workspace(&self) -> PathBuf {
        self.client.dirs.workspace.clone()
    }

    async fn prompt(&mut self, text: &str) {
        self.turns.push_back(self.client.say(&self.thread, text));
    }

    async fn first_words(&mut self) {
        self.client.find("the first words", |message| message["method"] == "streamMessageChunk").await;
    }

    async fn outcome(&mut self) -> Outcome {
        let id = self.turns.pop_front().expect("a turn");
        // An editor that knows nothing of files.
        let no = serde_json::json!({"code": -32601, "message": "Method not found"});
        let turn = self.client.answered(id, |_, _| no.clone()).await;
        Outcome { said: turn.text(), noted: turn.failed().unwrap_or_default().to_owned() }
    }

    fn garbage() -> Vec<(&'static [u8], usize)> {
        let mut garbage = broken_lines();
        // A version, once named, would be named to us as well.
        garbage.retain(|(line, _)| !line.starts_with(b"{\"jsonrpc"));
        garbage.extend([
            (&b"{\"id\":77,\"result\":null}\n"[..], 0),
            (b"{\"id\":78,\"method\":\"no/such\",\"params\":null}\n", 1),
            (b"{\"method\":\"getThreads\"}\n", 1),
        ]);
        garbage
    }

    async fn leave(mut self) {
        self.client.close_input();
        self.client.end_of_output().await;
        let _: Vec<Value> = self.client.take_unread();
        self.client.finish().await;
    }
}
