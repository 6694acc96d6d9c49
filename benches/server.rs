//! Measures the real server from outside, over pipes and sockets, and prints one table.
//!
//! `cargo bench --bench server` runs everything; names after `--` choose: `start`, `idle`,
//! `prompt`, `stream`, `latency`, `stall`, `chats`, `tools`, `mcp`, `history`, `files`, `acp`. Every figure that depends on
//! the machine is a ratio or a
//! difference to something measured in the same run. The exit code speaks of correctness only.

mod scenarios;
mod support;

use std::process::ExitCode;

use scenarios::{acp, chats, files, history, idle, latency, mcp, prompt, stall, start, stream, tools};
use support::mock::Mock;
use support::report::Row;
use support::{Outcome, mcp_server, relay, report};

const NAMES: [&str; 12] =
    ["start", "idle", "prompt", "stream", "latency", "stall", "chats", "tools", "mcp", "history", "files", "acp"];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match &arguments[..] {
        [flag, address, prompt] if flag == relay::FLAG => relay::run(address, prompt).map(|()| Vec::new()),
        [flag] if flag == mcp_server::FLAG => mcp_server::run().map(|()| Vec::new()),
        _ if !cfg!(target_os = "linux") => Err("the figures come from /proc, so this runs on Linux only".into()),
        _ => measure(&arguments),
    };
    match outcome {
        Ok(rows) if rows.is_empty() => ExitCode::SUCCESS,
        Ok(rows) => {
            // The table could not be printed; whoever closed the pipe knows.
            let _ = report::print(&rows);
            ExitCode::SUCCESS
        }
        Err(error) => {
            report::say(&format!("failed: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn measure(arguments: &[String]) -> Outcome<Vec<Row>> {
    eca::process::limits::raise_nofile();
    // Cargo adds flags of its own, such as `--bench`.
    let wanted: Vec<&str> = arguments.iter().map(String::as_str).filter(|name| !name.starts_with('-')).collect();
    if let Some(unknown) = wanted.iter().find(|name| !NAMES.contains(name)) {
        return Err(format!("{unknown} is none of {}", NAMES.join(", ")).into());
    }
    let mock = Mock::start()?;
    let mut rows = Vec::new();
    for name in NAMES.into_iter().filter(|name| wanted.is_empty() || wanted.contains(name)) {
        report::say(&format!("{name} …"));
        rows.extend(match name {
            "start" => start::run()?,
            "idle" => idle::run()?,
            "prompt" => prompt::run(&mock)?,
            "stream" => stream::run(&mock)?,
            "latency" => latency::run(&mock)?,
            "stall" => stall::run(&mock)?,
            "chats" => chats::run(&mock)?,
            "tools" => tools::run(&mock)?,
            "mcp" => mcp::run(&mock)?,
            "history" => history::run()?,
            "files" => files::run()?,
            _ => acp::run(&mock)?,
        });
    }
    Ok(rows)
}
