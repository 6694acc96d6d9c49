//! One question to a model outside of any chat: nothing is stored and no tool runs.
//!
//! For contracts whose requests stand for themselves. Retries are the engine's here too; they end
//! where the caller's deadline would not be met, and with the first words of an answer.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join;
use tokio::time::Instant;

use super::request;
use super::turn::random01;
use crate::base::ModelId;
use crate::config::RetryConfig;
use crate::llm::{Delta, DeltaStream, ErrorClass, LlmError, Message, ModelInfo, Provider, Request, ToolSpec};
use crate::providers::{Guide, Registry, retry};

/// The models, for those who need nothing else of an engine. Clones are the same.
#[derive(Debug, Clone)]
pub struct Models {
    registry: Arc<RwLock<Registry>>,
}

/// What is asked. Neighbours of one role are joined.
#[derive(Debug, Clone)]
pub struct Question {
    pub system: String,
    pub messages: Vec<Message>,
    /// What the model may call; a call is part of the answer, and nobody runs it.
    pub tools: Vec<ToolSpec>,
    /// No retry is begun that would wait beyond it.
    pub deadline: Option<Instant>,
}

/// An answer on its way. Dropping it closes the connection.
pub struct Answer {
    provider: Arc<dyn Provider>,
    request: Request,
    retry: RetryConfig,
    deadline: Option<Instant>,
    stream: Option<DeltaStream>,
    retries: u32,
    /// When the next try is due.
    pause: Option<Instant>,
    /// The caller has seen something of the answer.
    begun: bool,
    over: bool,
}

impl Models {
    pub fn new(registry: Registry) -> Self {
        Self { registry: Arc::new(RwLock::new(registry)) }
    }

    /// Goes on with other providers; what is known of those that stay is kept.
    pub fn replace(&self, registry: Registry) {
        registry.adopt(&self.registry());
        *self.registry.write().unwrap_or_else(PoisonError::into_inner) = registry;
    }

    /// Asks the providers for their models, and the public catalogue for what is known of them.
    pub async fn refresh(&self) {
        let registry = &self.registry();
        join(registry.refresh(), registry.refresh_catalogue()).await;
    }

    /// What is known of the model that answers: the wished one if that means something, else the
    /// default. `None` while there is nothing but the offline guide, which answers no questions.
    pub fn answering(&self, wished: Option<&str>) -> Option<ModelInfo> {
        let registry = self.registry();
        let wished = wished.and_then(|name| registry.resolve(name, None).ok());
        let model = wished.unwrap_or_else(|| registry.default_model());
        let info = || registry.info(&model).unwrap_or_else(|| ModelInfo::named(model.clone()));
        (model.provider() != Guide::ID).then(info)
    }

    /// What is wrong with the name of a model, in words for the user.
    pub fn check(&self, name: &str) -> Result<(), String> {
        self.registry().resolve(name, None).map(drop).map_err(|unknown| unknown.to_string())
    }

    /// Every model but the guide.
    pub fn names(&self) -> Vec<String> {
        let registry = self.registry();
        let models = registry.models();
        models.iter().filter(|model| model.id.provider() != Guide::ID).map(|model| model.id.to_string()).collect()
    }

    /// Asks a model. `None` when its provider is gone.
    pub fn ask(&self, model: &ModelInfo, question: Question) -> Option<Answer> {
        ask(&self.registry(), model, question)
    }

    fn registry(&self) -> Registry {
        self.registry.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Asks a model of `registry`. `None` when its provider is gone.
pub(super) fn ask(registry: &Registry, model: &ModelInfo, question: Question) -> Option<Answer> {
    let provider = registry.provider(model.id.provider())?;
    let request = Request {
        tools: question.tools,
        reasoning: false,
        payload: registry.variant(&model.id, None).into_payload(),
        ..request::assemble(&model.id, &question.system, &question.messages, Some(model))
    };
    let retry = registry.retry(model.id.provider());
    Some(Answer::new(provider, request, retry, question.deadline))
}

impl Answer {
    fn new(provider: Arc<dyn Provider>, request: Request, retry: RetryConfig, deadline: Option<Instant>) -> Self {
        let stream = None;
        Self { provider, request, retry, deadline, stream, retries: 0, pause: None, begun: false, over: false }
    }

    pub fn model(&self) -> &ModelId {
        &self.request.model
    }

    /// The next step of the answer; `None` after its end or its error. Dropping the future loses
    /// nothing.
    pub async fn next(&mut self) -> Option<Result<Delta, LlmError>> {
        while !self.over {
            if let Some(until) = self.pause {
                tokio::time::sleep_until(until).await;
                self.pause = None;
            }
            let stream = self.stream.get_or_insert_with(|| self.provider.stream(self.request.clone()));
            match stream.next().await {
                Some(Ok(delta)) => {
                    self.begun |= is_content(&delta);
                    self.over = matches!(delta, Delta::Stop(_));
                    return Some(Ok(delta));
                }
                Some(Err(error)) => match self.patience_for(&error) {
                    Some(wait) => {
                        self.stream = None;
                        self.retries += 1;
                        self.pause = Some(Instant::now() + wait);
                        tracing::info!(%error, retry = self.retries, "the model is asked again");
                    }
                    None => {
                        self.over = true;
                        return Some(Err(error));
                    }
                },
                None => {
                    self.over = true;
                    return Some(Err(self.cut_short()));
                }
            }
        }
        None
    }

    /// How long to wait before the same is asked again; `None` when it is not.
    fn patience_for(&self, error: &LlmError) -> Option<Duration> {
        if self.begun || self.retries >= retry::max_retries(&self.retry, error) {
            return None;
        }
        let wait = retry::delay(&self.retry, self.retries + 1, error.retry_after, random01())?;
        let in_time = self.deadline.is_none_or(|deadline| Instant::now() + wait < deadline);
        in_time.then_some(wait)
    }

    fn cut_short(&self) -> LlmError {
        LlmError {
            class: ErrorClass::PrematureStop,
            status: None,
            provider: self.provider.id().to_owned(),
            retry_after: None,
            user_text: format!("{} ended the answer before it was complete. Try again.", self.request.model),
        }
    }
}

/// Thoughts are shown to nobody here, so an answer that broke off after them can be asked for again.
fn is_content(delta: &Delta) -> bool {
    matches!(delta, Delta::Text(_) | Delta::ToolCallStart { .. } | Delta::ToolCallArguments { .. } | Delta::Image(_))
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer")
            .field("model", &self.request.model)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use futures_util::stream;

    use super::*;
    use crate::llm::StopReason;

    /// Plays one prepared answer per call.
    #[derive(Debug)]
    struct Played(Mutex<VecDeque<Vec<Result<Delta, LlmError>>>>);

    impl Provider for Played {
        fn id(&self) -> &str {
            "p"
        }

        fn dialect(&self) -> &'static str {
            "played"
        }

        fn stream(&self, _: Request) -> DeltaStream {
            stream::iter(self.0.lock().unwrap().pop_front().unwrap_or_default()).boxed()
        }
    }

    fn failed(class: ErrorClass, retry_after: Option<Duration>) -> Result<Delta, LlmError> {
        Err(LlmError { class, status: None, provider: "p".into(), retry_after, user_text: "no".into() })
    }

    fn text(text: &str) -> Result<Delta, LlmError> {
        Ok(Delta::Text(text.into()))
    }

    fn stop() -> Result<Delta, LlmError> {
        Ok(Delta::Stop(StopReason::EndTurn))
    }

    /// The text of the answer, how it ended, and how many tries were left over.
    async fn heard(
        tries: Vec<Vec<Result<Delta, LlmError>>>,
        seconds: Option<u64>,
    ) -> (String, Option<ErrorClass>, usize) {
        let played = Arc::new(Played(Mutex::new(tries.into())));
        let deadline = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        let request = Request::to(ModelId::new("p", "m"));
        let soon = Duration::from_millis(1);
        let retry = RetryConfig { base_delay: soon, max_delay: soon, ..RetryConfig::default() };
        let mut answer = Answer::new(Arc::clone(&played) as Arc<dyn Provider>, request, retry, deadline);
        let (mut said, mut error) = (String::new(), None);
        while let Some(delta) = answer.next().await {
            match delta {
                Ok(Delta::Text(piece)) => said.push_str(&piece),
                Ok(_) => {}
                Err(found) => error = Some(found.class),
            }
        }
        let left = played.0.lock().unwrap().len();
        (said, error, left)
    }

    #[tokio::test]
    async fn what_fails_before_the_first_word_is_asked_again() {
        let limited = |seconds: Option<u64>| vec![failed(ErrorClass::RateLimited, seconds.map(Duration::from_secs))];
        let thought = vec![Ok(Delta::Started), Ok(Delta::Reasoning("hm".into())), failed(ErrorClass::Network, None)];
        let good = vec![text("a"), text("b"), stop()];
        let all = vec![limited(None), thought, good.clone()];
        assert_eq!(heard(all.clone(), None).await, ("ab".into(), None, 0));
        assert_eq!(heard(all, Some(60)).await, ("ab".into(), None, 0));
        // The wait that was asked for does not fit, or is longer than anybody waits.
        for (asked, deadline) in [(30, Some(20)), (61, None)] {
            let tries = vec![limited(Some(asked)), good.clone()];
            assert_eq!(heard(tries, deadline).await, (String::new(), Some(ErrorClass::RateLimited), 1));
        }
        assert_eq!(heard(vec![vec![failed(ErrorClass::Auth, None)], good.clone()], None).await.2, 1);
        let many = (0..30).map(|_| limited(None)).collect();
        assert_eq!(heard(many, None).await, (String::new(), Some(ErrorClass::RateLimited), 19));
    }

    #[tokio::test]
    async fn what_breaks_off_later_is_the_end() {
        let broken = vec![text("a"), failed(ErrorClass::Network, None)];
        assert_eq!(heard(vec![broken, vec![text("b")]], None).await, ("a".into(), Some(ErrorClass::Network), 1));
        assert_eq!(heard(vec![vec![text("a")]], None).await, ("a".into(), Some(ErrorClass::PrematureStop), 0));
    }
}
