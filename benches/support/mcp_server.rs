//! The least that can be called an MCP server. The benchmark runs itself in this role.

use std::io::{BufRead, Write};

use serde_json::{Value, json};

use super::Outcome;

/// The argument that puts the benchmark into this role.
pub(crate) const FLAG: &str = "--as-mcp-server";

/// Answers until its input ends.
pub(crate) fn run() -> Outcome<()> {
    let mut out = eca::transport::standard_streams::raw_stdout()?;
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let Some(id) = message.get("id") else { continue };
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "bench", "version": "1"},
            }),
            "tools/list" => json!({"tools": [{"name": "echo", "description": "Says it again.",
                "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}]}),
            "tools/call" => {
                json!({"content": [{"type": "text", "text": message["params"]["arguments"]["text"]}]})
            }
            _ => json!({}),
        };
        let mut answer = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
        answer.push('\n');
        out.write_all(answer.as_bytes())?;
    }
    Ok(())
}
