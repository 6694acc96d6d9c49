//! A client on the server's pipes: blocking, one thread, cheap enough not to be what is measured.

use std::borrow::Cow;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};

use super::mock::Plan;
use super::{Outcome, proc};

/// A running `eca server` in a home of its own.
pub(crate) struct Server {
    child: Child,
    input: Option<ChildStdin>,
    frames: Frames<ChildStdout>,
    next_id: u64,
    /// Of its own, unless somebody else keeps it.
    _home: Option<tempfile::TempDir>,
}

/// What the benchmarks look at in a message.
#[derive(Debug, Deserialize)]
pub(crate) struct Message<'a> {
    pub(crate) id: Option<u64>,
    #[serde(borrow)]
    pub(crate) method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) params: Option<Params<'a>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Params<'a> {
    #[serde(borrow, rename = "chatId")]
    pub(crate) chat: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) role: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) content: Option<Content<'a>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Content<'a> {
    #[serde(borrow)]
    pub(crate) text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) state: Option<Cow<'a, str>>,
}

/// What a message means to a benchmark.
#[derive(Debug)]
pub(crate) enum Seen<'a> {
    Text { chat: &'a str, text: &'a str },
    SystemText { text: &'a str },
    Finished { chat: &'a str },
    Response,
    Other,
}

impl Message<'_> {
    pub(crate) fn seen(&self) -> Seen<'_> {
        if self.id.is_some() && self.method.is_none() {
            return Seen::Response;
        }
        let Some(Params { chat: Some(chat), role: Some(role), content: Some(content) }) = &self.params else {
            return Seen::Other;
        };
        match (&**role, &content.text, content.state.as_deref()) {
            ("assistant", Some(text), _) => Seen::Text { chat, text },
            ("system", _, Some("finished")) => Seen::Finished { chat },
            ("system", Some(text), None) => Seen::SystemText { text },
            _ => Seen::Other,
        }
    }
}

impl Server {
    /// Starts the server and introduces the client, with the mock as the only provider.
    pub(crate) fn ready(mock: SocketAddr) -> Outcome<Self> {
        Self::ready_with(mock, &json!({}))
    }

    /// The same with more configuration.
    pub(crate) fn ready_with(mock: SocketAddr, more: &Value) -> Outcome<Self> {
        let mut server = Self::spawn()?;
        server.send(&initialize_in(Some(mock), Path::new("/tmp"), more))?;
        server.read_response()?;
        server.notify("initialized", &json!({}))?;
        Ok(server)
    }

    pub(crate) fn spawn() -> Outcome<Self> {
        let home = tempfile::tempdir()?;
        let mut server = Self::spawn_at(home.path())?;
        server._home = Some(home);
        Ok(server)
    }

    /// A server with a home that others prepared, working in this folder, without any model.
    pub(crate) fn in_folder(home: &Path, folder: &Path) -> Outcome<Self> {
        let mut server = Self::spawn_at(home)?;
        server.send(&initialize_in(None, folder, &json!({})))?;
        server.read_response()?;
        server.notify("initialized", &json!({}))?;
        Ok(server)
    }

    fn spawn_at(home: &Path) -> Outcome<Self> {
        let mut child = command(home, "server").spawn()?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or("no pipe from the server")?;
        Ok(Self { child, input, frames: Frames::new(output), next_id: 1, _home: None })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn send(&mut self, message: &[u8]) -> Outcome<()> {
        Ok(self.input.as_mut().ok_or("the server's input is closed")?.write_all(message)?)
    }

    pub(crate) fn notify(&mut self, method: &str, params: &Value) -> Outcome<()> {
        self.send(&framed(&json!({"jsonrpc": "2.0", "method": method, "params": params})))
    }

    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Outcome<()> {
        self.next_id += 1;
        self.send(&framed(&json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params})))
    }

    pub(crate) fn prompt(&mut self, chat: &str, plan: Plan) -> Outcome<()> {
        self.request("chat/prompt", &json!({"chatId": chat, "message": plan.prompt(), "model": "mock/bench-1"}))
    }

    /// The body of the next message.
    pub(crate) fn read(&mut self) -> Outcome<&[u8]> {
        self.frames.next_body()
    }

    /// Reads until a response comes.
    pub(crate) fn read_response(&mut self) -> Outcome<()> {
        loop {
            let message: Message<'_> = serde_json::from_slice(self.read()?)?;
            if matches!(message.seen(), Seen::Response) {
                return Ok(());
            }
        }
    }

    /// Reads until the chat's turn is over, handing each message and the time it came to `look`.
    pub(crate) fn read_turn(
        &mut self,
        chat: &str,
        mut look: impl FnMut(&Seen<'_>, Instant) -> Outcome<()>,
    ) -> Outcome<()> {
        loop {
            let body = self.frames.next_body()?;
            let now = Instant::now();
            let message: Message<'_> = serde_json::from_slice(body)?;
            let seen = message.seen();
            look(&seen, now)?;
            match seen {
                Seen::Finished { chat: over } if over == chat => return Ok(()),
                Seen::SystemText { text } if text.starts_with("\n\n") => return Err(text.to_owned().into()),
                _ => {}
            }
        }
    }

    /// One whole turn of a few chunks, so that what is built on first use is built.
    pub(crate) fn warm_up(&mut self) -> Outcome<()> {
        self.prompt("warm-up", Plan::flood(10))?;
        self.read_turn("warm-up", |_, _| Ok(()))
    }

    /// What a request was answered with.
    pub(crate) fn result_of(&mut self, method: &str, params: &Value) -> Outcome<Value> {
        self.request(method, params)?;
        loop {
            let mut message: Value = serde_json::from_slice(self.read()?)?;
            if message.get("id").is_some() && message.get("method").is_none() {
                return match message.get("error") {
                    Some(error) => Err(format!("{method}: {error}").into()),
                    None => Ok(message["result"].take()),
                };
            }
        }
    }

    /// The server's CPU time once it has nothing left to do.
    pub(crate) fn settled_cpu(&self) -> Outcome<u64> {
        let mut last = self.cpu_nanoseconds()?;
        for _ in 0..1_000 {
            std::thread::sleep(Duration::from_millis(2));
            let now = self.cpu_nanoseconds()?;
            if now == last {
                return Ok(now);
            }
            last = now;
        }
        Err("the server does not come to rest".into())
    }

    pub(crate) fn cpu_nanoseconds(&self) -> Outcome<u64> {
        proc::cpu_nanoseconds(self.pid())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        leave(&mut self.child, self.input.take());
    }
}

/// End of input is how an editor leaves; what does not end by itself is ended.
pub(crate) fn leave(child: &mut Child, input: Option<ChildStdin>) {
    drop(input);
    let deadline = Instant::now() + Duration::from_secs(3);
    while Instant::now() < deadline {
        if matches!(child.try_wait(), Ok(Some(_)) | Err(_)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// `Content-Length` frames out of a byte stream, reusing one buffer.
pub(crate) struct Frames<R> {
    source: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl<R: Read> Frames<R> {
    pub(crate) fn new(source: R) -> Self {
        Self { source, buffer: vec![0; 256 * 1024], start: 0, end: 0 }
    }

    pub(crate) fn next_body(&mut self) -> Outcome<&[u8]> {
        const HEADER: &[u8] = b"Content-Length: ";
        loop {
            let unread = self.buffer.get(self.start..self.end).unwrap_or_default();
            if let Some(end_of_header) = unread.windows(4).take(64).position(|window| window == b"\r\n\r\n") {
                let digits = unread.get(..end_of_header).and_then(|line| line.strip_prefix(HEADER));
                let length: usize = std::str::from_utf8(digits.ok_or("a frame without Content-Length")?)?.parse()?;
                let from = self.start + end_of_header + 4;
                if self.end >= from + length {
                    self.start = from + length;
                    return Ok(self.buffer.get(from..from + length).unwrap_or_default());
                }
            }
            self.read_more()?;
        }
    }

    fn read_more(&mut self) -> Outcome<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let count = self.source.read(self.buffer.get_mut(self.end..).unwrap_or_default())?;
        if count == 0 {
            return Err("the server closed its output".into());
        }
        self.end += count;
        Ok(())
    }
}

/// The server with a home of its own and nothing of the caller's environment that it would read.
pub(crate) fn command(home: &std::path::Path, front_end: &str) -> Command {
    let mut command = Command::new(super::program());
    command.arg(front_end).env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin");
    command.current_dir(home).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// The first message of an editor.
pub(crate) fn initialize(mock: Option<SocketAddr>) -> Vec<u8> {
    initialize_in(mock, Path::new("/tmp"), &json!({}))
}

fn initialize_in(mock: Option<SocketAddr>, folder: &Path, more: &Value) -> Vec<u8> {
    let providers = mock.map(|address| {
        let models = json!({"bench-1": {}});
        json!({"mock": {"api": "openai-chat", "url": format!("http://{address}/v1"), "key": "none",
                        "fetchModels": false, "models": models}})
    });
    let mut options = json!({
        "pureConfig": true, "localDiscovery": false, "chat": {"title": false},
        "providers": providers.unwrap_or(json!({})),
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        options[key] = value.clone();
    }
    framed(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "processId": std::process::id(),
        "clientInfo": {"name": "bench", "version": "1"},
        "capabilities": {"codeAssistant": {"chat": true, "chatCapabilities": {"askQuestion": true}}},
        "workspaceFolders": [{"uri": format!("file://{}", folder.display()), "name": "work"}],
        "initializationOptions": options,
    }}))
}

pub(crate) fn framed(message: &Value) -> Vec<u8> {
    let body = message.to_string();
    format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}
