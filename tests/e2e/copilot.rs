//! The Copilot CLI contract in process, against a model under the test's control: every method,
//! every error code, and the order of chunks and answers.

mod chat;
mod customize;
mod errors;
mod generate;
mod limits;
mod offline;

use std::ops::{Deref, DerefMut};

use serde_json::{Value, json};

use crate::lines::LineServer;
use crate::mock_llm::MockLlm;
use crate::peer::{Peer, text_of};
use crate::server::{Builder, TestServer};

/// A running server and its application.
pub(super) struct Copilot {
    server: LineServer,
    /// Holds the folders.
    pub(super) home: Builder,
}

/// A request with everything that came for it.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) chunks: Vec<Value>,
    pub(super) response: Value,
}

impl Copilot {
    pub(super) fn with(model: &MockLlm) -> Self {
        Self::configured(model, json!({}))
    }

    /// With the section `copilot` of the configuration.
    pub(super) fn configured(model: &MockLlm, copilot: Value) -> Self {
        Self::at_home(TestServer::with(model).config(json!({"copilot": copilot})))
    }

    /// Nothing but the offline guide.
    pub(super) fn offline() -> Self {
        Self::at_home(TestServer::at("unused").config(json!({"defaultModel": null, "providers": null})))
    }

    pub(super) fn at_home(home: Builder) -> Self {
        let surroundings = home.surroundings();
        let server = LineServer::start(|input, output| eca::frontends::copilot::serve(input, output, surroundings));
        Self { server, home }
    }

    /// A request, its chunks and its answer; what belongs to others stays unread.
    pub(super) async fn call(&mut self, method: &str, params: Value) -> Answered {
        let id = self.start_raw(method, Some(params));
        self.answered(id).await
    }

    pub(super) async fn answered(&mut self, id: impl Into<Value>) -> Answered {
        let id = id.into();
        let mut chunks = Vec::new();
        loop {
            let message = self
                .find(&format!("the answer to {id}"), |message| {
                    message["id"] == id || message["params"]["requestId"] == id
                })
                .await;
            if message.get("method").is_none() {
                return Answered { chunks, response: message };
            }
            assert_eq!(message["method"], "stream/chunk");
            chunks.push(message["params"].clone());
        }
    }

    /// Leaves by protocol; nothing may be left to be read.
    pub(super) async fn finish(self) {
        self.notify_raw("exit", None);
        self.wait_for_end().await;
    }

    pub(super) async fn wait_for_end(mut self) {
        self.server.wait_for_end().await;
        let unread: Vec<String> = self.take_unread().iter().map(text_of).collect();
        assert!(unread.is_empty(), "nobody read:\n  {}", unread.join("\n  "));
    }
}

impl Answered {
    pub(super) fn result(&self) -> &Value {
        assert!(self.response.get("error").is_none(), "{}", self.response);
        &self.response["result"]
    }

    pub(super) fn error(&self) -> (i64, &Value) {
        let error = &self.response["error"];
        (error["code"].as_i64().unwrap_or_else(|| panic!("no error: {}", self.response)), error)
    }

    /// The chunks put together: numbered without gaps, and only the last one marked.
    pub(super) fn streamed(&self) -> String {
        let last = self.chunks.len().checked_sub(1).expect("no chunk came");
        for (index, chunk) in self.chunks.iter().enumerate() {
            assert_eq!((&chunk["index"], &chunk["done"]), (&json!(index), &json!(index == last)), "{chunk}");
            assert_eq!(chunk.as_object().unwrap().len(), 4, "{chunk}");
        }
        self.chunks.iter().map(|chunk| chunk["chunk"].as_str().unwrap()).collect()
    }
}

impl Deref for Copilot {
    type Target = Peer;
    fn deref(&self) -> &Peer {
        &self.server
    }
}

impl DerefMut for Copilot {
    fn deref_mut(&mut self) -> &mut Peer {
        &mut self.server
    }
}

/// A module as a model might write it.
pub(super) const MODULE: &str = "// Lists the pets and adds new ones.\nimport React from \"react\";\n\
    function Row({ pet }) {\n  return <li>{pet.name}</li>;\n}\n\
    export default function App() {\n  return <ul><Row pet={{ name: \"Rex\" }} /></ul>;\n}\n";

pub(super) fn petstore() -> Value {
    json!({
        "openapi": "3.0.3",
        "info": {"title": "Pets", "version": "1.0"},
        "paths": {"/pets": {"get": {"tags": ["pets"], "summary": "List all pets", "responses": {"200": {
            "description": "ok", "content": {"application/json": {"schema": {"type": "array",
            "items": {"$ref": "#/components/schemas/Pet"}}}}}}}}},
        "components": {"schemas": {"Pet": {"type": "object", "properties": {"name": {"type": "string"}}}}},
    })
}

/// Everything that a model was told, as one text.
pub(super) fn told(request: &crate::mock_llm::CapturedRequest) -> String {
    let messages = request.body["messages"].as_array().expect("messages");
    messages.iter().map(|message| format!("{}: {}\n", message["role"], content(message))).collect()
}

pub(super) fn content(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}
