//! Lines that are no requests: each is answered in the draft's own form, and the connection lives.

use serde_json::{Value, json};

use super::Draft;
use crate::mock_llm::{MockLlm, Script};

#[tokio::test]
async fn what_cannot_be_read_is_answered() {
    let model = MockLlm::start().await;
    let mut draft = Draft::with(&model);
    for (line, code, id) in [
        ("garbage", -32700, Value::Null),
        ("{\"id\":1", -32700, Value::Null),
        ("[]", -32600, Value::Null),
        ("{\"id\":2}", -32600, json!(2)),
        ("{\"id\":null,\"method\":\"getThreads\"}", -32600, Value::Null),
        ("{\"id\":1.5,\"method\":\"getThreads\"}", -32600, Value::Null),
        ("{\"method\":\"getThreads\",\"params\":null}", -32600, Value::Null),
        ("{\"id\":3,\"method\":7}", -32600, json!(3)),
        ("{\"id\":4,\"method\":\"initialize\",\"params\":{}}", -32601, json!(4)),
        ("{\"id\":5,\"method\":\"openThread\"}", -32602, json!(5)),
        ("{\"id\":6,\"method\":\"openThread\",\"params\":\"t\"}", -32602, json!(6)),
        ("{\"id\":7,\"method\":\"openThread\",\"params\":[\"t\"]}", -32602, json!(7)),
        ("{\"id\":\"x\",\"method\":\"openThread\",\"params\":{}}", -32602, json!("x")),
        ("{\"id\":8,\"jsonrpc\":\"1.0\",\"method\":\"getThreads\"}", -32600, json!(8)),
    ] {
        for end in ["\n", "\r\n"] {
            draft.raw_send(format!("{line}{end}"));
            let answer = draft.next().await;
            assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{line}: {answer}");
        }
    }
    // Nothing is said about these.
    draft.raw_send("\n  \n\r\n\u{feff}\n{\"id\":5,\"result\":1}\n{\"id\":5,\"error\":{}}\n");
    let thread = draft.thread().await;
    model.push(Script::text_stream(&["alive"]));
    assert_eq!(draft.turn(&thread, "hi").await.text(), "alive");
    draft.finish().await;
}

#[tokio::test]
async fn an_id_that_is_a_text_comes_back_as_one() {
    let model = MockLlm::start().await;
    let mut draft = Draft::with(&model);
    draft.raw_send("{\"id\":\"a\",\"method\":\"getThreads\",\"params\":null}\n");
    assert_eq!(draft.next().await, json!({"id": "a", "result": {"threads": []}}));
    draft.finish().await;
}

#[tokio::test]
async fn a_prompt_of_some_megabytes_is_a_prompt() {
    let model = MockLlm::start().await;
    model.push(Script::text_stream(&["long"]));
    let mut draft = Draft::with(&model);
    let thread = draft.thread().await;
    assert_eq!(draft.turn(&thread, &"é ".repeat(500_000)).await.text(), "long");
    draft.finish().await;
}
