//! A server that is killed in the middle of its work: what it said it had done is there afterwards,
//! and nothing is left half open.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::mock_llm::{CapturedRequest, MockLlm, Script};
use crate::peer::outline::text_by;
use crate::process::{Launch, RealServer};

/// The history alone is killed as often elsewhere; this is about the turns on top of it.
const KILLS: usize = 200;
/// A turn of the script has about so many messages.
const LONGEST_LIFE: u64 = 60;

/// Three rounds of tools, two at a time, then an answer.
fn script(request: &CapturedRequest, file: &str) -> Script {
    let messages = request.body["messages"].as_array().unwrap();
    let done = messages.iter().filter(|message| message["role"] == "tool").count();
    if done >= 6 {
        return Script::text_stream(&["all ", "is ", "read"]);
    }
    let arguments = json!({"path": file}).to_string();
    let search = [&format!("{{\"path\": \"{file}\", "), "\"pattern\": \"nowhere\"}"];
    let script = Script::stream().thought("hm").text("reading ");
    let script = script.call(0, &format!("a{done}"), "eca__read_file", &[&arguments]);
    script.call(1, &format!("b{done}"), "eca__grep", &search).finish("tool_calls")
}

async fn start(launch: &Launch) -> RealServer {
    let launch = Launch { dirs: Arc::clone(&launch.dirs), arguments: launch.arguments.clone() };
    let folders = launch.dirs.workspace_folders();
    let capabilities = json!({"codeAssistant": {"chat": true, "editor": {}}});
    launch.start_with(json!({"processId": null, "capabilities": capabilities, "workspaceFolders": folders})).await
}

/// What a client was told before the server died.
#[derive(Debug, Default)]
struct Told {
    accepted: bool,
    called: BTreeSet<String>,
    finished: bool,
}

async fn live_and_die(server: &mut RealServer, chat: &str, messages: u64) -> Told {
    let id = server.start_raw("chat/prompt", Some(json!({"chatId": chat, "message": format!("question of {chat}")})));
    let mut told = Told::default();
    for _ in 0..messages {
        if told.finished {
            break;
        }
        let message = server.next().await;
        let content = &message["params"]["content"];
        told.accepted |= message["id"] == id;
        told.finished |= content["state"] == "finished";
        if content["type"] == "toolCalled" {
            told.called.insert(content["id"].as_str().unwrap().to_owned());
        }
    }
    server.process.signal(Signal::KILL);
    server.process.wait().await;
    told
}

async fn check(server: &mut RealServer, chat: &str, told: &Told) {
    let response = server.request_raw("chat/history", Some(json!({"chatId": chat}))).await;
    let Some(contents) = response["result"]["contents"].as_array() else {
        assert!(!told.accepted, "{chat} was accepted and is gone: {response}");
        return;
    };
    let of = |kind: &str| -> Vec<&Value> {
        contents.iter().map(|params| &params["content"]).filter(|content| content["type"] == kind).collect()
    };
    let ids = |kind: &str| -> BTreeSet<String> {
        of(kind).iter().map(|content| content["id"].as_str().unwrap().to_owned()).collect()
    };
    let users = contents.iter().filter(|params| params["role"] == "user").count();
    assert!(users == 1 || !told.accepted, "{chat}: {contents:?}");
    let called = ids("toolCalled");
    assert!(told.called.is_subset(&called), "{chat}: {:?} of {:?}", called, told.called);
    let ended: BTreeSet<String> = called.union(&ids("toolCallRejected")).cloned().collect();
    assert_eq!(ids("toolCallPrepare"), ended, "{chat}: no call is left open");
    if told.finished {
        let last = contents.iter().rfind(|params| params["role"] == "assistant" && params["content"]["type"] == "text");
        assert_eq!(last.unwrap()["content"]["text"], "all is read", "{chat}");
    }
}

#[tokio::test]
async fn whatever_was_said_to_be_done_is_there_after_a_kill() {
    let model = MockLlm::start().await;
    let launch = Launch::with(&model);
    let file = launch.dirs.file("a.txt", "some text\n");
    model.respond_with(move |request| script(request, &file));
    // Always the same moments: a failure can be looked for again.
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut lives = Vec::new();
    for life in 0..KILLS {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let chat = format!("chat-{life}");
        let told = live_and_die(&mut start(&launch).await, &chat, random % LONGEST_LIFE).await;
        lives.push((chat, told));
    }
    let mut server = start(&launch).await;
    for (chat, told) in &lives {
        check(&mut server, chat, told).await;
    }
    assert!(lives.iter().any(|(_, told)| told.called.len() > 2), "the lives were too short");
    // A chat that died goes on.
    let (chat, _) = lives.iter().rfind(|(_, told)| !told.finished && !told.called.is_empty()).unwrap();
    server.start_raw("chat/prompt", Some(json!({"chatId": chat, "message": "go on"})));
    let turn = server.collect_turn(chat).await;
    // How many pieces come as one depends on who was faster.
    assert!(text_by("assistant", &turn).ends_with("all is read"), "{turn:?}");
    server.process.signal(Signal::KILL);
    server.process.wait().await;
}
