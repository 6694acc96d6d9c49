//! A running `eca server`.

use std::io::Read;
use std::ops::{Deref, DerefMut};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::mock_llm::MockLlm;
use crate::peer::{HANG_GUARD, Peer};
use crate::server::TestDirs;

/// How to start one.
pub(crate) struct Launch {
    pub(crate) dirs: Arc<TestDirs>,
    pub(crate) arguments: Vec<String>,
}

/// A process of which the test holds all streams.
pub(crate) struct Bare {
    pub(crate) process: Process,
    pub(crate) input: ChildStdin,
    pub(crate) output: ChildStdout,
    pub(crate) errors: ChildStderr,
    /// Removed with the last one who holds it.
    pub(crate) dirs: Arc<TestDirs>,
}

/// A process with a client.
pub(crate) struct RealServer {
    peer: Peer,
    pub(crate) process: Process,
    pub(crate) dirs: Arc<TestDirs>,
    log: Arc<Mutex<Vec<u8>>>,
    log_complete: Option<std::thread::JoinHandle<()>>,
}

/// Ends with the test at the latest.
pub(crate) struct Process {
    pid: Pid,
    ended: oneshot::Receiver<ExitStatus>,
    over: bool,
}

impl Launch {
    pub(crate) fn new() -> Self {
        Self { dirs: Arc::new(TestDirs::new()), arguments: vec!["server".into()] }
    }

    pub(crate) fn with(model: &MockLlm) -> Self {
        let launch = Self::new();
        let config = crate::server::default_config(model.url());
        std::fs::create_dir_all(&launch.dirs.eca.config).unwrap();
        std::fs::write(launch.dirs.eca.config.join("config.json"), config.to_string()).unwrap();
        launch
    }

    pub(crate) fn arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        self
    }

    pub(crate) fn command(&self) -> Command {
        let root = self.dirs.root.path();
        let mut command = Command::new(env!("CARGO_BIN_EXE_eca"));
        command.args(&self.arguments).env_clear().env("HOME", root).current_dir(root);
        for (name, folder) in [("XDG_CONFIG_HOME", "config"), ("XDG_DATA_HOME", "data"), ("XDG_CACHE_HOME", "cache")] {
            command.env(name, root.join(folder));
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn bare(&self) -> Bare {
        let mut child = self.command().spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let errors = child.stderr.take().unwrap();
        Bare { process: Process::new(child), input, output, errors, dirs: Arc::clone(&self.dirs) }
    }

    /// A process whose client has not said anything yet.
    pub(crate) fn silent(self) -> RealServer {
        RealServer::new(self.bare(), Peer::new)
    }

    /// The same for a client that speaks in lines.
    pub(crate) fn silent_lines(self) -> RealServer {
        RealServer::new(self.bare(), Peer::of_lines)
    }

    /// A process after its handshake, with everything read that it announces.
    pub(crate) async fn start(self) -> RealServer {
        self.start_with(json!({"processId": null, "capabilities": {"codeAssistant": {"chat": true, "editor": {}}}}))
            .await
    }

    pub(crate) async fn start_with(self, initialize: Value) -> RealServer {
        let mut server = self.silent();
        let response = server.request_raw("initialize", Some(initialize)).await;
        assert!(response["result"].is_object(), "{response}");
        server.notify_raw("initialized", Some(json!({})));
        let last = |message: &Value| message["method"] == "$/progress" && message["params"]["type"] == "finish";
        server.everything_until("the end of the start-up", last).await;
        server
    }
}

impl RealServer {
    pub(crate) fn new(bare: Bare, client: impl FnOnce(ChildStdout, ChildStdin) -> Peer) -> Self {
        let Bare { process, input, output, mut errors, dirs } = bare;
        let log = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&log);
        let log_complete = std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(length @ 1..) = errors.read(&mut chunk) {
                kept.lock().unwrap().extend_from_slice(&chunk[..length]);
            }
        });
        let peer = client(output, input);
        Self { peer, process, dirs, log, log_complete: Some(log_complete) }
    }

    /// Waits for the end and returns the exit code, with everything that was logged.
    pub(crate) async fn end(mut self) -> (Option<i32>, String) {
        let status = self.process.wait().await;
        // The reader of the log ends with the process that wrote it.
        let complete = self.log_complete.take().unwrap();
        tokio::task::spawn_blocking(|| complete.join()).await.unwrap().unwrap();
        let log = String::from_utf8_lossy(&self.log.lock().unwrap()).into_owned();
        (status.code(), log)
    }

    /// Ends it by protocol.
    pub(crate) async fn leave(mut self) -> (Option<i32>, String) {
        assert_eq!(self.request_raw("shutdown", Some(json!({}))).await["result"], Value::Null);
        self.notify_raw("exit", Some(json!({})));
        self.end().await
    }

    /// That it still works: a request is answered.
    pub(crate) async fn is_well(&mut self) {
        let response = self.request_raw("jobs/list", Some(json!({}))).await;
        assert!(response["result"].is_object(), "{response}");
    }
}

impl Process {
    pub(crate) fn new(mut child: Child) -> Self {
        let pid = Pid::from_child(&child);
        let (over, ended) = oneshot::channel();
        std::thread::spawn(move || {
            let _ = over.send(child.wait().unwrap());
        });
        Self { pid, ended, over: false }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).unwrap();
    }

    pub(crate) async fn wait(&mut self) -> ExitStatus {
        let status = tokio::time::timeout(HANG_GUARD, &mut self.ended).await.expect("the process did not end").unwrap();
        self.over = true;
        status
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.over && self.ended.try_recv().is_err() {
            let _ = kill_process(self.pid, Signal::KILL);
        }
    }
}

impl Deref for RealServer {
    type Target = Peer;
    fn deref(&self) -> &Peer {
        &self.peer
    }
}

impl DerefMut for RealServer {
    fn deref_mut(&mut self) -> &mut Peer {
        &mut self.peer
    }
}
