//! What happens, as hooks are told about it.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::outcome::HookOutcome;
use super::{ChatFacts, Setting};
use crate::base::{ChatId, ToolCallId};
use crate::config::{HookType, Ruling};
use crate::tool::NATIVE_SERVER;

/// One thing that happens.
#[derive(Debug, Clone, PartialEq)]
pub enum HookEvent {
    SessionStart,
    SessionEnd,
    ChatStart {
        resumed: bool,
    },
    ChatEnd,
    ChatStatusChanged(ChatStatus),
    SubagentStart {
        parent: ChatId,
    },
    PreRequest {
        prompt: String,
        /// Whether hooks may put another prompt in its place: not for commands.
        replaceable: bool,
    },
    PostRequest {
        response: String,
        /// Whether this turn was itself started by a hook.
        follow_up_active: bool,
        parent: Option<ChatId>,
    },
    SubagentPostRequest {
        response: String,
        follow_up_active: bool,
        parent: ChatId,
    },
    PreToolCall {
        call: HookedCall,
        /// What would be done without hooks.
        approval: Ruling,
    },
    PostToolCall {
        call: HookedCall,
        response: String,
        error: bool,
    },
    PreCompact {
        trigger: CompactTrigger,
        custom_instructions: String,
    },
    PostCompact {
        trigger: CompactTrigger,
        summary: String,
    },
}

/// The tool call that a hook is about.
#[derive(Debug, Clone, PartialEq)]
pub struct HookedCall {
    pub call: ToolCallId,
    pub server: String,
    /// Without the server's name.
    pub tool: String,
    pub input: Map<String, Value>,
}

impl HookedCall {
    pub(super) fn full_name(&self) -> String {
        format!("{}__{}", self.server, self.tool)
    }

    /// Whether `selector` names the tool or its server.
    pub(super) fn is_selected_by(&self, selector: &str) -> bool {
        selector == self.full_name() || selector == self.server || self.server == NATIVE_SERVER && selector == self.tool
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChatStatus {
    pub status: String,
    pub awaiting_user_input: bool,
    pub pending_approvals: Vec<ToolCallId>,
    pub pending_questions: Vec<ToolCallId>,
    pub running: Vec<ToolCallId>,
    pub waiting_reason: Option<String>,
    pub parent: Option<ChatId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactTrigger {
    Manual,
    Auto,
}

impl CompactTrigger {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Auto => "auto",
        }
    }
}

impl HookEvent {
    pub fn kind(&self) -> HookType {
        match self {
            Self::SessionStart => HookType::SessionStart,
            Self::SessionEnd => HookType::SessionEnd,
            Self::ChatStart { .. } => HookType::ChatStart,
            Self::ChatEnd => HookType::ChatEnd,
            Self::ChatStatusChanged(_) => HookType::ChatStatusChanged,
            Self::SubagentStart { .. } => HookType::SubagentStart,
            Self::PreRequest { .. } => HookType::PreRequest,
            Self::PostRequest { .. } => HookType::PostRequest,
            Self::SubagentPostRequest { .. } => HookType::SubagentPostRequest,
            Self::PreToolCall { .. } => HookType::PreToolCall,
            Self::PostToolCall { .. } => HookType::PostToolCall,
            Self::PreCompact { .. } => HookType::PreCompact,
            Self::PostCompact { .. } => HookType::PostCompact,
        }
    }

    pub(super) fn call(&self) -> Option<&HookedCall> {
        match self {
            Self::PreToolCall { call, .. } | Self::PostToolCall { call, .. } => Some(call),
            _ => None,
        }
    }

    pub(super) fn trigger(&self) -> Option<CompactTrigger> {
        match self {
            Self::PreCompact { trigger, .. } | Self::PostCompact { trigger, .. } => Some(*trigger),
            _ => None,
        }
    }

    /// Whether it is about a call that failed, which most hooks do not want to hear of.
    pub(super) fn is_failure(&self) -> bool {
        matches!(self, Self::PostToolCall { error: true, .. })
    }

    /// Takes out of an answer what cannot be done here.
    pub(super) fn restrict(&self, outcome: &mut HookOutcome) {
        if matches!(self, Self::PreRequest { replaceable: false, .. }) {
            outcome.replaced_prompt = None;
        }
    }

    /// Takes up what a hook changed, for the next one.
    pub(super) fn absorb(&mut self, outcome: &HookOutcome) {
        match self {
            Self::PreRequest { prompt, .. } => {
                if let Some(replaced) = &outcome.replaced_prompt {
                    prompt.clone_from(replaced);
                }
            }
            Self::PreToolCall { call, approval } => {
                call.input.extend(outcome.updated_input.clone());
                *approval = stricter(*approval, outcome.approval.unwrap_or(Ruling::Allow));
            }
            Self::PostToolCall { response, .. } => {
                if let Some(replaced) = &outcome.replaced_output {
                    response.clone_from(replaced);
                }
            }
            _ => {}
        }
    }

    /// What the program reads: one JSON object.
    pub(super) fn input(&self, hook: &str, setting: &Setting, chat: Option<&ChatFacts>) -> Vec<u8> {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let workspaces: Vec<String> = setting.workspaces.iter().map(|root| path(root)).collect();
        let mut input = json!({
            "hook_name": hook,
            "hook_type": self.kind().name(),
            "cwd": workspaces.first(),
            "workspaces": workspaces,
            "db_cache_path": path(&setting.db_cache_path),
            "session_id": setting.session_id,
            "eca_executable": setting.eca_executable,
        });
        let chat = chat.map(|chat| {
            json!({
                "chat_id": chat.chat.as_str(),
                "agent": chat.agent,
                "behavior": chat.agent,
                "full_model": chat.model,
                "variant": chat.variant,
            })
        });
        for more in [chat, Some(self.facts())] {
            if let (Value::Object(input), Some(Value::Object(more))) = (&mut input, more) {
                input.extend(more);
            }
        }
        input.to_string().into_bytes()
    }

    /// What only this kind of hook is told.
    fn facts(&self) -> Value {
        let ids = |ids: &[ToolCallId]| ids.iter().map(|id| id.as_str().to_owned()).collect::<Vec<_>>();
        match self {
            Self::SessionStart | Self::SessionEnd | Self::ChatEnd => json!({}),
            Self::ChatStart { resumed } => json!({"resumed": resumed}),
            Self::ChatStatusChanged(status) => {
                let mut facts = json!({
                    "status": status.status,
                    "awaiting_user_input": status.awaiting_user_input,
                    "pending_approval_tool_call_ids": ids(&status.pending_approvals),
                    "pending_question_tool_call_ids": ids(&status.pending_questions),
                    "running_tool_call_ids": ids(&status.running),
                });
                if let Some(reason) = &status.waiting_reason {
                    facts["waiting_reason"] = json!(reason);
                }
                if let Some(parent) = &status.parent {
                    facts["parent_chat_id"] = json!(parent.as_str());
                }
                facts
            }
            Self::SubagentStart { parent } => json!({"parent_chat_id": parent.as_str()}),
            Self::PreRequest { prompt, .. } => json!({"prompt": prompt}),
            Self::PostRequest { response, follow_up_active, parent } => {
                let mut facts = json!({"response": response, "follow_up_active": follow_up_active});
                if let Some(parent) = parent {
                    facts["parent_chat_id"] = json!(parent.as_str());
                }
                facts
            }
            Self::SubagentPostRequest { response, follow_up_active, parent } => json!({
                "response": response, "follow_up_active": follow_up_active, "parent_chat_id": parent.as_str(),
            }),
            Self::PreToolCall { call, approval } => {
                let mut facts = about(call);
                facts["approval"] = json!(word(*approval));
                facts
            }
            Self::PostToolCall { call, response, error } => {
                let mut facts = about(call);
                facts["tool_response"] = json!(response);
                facts["error"] = json!(error);
                facts
            }
            Self::PreCompact { trigger, custom_instructions } => {
                json!({"triggered": trigger.name(), "custom_instructions": custom_instructions})
            }
            Self::PostCompact { trigger, summary } => {
                json!({"triggered": trigger.name(), "compact_summary": summary})
            }
        }
    }
}

fn about(call: &HookedCall) -> Value {
    json!({
        "tool_name": call.tool, "server": call.server, "tool_input": call.input, "tool_call_id": call.call.as_str(),
    })
}

/// As hooks read and write it.
pub(super) fn word(ruling: Ruling) -> &'static str {
    match ruling {
        Ruling::Allow => "allow",
        Ruling::Ask => "ask",
        Ruling::Deny => "deny",
    }
}

/// Nobody can loosen what another has said.
pub(super) fn stricter(a: Ruling, b: Ruling) -> Ruling {
    match (a, b) {
        (Ruling::Deny, _) | (_, Ruling::Deny) => Ruling::Deny,
        (Ruling::Ask, _) | (_, Ruling::Ask) => Ruling::Ask,
        _ => Ruling::Allow,
    }
}
