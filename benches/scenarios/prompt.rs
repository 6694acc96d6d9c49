//! From a prompt on the server's input to its whole request at the model, and how large that is.

use std::time::Instant;

use serde_json::json;

use crate::support::Outcome;
use crate::support::client::Server;
use crate::support::mock::{Mock, Plan};
use crate::support::numbers::Samples;
use crate::support::report::Row;

const PROMPTS: usize = 200;
const MOST_MILLISECONDS: f64 = 5.0;
const MOST_KILOBYTES: f64 = 16.0;

pub(crate) fn run(mock: &Mock) -> Outcome<Vec<Row>> {
    let mut server = Server::ready(mock.address())?;
    server.warm_up()?;
    let mut took = Vec::with_capacity(PROMPTS);
    let mut kilobytes = f64::NAN;
    for number in 0..PROMPTS {
        let chat = format!("prompt-{number}");
        let message = format!("What does this function do? {}", Plan::flood(1).prompt());
        let started = Instant::now();
        server.request("chat/prompt", &json!({"chatId": chat, "message": message, "model": "mock/bench-1"}))?;
        server.read_turn(&chat, |_, _| Ok(()))?;
        let (received, bytes) = mock.last_request();
        took.push(received.checked_duration_since(started).ok_or("the model never got the request")?);
        if number == 0 {
            kilobytes = bytes as f64 / 1e3;
        }
    }
    let took = Samples::of_durations(took);
    Ok(vec![
        Row::at_most(
            "prompt written → whole request at the model, 200 new chats, p50",
            took.p50(),
            MOST_MILLISECONDS,
            "ms",
            format!("{:.2} ms (min {:.2}, most {:.2})", took.p50(), took.min(), took.max()),
        ),
        Row::at_most(
            "the same: body of the first request of a chat",
            kilobytes,
            MOST_KILOBYTES,
            "kB",
            format!("{kilobytes:.2} kB"),
        ),
    ])
}
