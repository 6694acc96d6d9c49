//! What a request asks for, from its method and its params. Pure.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::failure::{bad_params, unknown_method};
use super::methods::{
    CREATE_THREAD, GET_THREAD_ENTRIES, GET_THREADS, GLOB_SEARCH, OPEN_THREAD, READ_BINARY_FILE, READ_TEXT_FILE,
    SEND_MESSAGE, STAT, STREAM_MESSAGE_CHUNK,
};
use crate::base::ChatId;
use crate::llm::Role;
use crate::transport::ResponseError;

/// One request, understood.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Call {
    Thread(ThreadCall),
    /// A piece of a message of the user's.
    Chunk {
        thread: ChatId,
        text: String,
    },
    File(FileCall),
}

/// What is done with threads.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ThreadCall {
    List,
    Create,
    Open(ChatId),
    Entries(ChatId),
    Send { thread: ChatId, role: Role, text: String },
}

/// What is asked about files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FileCall {
    ReadText { path: String, part: Part },
    ReadBinary { path: String, part: Part },
    Stat { path: String },
    Glob { pattern: String },
}

/// Which lines, or bytes, of a file; counted from 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) offset: u64,
    pub(super) limit: Option<u64>,
}

/// In whose hands the threads are, as the document's headings can be read in two ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// As the draft's own programs had it: the client calls what the agent offers.
    Usual,
    /// By the letter of the headings: the client streams to the agent and keeps the threads.
    Literal,
}

impl Call {
    pub(super) fn read(method: &str, params: Option<Value>) -> Result<Self, ResponseError> {
        Ok(match method {
            GET_THREADS => Self::Thread(ThreadCall::List),
            CREATE_THREAD => Self::Thread(ThreadCall::Create),
            OPEN_THREAD => Self::Thread(ThreadCall::Open(read::<ThreadParams>(params)?.thread()?)),
            GET_THREAD_ENTRIES => Self::Thread(ThreadCall::Entries(read::<ThreadParams>(params)?.thread()?)),
            SEND_MESSAGE => {
                let SendParams { thread_id, message } = read(params)?;
                let text: String = message.chunks.iter().map(|chunk| chunk.chunk.as_str()).collect();
                if text.trim().is_empty() {
                    return Err(bad_params("params.message.chunks: the message is empty"));
                }
                let role = match message.role {
                    WireRole::User => Role::User,
                    WireRole::Assistant => Role::Assistant,
                };
                Self::Thread(ThreadCall::Send { thread: thread(&thread_id)?, role, text })
            }
            STREAM_MESSAGE_CHUNK => {
                let ChunkParams { thread_id, chunk } = read(params)?;
                Self::Chunk { thread: thread(&thread_id)?, text: chunk.chunk }
            }
            READ_TEXT_FILE => {
                let params: TextParams = read(params)?;
                let part = Part { offset: params.line_offset.unwrap_or(0), limit: params.line_limit };
                Self::File(FileCall::ReadText { path: params.path, part })
            }
            READ_BINARY_FILE => {
                let params: BinaryParams = read(params)?;
                let part = Part { offset: params.byte_offset.unwrap_or(0), limit: params.byte_limit };
                Self::File(FileCall::ReadBinary { path: params.path, part })
            }
            STAT => Self::File(FileCall::Stat { path: read::<StatParams>(params)?.path }),
            GLOB_SEARCH => Self::File(FileCall::Glob { pattern: read::<GlobParams>(params)?.pattern }),
            other => return Err(unknown_method(other)),
        })
    }

    /// What a client that begins with this takes the headings for.
    pub(super) fn reading(&self) -> Reading {
        match self {
            Self::Thread(_) => Reading::Usual,
            Self::Chunk { .. } | Self::File(_) => Reading::Literal,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ThreadParams {
    thread_id: String,
}

impl ThreadParams {
    fn thread(&self) -> Result<ChatId, ResponseError> {
        thread(&self.thread_id)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SendParams {
    thread_id: String,
    message: WireMessage,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChunkParams {
    thread_id: String,
    chunk: WireChunk,
}

#[derive(Deserialize)]
struct WireMessage {
    role: WireRole,
    chunks: Vec<WireChunk>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum WireRole {
    User,
    Assistant,
}

#[derive(Deserialize)]
struct WireChunk {
    #[serde(rename = "type")]
    _type: WireChunkType,
    chunk: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum WireChunkType {
    Text,
}

// The thread that a file is asked for plays no part: all of them work in the same folder.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TextParams {
    path: String,
    line_offset: Option<u64>,
    line_limit: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BinaryParams {
    path: String,
    byte_offset: Option<u64>,
    byte_limit: Option<u64>,
}

#[derive(Deserialize)]
struct StatParams {
    path: String,
}

#[derive(Deserialize)]
struct GlobParams {
    pattern: String,
}

fn thread(id: &str) -> Result<ChatId, ResponseError> {
    ChatId::from_client(id).map_err(|error| bad_params(format!("params.threadId: {error}")))
}

/// Missing params are as good as empty ones.
fn read<T: DeserializeOwned>(params: Option<Value>) -> Result<T, ResponseError> {
    let params = match params {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(params @ Value::Object(_)) => params,
        Some(_) => return Err(bad_params("params: must be an object")),
    };
    serde_path_to_error::deserialize(params).map_err(|error| {
        let place = match error.path().to_string().as_str() {
            "." => "params".to_owned(),
            path => format!("params.{path}"),
        };
        bad_params(format!("{place}: {}", error.inner()))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::transport::envelope::{INVALID_PARAMS, METHOD_NOT_FOUND};

    fn text(chunk: &str) -> Value {
        json!({"type": "text", "chunk": chunk})
    }

    #[test]
    fn every_method_is_understood() {
        let id = || ChatId::new("t");
        let part = |offset, limit| Part { offset, limit };
        let file = |call| Call::File(call);
        for (method, params, expected) in [
            ("getThreads", json!(null), Call::Thread(ThreadCall::List)),
            ("getThreads", json!({"more": 1}), Call::Thread(ThreadCall::List)),
            ("createThread", json!({}), Call::Thread(ThreadCall::Create)),
            ("openThread", json!({"threadId": "t"}), Call::Thread(ThreadCall::Open(id()))),
            ("getThreadEntries", json!({"threadId": "t"}), Call::Thread(ThreadCall::Entries(id()))),
            (
                "sendMessage",
                json!({"threadId": "t", "message": {"role": "assistant", "chunks": [text("a"), text("b")]}}),
                Call::Thread(ThreadCall::Send { thread: id(), role: Role::Assistant, text: "ab".into() }),
            ),
            (
                "streamMessageChunk",
                json!({"threadId": "t", "chunk": text(" x")}),
                Call::Chunk { thread: id(), text: " x".into() },
            ),
            (
                "readTextFile",
                json!({"threadId": "t", "path": "/a", "lineOffset": 2, "lineLimit": 3}),
                file(FileCall::ReadText { path: "/a".into(), part: part(2, Some(3)) }),
            ),
            (
                "readTextFile",
                json!({"path": "/a", "lineOffset": null}),
                file(FileCall::ReadText { path: "/a".into(), part: part(0, None) }),
            ),
            (
                "readBinaryFile",
                json!({"threadId": "t", "path": "/a", "byteOffset": 5_000_000_000_u64}),
                file(FileCall::ReadBinary { path: "/a".into(), part: part(5_000_000_000, None) }),
            ),
            ("stat", json!({"threadId": "t", "path": "a"}), file(FileCall::Stat { path: "a".into() })),
            ("globSearch", json!({"threadId": "t", "pattern": "*"}), file(FileCall::Glob { pattern: "*".into() })),
        ] {
            assert_eq!(Call::read(method, Some(params.clone())), Ok(expected), "{method} {params}");
        }
        assert_eq!(Call::read("getThreads", None), Ok(Call::Thread(ThreadCall::List)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let message = |message: Value| json!({"threadId": "t", "message": message});
        for (method, params, code, named) in [
            ("nonExistentMethod", json!(null), METHOD_NOT_FOUND, "Method not found - 'nonExistentMethod'"),
            ("openThread", json!(null), INVALID_PARAMS, "params: missing field `threadId`"),
            ("openThread", json!(["t"]), INVALID_PARAMS, "params: must be an object"),
            ("openThread", json!({"threadId": 7}), INVALID_PARAMS, "params.threadId: invalid type"),
            ("openThread", json!({"threadId": " "}), INVALID_PARAMS, "params.threadId: the chat id is blank"),
            ("sendMessage", message(json!({"role": "user"})), INVALID_PARAMS, "params.message: missing field `chunks`"),
            ("sendMessage", message(json!({"role": "system", "chunks": []})), INVALID_PARAMS, "params.message.role"),
            (
                "sendMessage",
                message(json!({"role": "user", "chunks": [text("a"), {"type": "image", "chunk": ""}]})),
                INVALID_PARAMS,
                "params.message.chunks[1].type: unknown variant `image`",
            ),
            ("sendMessage", message(json!({"role": "user", "chunks": [text(" ")]})), INVALID_PARAMS, "is empty"),
            ("readTextFile", json!({"path": "a", "lineOffset": -1}), INVALID_PARAMS, "params.lineOffset"),
            ("readBinaryFile", json!({}), INVALID_PARAMS, "missing field `path`"),
            ("globSearch", json!({"pattern": 5}), INVALID_PARAMS, "params.pattern"),
        ] {
            let error = Call::read(method, Some(params.clone())).unwrap_err();
            assert_eq!(error.code, code, "{method} {params}");
            assert!(error.message.contains(named), "{}", error.message);
            assert_eq!(error.data, None);
        }
    }

    #[test]
    fn the_first_method_tells_the_reading() {
        let reading = |method: &str, params: Value| Call::read(method, Some(params)).unwrap().reading();
        assert_eq!(reading("createThread", json!(null)), Reading::Usual);
        assert_eq!(reading("stat", json!({"path": "a"})), Reading::Literal);
        assert_eq!(reading("streamMessageChunk", json!({"threadId": "t", "chunk": text("")})), Reading::Literal);
    }
}
