//! How long a chunk is under way at a model's pace, against a relay that does nothing else.

use std::time::{Duration, Instant};

use crate::support::Outcome;
use crate::support::client::{Seen, Server};
use crate::support::mock::{Mock, Plan, chunk_numbers};
use crate::support::numbers::Samples;
use crate::support::relay::Relay;
use crate::support::report::Row;

const ROUNDS: usize = 6;
const MOST_ADDED: f64 = 0.15;
const PLAN: Plan = Plan { chunks: 200, size: 8, gap: Duration::from_millis(10), together: 1 };

pub(crate) fn run(mock: &Mock) -> Outcome<Vec<Row>> {
    let mut server = Server::ready(mock.address())?;
    server.warm_up()?;
    let (mut ours, mut relay) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        through_relay(mock, &mut relay)?;
        through_server(mock, &mut server, &format!("latency-{round}"), &mut ours)?;
    }
    let (ours, relay) = (Samples::of_durations(ours), Samples::of_durations(relay));
    let added = ours.p50() - relay.p50();
    Ok(vec![Row::at_most(
        "latency added to a chunk at 100 chunks/s, p50",
        added,
        MOST_ADDED,
        "ms",
        format!("{added:.3} ms ({:.3} ms, null relay {:.3} ms)", ours.p50(), relay.p50()),
    )])
}

fn through_server(mock: &Mock, server: &mut Server, chat: &str, took: &mut Vec<Duration>) -> Outcome<()> {
    server.prompt(chat, PLAN)?;
    server.read_turn(chat, |seen, now| {
        if let Seen::Text { text, .. } = seen {
            note(mock, text, now, took)?;
        }
        Ok(())
    })
}

fn through_relay(mock: &Mock, took: &mut Vec<Duration>) -> Outcome<()> {
    let mut relay = Relay::start(mock, PLAN)?;
    for _ in 0..PLAN.chunks {
        let body = relay.frames.next_body()?;
        let now = Instant::now();
        note(mock, std::str::from_utf8(body)?, now, took)?;
    }
    Ok(())
}

fn note(mock: &Mock, text: &str, now: Instant, took: &mut Vec<Duration>) -> Outcome<()> {
    for number in chunk_numbers(text) {
        let sent = number.and_then(|number| mock.sent_at(number)).ok_or("a chunk that was never sent")?;
        took.push(now.saturating_duration_since(sent));
    }
    Ok(())
}
