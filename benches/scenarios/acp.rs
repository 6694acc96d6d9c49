//! The Agent Client Protocol: from `spawn` to a session, its memory, and what one chunk costs.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout};
use std::time::Instant;

use serde::Deserialize;
use serde_json::{Value, json};

use super::start::echo;
use crate::support::client::{command, leave};
use crate::support::mock::{Ledger, Mock, Plan};
use crate::support::numbers::Samples;
use crate::support::report::Row;
use crate::support::{Outcome, proc};

const RUNS: usize = 60;
const ROUNDS: usize = 9;
const CHUNKS: u32 = 20_000;
const SHORT: u32 = 10;
const MOST_TIMES_CAT: f64 = 3.0;
const MOST_PSS: f64 = 12.0;
const MOST_MICROSECONDS: f64 = 6.0;

pub(crate) fn run(mock: &Mock) -> Outcome<Vec<Row>> {
    let (mut ours, mut cats, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let mut editor = Editor::prepared(None)?;
        let messages = editor.greeting();
        cats.push(echo(&messages)?);
        let started = Instant::now();
        editor.start()?;
        editor.send(&messages)?;
        editor.response(2)?;
        ours.push(started.elapsed());
        memory.push(proc::pss_mib(editor.pid()?)?);
    }
    let (ours, cats, memory) = (Samples::of_durations(ours), Samples::of_durations(cats), Samples::new(memory));
    let (least, middle) = (ours.min() / cats.min(), ours.p50() / cats.p50());
    let times = |ratio: f64, ours: f64, cat: f64| format!("{ratio:.2} × ({ours:.2} ms / {cat:.2} ms)");
    let mut rows = vec![
        Row::at_most(
            "ACP: spawn → session/new answered, minimum, against `cat`",
            least,
            MOST_TIMES_CAT,
            "×",
            times(least, ours.min(), cats.min()),
        ),
        Row::at_most("ACP: the same, p50", middle, MOST_TIMES_CAT, "×", times(middle, ours.p50(), cats.p50())),
        Row::at_most(
            "ACP: memory with a session (PSS), p50",
            memory.p50(),
            MOST_PSS,
            "MiB",
            format!("{:.2} MiB (most {:.2})", memory.p50(), memory.max()),
        ),
    ];
    rows.push(stream(mock)?);
    Ok(rows)
}

fn stream(mock: &Mock) -> Outcome<Row> {
    let mut editor = Editor::prepared(Some(mock))?;
    editor.start()?;
    let messages = editor.greeting();
    editor.send(&messages)?;
    let session = editor.response(2)?.session.ok_or("no session")?;
    editor.turn(&session, Plan::flood(SHORT))?;
    let (mut flood, mut frames_per_chunk) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (idle, _) = editor.turn(&session, Plan::flood(SHORT))?;
        let (full, frames) = editor.turn(&session, Plan::flood(CHUNKS))?;
        flood.push((full - idle) / f64::from(CHUNKS - SHORT) / 1e3);
        frames_per_chunk.push(f64::from(frames) / f64::from(CHUNKS));
    }
    let flood = Samples::new(flood);
    let (per_chunk, frames) = (flood.p50(), Samples::new(frames_per_chunk).p50());
    let detail = format!("{per_chunk:.2} µs (min {:.2}); {frames:.2} frames per chunk", flood.min());
    let what = "ACP: CPU of the server per chunk, 20,000 chunks in a flood, p50";
    Ok(Row::at_most(what, per_chunk, MOST_MICROSECONDS, "µs", detail))
}

/// An editor on the pipes of `eca acp`.
struct Editor {
    home: tempfile::TempDir,
    running: Option<(Child, ChildStdin, BufReader<ChildStdout>)>,
    line: Vec<u8>,
    next_id: u64,
}

/// What is looked at in a message.
#[derive(Deserialize)]
struct Message<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    params: Option<Params<'a>>,
    #[serde(borrow)]
    result: Option<Answer<'a>>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    update: Option<Update<'a>>,
}

#[derive(Deserialize)]
struct Update<'a> {
    #[serde(borrow)]
    content: Option<Content<'a>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow, rename = "sessionId")]
    session: Option<Cow<'a, str>>,
}

/// A response that came.
struct Response {
    session: Option<String>,
    frames: u32,
}

impl Editor {
    /// A home with the mock as the only provider, or with none.
    fn prepared(mock: Option<&Mock>) -> Outcome<Self> {
        let home = tempfile::tempdir()?;
        let providers = mock.map_or(json!({}), |mock| {
            json!({"mock": {"api": "openai-chat", "url": format!("http://{}/v1", mock.address()), "key": "none",
                "fetchModels": false, "models": {"bench-1": {}}}})
        });
        let mut config = json!({"localDiscovery": false, "modelsDev": false, "chat": {"title": false}});
        if mock.is_some() {
            config["providers"] = providers;
            config["defaultModel"] = json!("mock/bench-1");
        }
        let folder = home.path().join(".config/eca");
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("config.json"), config.to_string())?;
        Ok(Self { home, running: None, line: Vec::new(), next_id: 2 })
    }

    fn start(&mut self) -> Outcome<()> {
        let mut child = command(self.home.path(), "acp").spawn()?;
        let input = child.stdin.take().ok_or("no pipe to the server")?;
        let output = child.stdout.take().ok_or("no pipe from the server")?;
        self.running = Some((child, input, BufReader::with_capacity(256 * 1024, output)));
        Ok(())
    }

    /// The first messages of an editor.
    fn greeting(&self) -> Vec<u8> {
        let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1,
            "clientCapabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}});
        let new = json!({"jsonrpc": "2.0", "id": 2, "method": "session/new",
            "params": {"cwd": self.home.path(), "mcpServers": []}});
        format!("{initialize}\n{new}\n").into_bytes()
    }

    fn pid(&self) -> Outcome<u32> {
        Ok(self.running.as_ref().ok_or("the server is not running")?.0.id())
    }

    fn send(&mut self, bytes: &[u8]) -> Outcome<()> {
        Ok(self.running.as_mut().ok_or("the server is not running")?.1.write_all(bytes)?)
    }

    fn response(&mut self, id: u64) -> Outcome<Response> {
        self.response_after(id, |_| Ok(()))
    }

    /// Reads until this response, handing every text to `look`.
    fn response_after(&mut self, id: u64, mut look: impl FnMut(&str) -> Outcome<()>) -> Outcome<Response> {
        let (_, _, output) = self.running.as_mut().ok_or("the server is not running")?;
        let mut frames = 0;
        loop {
            self.line.clear();
            if output.read_until(b'\n', &mut self.line)? == 0 {
                return Err("the server closed its output".into());
            }
            let message: Message<'_> = serde_json::from_slice(&self.line)?;
            if let Some(error) = message.error {
                return Err(error.to_string().into());
            }
            if message.id == Some(id) {
                let session = message.result.and_then(|result| result.session).map(Cow::into_owned);
                return Ok(Response { session, frames });
            }
            let update = message.params.and_then(|params| params.update);
            if let Some(text) = update.and_then(|update| update.content).and_then(|content| content.text) {
                frames += 1;
                look(&text)?;
            }
        }
    }

    /// One turn: the CPU time it took, in nanoseconds, and how many frames had text.
    fn turn(&mut self, session: &str, plan: Plan) -> Outcome<(f64, u32)> {
        let ledger = Ledger::default();
        let before = proc::cpu_nanoseconds(self.pid()?)?;
        self.next_id += 1;
        let id = self.next_id;
        let prompt = json!([{"type": "text", "text": plan.prompt()}]);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt",
            "params": {"sessionId": session, "prompt": prompt}});
        self.send(format!("{message}\n").as_bytes())?;
        let response = self.response_after(id, |text| ledger.take(session, text).map(|_| ()))?;
        if ledger.seen(session) != plan.chunks {
            return Err(format!("{} of {} chunks came", ledger.seen(session), plan.chunks).into());
        }
        Ok(((proc::cpu_nanoseconds(self.pid()?)? - before) as f64, response.frames))
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let Some((mut child, input, _)) = self.running.take() else { return };
        leave(&mut child, Some(input));
    }
}
