//! Every code of the contract.

use serde_json::{Value, json};

use super::{Copilot, MODULE, petstore};
use crate::mock_llm::{MockLlm, Script};

#[tokio::test]
async fn lines_that_are_no_requests_are_answered_and_the_connection_lives() {
    let model = MockLlm::start().await;
    let mut copilot = Copilot::with(&model);
    for (line, code, id) in [
        ("garbage", -32700, Value::Null),
        ("{\"jsonrpc\":\"2.0\",\"id\":1", -32700, Value::Null),
        ("[]", -32600, Value::Null),
        ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"chat\"}]", -32600, Value::Null),
        ("5", -32600, Value::Null),
        ("{\"jsonrpc\":\"2.0\",\"id\":2}", -32600, json!(2)),
        ("{\"id\":3,\"method\":\"chat\"}", -32600, json!(3)),
        ("{\"jsonrpc\":\"1.0\",\"id\":4,\"method\":\"chat\"}", -32600, json!(4)),
        ("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"chat\"}", -32600, Value::Null),
        ("{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"chat\"}", -32600, Value::Null),
        ("{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":7}", -32600, json!(5)),
        ("{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"nonsense\"}", -32601, json!(6)),
        ("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"stream/chunk\"}", -32601, json!(7)),
        ("{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"chat\",\"params\":\"hi\"}", -32602, json!(8)),
        ("{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"chat\",\"params\":[]}", -32602, json!(9)),
        ("{\"jsonrpc\":\"2.0\",\"id\":10,\"method\":\"chat\"}", -32602, json!(10)),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":11,\"method\":\"initialize\",\"params\":{\"capabilities\":1}}",
            -32602,
            json!(11),
        ),
    ] {
        for end in ["\n", "\r\n"] {
            copilot.raw_send(format!("{line}{end}"));
            let answer = copilot.next().await;
            assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{line}: {answer}");
        }
    }
    // Nothing is said about these.
    copilot.raw_send("\n  \n\r\n\u{feff}\n");
    copilot.notify_raw("nonsense", Some(json!([1])));
    copilot.notify_raw("chat", Some(json!({"message": "hi"})));
    copilot.raw_send("{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":1}\n");
    copilot.call("initialize", json!({})).await.result();
    copilot.finish().await;
}

#[tokio::test]
async fn specifications_that_cannot_be_used_say_why() {
    let model = MockLlm::start().await;
    let mut copilot = Copilot::with(&model);
    let mut empty = petstore();
    empty["paths"] = json!({});
    let mut dangling = petstore();
    dangling["components"] = json!({});
    let place = "/paths/~1pets/get/responses/200/content/application~1json/schema/items/$ref";
    for (spec, path) in [(empty, "/paths"), (dangling, place), (json!("#%RAML 1.0"), ""), (json!({}), "")] {
        for (method, mut params) in [("generate", json!({})), ("customize", json!({"currentCode": "x", "prompt": "p"}))]
        {
            params["spec"] = spec.clone();
            let answered = copilot.call(method, params).await;
            let (code, error) = answered.error();
            assert_eq!(code, -32002);
            let first = &error["data"]["errors"][0];
            assert_eq!((&first["path"], &first["severity"]), (&json!(path), &json!("error")), "{error}");
            assert!(first["message"].is_string() && answered.chunks.is_empty());
        }
    }
    let raml = copilot.call("generate", json!({"spec": "#%RAML 1.0"})).await;
    assert!(raml.error().1["message"].as_str().unwrap().contains("RAML"));
    copilot.finish().await;
}

#[tokio::test]
async fn a_provider_that_fails_gives_each_method_its_code() {
    let model = MockLlm::start().await;
    let mut copilot = Copilot::with(&model);
    for (status, headers, body, codes) in [
        (500, vec![], "broken", [-32000, -32001, -32603]),
        (401, vec![], "no", [-32000, -32001, -32603]),
        (429, vec![], "slow down", [-32004, -32004, -32004]),
        (429, vec![("retry-after", "59")], "slow down", [-32004, -32004, -32004]),
        (400, vec![], r#"{"error":{"code":"context_length_exceeded","message":"x"}}"#, [-32003, -32003, -32003]),
    ] {
        let kept = headers.clone();
        model.respond_with(move |_| Script::status(status, &kept, body));
        for (code, (method, params)) in codes.into_iter().zip([
            ("generate", json!({"spec": petstore()})),
            ("customize", json!({"currentCode": "x", "prompt": "p"})),
            ("chat", json!({"message": "hi"})),
        ]) {
            let answered = copilot.call(method, params).await;
            let (found, error) = answered.error();
            assert_eq!((found, answered.chunks.len()), (code, 0), "{status} {method}: {error}");
            assert!(!error.to_string().contains(crate::server::KEY), "{error}");
            if !headers.is_empty() {
                assert_eq!(error["data"]["retryAfterMs"], 59_000);
            }
        }
    }
    copilot.finish().await;
}

#[tokio::test]
async fn a_rate_limit_that_passes_is_waited_for() {
    let model = MockLlm::start().await;
    model.push(Script::status(429, &[], "slow down"));
    model.push(Script::status(503, &[], "busy"));
    model.push(Script::text_stream(&[MODULE]));
    let mut copilot = Copilot::with(&model);
    let answered = copilot.call("generate", json!({"spec": petstore()})).await;
    assert_eq!(answered.streamed(), MODULE);
    copilot.finish().await;
}

#[tokio::test]
async fn an_error_after_chunks_ends_them_first() {
    let model = MockLlm::start().await;
    let failing = json!({"error": {"message": "out of luck", "code": 400}}).to_string();
    model.push(Script::stream().text("export default function App() {\n").data(&failing));
    let mut copilot = Copilot::with(&model);
    let answered = copilot.call("generate", json!({"spec": petstore()})).await;
    assert_eq!(answered.streamed(), "export default function App() {\n");
    assert_eq!(answered.chunks.last().unwrap()["chunk"], "");
    assert_eq!(answered.error().0, -32000, "{}", answered.response);
    copilot.finish().await;
}

#[tokio::test]
async fn what_the_model_cannot_read_is_too_large() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&[MODULE]));
    let limit = json!({"providers": {"mock": {"models": {"m1": {"limit": {"context": 8000, "output": 2000}}}}}});
    let mut copilot = Copilot::at_home(crate::server::TestServer::with(&model).config(limit));
    let mut spec = petstore();
    spec["paths"]["/pets"]["get"]["description"] = json!("many words ".repeat(20_000));
    assert!(
        copilot.call("generate", json!({"spec": spec})).await.response.get("result").is_some(),
        "words are left out"
    );
    for number in 0..2_000 {
        spec["paths"][format!("/a/rather/long/path/{number}")] = json!({"get": {}});
    }
    let answered = copilot.call("generate", json!({"spec": spec})).await;
    let (code, error) = answered.error();
    assert_eq!((code, &error["data"]["limit"]), (-32003, &json!(6000)), "{error}");
    assert!(error["data"]["estimatedTokens"].as_u64().unwrap() > 6000);
    let code = "x".repeat(30_000);
    let answered = copilot.call("customize", json!({"currentCode": code, "prompt": "p"})).await;
    assert_eq!(answered.error().0, -32003);
    assert_eq!(copilot.call("chat", json!({"message": code})).await.error().0, -32003);
    copilot.finish().await;
}
