//! From `spawn` to the answer of `initialize`, against `cat` echoing the same bytes; and memory.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::client::{Server, initialize};
use crate::support::numbers::Samples;
use crate::support::report::Row;
use crate::support::{Outcome, proc};

const RUNS: usize = 60;
const MOST_TIMES_CAT: f64 = 3.0;
const MOST_PSS: f64 = 10.0;

pub(crate) fn run() -> Outcome<Vec<Row>> {
    let message = initialize(None);
    let (mut ours, mut cats, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    let mut threads = 0;
    for _ in 0..RUNS {
        cats.push(echo(&message)?);
        let started = Instant::now();
        let mut server = Server::spawn()?;
        server.send(&message)?;
        server.read()?;
        ours.push(started.elapsed());
        memory.push(proc::pss_mib(server.pid())?);
        threads = proc::threads(server.pid())?;
    }
    let (ours, cats, memory) = (Samples::of_durations(ours), Samples::of_durations(cats), Samples::new(memory));
    let (least, middle) = (ours.min() / cats.min(), ours.p50() / cats.p50());
    let times = |ratio: f64, ours: f64, cat: f64| format!("{ratio:.2} × ({ours:.2} ms / {cat:.2} ms)");
    Ok(vec![
        Row::at_most(
            "spawn → initialize answered, minimum, against `cat`",
            least,
            MOST_TIMES_CAT,
            "×",
            times(least, ours.min(), cats.min()),
        ),
        Row::at_most("the same, p50", middle, MOST_TIMES_CAT, "×", times(middle, ours.p50(), cats.p50())),
        Row::at_most(
            "memory after initialize (PSS), p50",
            memory.p50(),
            MOST_PSS,
            "MiB",
            format!("{:.2} MiB (most {:.2}), {threads} threads", memory.p50(), memory.max()),
        ),
    ])
}

/// How long `cat` takes from its start to the end of its echo.
pub(crate) fn echo(message: &[u8]) -> Outcome<Duration> {
    let started = Instant::now();
    let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut input = child.stdin.take().ok_or("no pipe to cat")?;
    let mut output = child.stdout.take().ok_or("no pipe from cat")?;
    input.write_all(message)?;
    let mut echo = vec![0; message.len()];
    output.read_exact(&mut echo)?;
    let took = started.elapsed();
    drop(input);
    child.wait()?;
    Ok(took)
}
