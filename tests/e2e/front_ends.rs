//! The same scenarios through every front end: each is written once, against what any client can do,
//! and runs in every contract that has a word for it. Where a contract has none, the table says so.

mod acp;
mod copilot;
mod draft;
mod eca;

use std::path::PathBuf;

use serde_json::json;

use crate::mock_llm::{MockLlm, Script};
use crate::peer::Peer;
use crate::server::{Builder, TestServer};

/// A client of one contract, with one conversation.
trait FrontEnd: Sized {
    /// Starts server and client, in the folder of `home`.
    async fn start(home: Builder) -> Self;

    fn peer(&mut self) -> &mut Peer;

    fn workspace(&self) -> PathBuf;

    /// Says something in the user's name. Two of them are two turns, in this order.
    async fn prompt(&mut self, text: &str);

    /// Waits until the turn that runs has said something.
    async fn first_words(&mut self);

    /// What came of the oldest turn that was not asked for yet, once it is over.
    async fn outcome(&mut self) -> Outcome;

    /// Waits for the question whether a tool may run, and answers it.
    async fn decide(&mut self, allow: bool) {
        panic!("this contract cannot ask; nobody can say {allow}");
    }

    /// Ends the turn that runs.
    fn stop(&mut self) {
        panic!("this contract cannot stop a turn");
    }

    /// Bytes that are no messages of this contract, each of which ends where the next message begins,
    /// and how many answers they get.
    fn garbage() -> Vec<(&'static [u8], usize)>;

    /// Leaves as a client of this contract does, whatever runs. Whatever the server still says may be
    /// said.
    async fn leave(self);
}

/// What a turn came to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    /// The answer of the model.
    said: String,
    /// What the user is told by the server itself: why it failed, or why something did not run.
    noted: String,
}

/// The scenarios, in the order of the table below.
const SCENARIOS: [&str; 10] = [
    "text",
    "tool",
    "permission",
    "no_permission",
    "stop",
    "replaced",
    "provider_error",
    "shutdown",
    "slow_reader",
    "garbage",
];

/// One test for each scenario of a front end, and the reasons for those that it does not have.
macro_rules! front_end {
    ($module:ident, $client:ty: $($scenario:ident)*; without $($missing:ident: $why:literal),*) => {
        mod $module {
            $(
                #[tokio::test]
                async fn $scenario() {
                    super::super::$scenario::<$client>().await;
                }
            )*
            pub(super) const RUN: &[&str] = &[$(stringify!($scenario)),*];
            pub(super) const LEFT_OUT: &[(&str, &str)] = &[$((stringify!($missing), $why)),*];
        }
    };
}

mod table {
    front_end!(eca_tests, crate::front_ends::eca::Eca:
        text tool permission stop replaced provider_error shutdown slow_reader garbage;
        without no_permission: "every client can be asked");
    front_end!(acp_tests, crate::front_ends::acp::Acp:
        text tool permission stop replaced provider_error shutdown slow_reader garbage;
        without no_permission: "every client can be asked");
    front_end!(draft_tests, crate::front_ends::draft::Draft:
        text tool no_permission replaced provider_error shutdown slow_reader garbage;
        without
        permission: "the contract has no question for the user; what would be asked about does not run",
        stop: "the contract has no cancel; a newer message ends a turn");
    front_end!(copilot_tests, crate::front_ends::copilot::Copilot:
        text stop provider_error shutdown slow_reader garbage;
        without
        tool: "requests are answered by the model alone",
        permission: "there are no tools to ask about",
        no_permission: "there are no tools that could be refused",
        replaced: "requests stand for themselves and run side by side");

    #[test]
    fn every_scenario_is_run_or_left_out_for_a_reason() {
        for (run, left_out) in [
            (eca_tests::RUN, eca_tests::LEFT_OUT),
            (acp_tests::RUN, acp_tests::LEFT_OUT),
            (draft_tests::RUN, draft_tests::LEFT_OUT),
            (copilot_tests::RUN, copilot_tests::LEFT_OUT),
        ] {
            let mut all: Vec<&str> = run.iter().copied().chain(left_out.iter().map(|(name, _)| *name)).collect();
            let mut expected = super::SCENARIOS.to_vec();
            all.sort_unstable();
            expected.sort_unstable();
            assert_eq!(all, expected);
        }
    }
}

/// A server for any front end, with an agent that may do everything after a question.
async fn start<F: FrontEnd>() -> (MockLlm, F) {
    let model = MockLlm::start().await;
    let home = TestServer::with(&model).config(json!({
        "acpDraft": {"agent": "code"},
        "copilot": {"chatTimeoutSeconds": 0},
    }));
    let front_end = F::start(home).await;
    (model, front_end)
}

fn said(text: &str) -> Outcome {
    Outcome { said: text.to_owned(), noted: String::new() }
}

fn write_call(path: &std::path::Path) -> Script {
    Script::tool_call("w", "eca__write_file", &[&json!({"path": path, "content": "new"}).to_string()])
}

/// The last request of the model as one text.
async fn told(model: &MockLlm) -> String {
    let mut last = model.next_request().await;
    while let Some(later) = model.try_next_request().await {
        last = later;
    }
    last.body["messages"].to_string()
}

async fn text<F: FrontEnd>() {
    let (model, mut client) = start::<F>().await;
    model.push(Script::text_stream(&["Hello", ", ", "wörld\n\"\\"]));
    client.prompt("first").await;
    assert_eq!(client.outcome().await, said("Hello, wörld\n\"\\"));
    model.push(Script::text_stream(&["again"]));
    client.prompt("second").await;
    assert_eq!(client.outcome().await, said("again"));
    let history = told(&model).await;
    assert!(history.contains("first") && history.contains("wörld") && history.contains("second"), "{history}");
    client.leave().await;
}

async fn tool<F: FrontEnd>() {
    let (model, mut client) = start::<F>().await;
    let file = client.workspace().join("a.txt");
    std::fs::write(&file, "the content\n").unwrap();
    model.push(Script::tool_call("r", "eca__read_file", &[&json!({"path": file}).to_string()]));
    model.push(Script::text_stream(&["I have read it"]));
    client.prompt("read").await;
    assert_eq!(client.outcome().await, said("I have read it"));
    assert!(told(&model).await.contains("the content"));
    client.leave().await;
}

async fn permission<F: FrontEnd>() {
    let (model, mut client) = start::<F>().await;
    for allow in [true, false] {
        let file = client.workspace().join(format!("{allow}.txt"));
        model.push(write_call(&file));
        model.push(Script::text_stream(&["all right"]));
        client.prompt("write").await;
        client.decide(allow).await;
        assert_eq!(client.outcome().await.said, "all right");
        assert_eq!(file.exists(), allow);
        assert_eq!(told(&model).await.contains("rejected"), !allow);
    }
    client.leave().await;
}

async fn no_permission<F: FrontEnd>() {
    let (model, mut client) = start::<F>().await;
    let file = client.workspace().join("new.txt");
    model.push(write_call(&file));
    model.push(Script::text_stream(&["then not"]));
    client.prompt("write").await;
    let outcome = client.outcome().await;
    assert!(outcome.said.contains("then not") && outcome.said.contains("was not allowed to run"), "{outcome:?}");
    assert!(!file.exists());
    assert!(told(&model).await.contains("did not run"));
    client.leave().await;
}

async fn stop<F: FrontEnd>() {
    let (model, mut client) = start::<F>().await;
    model.push(Script::stream().text("endless").hang_here());
    client.prompt("go").await;
    client.first_words().await;
    client.stop();
    assert!(!client.outcome().await.noted.is_empty(), "the user is told");
    model.connection_closed().await;
    model.push(Script::text_stream(&["better"]));
    client.prompt("again").await;
    assert_eq!(client.outcome().await, said("better"));
    client.leave().await;
}

async fn replaced<F: FrontEnd>() {
    let (model, mut client) = start::<F>().await;
    model.push(Script::stream().text("endless").hang_here());
    client.prompt("go").await;
    client.first_words().await;
    model.push(Script::text_stream(&["newer"]));
    client.prompt("no, this").await;
    let first = client.outcome().await;
    assert!(first.said.contains("Stopped") || !first.noted.is_empty(), "the user is told: {first:?}");
    assert_eq!(client.outcome().await, said("newer"));
    model.connection_closed().await;
    client.leave().await;
}

async fn provider_error<F: FrontEnd>() {
    let (model, mut client) = start::<F>().await;
    let body = json!({"error": {"message": "Incorrect API key provided"}}).to_string();
    model.push(Script::status(401, &[], &body));
    client.prompt("hi").await;
    let outcome = client.outcome().await;
    assert!(outcome.said.is_empty() && outcome.noted.contains("Incorrect API key provided"), "{outcome:?}");
    model.push(Script::text_stream(&["better"]));
    client.prompt("again").await;
    assert_eq!(client.outcome().await, said("better"));
    client.leave().await;
}

async fn shutdown<F: FrontEnd>() {
    let (model, mut client) = start::<F>().await;
    model.push(Script::stream().text("endless").hang_here());
    client.prompt("go").await;
    client.first_words().await;
    client.leave().await;
    model.connection_closed().await;
}

async fn slow_reader<F: FrontEnd>() {
    let (model, mut client) = start::<F>().await;
    let lines: Vec<String> = (0..3_000).map(|number| format!("{number:06} {}\n", "é\\\"".repeat(100))).collect();
    let script = lines.iter().fold(Script::stream(), |script, line| script.text(line));
    model.push(script.finish("stop"));
    client.peer().stop_reading();
    client.prompt("talk").await;
    model.next_request().await;
    client.peer().go_on_reading();
    let outcome = client.outcome().await;
    assert_eq!(outcome.said.len(), lines.concat().len());
    assert!(outcome.said == lines.concat(), "everything came, in order");
    client.leave().await;
}

async fn garbage<F: FrontEnd>() {
    let (model, mut client) = start::<F>().await;
    for (bytes, answers) in F::garbage() {
        client.peer().raw_send(bytes);
        for _ in 0..answers {
            let answer = client.peer().next().await;
            assert!(answer["error"]["code"].is_i64(), "{answer}");
        }
        model.push(Script::text_stream(&["alive"]));
        client.prompt("still there?").await;
        assert_eq!(client.outcome().await, said("alive"), "after {:?}", String::from_utf8_lossy(bytes));
    }
    client.leave().await;
}

/// What no contract in lines can read.
fn broken_lines() -> Vec<(&'static [u8], usize)> {
    vec![
        (b"garbage\n", 1),
        (b"\xff\xfe\n", 1),
        (b"{\"id\":1\n", 1),
        (b"[]\n[1]\n", 2),
        (b"\n \r\n", 0),
        (b"{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":null}\n", 0),
        (b"{\"jsonrpc\":\"2.0\",\"id\":78,\"method\":\"no/such\"}\n", 1),
    ]
}
