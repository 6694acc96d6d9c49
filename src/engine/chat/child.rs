//! A chat that works for another one: it gets one task, and ends with it.

use super::super::prompt::Prompt;
use super::super::subagent::{Report, Task};
use super::super::turn::TurnEnd;
use super::ChatActor;
use crate::llm::{Part, Role};

impl ChatActor {
    pub(super) async fn on_task(&mut self, task: Task) {
        let Task { prompt, report } = task;
        self.report = Some(report);
        if let Err(problem) = self.begin_task(&prompt).await {
            self.ended = TurnEnd::Failed(problem);
        }
    }

    async fn begin_task(&mut self, prompt: &Prompt) -> Result<(), String> {
        let agent = prompt.agent.as_deref().unwrap_or_default();
        let (model, provider) = self.choose_model(prompt.model.as_deref().unwrap_or_default(), agent)?;
        self.model = Some(model.clone());
        self.announce(prompt).await;
        let notes = self.record_prompt(prompt, None, Some(&model)).await;
        if !self.hooks_before_turn(prompt, &model, false).await {
            return Err("a hook of the user does not want this task done".to_owned());
        }
        self.start_turn(prompt, model, provider, notes, None, None).await;
        Ok(())
    }

    /// Tells whoever waits for the task that it is over. The chat is over then, too: what it did is
    /// in the store, and nobody can talk to it.
    pub(super) async fn has_reported(&mut self) -> bool {
        if self.running.is_some() {
            return false;
        }
        let Some(report) = self.report.take() else { return false };
        let _ = self.shared.store.release(&self.id).await;
        self.shared.chats.remove(&self.id);
        let _ = report.send(Report { end: self.ended.clone(), text: self.last_answer() });
        true
    }

    /// The last words of the model, without what it said to itself or to tools.
    pub(super) fn last_answer(&self) -> String {
        let words = |part: &Part| match part {
            Part::Text(text) if !text.trim().is_empty() => Some(text.clone()),
            _ => None,
        };
        let answers = self.history.iter().rev().filter(|message| message.role == Role::Assistant);
        let mut texts = answers.map(|message| message.parts.iter().filter_map(words).collect::<Vec<_>>());
        texts.find(|texts| !texts.is_empty()).unwrap_or_default().join("\n")
    }
}
