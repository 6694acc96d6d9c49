//! Help beside the chats: a selected text is rewritten, or continued at the cursor. Nothing is
//! stored and no tool is offered.

mod shape;

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::ask::{self, Answer, Question};
use super::{Engine, Settings, Shared, request};
use crate::approval;
use crate::base::ModelId;
use crate::base::task;
use crate::base::text::file_name;
use crate::customization::prompt::{self, Selection};
use crate::llm::{Delta, LlmError, ModelInfo};
use crate::providers::Guide;

/// How long the configuration may be incomplete before it is used as it is.
const SETTINGS_WAIT: Duration = Duration::from_secs(10);
/// Somebody is waiting with a finger on the keyboard.
const COMPLETION_LIMIT: Duration = Duration::from_secs(30);
const REWRITE_LIMIT: Duration = Duration::from_secs(600);
/// More than this is no proposal.
const MAX_COMPLETION_BYTES: usize = 16 * 1024;
/// More than this is no selection's new text.
const MAX_REWRITE_BYTES: usize = 4 * 1024 * 1024;
/// A larger file is not shown to the model.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// How much of a file a model is shown.
const MAX_SHOWN_BYTES: usize = 512 * 1024;

/// What is to be rewritten, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RewriteOrder {
    pub text: String,
    pub wish: String,
    /// The file it stands in.
    pub path: Option<PathBuf>,
    /// The file's text in the editor, if that is another one than on the disk.
    pub unsaved: Option<String>,
    /// Its lines in the file, from 1 on.
    pub lines: Option<RangeInclusive<u32>>,
    /// What the user chats with, for when the configuration names no model.
    pub model: Option<ModelId>,
}

/// What happens in a rewrite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RewriteStep {
    /// The model thinks. Said once.
    Thinking,
    /// More of the new text.
    Text(String),
    /// The whole new text instead of the pieces so far.
    Replace(String),
}

/// A rewrite on its way. Dropping it ends it.
#[derive(Debug)]
pub struct Rewriting {
    answer: Answer,
    selection: String,
    said: String,
    thinking: bool,
    until: Instant,
    over: bool,
}

/// A text and the cursor in it: line from 1, column from 1 in UTF-16 units.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompletionOrder {
    pub text: String,
    pub line: u32,
    pub column: u32,
    pub path: Option<String>,
    pub model: Option<ModelId>,
}

/// Why there is no help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AssistError {
    #[error("no model is configured yet; a chat tells how to connect one")]
    NoModel,
    #[error("{0}")]
    UnknownModel(String),
    #[error("there is nothing selected")]
    NothingSelected,
    #[error("{0} may hold keys, so no model is shown it")]
    KeyFile(String),
    #[error("the model did not answer in time")]
    Timeout,
    #[error("{0}")]
    Failed(String),
}

impl From<LlmError> for AssistError {
    fn from(error: LlmError) -> Self {
        Self::Failed(error.user_text)
    }
}

impl Engine {
    /// Asks for another text in place of a selected one.
    pub async fn rewrite(&self, order: RewriteOrder) -> Result<Rewriting, AssistError> {
        if order.text.is_empty() {
            return Err(AssistError::NothingSelected);
        }
        let settings = self.shared.complete_settings().await;
        let config = settings.config();
        let model = model(&settings, config.assist.rewrite_model.as_deref(), order.model.as_ref())?;
        let file = match (order.unsaved, &order.path) {
            // The user selected a part of it, not all.
            (_, Some(path)) if approval::is_key_file(path) => None,
            (None, Some(path)) => read(path.clone()).await,
            (unsaved, _) => unsaved,
        };
        let shown = file.as_deref().map(|file| {
            let most = config.assist.full_file_max_lines;
            shape::around(file, order.lines.as_ref(), most, MAX_SHOWN_BYTES)
        });
        let path = order.path.as_deref().map(Path::to_string_lossy).unwrap_or_default();
        let range = order.lines.as_ref().map(|lines| format!("{}-{}", lines.start(), lines.end())).unwrap_or_default();
        let selection = Selection { text: &order.text, path: &path, range: &range, file: shown.unwrap_or_default() };
        let until = Instant::now() + REWRITE_LIMIT;
        let question = Question {
            system: prompt::rewrite(&config.prompts, selection),
            messages: vec![request::user_text(&order.wish)],
            tools: Vec::new(),
            deadline: Some(until),
        };
        let answer = ask::ask(&settings.registry, &model, question).ok_or(AssistError::NoModel)?;
        Ok(Rewriting { answer, selection: order.text, said: String::new(), thinking: false, until, over: false })
    }

    /// How a text may go on at the cursor; `None` when the model has nothing to propose. Files that may hold
    /// keys are not shown to it: nobody means to send them by typing.
    pub async fn complete(&self, order: CompletionOrder) -> Result<Option<String>, AssistError> {
        if let Some(path) = order.path.as_deref().map(Path::new).filter(|path| approval::is_key_file(path)) {
            return Err(AssistError::KeyFile(file_name(path)));
        }
        let settings = self.shared.complete_settings().await;
        let config = settings.config();
        let model = model(&settings, config.assist.completion_model.as_deref(), order.model.as_ref())?;
        let at = shape::offset(&order.text, order.line, order.column);
        let (before, after) = order.text.split_at(at);
        let until = Instant::now() + COMPLETION_LIMIT;
        let question = Question {
            system: prompt::completion(&config.prompts).to_owned(),
            messages: vec![request::user_text(&shape::marked(before, after, order.path.as_deref()))],
            tools: Vec::new(),
            deadline: Some(until),
        };
        let mut answer = ask::ask(&settings.registry, &model, question).ok_or(AssistError::NoModel)?;
        let mut said = String::new();
        while let Some(delta) = timeout_at(until, answer.next()).await.map_err(|_| AssistError::Timeout)? {
            if let Delta::Text(text) = delta? {
                said.push_str(&text);
            }
            if said.len() > MAX_COMPLETION_BYTES {
                break;
            }
        }
        Ok(shape::proposal(&said, before, after))
    }
}

impl Rewriting {
    pub fn model(&self) -> &ModelId {
        self.answer.model()
    }

    /// The next step; `None` after the last one, or after an error.
    pub async fn next(&mut self) -> Option<Result<RewriteStep, AssistError>> {
        while !self.over {
            let step = match timeout_at(self.until, self.answer.next()).await {
                Err(_) => Err(AssistError::Timeout),
                Ok(Some(Err(error))) => Err(error.into()),
                Ok(Some(Ok(Delta::Text(text)))) => {
                    self.said.push_str(&text);
                    if self.said.len() > MAX_REWRITE_BYTES {
                        Err(AssistError::Failed("the model's answer is too long for a rewrite".to_owned()))
                    } else {
                        Ok(RewriteStep::Text(text))
                    }
                }
                Ok(Some(Ok(Delta::Reasoning(_)))) if !self.thinking => {
                    self.thinking = true;
                    Ok(RewriteStep::Thinking)
                }
                Ok(Some(Ok(_))) => continue,
                Ok(None) => {
                    self.over = true;
                    return self.rest();
                }
            };
            self.over = step.is_err();
            return Some(step);
        }
        None
    }

    /// What is still to be said when the model has said everything.
    fn rest(&self) -> Option<Result<RewriteStep, AssistError>> {
        if self.said.trim().is_empty() {
            return Some(Err(AssistError::Failed("the model answered with nothing".to_owned())));
        }
        let fitted = shape::fitted(&self.said, &self.selection);
        match fitted.strip_prefix(self.said.as_str()) {
            Some("") => None,
            Some(more) => Some(Ok(RewriteStep::Text(more.to_owned()))),
            None => Some(Ok(RewriteStep::Replace(fitted))),
        }
    }
}

impl Shared {
    /// The settings, after a bounded wait for what of them is on its way.
    async fn complete_settings(&self) -> std::sync::Arc<Settings> {
        let mut holds = self.holds.subscribe();
        let _ = tokio::time::timeout(SETTINGS_WAIT, holds.wait_for(|holds| *holds == 0)).await;
        self.settings()
    }
}

/// A file's text. `None` when it cannot be shown; the selection must do then.
async fn read(path: PathBuf) -> Option<String> {
    let read = move || {
        if !path.is_absolute() {
            return None;
        }
        let found = std::fs::metadata(&path).ok()?;
        let readable = found.is_file() && found.len() <= MAX_FILE_BYTES;
        readable.then(|| std::fs::read(&path).ok()).flatten().and_then(|bytes| String::from_utf8(bytes).ok())
    };
    task::blocking(read).await.ok().flatten()
}

/// The configured model, else the one the user chats with, else the default.
fn model(settings: &Settings, configured: Option<&str>, current: Option<&ModelId>) -> Result<ModelInfo, AssistError> {
    let registry = &settings.registry;
    let id = match (configured, current) {
        (Some(name), current) => {
            registry.resolve(name, current).map_err(|unknown| AssistError::UnknownModel(unknown.to_string()))?
        }
        (None, Some(current)) if registry.provider(current.provider()).is_some() => current.clone(),
        (None, _) => registry.default_model(),
    };
    if id.provider() == Guide::ID {
        return Err(AssistError::NoModel);
    }
    Ok(registry.info(&id).unwrap_or_else(|| ModelInfo::named(id)))
}
