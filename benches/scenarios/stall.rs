//! A client that stops reading in the middle of 200 MB, and reads again.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::client::{Message, Seen, Server};
use crate::support::mock::{Ledger, Mock, Plan};
use crate::support::report::Row;
use crate::support::{Outcome, proc};

/// 50 turns of 4 MiB, four of them at a time, each in a chat of its own.
const TURNS: usize = 50;
const AT_A_TIME: usize = 4;
const PLAN: Plan = Plan { chunks: 1_024, size: 4_096, gap: Duration::ZERO, together: 1 };
/// So many turns are over when the client stops reading.
const STALL_AFTER: usize = 15;
const STALL: Duration = Duration::from_secs(10);
const MOST_GROWTH: f64 = 16.0;
const MOST_STOP: f64 = 1.0;

pub(crate) fn run(mock: &Mock) -> Outcome<Vec<Row>> {
    let mut run = Run {
        server: Server::ready(mock.address())?,
        ledger: Ledger::default(),
        started: 0,
        open: HashSet::new(),
        finished: 0,
        stopped: None,
    };
    run.server.warm_up()?;
    let begun = Instant::now();
    let bytes_before = mock.bytes();
    while run.started < AT_A_TIME {
        run.start_one()?;
    }
    while run.finished < STALL_AFTER {
        run.step()?;
    }
    // In the middle of a turn, not between two.
    for _ in 0..200 {
        run.step()?;
    }
    let stalled = run.stall()?;
    while run.finished < TURNS {
        run.step()?;
    }
    let megabytes = (mock.bytes() - bytes_before) as f64 / 1e6;
    let took = begun.elapsed().saturating_sub(STALL).as_secs_f64();
    Ok(vec![
        Row::at_most(
            "client reads nothing for 10 s: growth of PSS",
            stalled.growth_mib,
            MOST_GROWTH,
            "MiB",
            format!("{:.1} MiB (from {:.0} MiB)", stalled.growth_mib, stalled.from_mib),
        ),
        Row::at_most(
            "the same: a stop ends the model's connection",
            stalled.stop_took,
            MOST_STOP,
            "s",
            format!("after {:.1} ms", stalled.stop_took * 1e3),
        ),
        Row::holds(
            "the same: 50 turns of 4 MiB, one of them stopped",
            format!("{megabytes:.0} MB, all in order, {:.0} MB/s", megabytes / took),
            "nothing lost, in order",
        ),
    ])
}

struct Run {
    server: Server,
    ledger: Ledger,
    started: usize,
    open: HashSet<String>,
    finished: usize,
    stopped: Option<String>,
}

struct Stalled {
    from_mib: f64,
    growth_mib: f64,
    stop_took: f64,
}

impl Run {
    fn start_one(&mut self) -> Outcome<()> {
        let chat = format!("bulk-{}", self.started);
        self.server.prompt(&chat, PLAN)?;
        self.open.insert(chat);
        self.started += 1;
        Ok(())
    }

    /// Reads one message and starts the next turn when one is over.
    fn step(&mut self) -> Outcome<()> {
        let message: Message<'_> = serde_json::from_slice(self.server.read()?)?;
        match message.seen() {
            Seen::Text { chat, text } => {
                self.ledger.take(chat, text)?;
                return Ok(());
            }
            Seen::SystemText { text } if text.trim() == "Stopped." && self.stopped.is_some() => return Ok(()),
            Seen::SystemText { text } => return Err(format!("instead of an answer: {}", text.trim()).into()),
            Seen::Response | Seen::Other => return Ok(()),
            Seen::Finished { chat } => {
                let seen = self.ledger.seen(chat);
                if seen != PLAN.chunks && self.stopped.as_deref() != Some(chat) {
                    return Err(format!("{chat} ended after {seen} chunks").into());
                }
                if !self.open.remove(chat) {
                    return Err(format!("{chat} ended twice").into());
                }
            }
        }
        self.finished += 1;
        if self.started < TURNS { self.start_one() } else { Ok(()) }
    }

    /// Reads nothing for a while, and stops one of the turns meanwhile.
    fn stall(&mut self) -> Outcome<Stalled> {
        let pid = self.server.pid();
        let from_mib = proc::pss_mib(pid)?;
        let (mut most, begun) = (from_mib, Instant::now());
        let mut connections = 0;
        let mut stop_sent = None;
        let mut stop_took = f64::INFINITY;
        while begun.elapsed() < STALL {
            std::thread::sleep(Duration::from_millis(5));
            most = most.max(proc::pss_mib(pid)?);
            if stop_sent.is_none() && begun.elapsed() > STALL / 2 {
                // One that is in the middle of its answer; one that waits in the queue might be over.
                let chat = self.open.iter().min_by_key(|chat| self.ledger.seen(chat)).cloned();
                let chat = chat.ok_or("no turn is open")?;
                connections = proc::sockets(pid)?;
                self.server.notify("chat/promptStop", &json!({"chatId": chat}))?;
                self.stopped = Some(chat);
                stop_sent = Some(Instant::now());
            }
            if let Some(sent) = stop_sent
                && stop_took.is_infinite()
                && proc::sockets(pid)? < connections
            {
                stop_took = sent.elapsed().as_secs_f64();
            }
        }
        Ok(Stalled { from_mib, growth_mib: most - from_mib, stop_took })
    }
}
