//! MCP servers that are processes: what they offer, how they fail, and that nothing of them is left.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use eca::config::{Config, McpServerConfig, Secret, ShownServer};
use eca::host::{Capabilities, Host, HostError, Question, Reply};
use eca::llm::Role;
use eca::mcp::{McpError, Options, ServerEvent, ServerStatus, Servers, Status};
use eca::tool::{Content, Details, Journal, LiveOutput, PlannedChange, Tool, ToolContext, ToolOutput};
use eca::workspace::Workspace;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::fake_mcp::{self, DIARY, HABITS, PIDS};
use super::{HANG_GUARD, is_alive, pids_in, use_the_built_guard, wait_until};

/// Sixteen mebibytes take their time in a build for tests on a busy machine.
const CALL_GUARD: Duration = Duration::from_secs(90);

/// Servers with everything they said, in a folder of their own.
pub struct Setup {
    pub folder: tempfile::TempDir,
    pub servers: Servers,
    pub config: Config,
    pub workspace: Workspace,
    events: Arc<Mutex<Vec<ServerEvent>>>,
}

impl Setup {
    pub fn new() -> Self {
        use_the_built_guard();
        let folder = tempfile::tempdir().unwrap();
        let events = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&events);
        let servers = Servers::new(Options {
            data: folder.path().join("data"),
            can_ask: true,
            events: Arc::new(move |event| heard.lock().unwrap().push(event)),
        });
        let root = dunce::canonicalize(folder.path()).unwrap();
        let (workspace, _) = Workspace::from_folders(&[(root.display().to_string(), Some("main".to_owned()))]);
        let mut config = Config::default();
        config.mcp.timeout = Duration::from_secs(10);
        Self { folder, servers, config, workspace, events }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A fake server under this name.
    pub fn fake(mut self, name: &str, habits: &str) -> Self {
        let (command, args) = fake_mcp::command();
        let variables = [
            (HABITS, if habits.is_empty() { "good".to_owned() } else { habits.to_owned() }),
            (PIDS, self.file("pids").display().to_string()),
            (DIARY, self.file("diary").display().to_string()),
            ("FAKE_VARIABLE", "from-config".to_owned()),
            ("FAKE_TOKEN", "s3cr3t-token-value".to_owned()),
        ];
        let env = variables.into_iter().map(|(name, value)| (name.to_owned(), Secret::new(value))).collect();
        let shown = ShownServer { command: Some("fake".to_owned()), args: vec!["$ARG".to_owned()], url: None };
        let server = McpServerConfig { command: Some(command), args, env, shown, ..McpServerConfig::default() };
        self.config.mcp.servers.insert(name.to_owned(), server);
        self
    }

    pub fn program(mut self, name: &str, command: &str, args: &[&str]) -> Self {
        let server = McpServerConfig {
            command: Some(command.to_owned()),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            ..McpServerConfig::default()
        };
        self.config.mcp.servers.insert(name.to_owned(), server);
        self
    }

    pub fn configure(&self) {
        self.servers.configure(&self.config, &self.workspace);
    }

    /// Configures and waits until this server runs.
    pub async fn running(self, name: &str) -> Self {
        self.configure();
        self.until(name, Status::Running).await;
        self
    }

    pub async fn until(&self, name: &str, status: Status) -> ServerStatus {
        let what = format!("{name} is {status:?}");
        wait_until(&what, || self.servers.status(name).is_some_and(|now| now.status == status)).await;
        self.servers.status(name).unwrap()
    }

    pub fn events(&self) -> Vec<ServerEvent> {
        self.events.lock().unwrap().clone()
    }

    /// The statuses that were announced for a server, in order.
    pub fn announced(&self, server: &str) -> Vec<Status> {
        let mut statuses = Vec::new();
        for event in self.events() {
            if let ServerEvent::Updated(status) = event
                && status.name == server
                && statuses.last() != Some(&status.status)
            {
                statuses.push(status.status);
            }
        }
        statuses
    }

    pub fn notices(&self) -> Vec<String> {
        let text = |event| match event {
            ServerEvent::Notice { text, .. } => Some(text),
            _ => None,
        };
        self.events().into_iter().filter_map(text).collect()
    }

    pub fn tool(&self, name: &str) -> Arc<dyn Tool> {
        let found = self.servers.tools().into_iter().find(|tool| tool.spec().name == name);
        found.unwrap_or_else(|| panic!("no tool {name}"))
    }

    pub async fn call(&self, name: &str, arguments: Value) -> ToolOutput {
        self.call_as(name, arguments, &Watcher::new()).await
    }

    pub async fn call_as(&self, name: &str, arguments: Value, watcher: &Arc<Watcher>) -> ToolOutput {
        let tool = self.tool(name);
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let call = tool.run(arguments, watcher.context());
        tokio::time::timeout(CALL_GUARD, call).await.expect("the call ends")
    }

    pub fn diary(&self) -> String {
        std::fs::read_to_string(self.file("diary")).unwrap_or_default()
    }

    /// How often a server was started.
    fn starts(&self) -> usize {
        std::fs::read_to_string(self.file("pids")).unwrap_or_default().lines().count()
    }
}

/// Somebody who makes calls, sees progress and answers questions.
pub struct Watcher {
    pub stop: CancellationToken,
    progress: Mutex<Vec<String>>,
    questions: Mutex<Vec<Question>>,
    answers: Mutex<VecDeque<Reply>>,
}

impl Watcher {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            stop: CancellationToken::new(),
            progress: Mutex::default(),
            questions: Mutex::default(),
            answers: Mutex::default(),
        })
    }

    pub fn shown(&self) -> Vec<String> {
        self.progress.lock().unwrap().clone()
    }

    fn context(self: &Arc<Self>) -> ToolContext {
        ToolContext {
            chat: "chat".into(),
            call: "call".into(),
            agent: "code".to_owned(),
            workspace: Arc::default(),
            stop: self.stop.clone(),
            host: self.clone(),
            seen: Arc::default(),
            journal: Arc::new(NoJournal),
            live: self.clone(),
            settings: Arc::default(),
            sees_images: true,
            prepared: eca::tool::Prepared::default(),
        }
    }
}

impl LiveOutput for Watcher {
    fn output(&self, _: &str) {}
    fn progress(&self, text: &str) {
        self.progress.lock().unwrap().push(text.to_owned());
    }
    fn details(&self, _: Details) {}
}

impl Host for Watcher {
    fn capabilities(&self) -> Capabilities {
        Capabilities { ask: true, ..Capabilities::default() }
    }

    fn ask(&self, question: Question) -> BoxFuture<'_, Result<Reply, HostError>> {
        self.questions.lock().unwrap().push(question);
        let answer = self.answers.lock().unwrap().pop_front();
        Box::pin(async move {
            match answer {
                Some(answer) => Ok(answer),
                None => std::future::pending().await,
            }
        })
    }
}

struct NoJournal;

impl Journal for NoJournal {
    fn before_change(&self, _: PlannedChange) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

pub fn words(output: &ToolOutput) -> String {
    let text = |content: &Content| match content {
        Content::Text(text) => text.clone(),
        Content::Image(image) => format!("<{}>", image.media_type),
    };
    output.contents.iter().map(text).collect::<Vec<_>>().join("\n")
}

/// What this process has in memory.
fn resident_mebibytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096 / (1024 * 1024)
}

fn echo() -> Value {
    json!({"text": "hi"})
}

#[tokio::test]
async fn a_server_offers_tools_prompts_resources_and_instructions() {
    let setup = Setup::new().fake("fake", "").running("fake").await;
    let status = setup.servers.status("fake").unwrap();
    assert_eq!((status.command.as_deref(), status.args.as_slice()), (Some("fake"), &["$ARG".to_owned()][..]));
    assert_eq!((status.url, status.disabled, status.has_auth, status.problem), (None, false, false, None));
    let names: Vec<String> = status.tools.iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(
        names[..3],
        ["echo", "has_a_dot", "hang"],
        "pages are joined, broken entries left out, names made plain"
    );
    assert_eq!(status.tools[0].description, "Says it again.");
    assert_eq!(status.tools[0].parameters["required"], json!(["text"]));
    assert_eq!(status.tools[1].description, "The tool has a.dot of the MCP server fake.");
    assert_eq!(setup.tool("echo").spec().full_name(), "fake__echo");
    assert_eq!(setup.servers.instructions(), [("fake".to_owned(), "Be kind to the fake.".to_owned())]);
    assert_eq!(words(&setup.call("echo", echo()).await), "hi");
    assert_eq!(words(&setup.call("has_a_dot", json!({})).await), "dotted", "by its real name");
    wait_until("prompts and resources", || !setup.servers.resources().is_empty()).await;
    let prompts = setup.servers.prompts();
    assert_eq!((prompts[0].name.as_str(), prompts[0].arguments.len()), ("greet", 2));
    assert!(prompts[0].arguments[0].required && !prompts[0].arguments[1].required);
    let arguments = prompts[0].arguments_from(&["Ada".to_owned()]).unwrap();
    let messages = setup.servers.get_prompt("fake", "greet", arguments, true).await.unwrap();
    assert_eq!((messages[0].role, messages[1].role), (Role::User, Role::Assistant));
    assert_eq!(messages[0].content, [Content::Text("Greet Ada.".to_owned())]);
    assert_eq!(setup.servers.resources()[0].uri, "fake://one");
    let read = setup.servers.read_resource("fake", "fake://one", true).await.unwrap();
    assert_eq!(read[0], Content::Text("Resource fake://one:\nfirst".to_owned()));
    assert!(matches!(&read[1], Content::Text(text) if text.contains("application/zip")), "{read:?}");
    let missing = setup.servers.read_resource("fake", "fake://none", true).await;
    assert_eq!(missing, Err(McpError::Refused("no such resource".to_owned())));
    assert_eq!(setup.servers.read_resource("nobody", "x", true).await, Err(McpError::Unknown("nobody".to_owned())));
    setup.servers.shutdown().await;
}

#[tokio::test]
async fn results_of_every_kind_reach_the_model() {
    let setup = Setup::new().fake("fake", "").running("fake").await;
    let output = setup.call("everything", json!({})).await;
    let said = words(&output);
    for part in
        ["words", "<image/png>", "[Audio: audio/wav", "embedded", "linked <fake://l>", "hologram", "\"answer\": 42"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!output.error);
    let refused = setup.call("refuse", json!({})).await;
    assert!(refused.error && words(&refused) == "not with these arguments", "{refused:?}");
    let place = words(&setup.call("where", json!({})).await);
    let root = dunce::canonicalize(setup.folder.path()).unwrap();
    assert_eq!(place, format!("{} from-config", root.display()));
    setup.servers.shutdown().await;
}

#[tokio::test]
async fn lists_that_change_are_fetched_again() {
    let setup = Setup::new().fake("fake", "").running("fake").await;
    wait_until("resources", || setup.servers.resources().len() == 1).await;
    setup.call("change", json!({})).await;
    wait_until("all three lists", || {
        let tools = setup.servers.tools().iter().any(|tool| tool.spec().name == "extra");
        tools && setup.servers.prompts().len() == 2 && setup.servers.resources().len() == 2
    })
    .await;
    let last = setup.events().into_iter().rev().find_map(|event| match event {
        ServerEvent::Updated(status) => Some(status),
        _ => None,
    });
    assert_eq!(last.map(|status| (status.prompts.len(), status.resources.len())), Some((2, 2)), "the whole shape");
    setup.servers.shutdown().await;
}

#[tokio::test]
async fn progress_questions_roots_and_refusals() {
    let setup = Setup::new().fake("fake", "").running("fake").await;
    let watcher = Watcher::new();
    assert_eq!(words(&setup.call_as("steps", json!({}), &watcher).await), "done");
    let shown = watcher.progress.lock().unwrap().clone();
    assert!(!shown.is_empty() && shown.iter().all(|text| text.ends_with("/20 working")), "{shown:?}");
    watcher.answers.lock().unwrap().push_back(Reply::Answer("blue".to_owned()));
    let answer: Value = serde_json::from_str(&words(&setup.call_as("ask", json!({}), &watcher).await)).unwrap();
    assert_eq!(answer, json!({"action": "accept", "content": {"color": "blue"}}));
    assert!(watcher.questions.lock().unwrap()[0].text.contains("The MCP server fake asks: Which color?"));
    let refused = words(&setup.call("sample", json!({})).await);
    assert!(refused.contains("does not lend its model"), "{refused}");
    let root = format!("file://{}", dunce::canonicalize(setup.folder.path()).unwrap().display());
    assert!(words(&setup.call("roots", json!({})).await).contains(&root));
    let (other, _) = Workspace::from_folders(&[("/other folder".to_owned(), None)]);
    setup.servers.set_roots(&other);
    wait_until("the server is told", || setup.diary().contains("roots changed")).await;
    assert!(words(&setup.call("roots", json!({})).await).contains("file:///other%20folder"));
    assert_eq!(words(&setup.call("log", json!({})).await), "logged");
    assert!(setup.diary().contains("\"elicitation\":{"), "{}", setup.diary());
    setup.servers.shutdown().await;
}

#[tokio::test]
async fn a_question_that_may_belong_to_several_calls_is_declined() {
    let setup = Arc::new(Setup::new().fake("fake", "").running("fake").await);
    let hanging = Watcher::new();
    let (other, watcher) = (Arc::clone(&setup), Arc::clone(&hanging));
    let call = tokio::spawn(async move { other.call_as("hang", json!({}), &watcher).await });
    wait_until("it hangs", || setup.diary().contains("called \"hang\"")).await;
    let answer = words(&setup.call("ask", json!({})).await);
    assert!(answer.contains("decline"), "{answer}");
    hanging.stop.cancel();
    call.await.unwrap();
    setup.servers.shutdown().await;
}

#[tokio::test]
async fn a_stopped_call_returns_and_the_server_is_told() {
    let setup = Arc::new(Setup::new().fake("fake", "").running("fake").await);
    for _ in 0..5 {
        let watcher = Watcher::new();
        let (other, same) = (Arc::clone(&setup), Arc::clone(&watcher));
        let before = setup.diary().matches("called \"hang\"").count();
        let call = tokio::spawn(async move { other.call_as("hang", json!({}), &same).await });
        wait_until("it hangs", || setup.diary().matches("called \"hang\"").count() > before).await;
        watcher.stop.cancel();
        let output = tokio::time::timeout(Duration::from_secs(5), call).await.expect("at once").unwrap();
        assert!(output.error && words(&output).contains("stopped"), "{output:?}");
    }
    wait_until("told each time", || setup.diary().matches("cancelled ").count() == 5).await;
    // A call that is dropped is taken back too.
    let hang = setup.tool("hang");
    let call = hang.run(serde_json::Map::new(), Watcher::new().context());
    assert!(tokio::time::timeout(Duration::from_millis(300), call).await.is_err());
    wait_until("told of this one", || setup.diary().matches("cancelled ").count() == 6).await;
    assert_eq!(words(&setup.call("echo", echo()).await), "hi", "the server goes on");
    assert_eq!(setup.starts(), 1);
    setup.servers.shutdown().await;
}

#[tokio::test]
async fn nonsense_and_large_lines_do_no_harm() {
    let mut setup = Setup::new().fake("fake", "complains");
    setup.config.mcp.timeout = CALL_GUARD;
    let setup = setup.running("fake").await;
    assert_eq!(words(&setup.call("noise", json!({})).await), "quiet again");
    let big = setup.call("big", json!({"bytes": 16 * 1024 * 1024})).await;
    assert_eq!((big.error, words(&big).len()), (false, 16 * 1024 * 1024));
    let too_big = setup.call("big", json!({"bytes": 20 * 1024 * 1024})).await;
    assert!(
        too_big.error && words(&too_big).contains("too large"),
        "{}",
        &words(&too_big)[..100.min(words(&too_big).len())]
    );
    assert_eq!(words(&setup.call("echo", echo()).await), "hi");
    assert_eq!(setup.starts(), 1);
    setup.servers.shutdown().await;
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_is_started_again() {
    let setup = Setup::new().fake("fake", "").running("fake").await;
    let output = setup.call("die", json!({})).await;
    assert!(output.error && words(&output).contains("ended while it worked"), "{output:?}");
    wait_until("it is noticed", || setup.announced("fake").contains(&Status::Failed)).await;
    // Its tools are still offered, and a call waits for it.
    assert_eq!(words(&setup.call("echo", echo()).await), "hi");
    assert_eq!(setup.starts(), 2);
    assert_eq!(
        setup.announced("fake"),
        [Status::Starting, Status::Running, Status::Failed, Status::Starting, Status::Running]
    );
    let notices = setup.notices();
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].contains("exit code 4: I die now; next try in 1 s"), "{notices:?}");
    setup.servers.shutdown().await;
}

#[tokio::test]
async fn a_server_that_does_not_answer_costs_its_call_and_nothing_else() {
    let mut setup = Setup::new().fake("fake", "");
    setup.config.mcp.timeout = Duration::from_millis(700);
    let setup = setup.running("fake").await;
    let output = setup.call("hang", json!({})).await;
    assert!(output.error && words(&output).contains("did not answer within 1 s"), "{output:?}");
    wait_until("the server is told", || setup.diary().contains("it took too long")).await;
    assert_eq!(words(&setup.call("echo", echo()).await), "hi", "it is alive, so it is kept");
    // Progress is a sign of life.
    assert_eq!(words(&setup.call("steps", json!({"pause": 150})).await), "done");
    assert_eq!(setup.starts(), 1);
    setup.servers.shutdown().await;
}

#[tokio::test]
async fn a_flood_ends_in_a_restart_and_other_servers_do_not_notice() {
    let mut setup = Setup::new().fake("flood", "").fake("good", "");
    setup.config.mcp.timeout = Duration::from_millis(700);
    let setup = Arc::new(setup.running("flood").await);
    setup.until("good", Status::Running).await;
    let before = resident_mebibytes();
    let tool = setup.servers.tools().into_iter().find(|tool| tool.spec().full_name() == "flood__flood").unwrap();
    let flooding = tokio::spawn(async move { tool.run(serde_json::Map::new(), Watcher::new().context()).await });
    let good = setup.servers.tools().into_iter().find(|tool| tool.spec().full_name() == "good__echo").unwrap();
    for _ in 0..50 {
        let call = good.run(echo().as_object().cloned().unwrap(), Watcher::new().context());
        let output = tokio::time::timeout(Duration::from_secs(5), call).await.expect("it does not wait");
        assert_eq!(words(&output), "hi");
    }
    assert!(flooding.await.unwrap().error);
    let grown = resident_mebibytes().saturating_sub(before);
    assert!(grown < 100, "{grown} MiB");
    wait_until("it is started again", || {
        setup.announced("flood").ends_with(&[Status::Starting, Status::Running])
            && setup.announced("flood").contains(&Status::Failed)
    })
    .await;
    assert_eq!(setup.announced("good"), [Status::Starting, Status::Running]);
    setup.servers.shutdown().await;
}

#[tokio::test]
async fn servers_that_never_get_ready_hold_nothing_up() {
    let mut setup = Setup::new()
        .fake("good", "")
        .fake("mute", "mute")
        .fake("shouts", "shouts")
        .fake("listless", "no-list")
        .fake("dies", "dies-at-once")
        .program("missing", "no-such-program-anywhere", &[])
        .program("closed", "sh", &["-c", "exec 1>&-; exec sleep 600"])
        .program("empty", "", &[]);
    setup.config.mcp.timeout = Duration::from_millis(1500);
    assert_eq!(setup.servers.ready_within(Duration::from_millis(1)).await, Vec::<String>::new(), "none is known yet");
    setup.configure();
    let late = setup.servers.ready_within(Duration::from_millis(10)).await;
    assert!(late.contains(&"mute".to_owned()), "{late:?}");
    let late = setup.servers.ready_within(HANG_GUARD).await;
    assert_eq!(late, Vec::<String>::new(), "who has failed is not waited for");
    assert_eq!(words(&setup.call("echo", echo()).await), "hi");
    let problem = async |name: &str| setup.until(name, Status::Failed).await.problem.unwrap_or_default();
    assert!(problem("missing").await.contains("no-such-program-anywhere"), "{}", problem("missing").await);
    assert!(problem("mute").await.contains("did not answer within 1 s"), "{}", problem("mute").await);
    let dead = problem("dies").await;
    assert!(dead.contains("exit code 3: no such database: ****"), "the secret is not shown: {dead}");
    assert!(problem("empty").await.contains("neither a command nor a url"));
    wait_until("the tries are over", || {
        setup.notices().iter().any(|text| text.contains("dies") && text.contains("3 tries"))
    })
    .await;
    assert_eq!(setup.servers.status("good").unwrap().status, Status::Running);
    let error = setup.servers.get_prompt("empty", "x", vec![], true).await.unwrap_err().to_string();
    assert!(error.contains("\"empty\" is not running: it has neither"), "{error}");
    setup.servers.shutdown().await;
}

#[tokio::test]
async fn orders_are_followed() {
    let mut setup = Setup::new().fake("fake", "").running("fake").await;
    let first = pids_in(&setup.file("pids"), 1).await;
    setup.configure();
    setup.servers.start("fake").unwrap();
    setup.servers.stop("fake").unwrap();
    let stopped = setup.until("fake", Status::Stopped).await;
    assert!(stopped.tools.is_empty() && setup.servers.tools().is_empty() && setup.servers.instructions().is_empty());
    assert!(!is_alive(first[0]), "it is gone when it is said to be");
    setup.servers.start("fake").unwrap();
    setup.until("fake", Status::Running).await;
    // A change of what is shown changes nothing that runs.
    setup.config.mcp.servers.get_mut("fake").unwrap().shown.args = vec!["other".to_owned()];
    setup.configure();
    wait_until("it is shown", || setup.servers.status("fake").unwrap().args == ["other"]).await;
    assert_eq!(setup.starts(), 2);
    setup.config.mcp.servers.get_mut("fake").unwrap().disabled = true;
    setup.configure();
    assert!(setup.until("fake", Status::Disabled).await.disabled);
    setup.config.mcp.servers.get_mut("fake").unwrap().disabled = false;
    setup.configure();
    setup.until("fake", Status::Running).await;
    setup.config.mcp.servers.get_mut("fake").unwrap().env.insert("FAKE_VARIABLE".to_owned(), Secret::new("new"));
    setup.configure();
    wait_until("it is another one", || setup.starts() == 4).await;
    setup.until("fake", Status::Running).await;
    assert!(words(&setup.call("where", json!({})).await).ends_with(" new"));
    let statuses = setup.announced("fake");
    let expected = [
        Status::Starting,
        Status::Running,
        Status::Stopping,
        Status::Stopped,
        Status::Starting,
        Status::Running,
        Status::Stopping,
        Status::Disabled,
        Status::Starting,
        Status::Running,
    ];
    assert_eq!(statuses[..10], expected);
    setup.config.mcp.servers.clear();
    setup.configure();
    assert!(setup.servers.statuses().is_empty());
    assert_eq!(setup.events().last(), Some(&ServerEvent::Removed { name: "fake".to_owned() }));
    assert_eq!(setup.servers.stop("fake"), Err(McpError::Unknown("fake".to_owned())));
    let pids = pids_in(&setup.file("pids"), 4).await;
    wait_until("all are gone", || !pids.iter().any(|pid| is_alive(*pid))).await;
    setup.servers.shutdown().await;
}

#[tokio::test]
async fn nothing_is_left_of_a_server_and_its_family() {
    let setup = Setup::new().fake("fake", "family").running("fake").await;
    let pids = pids_in(&setup.file("pids"), 2).await;
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    let ended = tokio::time::timeout(Duration::from_secs(5), setup.servers.shutdown()).await;
    assert!(ended.is_ok());
    wait_until("all are gone", || !pids.iter().any(|pid| is_alive(*pid))).await;
    setup.configure();
    assert!(setup.servers.statuses().is_empty(), "nothing starts again");
    // Without a word, just by being dropped.
    let setup = Setup::new().fake("fake", "family").running("fake").await;
    let pids = pids_in(&setup.file("pids"), 2).await;
    let Setup { servers, folder, .. } = setup;
    drop(servers);
    wait_until("all are gone", || !pids.iter().any(|pid| is_alive(*pid))).await;
    drop(folder);
}

#[tokio::test]
async fn one_process_whatever_the_number_of_calls() {
    let setup = Arc::new(Setup::new().fake("fake", "").running("fake").await);
    let calls: Vec<_> = (0..100)
        .map(|n| {
            let setup = Arc::clone(&setup);
            tokio::spawn(async move { words(&setup.call("echo", json!({"text": n.to_string()})).await) })
        })
        .collect();
    for (n, call) in calls.into_iter().enumerate() {
        assert_eq!(call.await.unwrap(), n.to_string());
    }
    assert_eq!(setup.starts(), 1);
    setup.servers.shutdown().await;
}
