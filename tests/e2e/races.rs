//! Order where it is easily lost: many messages at once, on a runtime with several threads.

use custom_methods::chat::{ChatDeleteParams, ChatPromptStopParams};
use custom_methods::methods::{ChatDelete, ChatPrompt, ChatPromptStop};
use serde_json::{Value, json};

use crate::mock_llm::{Gate, MockLlm, Script};
use crate::peer::outline;
use crate::peer::outline::text_by;
use crate::server::{TestServer, prompt};

#[tokio::test]
async fn a_stop_never_overtakes_its_prompt() {
    const CHATS: usize = 10;
    const ROUNDS: usize = 200;
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::hang());
    let mut server = TestServer::with(&model).start().await;
    let chats: Vec<String> = (0..CHATS).map(|number| format!("chat-{number}")).collect();
    for round in 0..ROUNDS {
        for chat in &chats {
            let (_, ask) = server.request_message::<ChatPrompt>(prompt(Some(chat), "hi"));
            let stop =
                server.notification_message::<ChatPromptStop>(ChatPromptStopParams { chat_id: chat.as_str().into() });
            server.send_together(&[ask, stop]);
        }
        for chat in &chats {
            let turn = outline(&server.collect_turn(chat).await);
            let ending = &turn[turn.len() - 4..];
            assert_eq!(ending, ["system text", "status stopping", "status idle", "finished"], "round {round}");
            assert_eq!(turn.iter().filter(|line| *line == "finished").count(), 1);
        }
        for _ in 0..CHATS {
            let response = server.find("a response", |message| message.get("method").is_none()).await;
            assert_eq!(response["result"]["status"], "prompting");
        }
    }
    server.finish().await;
}

#[tokio::test]
async fn the_response_always_stands_between_the_echo_and_the_rest() {
    const CHATS: usize = 8;
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["ok"]));
    let mut server = TestServer::with(&model).start().await;
    for round in 0..50 {
        // All at once, so that the chats compete for the threads and the way out.
        let (mut asked, mut messages) = (Vec::new(), Vec::new());
        for number in 0..CHATS {
            let (id, message) = server.request_message::<ChatPrompt>(prompt(Some(&format!("c{number}")), "hi"));
            asked.push((id, format!("c{number}")));
            messages.push(message);
        }
        server.send_together(&messages);
        let mut open = CHATS;
        let mut seen = Vec::new();
        while open > 0 {
            let message = server.next().await;
            open -= usize::from(message["params"]["content"]["state"] == "finished");
            seen.push(message);
        }
        for (id, chat) in asked {
            let own = |m: &&Value| m["params"]["chatId"] == chat.as_str() || m["id"] == id;
            let own: Vec<Value> = seen.iter().filter(own).cloned().collect();
            let lines = outline(&own);
            let start = usize::from(round == 0);
            assert_eq!(
                lines[start..start + 5],
                ["progress Starting", "user \"hi\\n\"", "response", "status running", "progress Waiting model"]
            );
        }
    }
    server.finish().await;
}

#[tokio::test]
async fn notifications_are_handled_in_the_order_in_which_they_were_sent() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["ok"]));
    let mut server = TestServer::with(&model).client(crate::server::presets::cli).start().await;
    // Each adds a folder and removes the one before: any other order leaves more than the last.
    let folder = |number: usize| json!({"uri": format!("file:///somewhere/folder-{number}"), "name": "f"});
    let mut messages: Vec<Value> = (0..500_usize)
        .map(|number| {
            let removed = number.checked_sub(1).map(folder).into_iter().collect::<Vec<_>>();
            json!({"jsonrpc": "2.0", "method": "workspace/didChangeWorkspaceFolders",
                   "params": {"event": {"added": [folder(number)], "removed": removed}}})
        })
        .collect();
    messages.push(server.request_message::<ChatPrompt>(prompt(Some("c"), "hi")).1);
    server.send_together(&messages);
    server.collect_turn("c").await;
    server.find("the response", |message| message.get("method").is_none()).await;
    let instructions = model.next_request().await.body["messages"][0]["content"].as_str().unwrap().to_owned();
    let named: Vec<&str> = instructions.lines().filter(|line| line.contains("folder-")).collect();
    assert_eq!(named, ["- /somewhere/folder-499"]);
    server.finish().await;
}

#[tokio::test]
async fn parallel_chats_keep_their_own_order() {
    const CHATS: usize = 8;
    const PIECES: usize = 300;
    let model = MockLlm::start().await;
    model.respond_with(|request| {
        let name = last_words(&request.body);
        let script = (0..PIECES).fold(Script::stream(), |script, number| script.text(&format!("{name}:{number};")));
        script.finish("stop")
    });
    let mut server = TestServer::with(&model).start().await;
    let chats: Vec<String> = (0..CHATS).map(|number| format!("c{number}")).collect();
    for chat in &chats {
        server.start_prompt(Some(chat), chat);
    }
    for chat in &chats {
        let turn = server.collect_turn(chat).await;
        let expected: String = (0..PIECES).map(|number| format!("{chat}:{number};")).collect();
        assert_eq!(text_by("assistant", &turn), expected);
    }
    for _ in &chats {
        server.find("a response", |message| message.get("method").is_none()).await;
    }
    server.finish().await;
}

#[tokio::test]
async fn two_hundred_chats_stream_at_once() {
    const CHATS: usize = 200;
    const PIECES: usize = 20;
    let model = MockLlm::start().await;
    let gate = Gate::new();
    let held = gate.clone();
    model.respond_with(move |request| {
        let name = last_words(&request.body);
        let script = Script::stream().gate(&held);
        (0..PIECES).fold(script, |script, number| script.text(&format!("{name}:{number};"))).finish("stop")
    });
    let mut server = TestServer::with(&model).start().await;
    let chats: Vec<String> = (0..CHATS).map(|number| format!("c{number}")).collect();
    for chat in &chats {
        server.start_prompt(Some(chat), chat);
    }
    // Every chat has its request open before the first word comes.
    for _ in &chats {
        model.next_request().await;
    }
    for _ in &chats {
        gate.open();
    }
    for chat in &chats {
        let turn = server.collect_turn(chat).await;
        let expected: String = (0..PIECES).map(|number| format!("{chat}:{number};")).collect();
        assert_eq!(text_by("assistant", &turn), expected);
        assert_eq!(outline(&turn).last().map(String::as_str), Some("finished"));
    }
    for _ in &chats {
        server.find("a response", |message| message.get("method").is_none()).await;
    }
    server.finish().await;
}

#[tokio::test]
async fn a_prompt_follows_a_prompt_without_waiting_and_each_has_one_end() {
    const PROMPTS: usize = 30;
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["ok"]));
    let mut server = TestServer::with(&model).start().await;
    let messages: Vec<Value> = (0..PROMPTS)
        .map(|number| server.request_message::<ChatPrompt>(prompt(Some("c"), &number.to_string())).1)
        .collect();
    server.send_together(&messages);
    let mut echoes = Vec::new();
    for _ in 0..PROMPTS {
        let lines = outline(&server.collect_turn("c").await);
        echoes.extend(lines.iter().filter(|line| line.starts_with("user ")).cloned());
        assert!(lines.contains(&"status idle".to_owned()), "{lines:?}");
    }
    let expected: Vec<String> = (0..PROMPTS).map(|number| format!("user \"{number}\\n\"")).collect();
    assert_eq!(echoes, expected);
    for _ in 0..PROMPTS {
        let response = server.find("a response", |message| message.get("method").is_none()).await;
        assert_eq!(response["result"]["status"], "prompting", "{response}");
    }
    server.finish().await;
}

#[tokio::test]
async fn a_deleted_chat_and_its_successor_of_the_same_name_do_not_mix() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["ok"]));
    let mut server = TestServer::with(&model).start().await;
    for round in 0..50 {
        let chat = format!("c{}", round % 2);
        let delete = ChatDeleteParams { chat_id: Some(chat.as_str().into()) };
        let (deleting, delete) = server.request_message::<ChatDelete>(delete);
        let (_, ask) = server.request_message::<ChatPrompt>(prompt(Some(&chat), "hi"));
        server.send_together(&[delete, ask]);
        let turn = server.collect_turn(&chat).await;
        let expected = ["chat/deleted", "chat/opened", "progress Starting", "user \"hi\\n\"", "status running"];
        assert_eq!(outline(&turn)[..5], expected, "round {round}");
        server.response_raw(deleting).await;
        server.find("the response", |message| message.get("method").is_none()).await;
    }
    server.finish().await;
}

fn last_words(body: &Value) -> String {
    body["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned()
}
