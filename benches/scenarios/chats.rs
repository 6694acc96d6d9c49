//! A thousand chats that stream at the same time through one process.

use std::time::{Duration, Instant};

use crate::support::client::{Message, Seen, Server};
use crate::support::mock::{Ledger, Mock, Plan};
use crate::support::report::Row;
use crate::support::{Outcome, proc};

const CHATS: usize = 1_000;
const PLAN: Plan = Plan { chunks: 50, size: 8, gap: Duration::from_millis(10), together: CHATS };

pub(crate) fn run(mock: &Mock) -> Outcome<Vec<Row>> {
    let mut server = Server::ready(mock.address())?;
    server.warm_up()?;
    let before = server.cpu_nanoseconds()?;
    let started = Instant::now();
    for chat in 0..CHATS {
        server.prompt(&format!("chat-{chat}"), PLAN)?;
    }
    let ledger = Ledger::default();
    let mut finished = 0;
    let mut first_text = None;
    while finished < CHATS {
        let message: Message<'_> = serde_json::from_slice(server.read()?)?;
        match message.seen() {
            Seen::Text { chat, text } => {
                first_text.get_or_insert_with(Instant::now);
                ledger.take(chat, text)?;
            }
            Seen::SystemText { text } => return Err(format!("instead of an answer: {}", text.trim()).into()),
            Seen::Finished { chat } if ledger.seen(chat) == PLAN.chunks => finished += 1,
            Seen::Finished { chat } => {
                return Err(format!("{chat} ended after {} chunks", ledger.seen(chat)).into());
            }
            Seen::Response | Seen::Other => {}
        }
    }
    let took = started.elapsed();
    let streaming = first_text.map_or(Duration::ZERO, |first| first.elapsed());
    let chunks = CHATS as f64 * f64::from(PLAN.chunks);
    let cpu = (server.cpu_nanoseconds()? - before) as f64 / chunks / 1e3;
    Ok(vec![
        Row::holds(
            "1,000 chats of 50 chunks at once",
            format!(
                "all complete and in order, {:.2} s, {:.2} s of it streaming",
                took.as_secs_f64(),
                streaming.as_secs_f64()
            ),
            "complete, in order",
        ),
        Row::note(
            "the same: CPU per chunk, with connecting, storing and finishing",
            format!("{cpu:.1} µs, {:.1} ms per chat", cpu * f64::from(PLAN.chunks) / 1e3),
        ),
        Row::note("the same: peak RSS", format!("{:.1} MiB", proc::peak_rss_mib(server.pid())?)),
    ])
}
