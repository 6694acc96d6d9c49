//! The pieces of an answer as they come in: shown, and kept open until they are complete.

use tokio::time::Instant;

use super::super::emitter::Stopped;
use super::super::event::ChatEvent;
use super::super::tool_call::machine::{self, Input};
use super::super::tool_call::{self, OpenCall, ServerCall};
use super::Turn;
use super::open::OpenReason;
use crate::base::ToolCallId;
use crate::llm::{Delta, Part, Replay, ServerTool};
use crate::tool::Arguments;

impl Turn {
    pub(super) async fn on_content(&mut self, delta: Delta) -> Result<(), Stopped> {
        match delta {
            Delta::Reasoning(text) => self.on_reasoning(text).await,
            Delta::ReasoningEnd { replay } => self.end_reason(replay).await,
            Delta::Text(text) => {
                self.end_reason(None).await?;
                self.open.lock().add_text(&text);
                self.emitter.emit(ChatEvent::Text(text)).await
            }
            Delta::ToolCallStart { index, id, name } => {
                let mut call = OpenCall::new(index, &id, &name, &mut self.tools.memory.call_ids());
                call.tool = self.tools.toolbox.find(&name).cloned();
                call.summarize(&Arguments::new());
                call.state = machine::step(call.state, Input::ArgsDelta).0;
                self.end_reason(None).await?;
                self.emitter.emit(call.prepare(String::new())).await?;
                // Open only once the client knows of it: it is closed for nobody else.
                self.open.lock().add_call(call);
                Ok(())
            }
            Delta::ToolCallArguments { index, text } => {
                let event = {
                    let mut open = self.open.lock();
                    open.calls.iter_mut().rfind(|call| call.index == index).map(|call| {
                        call.add_arguments(&text);
                        call.prepare(text)
                    })
                };
                self.emit_all(event).await
            }
            Delta::Citation { title, url } => self.emitter.emit(ChatEvent::Citation { title, url }).await,
            Delta::Image(image) => {
                self.open.lock().parts.push(Part::Image(image.clone()));
                self.emitter.emit(ChatEvent::Image { media_type: image.media_type, base64: image.base64 }).await
            }
            Delta::ToolCallReplay { index, replay } => {
                if let Some(call) = self.open.lock().calls.iter_mut().rfind(|call| call.index == index) {
                    call.replay = Some(replay);
                }
                Ok(())
            }
            Delta::Opaque(replay) => {
                self.open.lock().parts.push(Part::Opaque(replay));
                Ok(())
            }
            Delta::ServerTool(step) => self.on_server_tool(step).await,
            Delta::Started | Delta::Usage(_) | Delta::Stop(_) => Ok(()),
        }
    }

    async fn on_reasoning(&mut self, text: String) -> Result<(), Stopped> {
        let open_id = self.open.lock().reason.as_ref().map(|reason| reason.id.clone());
        let id = match open_id {
            Some(id) => id,
            None => {
                let id = uuid::Uuid::new_v4().to_string();
                self.emitter.emit(ChatEvent::ReasonStarted { id: id.clone() }).await?;
                let reason = OpenReason { id: id.clone(), started: Instant::now(), text: String::new() };
                self.open.lock().reason = Some(reason);
                id
            }
        };
        {
            let mut open = self.open.lock();
            if let Some(reason) = &mut open.reason {
                reason.text.push_str(&text);
            }
        }
        self.emitter.emit(ChatEvent::ReasonText { id, text }).await
    }

    /// Told first and forgotten then: a turn that is stopped in between must find it still open.
    pub(super) async fn end_reason(&self, replay: Option<Replay>) -> Result<(), Stopped> {
        let event = self.open.lock().reason.as_ref().map(OpenReason::finished);
        if let Some(event) = event {
            self.emitter.emit(event).await?;
            self.open.lock().end_reason(replay);
        }
        Ok(())
    }

    /// A tool of the provider: it needs no approval and no result from us, but it is shown.
    async fn on_server_tool(&mut self, step: ServerTool) -> Result<(), Stopped> {
        match step {
            ServerTool::Started { id, name } => {
                self.emitter.emit(ChatEvent::Progress(format!("Running {name}"))).await?;
                self.start_server_call(id, name).await.map(|_| ())
            }
            ServerTool::Finished { id, name, input, output, error } => {
                let known = self.open.lock().server_calls.iter().find(|call| call.provider_id == id).cloned();
                let call = match known {
                    Some(call) => call,
                    None => self.start_server_call(id, name).await?,
                };
                self.emitter.emit(call.finished(input, output, error)).await?;
                self.open.lock().server_calls.retain(|open| open.id != call.id);
                Ok(())
            }
        }
    }

    async fn start_server_call(&mut self, provider_id: String, name: String) -> Result<ServerCall, Stopped> {
        let call = ServerCall { id: self.server_call_id(&provider_id), provider_id, name };
        let [prepare, rest @ ..] = call.started();
        self.emitter.emit(prepare).await?;
        // Open as soon as the client knows of it.
        self.open.lock().server_calls.push(call.clone());
        self.emit_all(rest).await?;
        Ok(call)
    }

    fn server_call_id(&mut self, provider_id: &str) -> ToolCallId {
        tool_call::unused_id(provider_id, &mut self.tools.memory.call_ids())
    }
}
