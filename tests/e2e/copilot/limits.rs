//! Deadlines, cancellation, the queue, slow readers, and leaving in the middle of work.

use serde_json::{Value, json};

use super::{Copilot, MODULE, petstore};
use crate::mock_llm::{Gate, MockLlm, Script};

#[tokio::test]
async fn each_method_has_its_deadline() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::stream().text("export default () => <p/>;\n").hang_here());
    let settings = json!({"generateTimeoutSeconds": 1, "customizeTimeoutSeconds": 0.2, "chatTimeoutSeconds": 0.1});
    let mut copilot = Copilot::configured(&model, settings);
    for (method, params, code) in [
        ("chat", json!({"message": "hi"}), -32603),
        ("customize", json!({"currentCode": "x", "prompt": "p"}), -32001),
        ("generate", json!({"spec": petstore()}), -32000),
    ] {
        let answered = copilot.call(method, params).await;
        let (found, error) = answered.error();
        assert_eq!((found, &error["data"]["timeout"]), (code, &json!(true)), "{method}: {error}");
        // On a busy machine nothing may have come before the time was over.
        if !answered.chunks.is_empty() {
            assert_eq!(answered.streamed(), "export default () => <p/>;\n", "what came is ended in order");
        }
    }
    copilot.finish().await;
}

#[tokio::test]
async fn without_a_limit_a_slow_model_may_take_its_time() {
    let model = MockLlm::start().await;
    let gate = Gate::new();
    model.push(Script::stream().gate(&gate).text(MODULE).finish("stop"));
    let mut copilot = Copilot::configured(&model, json!({"generateTimeoutSeconds": 0, "chatTimeoutSeconds": 0.1}));
    let id = copilot.start_raw("generate", Some(json!({"spec": petstore()})));
    model.next_request().await;
    // Another one runs out of time meanwhile.
    model.push(Script::hang());
    assert_eq!(copilot.call("chat", json!({"message": "hi"})).await.error().0, -32603);
    gate.open();
    assert_eq!(copilot.answered(id).await.streamed(), MODULE);
    copilot.finish().await;
}

#[tokio::test]
async fn a_request_can_be_cancelled_in_both_spellings() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::hang());
    let mut copilot = Copilot::with(&model);
    for (method, params, code, spelling) in [
        ("generate", json!({"spec": petstore()}), -32000, "$/cancelRequest"),
        ("customize", json!({"currentCode": "x", "prompt": "p"}), -32001, "cancel"),
        ("chat", json!({"message": "hi"}), -32603, "cancel"),
    ] {
        let id = copilot.start_raw(method, Some(params));
        model.next_request().await;
        copilot.notify_raw(spelling, Some(json!({"id": 12345})));
        copilot.notify_raw(spelling, Some(json!({"id": id})));
        let answered = copilot.answered(id).await;
        assert_eq!((answered.error().0, &answered.error().1["data"]["cancelled"]), (code, &json!(true)));
        model.connection_closed().await;
    }
    copilot.finish().await;
}

#[tokio::test]
async fn an_id_that_is_in_use_is_refused() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::hang());
    let mut copilot = Copilot::with(&model);
    let chat = json!({"jsonrpc": "2.0", "id": 7, "method": "chat", "params": {"message": "hi"}});
    copilot.send(&chat);
    model.next_request().await;
    copilot.send(&chat);
    assert_eq!(copilot.answered(7).await.error().0, -32600);
    copilot.notify_raw("cancel", Some(json!({"id": 7})));
    assert_eq!(copilot.answered(7).await.error().0, -32603);
    copilot.finish().await;
}

#[tokio::test]
async fn the_hundred_and_first_request_is_refused_and_the_others_are_answered() {
    let model = MockLlm::start().await;
    let gate = Gate::new();
    let held = gate.clone();
    model.respond_with(move |_| Script::stream().gate(&held).text("An answer.").finish("stop"));
    let mut copilot = Copilot::configured(&model, json!({"chatTimeoutSeconds": 0}));
    let ids: Vec<i64> = (0..100).map(|n| copilot.start_raw("chat", Some(json!({"message": n.to_string()})))).collect();
    for _ in 0..4 {
        model.next_request().await;
    }
    let refused = copilot.call("chat", json!({"message": "one more"})).await;
    assert_eq!((refused.error().0, &refused.error().1["data"]["queueDepth"]), (-32004, &json!(100)));
    assert!(model.try_next_request().await.is_none(), "no more than four talk to a model");
    // What needs no model is not refused.
    copilot.call("initialize", json!({})).await.result();
    for _ in 0..=100 {
        gate.open();
    }
    for id in ids {
        assert_eq!(copilot.answered(id).await.result()["message"], "An answer.");
    }
    assert_eq!(copilot.call("chat", json!({"message": "again"})).await.response.get("error"), None);
    copilot.finish().await;
}

#[tokio::test]
async fn a_client_that_reads_slowly_loses_nothing() {
    let model = MockLlm::start().await;
    let line = format!("// {}\n", "é\\".repeat(500));
    let text = line.clone();
    model.respond_with(move |_| {
        Script::stream().text("```tsx\nexport default () => <p/>;\n").flood(2_000, &text).text("```").finish("stop")
    });
    let mut copilot = Copilot::configured(&model, json!({"generateTimeoutSeconds": 0}));
    copilot.stop_reading();
    let ids: Vec<i64> = (0..3).map(|_| copilot.start_raw("generate", Some(json!({"spec": petstore()})))).collect();
    for _ in &ids {
        model.next_request().await;
    }
    copilot.go_on_reading();
    for id in ids {
        let answered = copilot.answered(id).await;
        let code = answered.result()["code"].as_str().unwrap();
        assert_eq!(code.len(), "export default () => <p/>;\n".len() + 2_000 * line.len());
        assert_eq!(answered.streamed(), code);
    }
    copilot.finish().await;
}

/// A server with work in flight that has shown its first words.
async fn busy(model: &MockLlm) -> (Copilot, Vec<i64>) {
    model.respond_with(|_| Script::stream().text("export default () => <p/>;\n").hang_here());
    let mut copilot = Copilot::with(model);
    let generate = copilot.start_raw("generate", Some(json!({"spec": petstore()})));
    let chat = copilot.start_raw("chat", Some(json!({"message": "hi"})));
    for _ in 0..2 {
        model.next_request().await;
    }
    copilot.find("the first chunk", |message| message["method"] == "stream/chunk").await;
    (copilot, vec![generate, chat])
}

async fn ends_in_order(mut copilot: Copilot, ids: Vec<i64>) {
    for id in ids {
        let answered = copilot.answered(id).await;
        assert_eq!(answered.error().1["data"]["cancelled"], true);
        assert!(answered.chunks.iter().all(|chunk| chunk["done"] == true), "{:?}", answered.chunks);
    }
    copilot.wait_for_end().await;
}

#[tokio::test]
async fn leaving_ends_all_work_and_answers_it() {
    let model = MockLlm::start().await;
    for method in ["exit", "shutdown"] {
        let (copilot, ids) = busy(&model).await;
        copilot.notify_raw(method, None);
        ends_in_order(copilot, ids).await;
        let (mut copilot, ids) = busy(&model).await;
        assert_eq!(copilot.call(method, json!({})).await.response.get("result"), Some(&Value::Null));
        ends_in_order(copilot, ids).await;
    }
    let (mut copilot, ids) = busy(&model).await;
    copilot.close_input();
    ends_in_order(copilot, ids).await;
}
