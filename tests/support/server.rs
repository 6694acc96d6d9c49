//! The ECA front end in this process, behind real pipes, on a runtime like the program's own, with
//! folders of its own and a mock model. A test drives it through the client that it dereferences
//! to, and ends it with [`TestServer::finish`], which fails on anything the test did not read.
#![allow(dead_code, unreachable_pub, unused_imports, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "server/dirs.rs"]
mod dirs;
#[path = "server/presets.rs"]
pub mod presets;

use std::collections::BTreeMap;
use std::io::{PipeWriter, Write};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex};

use custom_methods::chat::{ChatPromptParams, ChatPromptResult, ChatPromptStopParams};
use custom_methods::methods::{ChatPrompt, ChatPromptStop};
use eca::config::load::ProcessEnvironment;
use eca::frontends::Surroundings;
use eca::frontends::eca::serve;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::mock_llm::MockLlm;
use super::peer::{HANG_GUARD, Peer, outline, text_of};
pub use dirs::{KEY, TestDirs, default_config, merge};
pub use presets::{Announced, ClientPreset};

/// A running server and its client.
pub struct TestServer {
    peer: Peer,
    pub dirs: Arc<TestDirs>,
    /// What came in answer to the handshake.
    pub startup: Vec<Value>,
    pub initialize_response: Value,
    ended: oneshot::Receiver<std::io::Result<()>>,
    odd_writes: Arc<Mutex<Vec<String>>>,
    rest_is_ignored: bool,
    finished: bool,
}

/// How far the builder goes on behalf of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handshake {
    /// Up to and including what the server announces after `initialized`.
    Full,
    /// Until `initialize` is answered.
    InitializeOnly,
    None,
}

pub struct Builder {
    dirs: Arc<TestDirs>,
    config: Value,
    config_text: Option<String>,
    client: ClientPreset,
    options: Option<Value>,
    handshake: Handshake,
    vars: BTreeMap<String, String>,
}

impl TestServer {
    /// A server whose provider `mock` is `model`, and a current ECA client.
    pub fn with(model: &MockLlm) -> Builder {
        Self::at(model.url())
    }

    /// A server whose provider `mock` is at this address.
    pub fn at(url: &str) -> Builder {
        let dirs = Arc::new(TestDirs::new());
        Builder {
            client: presets::vscode(&dirs),
            dirs,
            config: dirs::default_config(url),
            config_text: None,
            options: None,
            handshake: Handshake::Full,
            vars: BTreeMap::new(),
        }
    }

    /// Whatever comes from now on need not be read.
    pub fn ignore_rest(&mut self) {
        self.rest_is_ignored = true;
    }

    /// Ends the server by protocol and checks that nothing is left to be read.
    pub async fn finish(mut self) {
        let no_params = self.style.no_params.clone();
        let response = self.request_raw("shutdown", no_params.clone()).await;
        assert_eq!(response.get("result"), Some(&Value::Null), "{response}");
        self.notify_raw("exit", no_params);
        self.wait_for_end().await;
    }

    /// Waits until the server has ended, whatever is left to be read.
    pub async fn ended(&mut self) {
        if !std::mem::replace(&mut self.finished, true) {
            let ended = tokio::time::timeout(HANG_GUARD, &mut self.ended).await;
            ended.expect("the server did not end").expect("the server broke").expect("the server failed");
        }
    }

    /// Waits until the server has ended for another reason, with the same checks.
    pub async fn wait_for_end(mut self) {
        self.ended().await;
        self.end_of_output().await;
        let odd = self.odd_writes.lock().unwrap().clone();
        assert!(odd.is_empty(), "not exactly one frame per write: {odd:?}");
        let unread = self.take_unread();
        if !self.rest_is_ignored && !unread.is_empty() {
            let texts: Vec<String> = unread.iter().map(text_of).collect();
            panic!("nobody read:\n  {}", texts.join("\n  "));
        }
    }
}

/// Chats in few words.
impl TestServer {
    pub fn start_prompt(&mut self, chat: Option<&str>, message: &str) -> i64 {
        self.start::<ChatPrompt>(prompt(chat, message))
    }

    pub async fn prompt(&mut self, chat: Option<&str>, message: &str) -> ChatPromptResult {
        self.request::<ChatPrompt>(prompt(chat, message)).await
    }

    /// A whole turn in a chat: everything that was sent for it, without the response.
    pub async fn turn(&mut self, chat: &str, message: &str) -> Vec<Value> {
        self.prompt(Some(chat), message).await;
        self.collect_turn(chat).await
    }

    pub fn stop(&self, chat: &str) {
        self.notify::<ChatPromptStop>(ChatPromptStopParams { chat_id: chat.into() });
    }
}

pub fn prompt(chat: Option<&str>, message: &str) -> ChatPromptParams {
    ChatPromptParams { chat_id: chat.map(Into::into), message: message.into(), ..ChatPromptParams::default() }
}

impl Deref for TestServer {
    type Target = Peer;
    fn deref(&self) -> &Peer {
        &self.peer
    }
}

impl DerefMut for TestServer {
    fn deref_mut(&mut self) -> &mut Peer {
        &mut self.peer
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if !self.finished && !std::thread::panicking() {
            let unread: Vec<String> = self.peer.take_unread().iter().map(text_of).collect();
            panic!("the test ended without finish(); unread:\n  {}", unread.join("\n  "));
        }
    }
}

impl Builder {
    /// The folder that the client works in.
    pub fn workspace(&self) -> std::path::PathBuf {
        self.dirs.workspace.clone()
    }

    /// Merged over the default configuration, object by object.
    pub fn config(mut self, config: Value) -> Self {
        dirs::merge(&mut self.config, config);
        self
    }

    /// The configuration file, word by word.
    pub fn config_text(mut self, text: &str) -> Self {
        self.config_text = Some(text.to_owned());
        self
    }

    /// Works in the folders of an earlier server.
    pub fn dirs(mut self, dirs: &Arc<TestDirs>) -> Self {
        self.dirs = Arc::clone(dirs);
        let (old, new) = (std::mem::take(&mut self.client.initialize["workspaceFolders"]), dirs.workspace_folders());
        self.client.initialize["workspaceFolders"] = if old.is_null() { old } else { new };
        self
    }

    pub fn client(mut self, preset: impl FnOnce(&TestDirs) -> ClientPreset) -> Self {
        self.client = preset(&self.dirs);
        self
    }

    /// Replaces the params of `initialize`.
    pub fn initialize(mut self, params: Value) -> Self {
        self.client.initialize = params;
        self
    }

    pub fn capabilities(mut self, capabilities: Value) -> Self {
        self.client.initialize["capabilities"] = capabilities;
        self
    }

    pub fn options(mut self, options: Value) -> Self {
        self.options = Some(options);
        self
    }

    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.vars.insert(name.to_owned(), value.to_owned());
        self
    }

    pub fn handshake(mut self, handshake: Handshake) -> Self {
        self.handshake = handshake;
        self
    }

    /// Writes the configuration and says where everything is.
    pub fn surroundings(&self) -> Surroundings {
        let text = self.config_text.clone().unwrap_or_else(|| self.config.to_string());
        std::fs::create_dir_all(&self.dirs.eca.config).unwrap();
        std::fs::write(self.dirs.eca.config.join("config.json"), text).unwrap();
        let environment = ProcessEnvironment { dirs: self.dirs.eca.clone(), vars: self.vars.clone(), eca_config: None };
        Surroundings { environment, config_file: None }
    }

    pub async fn start(self) -> TestServer {
        let surroundings = self.surroundings();
        let (server_input, client_output) = std::io::pipe().unwrap();
        let (client_input, server_output) = std::io::pipe().unwrap();
        let odd_writes = Arc::new(Mutex::new(Vec::new()));
        let output = OneFramePerWrite { output: server_output, odd: Arc::clone(&odd_writes), key: KEY.as_bytes() };
        let (over, ended) = oneshot::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            let served = serve(server_input, output, surroundings);
            // On a worker, as in the program: the thread that blocks here runs no tasks.
            let result = runtime.block_on(async { tokio::spawn(served).await });
            runtime.shutdown_background();
            if let Ok(result) = result {
                let _ = over.send(result);
            }
        });
        let mut peer = Peer::new(client_input, client_output);
        peer.style = self.client.style.clone();
        let mut server = TestServer {
            peer,
            dirs: Arc::clone(&self.dirs),
            startup: Vec::new(),
            initialize_response: Value::Null,
            ended,
            odd_writes,
            rest_is_ignored: false,
            finished: false,
        };
        self.shake_hands(&mut server).await;
        server
    }

    async fn shake_hands(self, server: &mut TestServer) {
        if self.handshake == Handshake::None {
            return;
        }
        let mut params = self.client.initialize.clone();
        if let Some(options) = self.options {
            params["initializationOptions"] = options;
        }
        server.initialize_response = server.request_raw("initialize", Some(params)).await;
        assert!(server.initialize_response.get("error").is_none(), "{}", server.initialize_response);
        if self.handshake == Handshake::InitializeOnly {
            return;
        }
        server.notify_raw("initialized", self.client.style.no_params.clone());
        server.startup = match self.client.announced {
            Announced::WithProgress => {
                let last = |message: &Value| message["method"] == "$/progress" && message["params"]["type"] == "finish";
                server.everything_until("the end of the start-up", last).await
            }
            Announced::Plain => {
                let last = |message: &Value| message["method"] == "tool/serverUpdated";
                server.everything_until("the end of the start-up", last).await
            }
        };
    }
}

/// Passes everything on and remembers every `write` that was not exactly one frame, and any that
/// carried the key.
struct OneFramePerWrite {
    output: PipeWriter,
    odd: Arc<Mutex<Vec<String>>>,
    key: &'static [u8],
}

impl Write for OneFramePerWrite {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.output.write(bytes)?;
        let leaks = bytes.windows(self.key.len()).any(|window| window == self.key);
        if leaks || !is_one_frame(&bytes[..written]) {
            self.odd.lock().unwrap().push(String::from_utf8_lossy(&bytes[..written.min(300)]).into_owned());
        }
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.output.flush()
    }
}

fn is_one_frame(bytes: &[u8]) -> bool {
    let mut parser = super::peer::FrameParser::default();
    parser.push(bytes);
    matches!(parser.next_frame(), Ok(Some(_))) && parser.is_empty()
}
