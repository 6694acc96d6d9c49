//! An MCP server that misbehaves on demand: this test executable, started once more.
//!
//! The test runner prints words of its own around it, so every test here is also one of a server
//! that writes nonsense.
#![allow(unreachable_pub, clippy::print_stderr, clippy::zombie_processes)]

use std::io::Write;
use std::time::Duration;

use serde_json::{Value, json};

/// What it does besides its duty, as words divided by commas.
pub const HABITS: &str = "ECA_FAKE_MCP";
/// A file to which it adds its process number, and those of what it starts.
pub const PIDS: &str = "ECA_FAKE_PIDS";
/// A file to which it adds what it was told.
pub const DIARY: &str = "ECA_FAKE_DIARY";

/// How to start it.
pub fn command() -> (String, Vec<String>) {
    let program = std::env::current_exe().unwrap().display().to_string();
    (program, ["--exact", "fake_mcp::program", "--nocapture"].map(str::to_owned).to_vec())
}

/// The program; a test that passes at once when nobody wants it.
#[test]
fn program() {
    if let Ok(habits) = std::env::var(HABITS) {
        Fake { habits, extra: false, next_id: 1000, input: std::io::stdin().lines() }.serve();
        std::process::exit(0);
    }
}

struct Fake {
    habits: String,
    /// Whether it offers more than at the start.
    extra: bool,
    next_id: u64,
    input: std::io::Lines<std::io::StdinLock<'static>>,
}

fn append(variable: &str, line: &str) {
    let Some(file) = std::env::var_os(variable) else { return };
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file).unwrap();
    writeln!(file, "{line}").unwrap();
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Nobody listens any more.
    if out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

fn send(message: &Value) {
    say(&message.to_string());
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn make_noise() {
    say("not json");
    say("{\"jsonrpc\":\"2.0\"}");
    say("[1,2,3]");
    say(&"[".repeat(5000));
    std::io::stdout().write_all(b"\xff\xfe\x00garbage\n").unwrap();
    send(&json!({"jsonrpc": "2.0", "id": 987_654, "result": {}}));
}

impl Fake {
    fn has(&self, habit: &str) -> bool {
        self.habits.split(',').any(|word| word == habit)
    }

    fn serve(mut self) {
        append(PIDS, &std::process::id().to_string());
        if self.has("family") {
            let script = "setsid sh -c 'echo $$ >> \"$0\"; trap \"\" TERM; while :; do sleep 600; done' \"$0\" & wait";
            let file = std::env::var(PIDS).unwrap();
            let null = std::process::Stdio::null;
            let mut family = std::process::Command::new("sh");
            family.args(["-c", script, &file]).stdin(null()).stdout(null()).stderr(null()).spawn().unwrap();
        }
        if self.has("dies-at-once") {
            eprintln!("no such database: s3cr3t-token-value");
            std::process::exit(3);
        }
        while self.has("shouts") {
            say("y");
        }
        if self.has("complains") {
            std::thread::spawn(|| {
                loop {
                    eprintln!("{}", "complaint ".repeat(100));
                }
            });
        }
        while let Some(message) = self.next() {
            self.answer(&message);
        }
    }

    fn next(&mut self) -> Option<Value> {
        let line = self.input.next()?.ok()?;
        Some(serde_json::from_str(&line).unwrap_or(Value::Null))
    }

    fn answer(&mut self, message: &Value) {
        let params = &message["params"];
        let result = match message["method"].as_str().unwrap_or_default() {
            _ if self.has("mute") => return,
            "initialize" => {
                append(DIARY, &format!("initialize {}", params["capabilities"]));
                json!({
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": {"tools": {"listChanged": true}, "prompts": {}, "resources": {}, "logging": {}},
                    "serverInfo": {"name": "fake", "version": "1"},
                    "instructions": "Be kind to the fake.",
                })
            }
            "tools/list" if self.has("no-list") => return,
            "tools/list" => self.tools(params),
            "prompts/list" => {
                let mut prompts = vec![json!({"name": "greet", "description": "Greets.", "arguments": [
                    {"name": "who", "description": "whom", "required": true}, {"name": "how"}]})];
                prompts.extend(self.extra.then(|| json!({"name": "more"})));
                json!({"prompts": prompts})
            }
            "prompts/get" => {
                let who = params["arguments"]["who"].as_str().unwrap_or("nobody");
                json!({"messages": [
                    {"role": "user", "content": {"type": "text", "text": format!("Greet {who}.")}},
                    {"role": "assistant", "content": {"type": "text", "text": "Hello!"}}]})
            }
            "resources/list" => {
                let mut resources = vec![json!({"uri": "fake://one", "name": "one", "mimeType": "text/plain"})];
                resources.extend(self.extra.then(|| json!({"uri": "fake://two", "name": "two"})));
                json!({"resources": resources})
            }
            "resources/read" => match params["uri"].as_str() {
                Some("fake://one") => json!({"contents": [{"uri": "fake://one", "text": "first"},
                    {"uri": "fake://blob", "mimeType": "application/zip", "blob": "aGk="}]}),
                _ => {
                    let error = json!({"code": -32002, "message": "no such resource"});
                    return send(&json!({"jsonrpc": "2.0", "id": message["id"], "error": error}));
                }
            },
            "tools/call" => match self.call(message) {
                Some(result) => result,
                None => return,
            },
            "notifications/cancelled" => {
                return append(DIARY, &format!("cancelled {} {}", params["requestId"], params["reason"]));
            }
            "notifications/roots/list_changed" => return append(DIARY, "roots changed"),
            "logging/setLevel" | "ping" => json!({}),
            _ => return,
        };
        send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
    }

    /// Two pages, and one entry that nobody can read.
    fn tools(&self, params: &Value) -> Value {
        let object = json!({"type": "object"});
        if params["cursor"].is_null() {
            let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
            let tools = json!([{"name": "echo", "description": "Says it again.", "inputSchema": schema},
                {"name": 7, "inputSchema": object}, {"name": "has a.dot", "inputSchema": object}]);
            return json!({"tools": tools, "nextCursor": "2"});
        }
        let names = [
            "hang",
            "die",
            "big",
            "steps",
            "ask",
            "sample",
            "roots",
            "change",
            "noise",
            "flood",
            "everything",
            "refuse",
            "log",
            "where",
        ];
        let mut tools: Vec<Value> =
            names.iter().map(|name| json!({"name": name, "title": "A tool", "inputSchema": object})).collect();
        tools.extend(self.extra.then(|| json!({"name": "extra", "inputSchema": object})));
        json!({"tools": tools})
    }

    fn call(&mut self, message: &Value) -> Option<Value> {
        let (params, id) = (&message["params"], &message["id"]);
        let arguments = &params["arguments"];
        append(DIARY, &format!("called {} {id}", params["name"]));
        match params["name"].as_str().unwrap_or_default() {
            "echo" => Some(text(arguments["text"].as_str().unwrap_or_default())),
            "has a.dot" => Some(text("dotted")),
            "hang" => None,
            "die" => {
                eprintln!("I die now");
                std::process::exit(4);
            }
            "big" => Some(text(&"x".repeat(usize::try_from(arguments["bytes"].as_u64().unwrap()).unwrap()))),
            "steps" => {
                for step in 1..=20 {
                    let progress = json!({"progressToken": params["_meta"]["progressToken"], "progress": step, "total": 20,
                        "message": "working"});
                    send(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}));
                    std::thread::sleep(Duration::from_millis(arguments["pause"].as_u64().unwrap_or(0)));
                }
                Some(text("done"))
            }
            "ask" => {
                let schema =
                    json!({"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]});
                let answer =
                    self.ask("elicitation/create", json!({"message": "Which color?", "requestedSchema": schema}));
                Some(text(&answer.to_string()))
            }
            "sample" => {
                let params =
                    json!({"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5});
                Some(text(&self.ask("sampling/createMessage", params).to_string()))
            }
            "roots" => Some(text(&self.ask("roots/list", json!({})).to_string())),
            "change" => {
                self.extra = true;
                for list in ["tools", "prompts", "resources"] {
                    send(&json!({"jsonrpc": "2.0", "method": format!("notifications/{list}/list_changed")}));
                }
                Some(text("changed"))
            }
            "noise" => {
                make_noise();
                Some(text("quiet again"))
            }
            "flood" => {
                let line = json!({"jsonrpc": "2.0", "method": "notifications/message",
                    "params": {"level": "info", "data": "x".repeat(1000)}});
                loop {
                    send(&line);
                }
            }
            "everything" => Some(json!({"content": [
                {"type": "text", "text": "words"}, {"type": "image", "mimeType": "image/png", "data": "aGk="},
                {"type": "audio", "mimeType": "audio/wav", "data": "aGk="},
                {"type": "resource", "resource": {"uri": "fake://r", "text": "embedded"}},
                {"type": "resource_link", "uri": "fake://l", "name": "linked"}, {"type": "hologram"}],
                "structuredContent": {"answer": 42}})),
            "refuse" => {
                let error = json!({"code": -32602, "message": "not with these arguments"});
                send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
                None
            }
            "log" => {
                send(&json!({"jsonrpc": "2.0", "method": "notifications/message",
                    "params": {"level": "warning", "logger": "fake", "data": {"said": "something"}}}));
                Some(text("logged"))
            }
            "where" => Some(text(&format!(
                "{} {}",
                std::env::current_dir().unwrap().display(),
                std::env::var("FAKE_VARIABLE").unwrap_or_default()
            ))),
            _ => Some(json!({"content": [{"type": "text", "text": "no such tool"}], "isError": true})),
        }
    }

    /// Asks the client, and waits for its answer.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.next_id;
        self.next_id += 1;
        send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let Some(message) = self.next() else { std::process::exit(0) };
            if message["id"] == id && message["method"].is_null() {
                return if message["result"].is_null() { message["error"].clone() } else { message["result"].clone() };
            }
            self.answer(&message);
        }
    }
}
