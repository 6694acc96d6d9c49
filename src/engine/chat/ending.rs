//! How a turn ends: by itself, stopped, or broken; and what is kept of it then.

use std::sync::PoisonError;

use super::super::event::{ChatEvent, ChatStatus, Ending};
use super::super::request;
use super::super::tool_call::{OpenCall, machine};
use super::super::tools::task::{self, TaskList};
use super::super::turn::{OpenState, TurnEnd};
use super::{ChatActor, STOP_GRACE, TASKS};
use crate::llm::{Message, Part, Role};
use crate::store::Claim;

impl ChatActor {
    /// The turn ended by itself.
    pub(super) async fn on_turn_over(&mut self) {
        let Some(running) = self.running.take() else { return };
        self.keep_tasks().await;
        self.count_spent().await;
        match running.task.await {
            Ok(TurnEnd::Stopped) => return self.emit_stopped(&running.open).await,
            Ok(end) => {
                if self.follow_up().await {
                    return;
                }
                self.ended = end;
            }
            Err(error) => {
                tracing::error!(chat = %self.id, %error, "a turn broke");
                let closed = running.open.close();
                self.keep_results(closed.results).await;
                for event in closed.events {
                    self.emit(event).await;
                }
                let text = "\n\nSomething went wrong inside the server; its log has the details. The chat goes on.";
                self.ended = TurnEnd::Failed(text.to_owned());
                self.emit(ChatEvent::Failed(text.into())).await;
            }
        }
        self.emit_status(ChatStatus::Idle).await;
        self.emit(ChatEvent::Finished).await;
    }

    /// Two servers that continue one chat would answer past each other. Why this one must not, if
    /// another one works on the chat.
    pub(super) async fn claim(&self) -> Option<String> {
        match self.shared.store.claim(&self.id).await {
            Ok(Claim::Ours) => None,
            Ok(Claim::HeldBy(holder)) => Some(format!(
                "Another ECA server (process {}) is working on this chat, so it can only be read here. `/fork` goes on \
                 in a copy.",
                holder.pid
            )),
            // A history that cannot be kept is told elsewhere, and stops no chat.
            Err(_) => None,
        }
    }

    /// The task list outlives the server.
    async fn keep_tasks(&self) {
        let tasks = self.memory.tasks.lock().unwrap_or_else(PoisonError::into_inner).to_json();
        if let Err(error) = self.shared.store.set_state(&self.id, TASKS, Some(&tasks)).await {
            self.shared.warn_about_store(&error).await;
        }
    }

    /// A list on which everything is done makes room when the user says something new.
    pub(super) async fn clear_done_tasks(&mut self) {
        let done = {
            let mut tasks = self.memory.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            let done = tasks.is_all_done();
            if done {
                *tasks = TaskList::default();
            }
            done
        };
        if done {
            self.keep_tasks().await;
            self.emit(task::cleared()).await;
        }
    }

    /// Ends the running turn, if there is one, and everything it left open.
    pub(super) async fn close_turn(&mut self) {
        let Some(mut running) = self.running.take() else { return };
        running.stop.cancel();
        let grace = tokio::time::sleep(STOP_GRACE);
        tokio::pin!(grace);
        // What the turn hands over while it ends is kept.
        loop {
            let event = tokio::select! {
                event = running.events.recv() => event,
                () = &mut grace => {
                    running.task.abort();
                    None
                }
            };
            match event {
                Some(event) => self.on_turn_event(event).await,
                None => break,
            }
        }
        match running.task.await {
            Ok(TurnEnd::Stopped) | Err(_) => self.emit_stopped(&running.open).await,
            // It ended by itself in the very moment it was stopped.
            Ok(end) => {
                self.ended = end;
                self.emit_status(ChatStatus::Idle).await;
                self.emit(ChatEvent::Finished).await;
            }
        }
    }

    async fn emit_stopped(&mut self, open: &OpenState) {
        self.ended = TurnEnd::Stopped;
        self.count_spent().await;
        let closed = open.close();
        self.keep_results(closed.results).await;
        self.keep(request::stopped_answer(closed.parts)).await;
        self.emit(ChatEvent::Ending(Ending::Stopped)).await;
        self.emit(ChatEvent::SystemText("\n\nStopped.".into())).await;
        for event in closed.events {
            self.emit(event).await;
        }
        self.emit_status(ChatStatus::Stopping).await;
        self.emit_status(ChatStatus::Idle).await;
        self.emit(ChatEvent::Finished).await;
    }

    /// The history has these calls already; each gets what really became of it.
    async fn keep_results(&mut self, results: Vec<(OpenCall, Part)>) {
        for (call, part) in results {
            let extra = call.to_replay(machine::Result::Rejected(machine::Why::Stopped));
            self.keep_with(Message { role: Role::User, parts: vec![part] }, extra).await;
        }
    }
}
