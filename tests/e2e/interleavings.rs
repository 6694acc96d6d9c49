//! Five hundred chats whose users approve, reject, stop, steer and ask again at random moments. What
//! must hold in all of them is checked message by message; a failure names the seed.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use custom_methods::chat::{
    ChatPromptSteerParams, ChatToolCallApproveParams, ChatToolCallRejectParams, ToolCallApproveSave,
};
use custom_methods::methods::{ChatPromptSteer, ChatToolCallApprove, ChatToolCallReject};
use serde_json::{Value, json};

use crate::mock_llm::{CapturedRequest, MockLlm, Script};
use crate::server::TestServer;

const CHATS: u64 = 500;
const AT_ONCE: usize = 10;
/// Answers with calls before the model is satisfied.
const MOST_STEPS: usize = 2;

/// Numbers that are the same for the same seed.
struct Dice(u64);

impl Dice {
    fn of(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % sides
    }
}

/// How far a call is on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Preparing,
    Asked,
    Approved,
    Running,
    Done,
}

struct Chat {
    id: String,
    dice: Dice,
    /// How many prompts the user still has.
    to_send: u64,
    sent: Vec<String>,
    responses: HashSet<i64>,
    answered: usize,
    echoed: Vec<String>,
    finished: usize,
    calls: HashMap<String, Stage>,
    /// In the order in which they were prepared.
    order: Vec<String>,
    run: Vec<String>,
    steers: u64,
    steered: Vec<String>,
    rejected_by_user: Vec<String>,
    status: String,
}

impl Chat {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::of(seed);
        Self {
            id: format!("chat-{seed}"),
            to_send: 1 + dice.below(2),
            dice,
            sent: Vec::new(),
            responses: HashSet::new(),
            answered: 0,
            echoed: Vec::new(),
            finished: 0,
            calls: HashMap::new(),
            order: Vec::new(),
            run: Vec::new(),
            steers: 0,
            steered: Vec::new(),
            rejected_by_user: Vec::new(),
            status: String::new(),
        }
    }

    fn prompt(&mut self, server: &mut TestServer) {
        self.to_send -= 1;
        let text = format!("prompt {} of {}", self.sent.len(), self.id);
        self.responses.insert(server.start_prompt(Some(&self.id), &text));
        self.sent.push(text);
    }

    fn steer(&mut self, server: &TestServer) {
        self.steers += 1;
        let message = format!("steer {} of {}", self.steers, self.id);
        server.notify::<ChatPromptSteer>(ChatPromptSteerParams { chat_id: self.id.as_str().into(), message });
    }

    fn approve(&self, server: &TestServer, call: &str, save: Option<ToolCallApproveSave>) {
        let (chat_id, tool_call_id) = (self.id.as_str().into(), call.into());
        server.notify::<ChatToolCallApprove>(ChatToolCallApproveParams { chat_id, tool_call_id, save });
    }

    fn reject(&self, server: &TestServer, call: &str) {
        let (chat_id, tool_call_id) = (self.id.as_str().into(), call.into());
        server.notify::<ChatToolCallReject>(ChatToolCallRejectParams { chat_id, tool_call_id });
    }

    /// What the user does when asked. Whatever it is, the turn goes on or ends.
    fn decide(&mut self, server: &mut TestServer, call: &str) {
        match self.dice.below(12) {
            0..=3 => self.approve(server, call, None),
            4 | 5 => self.reject(server, call),
            6 => server.stop(&self.id),
            7 => {
                self.steer(server);
                self.approve(server, call, None);
            }
            8 => {
                // To nobody, twice, and against each other.
                self.approve(server, "nobody", None);
                self.approve(server, call, None);
                self.reject(server, call);
            }
            9 => {
                self.approve(server, call, None);
                server.stop(&self.id);
            }
            10 if self.to_send > 0 => self.prompt(server),
            10 => server.stop(&self.id),
            _ => self.approve(server, call, Some(ToolCallApproveSave::Session)),
        }
    }

    /// What the user does out of the blue.
    fn interfere(&mut self, server: &mut TestServer) {
        match self.dice.below(30) {
            0 => server.stop(&self.id),
            1 => self.steer(server),
            2 if self.to_send > 0 => self.prompt(server),
            _ => {}
        }
    }

    fn on_content(&mut self, server: &mut TestServer, params: &Value) {
        let content = &params["content"];
        let kind = content["type"].as_str().unwrap();
        match kind {
            "text" if params["role"] == "user" => self.on_user_text(content["text"].as_str().unwrap()),
            "text" => self.interfere(server),
            "progress" if content["state"] == "finished" => self.on_finished(server),
            _ if kind.starts_with("toolCall") => self.on_call(server, kind, content),
            _ => {}
        }
    }

    fn on_user_text(&mut self, text: &str) {
        let text = text.trim_end();
        if text.starts_with("prompt") {
            self.echoed.push(text.to_owned());
        } else {
            self.steered.extend(text.lines().map(str::to_owned));
        }
    }

    fn on_call(&mut self, server: &mut TestServer, kind: &str, content: &Value) {
        let id = content["id"].as_str().unwrap().to_owned();
        let before = self.calls.get(&id).copied();
        let after = match (kind, before) {
            ("toolCallPrepare", None) => {
                self.order.push(id.clone());
                Stage::Preparing
            }
            ("toolCallPrepare", Some(Stage::Preparing)) => Stage::Preparing,
            ("toolCallRun", Some(Stage::Preparing)) => {
                self.run.push(id.clone());
                if content["manualApproval"] == true { Stage::Asked } else { Stage::Approved }
            }
            ("toolCallRunning", Some(Stage::Asked | Stage::Approved)) => Stage::Running,
            ("toolCalled", Some(Stage::Running)) => Stage::Done,
            ("toolCallRejected", Some(Stage::Preparing | Stage::Asked | Stage::Approved | Stage::Running)) => {
                if content["reason"] == "user-choice" {
                    self.rejected_by_user.push(content["arguments"]["path"].as_str().unwrap().to_owned());
                }
                Stage::Done
            }
            _ => panic!("{}: {kind} of {id} after {before:?}", self.id),
        };
        let is_new = before != Some(after);
        self.calls.insert(id.clone(), after);
        let asked = self.calls.values().filter(|stage| **stage == Stage::Asked).count();
        assert!(asked <= 1, "{}: {asked} questions at a time", self.id);
        let in_order: Vec<&String> = self.order.iter().filter(|id| self.run.contains(id)).collect();
        assert_eq!(in_order, self.run.iter().collect::<Vec<_>>(), "{}: calls run in another order", self.id);
        match after {
            Stage::Asked => self.decide(server, &id),
            Stage::Preparing | Stage::Running if is_new => self.interfere(server),
            _ => {}
        }
    }

    fn on_finished(&mut self, server: &mut TestServer) {
        self.finished += 1;
        assert_eq!(self.status, "idle", "{}", self.id);
        let open: Vec<_> = self.calls.iter().filter(|(_, stage)| **stage != Stage::Done).collect();
        assert!(open.is_empty(), "{}: left open {open:?}", self.id);
        assert!(self.finished <= self.sent.len(), "{}: more ends than prompts", self.id);
        if self.finished == self.sent.len() && self.to_send > 0 {
            self.prompt(server);
        }
    }

    fn is_over(&self) -> bool {
        self.to_send == 0 && self.finished == self.sent.len() && self.answered == self.sent.len()
    }

    fn check_at_the_end(&self) {
        assert_eq!(self.echoed, self.sent, "{}: no prompt is lost, doubled or overtaken", self.id);
        let once: HashSet<&String> = self.steered.iter().collect();
        assert_eq!(once.len(), self.steered.len(), "{}: a word came twice", self.id);
        for path in &self.rejected_by_user {
            assert!(!PathBuf::from(path).exists(), "{}: {path} was written against the user's will", self.id);
        }
    }
}

/// The model: some answers with calls, of which some are asked about and some are nonsense, then words.
fn answer(request: &CapturedRequest, workspace: &str, problems: &Mutex<Vec<String>>) -> Script {
    let messages = request.body["messages"].as_array().unwrap();
    problems.lock().unwrap().extend(unanswered_calls(messages));
    let whole = request.body.to_string();
    let seed: u64 =
        whole.split("of chat-").nth(1).unwrap().split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap();
    let steps = messages.iter().rev().take_while(|message| message["role"] != "user").count();
    let mut dice = Dice::of(seed * 1_000 + messages.len() as u64);
    if steps >= 2 * MOST_STEPS || dice.below(4) == 0 {
        return Script::text_stream(&["all", " done"]);
    }
    let calls = 1 + dice.below(3);
    let mut script = Script::stream().text("let me see");
    for index in 0..calls {
        let path = format!("{workspace}/{seed}-{}-{index}", messages.len());
        let write = json!({"path": path, "content": "x"}).to_string();
        let read = json!({"path": format!("{workspace}/there")}).to_string();
        let (name, arguments) = match dice.below(6) {
            0..=2 => ("eca__write_file", write.as_str()),
            3 | 4 => ("eca__read_file", read.as_str()),
            _ => ("eca__no_such_tool", "{}"),
        };
        // Ids that providers send are not always new.
        let id = if dice.below(3) == 0 { "same".to_owned() } else { format!("{seed}-{}-{index}", messages.len()) };
        let (start, end) = arguments.split_at(arguments.len() / 2);
        script = script.call(usize::try_from(index).unwrap(), &id, name, &[start, end]);
    }
    script.finish("tool_calls")
}

/// Every call has exactly one result before anybody else speaks.
fn unanswered_calls(messages: &[Value]) -> Vec<String> {
    let mut problems = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let Some(calls) = message["tool_calls"].as_array() else { continue };
        let mut wanted: Vec<&str> = calls.iter().map(|call| call["id"].as_str().unwrap()).collect();
        let results = messages[at + 1..].iter().take_while(|message| message["role"] == "tool");
        let mut given: Vec<&str> = results.map(|result| result["tool_call_id"].as_str().unwrap()).collect();
        wanted.sort_unstable();
        given.sort_unstable();
        if wanted != given {
            problems.push(format!("calls {wanted:?} have the results {given:?}"));
        }
    }
    problems
}

#[tokio::test]
async fn five_hundred_users_with_minds_of_their_own() {
    let model = MockLlm::start().await;
    let mut server = TestServer::with(&model).start().await;
    let workspace = server.dirs.workspace.display().to_string();
    std::fs::write(format!("{workspace}/there"), "text\n").unwrap();
    let problems: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&problems);
    model.respond_with(move |request| answer(request, &workspace, &seen));
    let mut seeds = 0..CHATS;
    let mut chats: HashMap<String, Chat> = HashMap::new();
    let mut over = 0;
    while over < CHATS {
        while chats.len() < AT_ONCE
            && let Some(seed) = seeds.next()
        {
            let mut chat = Chat::new(seed);
            chat.prompt(&mut server);
            chats.insert(chat.id.clone(), chat);
        }
        let message = server.next().await;
        let id = message["params"]["chatId"].as_str().map(str::to_owned);
        let Some(id) = id else {
            let number = message["id"].as_i64().unwrap_or_else(|| panic!("{message}"));
            let chat = chats.values_mut().find(|chat| chat.responses.contains(&number)).expect("somebody asked");
            chat.responses.remove(&number);
            assert_eq!(message["result"]["status"], "prompting", "{message}");
            chat.answered += 1;
            over += settle(&mut chats);
            continue;
        };
        let mut chat = chats.remove(&id).unwrap_or_else(|| panic!("a chat that is over says {message}"));
        match message["method"].as_str().unwrap() {
            "chat/contentReceived" => chat.on_content(&mut server, &message["params"]),
            "chat/statusChanged" => message["params"]["status"].as_str().unwrap().clone_into(&mut chat.status),
            _ => {}
        }
        chats.insert(id, chat);
        over += settle(&mut chats);
    }
    assert_eq!(*problems.lock().unwrap(), Vec::<String>::new());
    server.finish().await;
}

/// Takes out the chats that are over, and counts them.
fn settle(chats: &mut HashMap<String, Chat>) -> u64 {
    let over: Vec<String> = chats.values().filter(|chat| chat.is_over()).map(|chat| chat.id.clone()).collect();
    for id in &over {
        chats.remove(id).unwrap().check_at_the_end();
    }
    over.len() as u64
}
