//! What the user says to a turn that runs: yes or no to a tool call, or a word on the way.

use custom_methods::chat::{
    ChatPromptSteerParams, ChatPromptSteerRemoveParams, ChatToolCallApproveParams, ChatToolCallRejectParams,
    ToolCallApproveSave,
};
use custom_methods::methods::{ChatPromptSteer, ChatPromptSteerRemove, ChatToolCallApprove, ChatToolCallReject};

use super::super::service::{EcaServer, Take};
use crate::base::{ChatId, ToolCallId};
use crate::engine::Decision;

impl Take<ChatToolCallApprove> for EcaServer {
    fn take(&self, params: ChatToolCallApproveParams) {
        let remember = params.save == Some(ToolCallApproveSave::Session);
        self.decide(&params.chat_id, &params.tool_call_id, Decision::Approve { remember });
    }
}

impl Take<ChatToolCallReject> for EcaServer {
    fn take(&self, params: ChatToolCallRejectParams) {
        self.decide(&params.chat_id, &params.tool_call_id, Decision::Reject);
    }
}

impl Take<ChatPromptSteer> for EcaServer {
    fn take(&self, params: ChatPromptSteerParams) {
        if let Ok(engine) = self.engine() {
            engine.steer(&ChatId::new(params.chat_id.0), &params.message);
        }
    }
}

impl Take<ChatPromptSteerRemove> for EcaServer {
    fn take(&self, params: ChatPromptSteerRemoveParams) {
        if let Ok(engine) = self.engine() {
            engine.steer_remove(&ChatId::new(params.chat_id.0));
        }
    }
}

impl EcaServer {
    fn decide(&self, chat: &custom_methods::ChatId, call: &custom_methods::ToolCallId, decision: Decision) {
        if let Ok(engine) = self.engine() {
            engine.decide(&ChatId::new(chat.0.as_str()), &ToolCallId::new(call.0.as_str()), decision);
        }
    }
}
