//! MCP servers as a client sees and manages them.

use std::path::Path;
use std::sync::Arc;

use custom_methods::mcp::{McpAddServerParams, McpServerName, McpUpdateServerParams};
use custom_methods::methods::{
    McpAddServer, McpConnectServer, McpDisableServer, McpEnableServer, McpRemoveServer, McpStartServer, McpStopServer,
    McpUpdateServer,
};
use eca::process::guard;
use eca::state::Trust;
use serde_json::{Value, json};

use crate::fake_mcp::{self, DIARY, HABITS};
use crate::mock_llm::{MockLlm, Script};
use crate::peer::outline::text_by;
use crate::server::{TestDirs, TestServer, default_config, merge};

fn entry() -> Value {
    guard::use_executable(env!("CARGO_BIN_EXE_eca").into());
    let (command, args) = fake_mcp::command();
    json!({"command": command, "args": args, "env": {HABITS: "good"}})
}

fn named(name: &str) -> McpServerName {
    McpServerName { name: name.to_owned() }
}

fn says(message: &Value, name: &str, status: &str) -> bool {
    message["method"] == "tool/serverUpdated"
        && message["params"]["name"] == name
        && message["params"]["status"] == status
}

#[tokio::test]
async fn tools_that_are_switched_off_are_listed_so_for_the_agent_that_is_selected() {
    let model = MockLlm::start().await;
    let config = json!({
        "mcpServers": {"my.server": entry()},
        "disabledTools": ["my.server__refuse"],
        "agent": {"quiet": {"disabledTools": ["my.server"]}},
    });
    let mut server = TestServer::with(&model).config(config).start().await;
    let status = first_run(&mut server, "my.server").await;
    let off = |status: &Value| -> Vec<String> {
        let tools = status["tools"].as_array().unwrap().iter().filter(|tool| tool["disabled"] == true);
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let all = status["tools"].as_array().unwrap().len();
    assert_eq!(off(&status), ["refuse"]);
    // Providers refuse a dot in the name of a tool.
    model.push(Script::tool_call("t", "my_server__echo", &["{\"text\": \"hi\"}"]));
    model.push(Script::text_stream(&["ok"]));
    server.prompt(Some("c"), "hi").await;
    let run = server.find("the call", |message| message["params"]["content"]["type"] == "toolCallRun").await;
    let content = &run["params"]["content"];
    assert_eq!((&content["server"], &content["name"]), (&json!("my.server"), &json!("echo")));
    server.stop("c");
    let request = model.next_request().await;
    let names: Vec<&str> = request.body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"my_server__echo") && !names.iter().any(|name| name.contains('.')), "{names:?}");
    server.notify_raw("chat/selectedAgentChanged", Some(json!({"agent": "quiet"})));
    let fits = |message: &Value| says(message, "my.server", "running") && off(&message["params"]).len() == all;
    server.find("everything is off", fits).await;
    server.ignore_rest();
    server.finish().await;
}

/// That a server runs may be told while the server itself starts.
async fn first_run(server: &mut TestServer, name: &str) -> Value {
    let at_once = server.startup.iter().find(|message| says(message, name, "running"));
    match at_once.map(|message| message["params"].clone()) {
        Some(status) => status,
        None => until(server, name, "running").await,
    }
}

/// The next news about a server with this status.
async fn until(server: &mut TestServer, name: &str, status: &str) -> Value {
    let fits = |message: &Value| says(message, name, status);
    // What came before it is old news.
    let mut news = server.everything_until(&format!("{name} is {status}"), fits).await;
    news.pop().unwrap()["params"].take()
}

async fn gone(server: &mut TestServer, name: &str) {
    let fits = |message: &Value| message["method"] == "tool/serverRemoved" && message["params"]["name"] == name;
    server.find("it is removed", fits).await;
}

async fn shown(server: &mut TestServer, part: &str) {
    let fits = |message: &Value| {
        message["method"] == "$/showMessage" && message["params"]["message"].as_str().unwrap().contains(part)
    };
    // The start-up is read up to its end, which others may come before or after.
    if !server.startup.iter().any(fits) {
        server.find(part, fits).await;
    }
}

fn text_of(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap()
}

fn values_in(file: &Path) -> Value {
    let text: String = text_of(file).lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn servers_start_after_the_handshake_and_beside_chats() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["ok"]));
    let mut mute = entry();
    mute["env"][HABITS] = json!("mute");
    let config = json!({"mcpServers": {"good": entry(), "mute": mute, "off": {"command": "x", "disabled": true}}});
    let mut server = TestServer::with(&model).config(config).start().await;
    let first = server.startup.iter().position(|message| message["params"]["type"] == "mcp");
    let native = server.startup.iter().position(|message| message["params"]["type"] == "native").unwrap();
    assert!(first.is_none_or(|first| native < first), "the native tools come first");
    // A server that never answers does not matter to a chat.
    let turn = server.turn("c", "hi").await;
    assert_eq!(text_by("assistant", &turn), "ok");
    server.ignore_rest();
    let status = first_run(&mut server, "good").await;
    let mut keys: Vec<&str> = status.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    let expected = [
        "args",
        "command",
        "disabled",
        "hasAuth",
        "instructions",
        "name",
        "prompts",
        "resources",
        "status",
        "tools",
        "type",
    ];
    assert_eq!(keys, expected, "the whole shape");
    assert_eq!(status["tools"][0]["name"], "echo");
    assert_eq!(status["tools"][0]["server"], json!({"name": "good"}));
    server.notify::<McpStopServer>(named("good"));
    until(&mut server, "good", "stopping").await;
    let stopped = until(&mut server, "good", "stopped").await;
    assert_eq!((&stopped["tools"], &stopped["disabled"]), (&json!([]), &json!(false)));
    server.notify::<McpStartServer>(named("good"));
    until(&mut server, "good", "starting").await;
    until(&mut server, "good", "running").await;
    server.notify::<McpStartServer>(named("nobody"));
    shown(&mut server, "no MCP server \"nobody\"").await;
    server.notify::<McpConnectServer>(named("good"));
    server.finish().await;
}

#[tokio::test]
async fn switching_a_server_off_lasts_and_keeps_the_comments() {
    let model = MockLlm::start().await;
    let mut config = default_config(model.url());
    merge(&mut config, json!({"mcpServers": {"fake": entry()}}));
    let text = config.to_string().replacen("{\"command\"", "{\n// why it is here\n\"command\"", 1);
    let mut server = TestServer::with(&model).config_text(&text).start().await;
    server.ignore_rest();
    let file = server.dirs.eca.config.join("config.json");
    first_run(&mut server, "fake").await;
    server.notify::<McpDisableServer>(named("fake"));
    let off = until(&mut server, "fake", "disabled").await;
    assert_eq!(off["disabled"], true);
    assert_eq!(values_in(&file)["mcpServers"]["fake"]["disabled"], true);
    assert!(text_of(&file).contains("// why it is here"));
    server.notify::<McpEnableServer>(named("fake"));
    assert_eq!(until(&mut server, "fake", "running").await["disabled"], false);
    assert_eq!(values_in(&file)["mcpServers"]["fake"]["disabled"], false);
    assert!(text_of(&file).contains("// why it is here"));
    server.finish().await;
}

#[tokio::test]
async fn servers_are_added_changed_and_removed() {
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model).start().await;
    server.ignore_rest();
    let file = server.dirs.eca.config.join("config.json");
    let new = entry();
    let params = |name: &str| McpAddServerParams {
        name: name.to_owned(),
        command: new["command"].as_str().map(str::to_owned),
        args: serde_json::from_value(new["args"].clone()).unwrap(),
        env: serde_json::from_value(new["env"].clone()).unwrap(),
        ..McpAddServerParams::default()
    };
    let added = server.request::<McpAddServer>(params("fake")).await;
    assert_eq!(added.error, None);
    let added = serde_json::to_value(added.server.unwrap()).unwrap();
    assert_eq!((&added["name"], &added["command"]), (&json!("fake"), &new["command"]));
    until(&mut server, "fake", "running").await;
    assert_eq!(values_in(&file)["mcpServers"]["fake"], new);
    for (bad, reason) in [
        (params("fake"), "already"),
        (McpAddServerParams { name: "x".into(), ..McpAddServerParams::default() }, "command or a url"),
        (params("a b"), "white space"),
    ] {
        let error = server.request::<McpAddServer>(bad).await.error.unwrap();
        assert!(error.code == "invalid_request" && error.message.contains(reason), "{error:?}");
    }
    let diary = server.dirs.root.path().join("diary");
    let env = Some([(HABITS.to_owned(), "good".to_owned()), (DIARY.to_owned(), diary.display().to_string())].into());
    server.request::<McpUpdateServer>(McpUpdateServerParams { name: "fake".into(), env, ..Default::default() }).await;
    until(&mut server, "fake", "stopping").await;
    until(&mut server, "fake", "running").await;
    assert!(text_of(&diary).contains("initialize"), "it was started anew");
    let unknown = McpUpdateServerParams { name: "nobody".into(), ..Default::default() };
    let id = server.start::<McpUpdateServer>(unknown);
    assert!(server.response::<McpUpdateServer>(id).await.is_err());
    let removed = server.request::<McpRemoveServer>(named("fake")).await;
    assert_eq!((removed.removed, removed.error), (Some(true), None));
    gone(&mut server, "fake").await;
    assert_eq!(values_in(&file)["mcpServers"], json!({}));
    let again = server.request::<McpRemoveServer>(named("fake")).await;
    assert_eq!((again.removed, again.error.map(|error| error.code)), (Some(false), Some("invalid_request".to_owned())));
    server.finish().await;
}

#[tokio::test]
async fn a_workspace_gets_its_server_and_stays_trusted() {
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model).start().await;
    server.ignore_rest();
    let new = entry();
    let mut params: McpAddServerParams = serde_json::from_value(json!({"name": "local", "command": new["command"],
        "args": new["args"], "env": new["env"], "scope": "workspace"}))
    .unwrap();
    let added = server.request::<McpAddServer>(params.clone()).await;
    assert_eq!(added.error, None, "there was no file, so there was nothing to distrust");
    until(&mut server, "local", "running").await;
    let root = dunce::canonicalize(&server.dirs.workspace).unwrap();
    let file = root.join(".eca/config.json");
    assert!(Trust::in_directory(&server.dirs.eca.data).trusted().contains_key(&file));
    // Somebody else changes the file: it is a stranger's again, and its servers end.
    let strange = text_of(&file).replace("\"mcpServers\"", "\"welcomeMessage\": \"evil\",\n\"mcpServers\"");
    std::fs::write(&file, &strange).unwrap();
    gone(&mut server, "local").await;
    params.name = "other".to_owned();
    let refused = server.request::<McpAddServer>(params).await.error.unwrap();
    assert!(refused.message.contains("not trusted"), "{refused:?}");
    assert_eq!(text_of(&file), strange, "and it is not touched");
    server.finish().await;
}

#[tokio::test]
async fn a_repository_cannot_start_a_server() {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["ok"]));
    let dirs = Arc::new(TestDirs::new());
    let canary = dirs.root.path().join("canary");
    let strange = json!({"mcpServers": {"evil": {"command": "touch", "args": [canary]}}});
    std::fs::create_dir(dirs.workspace.join(".eca")).unwrap();
    std::fs::write(dirs.workspace.join(".eca/config.json"), strange.to_string()).unwrap();
    let mut server = TestServer::with(&model).dirs(&dirs).start().await;
    shown(&mut server, "mcpServers (could run programs)").await;
    let turn = server.turn("c", "hi").await;
    assert!(!turn.is_empty() && !canary.exists());
    server.ignore_rest();
    server.finish().await;
}
