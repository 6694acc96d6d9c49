//! What the tests of this module share: calls that are watched, and users that answer.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::host::{Capabilities, Host, HostError, Question, Reply};
use crate::tool::{Details, Journal, LiveOutput, PlannedChange, SeenFiles, ToolContext};

/// Remembers what it was shown and asked, and answers from a list.
#[derive(Debug, Default)]
pub(super) struct Watched {
    progress: Mutex<Vec<String>>,
    pub(super) questions: Mutex<Vec<Question>>,
    pub(super) answers: Mutex<VecDeque<Reply>>,
}

impl Watched {
    pub(super) fn progress(&self) -> Vec<String> {
        self.progress.lock().unwrap().clone()
    }

    pub(super) fn will_answer(&self, answers: &[&str]) {
        self.answers.lock().unwrap().extend(answers.iter().map(|answer| Reply::Answer((*answer).to_owned())));
    }
}

impl LiveOutput for Watched {
    fn output(&self, _: &str) {}
    fn progress(&self, text: &str) {
        self.progress.lock().unwrap().push(text.to_owned());
    }
    fn details(&self, _: Details) {}
}

impl Host for Watched {
    fn capabilities(&self) -> Capabilities {
        Capabilities { ask: true, ..Capabilities::default() }
    }

    fn ask(&self, question: Question) -> BoxFuture<'_, Result<Reply, HostError>> {
        self.questions.lock().unwrap().push(question);
        let answer = self.answers.lock().unwrap().pop_front();
        Box::pin(async move {
            match answer {
                Some(answer) => Ok(answer),
                None => std::future::pending().await,
            }
        })
    }
}

struct NoJournal;

impl Journal for NoJournal {
    fn before_change(&self, _: PlannedChange) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// A call's surroundings, and who watches it.
pub(super) fn context() -> (ToolContext, Arc<Watched>) {
    let watched = Arc::new(Watched::default());
    let context = ToolContext {
        chat: "chat".into(),
        call: "call".into(),
        agent: "code".to_owned(),
        workspace: Arc::default(),
        stop: CancellationToken::new(),
        host: watched.clone(),
        seen: Arc::<SeenFiles>::default(),
        journal: Arc::new(NoJournal),
        live: watched.clone(),
        settings: Arc::default(),
        sees_images: true,
        prepared: crate::tool::Prepared::default(),
    };
    (context, watched)
}
