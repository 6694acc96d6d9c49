//! A server that nobody talks to must not run at all.

use std::time::Duration;

use serde_json::json;

use crate::support::client::{Server, initialize};
use crate::support::report::Row;
use crate::support::{Outcome, proc};

const SETTLE: Duration = Duration::from_secs(1);
const WATCH: Duration = Duration::from_secs(5);
const MOST_SWITCHES: f64 = 2.0;
const MOST_CPU_MS: f64 = 1.0;

pub(crate) fn run() -> Outcome<Vec<Row>> {
    let mut server = Server::spawn()?;
    server.send(&initialize(None))?;
    server.read_response()?;
    server.notify("initialized", &json!({}))?;
    std::thread::sleep(SETTLE);
    let (cpu, switches) = (server.cpu_nanoseconds()?, proc::voluntary_switches(server.pid())?);
    std::thread::sleep(WATCH);
    let cpu = (server.cpu_nanoseconds()? - cpu) as f64 / 1e6;
    let switches = (proc::voluntary_switches(server.pid())? - switches) as f64;
    Ok(vec![
        Row::at_most("idle for 5 s: CPU time", cpu, MOST_CPU_MS, "ms", format!("{cpu:.3} ms")),
        Row::at_most("idle for 5 s: wake-ups", switches, MOST_SWITCHES, "", format!("{switches}")),
        Row::note("idle: memory (PSS)", format!("{:.2} MiB", proc::pss_mib(server.pid())?)),
    ])
}
