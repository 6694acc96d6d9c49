//! Changes of an interface, and questions about what was meant.

use serde_json::{Value, json};

use super::{Copilot, MODULE, content, petstore, told};
use crate::mock_llm::{MockLlm, Script};

fn wish() -> Value {
    json!({"currentCode": "export default () => <p>old</p>;", "prompt": "Add a search field"})
}

fn header() -> &'static str {
    "{\"kind\":\"code\",\"description\":\"Added a search field\",\"assumptions\":[\"It filters by name\"]}\n"
}

fn changed() -> Value {
    json!({"code": MODULE, "description": "Added a search field", "assumptions": ["It filters by name"],
        "clarificationNeeded": false})
}

#[tokio::test]
async fn a_change_comes_as_words_or_as_a_call() {
    let model = MockLlm::start().await;
    let arguments =
        json!({"code": MODULE, "description": "Added a search field", "assumptions": ["It filters by name"]});
    let arguments = arguments.to_string();
    let (first, second) = arguments.split_at(arguments.len() / 2);
    let mut copilot = Copilot::with(&model);
    for script in [
        Script::text_stream(&[header(), "```tsx\n", MODULE, "```\n"]),
        Script::tool_call("call_1", "submit_interface", &[first, second]),
    ] {
        model.push(script);
        let answered = copilot.call("customize", wish()).await;
        assert_eq!((answered.result(), answered.chunks.len()), (&changed(), 0));
        let request = model.next_request().await;
        let names: Vec<&Value> =
            request.body["tools"].as_array().unwrap().iter().map(|tool| &tool["function"]["name"]).collect();
        assert_eq!(names, ["submit_interface", "ask_clarification"]);
        let told = told(&request);
        assert!(told.contains("<p>old</p>") && told.contains("The wish: Add a search field"), "{told}");
    }
    copilot.finish().await;
}

#[tokio::test]
async fn an_unclear_wish_is_answered_with_a_question() {
    let model = MockLlm::start().await;
    let question = json!({"question": "Which table?", "options": ["Users", "Orders"]});
    let mut copilot = Copilot::with(&model);
    for script in [
        Script::text_stream(&[
            "{\"kind\":\"clarify\",\"question\":\"Which table?\",",
            "\"options\":[\"Users\",\"Orders\"]}",
        ]),
        Script::tool_call("call_1", "ask_clarification", &[&question.to_string()]),
    ] {
        model.push(script);
        let answered = copilot.call("customize", wish()).await;
        assert_eq!(
            answered.result(),
            &json!({"code": null, "clarificationNeeded": true, "question": "Which table?",
                "options": ["Users", "Orders"], "assumptions": []})
        );
        model.next_request().await;
    }
    // The answer comes as a request of its own.
    model.push(Script::text_stream(&[header(), MODULE]));
    let mut params = wish();
    params["answer"] = json!("The second one");
    assert_eq!(copilot.call("clarify", params).await.result(), &changed());
    let told = told(&model.next_request().await);
    assert!(told.contains("The answer: The second one"), "{told}");
    copilot.finish().await;
}

#[tokio::test]
async fn the_history_reaches_the_model_in_its_order() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&[MODULE]));
    let mut copilot = Copilot::with(&model);
    let mut params = wish();
    params["history"] = json!([
        {"role": "system", "content": "The user is colour-blind"},
        {"role": "user", "content": "Generate it"},
        {"role": "assistant", "content": "Generated it"},
        {"role": "user", "content": "Thanks"},
        {"role": "assistant", "content": "Sure"},
    ]);
    params["spec"] = petstore();
    let answered = copilot.call("customize", params).await;
    assert_eq!(answered.result()["assumptions"], json!([]), "always a list");
    assert_eq!(answered.result()["description"], "Changed as asked: Add a search field.");
    let request = model.next_request().await;
    let said: Vec<(String, String)> = request.body["messages"].as_array().unwrap()[1..]
        .iter()
        .map(|message| (message["role"].as_str().unwrap().to_owned(), content(message)))
        .collect();
    let roles: Vec<&str> = said.iter().map(|(role, _)| role.as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
    assert!(said[0].1.contains("colour-blind") && said[0].1.ends_with("Generate it"), "{said:?}");
    assert_eq!((&*said[1].1, &*said[2].1, &*said[3].1), ("Generated it", "Thanks", "Sure"));
    assert!(said[4].1.contains("GET /pets") && said[4].1.ends_with("Add a search field"), "{said:?}");
    copilot.finish().await;
}

#[tokio::test]
async fn code_is_streamed_to_who_asks_for_it_and_questions_are_not() {
    let model = MockLlm::start().await;
    let mut copilot = Copilot::with(&model);
    let mut params = wish();
    params["stream"] = json!(true);
    model.push(Script::text_stream(&[header(), "```tsx\n", &MODULE[..50], &MODULE[50..], "```"]));
    let answered = copilot.call("customize", params.clone()).await;
    assert_eq!((answered.streamed().as_str(), answered.result()), (MODULE, &changed()));
    assert!(model.next_request().await.body.get("tools").is_none(), "a call would come as a whole");
    model.push(Script::text_stream(&["{\"kind\":\"clarify\",\"question\":\"What?\"}"]));
    let answered = copilot.call("customize", params).await;
    assert_eq!((answered.chunks.len(), &answered.result()["options"]), (0, &json!([])));
    copilot.finish().await;
}

#[tokio::test]
async fn what_is_neither_code_nor_a_question_is_asked_for_once_more() {
    let model = MockLlm::start().await;
    let mut copilot = Copilot::with(&model);
    model.push(Script::tool_call("c", "submit_interface", &["{\"code\": broken"]));
    model.push(Script::text_stream(&[header(), MODULE]));
    assert_eq!(copilot.call("customize", wish()).await.result(), &changed());
    model.push(Script::text_stream(&["I cannot."]));
    model.push(Script::text_stream(&["Really not."]));
    let answered = copilot.call("customize", wish()).await;
    assert_eq!((answered.error().0, &answered.error().1["data"]["unusableOutput"]), (-32001, &json!(true)));
    copilot.finish().await;
}
