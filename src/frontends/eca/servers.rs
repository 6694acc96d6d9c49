//! News about MCP servers on its way to the client.
//!
//! A server's actor must not wait for a slow client, so its news is queued here, and when too much of
//! it is waiting, only the newest state of each server is kept.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use custom_methods::general::MessageType;
use custom_methods::methods::{ToolServerRemoved, ToolServerUpdated};
use custom_methods::tools::{
    McpServerUpdatedParams, ServerPrompt, ServerPromptArgument, ServerResource, ServerTool, ServerToolOwner,
    ToolServerRemovedParams, ToolServerStatus, ToolServerUpdatedParams,
};
use lsp_types::notification::Notification;
use tokio::sync::Notify;

use super::client::{Client, notification};
use super::session::{Session, Started};
use super::sink::show_message;
use super::start::native_tools;
use crate::base::task;
use crate::engine::SwitchedOff;
use crate::mcp::{NoticeLevel, ServerEvent, ServerStatus, Status};
use crate::transport::Frame;

/// News that may wait before it is thinned out.
const MOST_WAITING: usize = 256;
/// Messages that may wait; beyond it, the oldest are dropped.
const MOST_MESSAGES: usize = 64;

#[derive(Default)]
struct Waiting {
    events: Mutex<VecDeque<ServerEvent>>,
    arrived: Notify,
}

/// Where the servers' news goes; passed on for as long as the connection lives.
pub(super) fn announcer(client: Client, session: &Arc<Session>) -> Arc<dyn Fn(ServerEvent) + Send + Sync> {
    let waiting = Arc::new(Waiting::default());
    let (exit, session) = (session.exit_requested(), Arc::downgrade(session));
    let queue = Arc::clone(&waiting);
    task::spawn(async move {
        tokio::select! {
            () = exit.cancelled() => {}
            () = pass_on(&queue, &client, &session) => {}
        }
    });
    Arc::new(move |event| {
        let mut events = waiting.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.push_back(event);
        if events.len() > MOST_WAITING {
            thin_out(&mut events);
        }
        drop(events);
        waiting.arrived.notify_one();
    })
}

async fn pass_on(waiting: &Waiting, client: &Client, session: &Weak<Session>) {
    loop {
        let next = waiting.events.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(event) = next else {
            waiting.arrived.notified().await;
            continue;
        };
        let Some(session) = session.upgrade() else { return };
        for frame in frames(&session, event) {
            if client.outbox.push(frame).await.is_err() {
                return;
            }
        }
    }
}

/// Keeps the newest state of each server, and some of the messages.
fn thin_out(events: &mut VecDeque<ServerEvent>) {
    let mut seen = BTreeSet::new();
    let mut messages = 0;
    let mut kept = VecDeque::new();
    while let Some(event) = events.pop_back() {
        let is_kept = match &event {
            ServerEvent::Updated(status) => seen.insert(status.name.clone()),
            ServerEvent::Removed { name } => seen.insert(name.clone()),
            ServerEvent::Notice { .. } | ServerEvent::Authorize { .. } => {
                messages += 1;
                messages <= MOST_MESSAGES
            }
        };
        if is_kept {
            kept.push_front(event);
        }
    }
    *events = kept;
}

fn frames(session: &Session, event: ServerEvent) -> Vec<Frame> {
    match event {
        ServerEvent::Updated(status) => {
            let params = updated(*status, switched_off(session).as_ref());
            vec![notification(ToolServerUpdated::METHOD, &params, None)]
        }
        ServerEvent::Removed { name } => {
            vec![notification(ToolServerRemoved::METHOD, &ToolServerRemovedParams { name }, None)]
        }
        ServerEvent::Notice { level, text, .. } => {
            let kind = match level {
                NoticeLevel::Info => MessageType::Info,
                NoticeLevel::Warning => MessageType::Warning,
            };
            show_message(session, kind, text)
        }
        ServerEvent::Authorize { server, url } => {
            show_message(session, MessageType::Info, format!("MCP server {server}: open this address to log in: {url}"))
        }
    }
}

/// Everything an agent may call, server by server, ours first.
pub(super) fn tool_lists(started: &Started, agent: &str) -> Vec<ToolServerUpdatedParams> {
    let off = started.engine.switched_off(agent);
    let of_servers = started.servers.statuses().into_iter().map(|status| updated(status, Some(&off)));
    std::iter::once(native_tools(&started.engine, agent)).chain(of_servers).collect()
}

/// What the agent that the user selected is not offered.
pub(super) fn switched_off(session: &Session) -> Option<SwitchedOff> {
    Some(session.started()?.engine.switched_off(&session.selected_agent()))
}

/// A server as clients list it. They replace what they know, so everything is always there.
pub(super) fn updated(server: ServerStatus, off: Option<&SwitchedOff>) -> ToolServerUpdatedParams {
    let owner = || Some(ServerToolOwner { name: server.name.clone() });
    let is_remote = server.url.is_some();
    let tools = server.tools.iter().map(|tool| ServerTool {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: (*tool.parameters).clone(),
        disabled: Some(off.is_some_and(|off| off.has(&server.name, &tool.name))),
        server: owner(),
    });
    let prompts = server.prompts.iter().map(|prompt| ServerPrompt {
        name: prompt.name.clone(),
        description: prompt.description.clone(),
        arguments: Some(prompt.arguments.iter().map(argument).collect()),
    });
    let resources = server.resources.iter().map(|resource| ServerResource {
        uri: resource.uri.clone(),
        name: resource.name.clone(),
        description: resource.description.clone(),
        mime_type: resource.mime_type.clone(),
    });
    McpServerUpdatedParams {
        tools: Some(tools.collect()),
        prompts: Some(prompts.collect()),
        resources: Some(resources.collect()),
        status: status(server.status),
        // The first versions of the protocol ask for both of a server that is a process.
        command: (!is_remote).then(|| server.command.unwrap_or_default()),
        args: (!is_remote).then_some(server.args),
        url: server.url,
        disabled: Some(server.disabled),
        has_auth: Some(server.has_auth),
        instructions: server.instructions,
        name: server.name,
    }
    .into()
}

fn argument(argument: &crate::mcp::PromptArgument) -> ServerPromptArgument {
    ServerPromptArgument {
        name: argument.name.clone(),
        description: argument.description.clone(),
        required: Some(argument.required),
    }
}

fn status(status: Status) -> ToolServerStatus {
    match status {
        Status::Starting => ToolServerStatus::Starting,
        Status::Running => ToolServerStatus::Running,
        Status::Failed => ToolServerStatus::Failed,
        Status::Stopping => ToolServerStatus::Stopping,
        Status::Stopped => ToolServerStatus::Stopped,
        Status::Disabled => ToolServerStatus::Disabled,
        Status::RequiresAuth => ToolServerStatus::RequiresAuth,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::mcp::{PromptArgument, PromptInfo, ResourceInfo, ToolInfo};

    fn server(name: &str, kind: Status) -> ServerStatus {
        ServerStatus {
            name: name.into(),
            status: kind,
            command: Some("npx".into()),
            args: vec!["-y".into()],
            url: None,
            disabled: false,
            has_auth: false,
            instructions: None,
            tools: Vec::new(),
            prompts: Vec::new(),
            resources: Vec::new(),
            problem: Some("not for the wire".into()),
        }
    }

    #[test]
    fn the_whole_shape_is_sent_in_every_state() {
        for (kind, word) in [
            (Status::Starting, "starting"),
            (Status::Running, "running"),
            (Status::Failed, "failed"),
            (Status::Stopping, "stopping"),
            (Status::Stopped, "stopped"),
            (Status::Disabled, "disabled"),
            (Status::RequiresAuth, "requires-auth"),
        ] {
            let sent = serde_json::to_value(updated(server("s", kind), None)).expect("JSON");
            let expected = json!({"type": "mcp", "name": "s", "status": word, "command": "npx", "args": ["-y"],
                "disabled": false, "hasAuth": false, "tools": [], "prompts": [], "resources": []});
            assert_eq!(sent, expected);
        }
        let full = ServerStatus {
            url: Some("https://x".into()),
            instructions: Some("be kind".into()),
            has_auth: true,
            tools: vec![ToolInfo { name: "t".into(), description: "d".into(), parameters: Arc::new(json!({})) }],
            prompts: vec![PromptInfo {
                server: "s".into(),
                name: "p".into(),
                description: None,
                arguments: vec![PromptArgument { name: "a".into(), description: None, required: true }],
            }],
            resources: vec![ResourceInfo {
                server: "s".into(),
                uri: "u".into(),
                name: "r".into(),
                description: None,
                mime_type: Some("text/plain".into()),
            }],
            ..server("s", Status::Running)
        };
        let sent = serde_json::to_value(updated(full, None)).expect("JSON");
        let expected = json!({"type": "mcp", "name": "s", "status": "running", "url": "https://x", "disabled": false,
            "hasAuth": true, "instructions": "be kind",
            "tools": [{"name": "t", "description": "d", "parameters": {}, "disabled": false, "server": {"name": "s"}}],
            "prompts": [{"name": "p", "arguments": [{"name": "a", "required": true}]}],
            "resources": [{"uri": "u", "name": "r", "mimeType": "text/plain"}]});
        assert_eq!(sent, expected);
    }

    #[test]
    fn what_waits_is_bounded_and_the_newest_is_kept() {
        let mut events = VecDeque::new();
        for n in 0..1000 {
            let kind = if n % 2 == 0 { Status::Starting } else { Status::Failed };
            events.push_back(ServerEvent::Updated(Box::new(server(&format!("s{}", n % 3), kind))));
            events.push_back(ServerEvent::Notice { server: "s".into(), level: NoticeLevel::Info, text: n.to_string() });
        }
        events.push_back(ServerEvent::Removed { name: "s0".into() });
        thin_out(&mut events);
        assert_eq!(events.len(), 3 + MOST_MESSAGES);
        assert_eq!(events.back(), Some(&ServerEvent::Removed { name: "s0".into() }));
        let last = events.iter().rev().find_map(|event| match event {
            ServerEvent::Notice { text, .. } => Some(text.as_str()),
            _ => None,
        });
        assert_eq!(last, Some("999"));
    }
}
