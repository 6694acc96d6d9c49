//! Without a model: interfaces from the specification alone, honest refusals, and a model that is
//! configured later.

use serde_json::json;

use super::{Copilot, MODULE, petstore};
use crate::mock_llm::{MockLlm, Script};

#[tokio::test]
async fn an_interface_is_built_from_the_specification_alone() {
    let mut copilot = Copilot::offline();
    let answered = copilot.call("initialize", json!({})).await;
    assert_eq!(answered.result()["capabilities"]["models"], json!([]));
    let sdl = "type Query { pets(kind: String): [Pet] } type Pet { id: ID! }";
    for spec in [petstore(), json!(sdl)] {
        let answered = copilot.call("generate", json!({"spec": spec})).await;
        let code = answered.result()["code"].as_str().unwrap();
        assert!(code.contains("export default function App") && code.contains("pets"), "{code}");
        assert_eq!(answered.streamed(), code);
        assert!(answered.result()["componentCount"].as_u64().unwrap() >= 7);
        let description = answered.result()["description"].as_str().unwrap();
        assert!(description.contains("no language model"), "{description}");
    }
    assert_eq!(copilot.call("generate", json!({"spec": {"openapi": "3.0.0"}})).await.error().0, -32002);
    let mut huge = petstore();
    for number in 0..40_000 {
        huge["paths"][format!("/a/rather/long/path/{number}")] = json!({"get": {}});
    }
    assert_eq!(copilot.call("generate", json!({"spec": huge})).await.error().0, -32003);
    copilot.finish().await;
}

#[tokio::test]
async fn what_needs_a_model_says_so() {
    let mut copilot = Copilot::offline();
    let answered = copilot.call("customize", json!({"currentCode": "x", "prompt": "p"})).await;
    assert_eq!((answered.error().0, &answered.error().1["data"]["noModel"]), (-32001, &json!(true)));
    let answered = copilot.call("chat", json!({"message": "What formats do you support?"})).await;
    let message = answered.result()["message"].as_str().unwrap();
    assert!(message.contains("Swagger 2.0") && message.contains("No language model is connected"), "{message}");
    assert_eq!(answered.result()["suggestions"].as_array().unwrap().len(), 3);
    let streamed = copilot.call("chat", json!({"message": "hi", "stream": true})).await;
    assert_eq!(streamed.streamed(), message);
    copilot.finish().await;
}

#[tokio::test]
async fn a_model_that_is_configured_later_is_used() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&[MODULE]));
    let mut copilot = Copilot::offline();
    let file = copilot.home.surroundings().environment.dirs.config.join("config.json");
    copilot.call("generate", json!({"spec": petstore()})).await.result();
    std::fs::write(file, crate::server::default_config(model.url()).to_string()).unwrap();
    // Noticing takes a moment; every answer until then is a good one.
    loop {
        let answered = copilot.call("generate", json!({"spec": petstore()})).await;
        if answered.result()["code"] == MODULE {
            break;
        }
    }
    copilot.finish().await;
}
