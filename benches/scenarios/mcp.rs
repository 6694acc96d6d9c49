//! What MCP servers cost: a call through us against a call through the library alone, and twenty
//! servers in one client.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use eca::config::{Config, McpServerConfig};
use eca::mcp::{Options, Servers};
use eca::process::guard;
use eca::tool::Content;
use eca::workspace::Workspace;
use rmcp::model::CallToolRequestParams;
use rmcp::service::serve_client;
use serde_json::{Map, Value, json};

use super::tools::context;
use crate::support::client::Server;
use crate::support::mcp_server::FLAG;
use crate::support::mock::{Mock, Plan};
use crate::support::numbers::Samples;
use crate::support::report::Row;
use crate::support::{Outcome, proc};

const CALLS: usize = 500;
const MOST_ADDED: f64 = 0.3;
const SERVERS: usize = 20;
const MOST_MEMORY: f64 = 4.0;
/// A chat waits so long for servers that are about to be ready, and no longer.
const MOST_WAIT: f64 = 3_000.0;
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn run(mock: &Mock) -> Outcome<Vec<Row>> {
    guard::use_executable(crate::support::program());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut rows = vec![runtime.block_on(calls())?];
    rows.extend(many(mock)?);
    Ok(rows)
}

fn arguments() -> Map<String, Value> {
    json!({"text": "hello"}).as_object().cloned().unwrap_or_default()
}

async fn calls() -> Outcome<Row> {
    let program = std::env::current_exe()?;
    let mut child = tokio::process::Command::new(&program)
        .arg(FLAG)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let pipes = (child.stdout.take().ok_or("no output")?, child.stdin.take().ok_or("no input")?);
    let direct = serve_client((), pipes).await?;

    let servers = Servers::new(Options { data: std::env::temp_dir(), can_ask: false, events: Arc::new(drop) });
    let mut config = Config::default();
    let server = McpServerConfig {
        command: Some(program.display().to_string()),
        args: vec![FLAG.to_owned()],
        ..McpServerConfig::default()
    };
    config.mcp.servers.insert("bench".to_owned(), server);
    servers.configure(&config, &Workspace::default());
    servers.ready_within(PATIENCE).await;
    let tool = servers.tools().into_iter().next().ok_or("the server does not run")?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        let started = Instant::now();
        direct.call_tool(CallToolRequestParams::new("echo").with_arguments(arguments())).await?;
        theirs.push(started.elapsed());
        let started = Instant::now();
        let output = tool.run(arguments(), context(Path::new("/"))).await;
        ours.push(started.elapsed());
        if output.error || output.contents != [Content::Text("hello".to_owned())] {
            return Err(format!("{output:?}").into());
        }
    }
    servers.shutdown().await;
    let (ours, theirs) = (Samples::of_durations(ours), Samples::of_durations(theirs));
    let added = ours.p50() - theirs.p50();
    let measured = format!("{added:.3} ms ({:.3} ms, rmcp alone {:.3} ms)", ours.p50(), theirs.p50());
    Ok(Row::at_most("MCP: time added to a call of a tool, p50", added, MOST_ADDED, "ms", measured))
}

fn many(mock: &Mock) -> Outcome<Vec<Row>> {
    let program = std::env::current_exe()?.display().to_string();
    let one = json!({"command": program, "args": [FLAG]});
    let all: Map<String, Value> = (0..SERVERS).map(|number| (format!("server-{number}"), one.clone())).collect();
    let (first_without, memory_without, _) = first_prompt(mock, &json!({}), 0)?;
    let (first, memory, guards) = first_prompt(mock, &json!({"mcpServers": all}), SERVERS)?;
    let added = memory - memory_without + guards;
    Ok(vec![
        Row::at_most(
            "20 MCP servers, prompt right after the start → request at the model",
            first,
            MOST_WAIT,
            "ms",
            format!("{first:.0} ms (without servers {first_without:.0} ms)"),
        ),
        Row::at_most(
            "20 MCP servers: memory added (PSS), ours and the guards' together",
            added,
            MOST_MEMORY,
            "MiB",
            format!("{added:.2} MiB ({:.2} in the server, {guards:.2} in {SERVERS} guards)", memory - memory_without),
        ),
    ])
}

/// How long the first prompt took to reach the model, and the memory of the server and of its guards
/// when all servers run.
fn first_prompt(mock: &Mock, config: &Value, servers: usize) -> Outcome<(f64, f64, f64)> {
    let mut server = Server::ready_with(mock.address(), config)?;
    let started = Instant::now();
    server.prompt("first", Plan::flood(1))?;
    server.read_turn("first", |_, _| Ok(()))?;
    let (received, _) = mock.last_request();
    let took = received.checked_duration_since(started).ok_or("the model never got the request")?;
    let deadline = Instant::now() + PATIENCE;
    while guards(server.pid())?.len() < servers {
        if Instant::now() > deadline {
            return Err(format!("not all of {servers} servers run").into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    // What was needed to start is given back.
    std::thread::sleep(Duration::from_secs(1));
    let of_guards = guards(server.pid())?.into_iter().map(proc::pss_mib).sum::<Outcome<f64>>()?;
    Ok((took.as_secs_f64() * 1e3, proc::pss_mib(server.pid())?, of_guards))
}

/// The children of the server; each stands before one program.
fn guards(pid: u32) -> Outcome<Vec<u32>> {
    let mut found = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let Ok(text) = std::fs::read_to_string(task?.path().join("children")) else { continue };
        found.extend(text.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
    }
    Ok(found)
}
