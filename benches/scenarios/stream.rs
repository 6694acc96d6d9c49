//! What one streamed chunk costs the server in CPU time, in a flood and at a model's pace.

use std::time::{Duration, Instant};

use crate::support::client::{Seen, Server};
use crate::support::mock::{Ledger, Mock, Plan};
use crate::support::numbers::Samples;
use crate::support::relay::Relay;
use crate::support::report::Row;
use crate::support::{Outcome, proc};

const ROUNDS: usize = 9;
const CHUNKS: u32 = 20_000;
const PACED_CHUNKS: u32 = 2_000;
const SHORT: u32 = 10;
const MOST_MICROSECONDS: f64 = 5.0;

pub(crate) fn run(mock: &Mock) -> Outcome<Vec<Row>> {
    let mut server = Server::ready(mock.address())?;
    server.warm_up()?;
    let paced_plan = Plan { gap: Duration::from_millis(1), ..Plan::flood(PACED_CHUNKS) };
    let (mut flood, mut paced, mut rates, mut frames_per_chunk) = (vec![], vec![], vec![], vec![]);
    let (mut relay, mut relay_paced) = (vec![], vec![]);
    for round in 0..ROUNDS {
        let idle = turn(&mut server, &format!("short-{round}"), Plan::flood(SHORT))?;
        let full = turn(&mut server, &format!("flood-{round}"), Plan::flood(CHUNKS))?;
        let extra = f64::from(CHUNKS - SHORT);
        flood.push((full.cpu_nanoseconds - idle.cpu_nanoseconds) / extra / 1e3);
        rates.push(f64::from(CHUNKS) / full.took.as_secs_f64() / 1e3);
        frames_per_chunk.push(f64::from(full.frames) / f64::from(CHUNKS));
        relay.push(relay_cpu(mock, Plan::flood(CHUNKS))?);
        relay_paced.push(relay_cpu(mock, paced_plan)?);
        let slow = turn(&mut server, &format!("paced-{round}"), paced_plan)?;
        paced.push((slow.cpu_nanoseconds - idle.cpu_nanoseconds) / f64::from(PACED_CHUNKS - SHORT) / 1e3);
    }
    let (flood, paced, relay, rates) =
        (Samples::new(flood), Samples::new(paced), Samples::new(relay), Samples::new(rates));
    let peak = proc::peak_rss_mib(server.pid())?;
    Ok(vec![
        Row::at_most(
            "CPU of the server per chunk, 20,000 chunks in a flood, p50",
            flood.p50(),
            MOST_MICROSECONDS,
            "µs",
            format!(
                "{:.2} µs (min {:.2}; null relay {:.2}); {:.2} frames per chunk",
                flood.p50(),
                flood.min(),
                relay.p50(),
                Samples::new(frames_per_chunk).p50(),
            ),
        ),
        Row::note(
            "the same at 1,000 chunks/s, each on its own",
            format!(
                "{:.1} µs (min {:.1}; null relay {:.1})",
                paced.p50(),
                paced.min(),
                Samples::new(relay_paced).p50(),
            ),
        ),
        Row::note("chunks per second in the flood, all on this machine", format!("{:.0} k", rates.p50())),
        Row::note("peak RSS after these streams", format!("{peak:.1} MiB")),
    ])
}

struct Turn {
    cpu_nanoseconds: f64,
    took: Duration,
    frames: u32,
}

fn turn(server: &mut Server, chat: &str, plan: Plan) -> Outcome<Turn> {
    let ledger = Ledger::default();
    let before = server.cpu_nanoseconds()?;
    let started = Instant::now();
    let mut frames = 0;
    server.prompt(chat, plan)?;
    server.read_turn(chat, |seen, _| {
        if let Seen::Text { chat, text } = seen {
            frames += 1;
            ledger.take(chat, text)?;
        }
        Ok(())
    })?;
    let took = started.elapsed();
    if ledger.seen(chat) != plan.chunks {
        return Err(format!("{chat}: {} of {} chunks came", ledger.seen(chat), plan.chunks).into());
    }
    Ok(Turn { cpu_nanoseconds: (server.cpu_nanoseconds()? - before) as f64, took, frames })
}

fn relay_cpu(mock: &Mock, plan: Plan) -> Outcome<f64> {
    let mut relay = Relay::start(mock, plan)?;
    // One frame per chunk, and the one that says why the answer ended.
    for _ in 0..=plan.chunks {
        relay.frames.next_body()?;
    }
    Ok(proc::cpu_nanoseconds(relay.pid())? as f64 / f64::from(plan.chunks) / 1e3)
}
