//! Agents that work for other agents: what the client sees of them, who is asked, and what is left
//! when somebody stops, opens or winds back.

use std::cell::Cell;
use std::fs;

use custom_methods::chat::{
    ChatHistoryParams, ChatListParams, ChatOpenParams, ChatRollbackParams, ChatToolCallApproveParams,
};
use custom_methods::methods::{ChatHistory, ChatList, ChatOpen, ChatRollback, ChatToolCallApprove};
use serde_json::{Value, json};

use crate::chat::spoken;
use crate::mock_llm::{Gate, MockLlm, Script};
use crate::peer::outline::contents;
use crate::peer::{is_finished, outline};
use crate::server::TestServer;

const CHILD: &str = "subagent-s1";

fn spawn(id: &str, arguments: Value) -> Script {
    Script::tool_call(id, "eca__spawn_agent", &[&arguments.to_string()])
}

fn explore(id: &str) -> Script {
    spawn(id, json!({"agent": "explorer", "task": "look for it", "activity": "looking"}))
}

async fn whole_turn(server: &mut TestServer, message: &str) -> Vec<Value> {
    server.start_prompt(Some("c"), message);
    server.everything_until("the end", |message| is_finished(message, "c")).await
}

fn of_chat(chat: &str, messages: &[Value]) -> Vec<Value> {
    messages.iter().filter(|message| message["params"]["chatId"] == chat).cloned().collect()
}

fn tools(body: &Value) -> Vec<String> {
    let tools = body["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_task_is_done_in_a_chat_of_its_own_and_reported() {
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model).start().await;
    let file = server.dirs.file("a.txt", "it is here\n");
    model.push(explore("s1"));
    model.push(Script::tool_call("r", "eca__read_file", &[&json!({"path": file}).to_string()]));
    model.push(Script::text_stream(&["found ", "it"]));
    model.push(Script::text_stream(&["done"]));
    let turn = whole_turn(&mut server, "hi").await;

    let child = of_chat(CHILD, &turn);
    let told = |message: &&Value| message["method"] == "chat/contentReceived";
    assert!(child.iter().filter(told).all(|message| message["params"]["parentChatId"] == "c"), "{child:?}");
    assert_eq!(
        outline(&child)[..4],
        ["progress Starting", "user \"look for it\\n\"", "status running", "progress Waiting model"]
    );
    let own: Vec<String> = outline(&child).into_iter().filter(|line| !line.starts_with("progress")).collect();
    let expected = [
        "user \"look for it\\n\"",
        "status running",
        "toolCallPrepare r",
        "usage",
        "toolCallRun r",
        "toolCallRunning r",
        "toolCalled r",
        "assistant \"found it\"",
        "usage",
        "status idle",
        "finished",
    ];
    assert_eq!(own, expected);

    let parent = of_chat("c", &turn);
    let run = contents("toolCallRun", &parent)[0];
    assert_eq!((&run["summary"], &run["manualApproval"]), (&json!("explorer: looking"), &json!(false)));
    let details =
        json!({"type": "subagent", "subagentChatId": CHILD, "model": "mock/m1", "agentName": "explorer", "step": 0});
    assert_eq!(run["details"], details);
    assert!(outline(&parent).contains(&"progress Waiting subagent".to_owned()), "{:?}", outline(&parent));
    let called = contents("toolCalled", &parent)[0];
    assert_eq!((&called["error"], &called["details"]["step"]), (&json!(false), &json!(2)));
    assert_eq!(called["outputs"][0]["text"], "## Agent 'explorer' Result\n\nfound it");
    let steps = contents("toolCallRunning", &parent);
    assert!(steps.len() > 1 && steps.iter().any(|running| running["details"]["step"] != 0), "{steps:?}");
    let usage = contents("usage", &parent);
    assert_eq!(usage.last().unwrap()["totalTokens"], 4 * 19, "what the other one used is counted here");
    assert_eq!(usage.last().unwrap()["sessionTokens"], 19, "and fills no room here");

    let offered = tools(&model.next_request().await.body);
    assert!(offered.contains(&"eca__spawn_agent".to_owned()), "{offered:?}");
    let request = model.next_request().await;
    assert_eq!(spoken(&request.body), [("user", "look for it")]);
    let offered = tools(&request.body);
    for missing in ["spawn_agent", "task", "git", "ask_user", "write_file", "edit_file"] {
        assert!(!offered.contains(&format!("eca__{missing}")), "{missing} in {offered:?}");
    }
    model.next_request().await;
    let result = model.next_request().await.body["messages"].as_array().unwrap().last().unwrap().clone();
    assert!(result["content"].to_string().contains("found it"), "{result}");
    server.finish().await;
}

#[tokio::test]
async fn a_chat_is_shown_again_with_those_that_worked_for_it() {
    let model = MockLlm::start().await;
    model.push(explore("s1"));
    model.push(Script::text_stream(&["found it"]));
    model.push(Script::text_stream(&["done"]));
    let mut server = TestServer::with(&model).start().await;
    whole_turn(&mut server, "hi").await;
    let dirs = server.dirs.clone();
    server.finish().await;

    let mut server = TestServer::with(&model).dirs(&dirs).start().await;
    let listed = server.request::<ChatList>(ChatListParams::default()).await;
    let ids: Vec<&str> = listed.chats.iter().map(|chat| chat.id.0.as_str()).collect();
    assert_eq!(ids, ["c"], "a chat that works for another one is in no list");
    let id = server.start::<ChatOpen>(ChatOpenParams { chat_id: "c".into(), ..ChatOpenParams::default() });
    let shown = server.everything_until("the response", |message| message["id"] == id).await;
    let lines = outline(&shown);
    let at = |line: &str| lines.iter().position(|seen| seen == line).unwrap_or_else(|| panic!("{line}: {lines:?}"));
    assert!(at("toolCallRunning s1") < at("user \"look for it\\n\""), "{lines:?}");
    assert!(at("assistant \"found it\"") < at("toolCalled s1"), "{lines:?}");
    let child = of_chat(CHILD, &shown);
    assert!(!child.is_empty() && child.iter().all(|message| message["params"]["parentChatId"] == "c"), "{child:?}");
    assert!(of_chat("c", &shown).iter().all(|message| message["params"].get("parentChatId").is_none()));
    let page = server.request::<ChatHistory>(ChatHistoryParams { chat_id: "c".into(), ..Default::default() }).await;
    let contents = page.contents.unwrap();
    let of_child = contents.iter().filter(|content| content.parent_chat_id.is_some()).count();
    assert_eq!(of_child, child.len());
    let opened =
        server.request::<ChatOpen>(ChatOpenParams { chat_id: CHILD.into(), ..ChatOpenParams::default() }).await;
    assert!(!opened.found, "it is shown in its parent only");
    server.finish().await;
}

#[tokio::test]
async fn what_it_may_not_do_by_itself_is_asked_and_can_be_wound_back() {
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model).start().await;
    let file = server.dirs.workspace.join("new.txt");
    model.push(spawn("s1", json!({"agent": "general", "task": "write it"})));
    let arguments = json!({"path": file, "content": "x"}).to_string();
    model.push(Script::tool_call("w", "eca__write_file", &[&arguments]));
    model.push(Script::text_stream(&["written"]));
    model.push(Script::text_stream(&["done"]));
    server.start_prompt(Some("c"), "write");
    let asked = |message: &Value| message["params"]["content"]["text"] == "Waiting for tool call approval";
    let seen = server.everything_until("the question", asked).await;
    assert_eq!(seen.last().unwrap()["params"]["chatId"], CHILD);
    assert!(!file.exists());
    let approval = ChatToolCallApproveParams { chat_id: CHILD.into(), tool_call_id: "w".into(), save: None };
    server.notify::<ChatToolCallApprove>(approval);
    server.everything_until("the end", |message| is_finished(message, "c")).await;
    assert_eq!(fs::read_to_string(&file).unwrap(), "x");
    let user = contents("text", &of_chat("c", &seen)).into_iter().find(|text| text.get("contentId").is_some()).cloned();
    let content_id = user.unwrap()["contentId"].as_str().unwrap().to_owned();
    let params = json!({"chatId": "c", "contentId": content_id, "include": ["messages", "tools"]});
    let params: ChatRollbackParams = serde_json::from_value(params).unwrap();
    server.request::<ChatRollback>(params).await;
    assert!(!file.exists(), "what the other agent did is undone with the chat it worked for");
    // The same call again finds its name taken and works all the same.
    model.push(explore("s1"));
    model.push(Script::text_stream(&["found"]));
    model.push(Script::text_stream(&["done"]));
    let turn = whole_turn(&mut server, "again").await;
    let called = contents("toolCalled", &of_chat("c", &turn)).first().cloned().cloned().unwrap();
    assert_eq!(called["error"], false, "{called}");
    assert_ne!(called["details"]["subagentChatId"], CHILD);
    server.ignore_rest();
    server.finish().await;
}

#[tokio::test]
async fn several_work_side_by_side() {
    let model = MockLlm::start().await;
    let gate = Gate::new();
    let held = gate.clone();
    model.respond_with(move |request| {
        let messages = request.body["messages"].as_array().unwrap().clone();
        let said = messages.iter().find(|message| message["role"] == "user").unwrap()["content"].to_string();
        let last = messages.last().unwrap()["role"].clone();
        match (said.contains("look"), last == "tool") {
            (true, _) => Script::stream().gate(&held).text("found").finish("stop"),
            (false, true) => Script::text_stream(&["done"]),
            (false, false) => {
                let task = |task: &str| json!({"agent": "explorer", "task": task}).to_string();
                let script = Script::stream().call(0, "s1", "eca__spawn_agent", &[&task("look here")]);
                script.call(1, "s2", "eca__spawn_agent", &[&task("look there")]).finish("tool_calls")
            }
        }
    });
    let mut server = TestServer::with(&model).start().await;
    server.start_prompt(Some("c"), "hi");
    for _ in 0..3 {
        // Both ask before either is answered.
        model.next_request().await;
    }
    gate.open();
    gate.open();
    let turn = server.everything_until("the end", |message| is_finished(message, "c")).await;
    let called = of_chat("c", &turn);
    let called = contents("toolCalled", &called);
    assert!(called.len() == 2 && called.iter().all(|call| call["error"] == false), "{called:?}");
    server.finish().await;
}

#[tokio::test]
async fn stopping_a_chat_stops_those_that_work_for_it() {
    let model = MockLlm::start().await;
    model.push(explore("s1"));
    model.push(Script::stream().text("so far").hang_here());
    let mut server = TestServer::with(&model).start().await;
    server.start_prompt(Some("c"), "hi");
    let streaming = |message: &Value| message["params"]["content"]["text"] == "so far";
    server.everything_until("its words", streaming).await;
    server.stop("c");
    model.connection_closed().await;
    let left = Cell::new(2);
    let over = |message: &Value| {
        let is_end = is_finished(message, "c") || is_finished(message, CHILD);
        left.set(left.get() - i32::from(is_end));
        left.get() == 0
    };
    let seen = server.everything_until("both ends", over).await;
    let parent = of_chat("c", &seen);
    assert_eq!(contents("toolCallRejected", &parent)[0]["reason"], "user-prompt-stop");
    let lines = outline(&of_chat(CHILD, &seen));
    assert_eq!(lines[lines.len() - 3..], ["status stopping", "status idle", "finished"]);
    model.push(Script::text_stream(&["hello"]));
    let turn = whole_turn(&mut server, "still there?").await;
    assert!(outline(&turn).contains(&"assistant \"hello\"".to_owned()));
    server.finish().await;
}

#[tokio::test]
async fn what_goes_wrong_is_told_to_the_one_that_asked() {
    let model = MockLlm::start().await;
    let config = json!({"agent": {"short": {"mode": "subagent", "maxSteps": 1, "description": "d"},
        "reserved": {"mode": "subagent", "spawnableBy": ["plan"]}}});
    let mut server = TestServer::with(&model).config(config).start().await;
    let grep = Script::tool_call("g", "eca__grep", &["{}"]);
    let cases = [
        (json!({"agent": "nobody", "task": "t"}), vec![], "There is no agent"),
        (json!({"agent": "reserved", "task": "t"}), vec![], "There is no agent"),
        (json!({"agent": "code", "task": "t"}), vec![], "There is no agent"),
        (json!({"agent": "explorer", "task": "t", "model": "nothing-like-it"}), vec![], "nothing-like-it"),
        (json!({"agent": "short", "task": "t"}), vec![grep], "after 1 model calls"),
        (json!({"agent": "explorer", "task": "t"}), vec![Script::status(400, &[], "no such thing")], "It failed"),
        (json!({"agent": "explorer", "task": "t", "model": "m2"}), vec![Script::text_stream(&["by m2"])], "by m2"),
    ];
    for (number, (arguments, answers, expected)) in cases.into_iter().enumerate() {
        model.push(spawn(&format!("s{number}"), arguments.clone()));
        answers.into_iter().for_each(|answer| model.push(answer));
        model.push(Script::text_stream(&["I see"]));
        let turn = whole_turn(&mut server, "hi").await;
        let parent = of_chat("c", &turn);
        let called = contents("toolCalled", &parent)[0];
        let text = called["outputs"][0]["text"].as_str().unwrap();
        assert!(text.contains(expected), "{arguments}: {text}");
        assert_eq!(called["error"], !expected.starts_with("by"), "{arguments}");
        if expected.starts_with("by") {
            assert_eq!(called["details"]["model"], "mock/m2");
        }
    }
    server.finish().await;
}

#[tokio::test]
async fn the_user_may_stop_only_the_one_that_works() {
    let model = MockLlm::start().await;
    model.push(explore("s1"));
    model.push(Script::stream().text("so far").hang_here());
    model.push(Script::text_stream(&["all right"]));
    let mut server = TestServer::with(&model).start().await;
    server.start_prompt(Some("c"), "hi");
    server.everything_until("its words", |message| message["params"]["content"]["text"] == "so far").await;
    server.stop(CHILD);
    let turn = server.everything_until("the end", |message| is_finished(message, "c")).await;
    let parent = of_chat("c", &turn);
    let text = contents("toolCalled", &parent)[0]["outputs"][0]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("stopped") && text.contains("so far"), "{text}");
    server.finish().await;
}
