//! `/login` inside a chat: the questions and answers, which are echoed and never kept.

use tokio::sync::oneshot;

use super::super::event::{ChatEvent, ChatStatus};
use super::super::login::{Login, LoginStep, Step};
use super::super::logins::Whom;
use super::super::prompt::{Accepted, AcceptedStatus, Hold, Prompt};
use super::ChatActor;
use crate::base::ContentId;

/// What is shown of a key.
const MASK: &str = "*****";

impl ChatActor {
    /// Takes the prompt if it belongs to a login; gives it back if it is for the model.
    pub(super) async fn take_login(
        &mut self,
        prompt: Prompt,
        reply: oneshot::Sender<Accepted>,
    ) -> Option<(Prompt, oneshot::Sender<Accepted>)> {
        let text = prompt.text.trim();
        let options = self.shared.login_options();
        let (status, shown, step) = match self.login.take() {
            Some(login) => {
                let shown = if login.is_secret() { MASK } else { text };
                (AcceptedStatus::Login, shown, login.answer(text, &options))
            }
            None => match login_command(text) {
                Some(name) => (AcceptedStatus::Prompting, text, Login::start(name, &options)),
                None => return Some((prompt, reply)),
            },
        };
        let status = if matches!(step, Step::Cancelled { .. }) { AcceptedStatus::Idle } else { status };
        self.announce(&prompt).await;
        self.emit(ChatEvent::UserText { text: format!("{shown}\n"), content_id: ContentId::random() }).await;
        let (hold, held) = Hold::new();
        let accepted =
            Accepted { chat: self.id.clone(), model: String::new(), status, message: "Logging in.".into(), hold };
        let _ = reply.send(accepted);
        held.released().await;
        self.take_step(step).await;
        self.emit(ChatEvent::Finished).await;
        None
    }

    async fn take_step(&mut self, step: Step) {
        let (text, status) = match step {
            Step::Ask { login, text } => {
                self.login = Some(login);
                (text, ChatStatus::Login)
            }
            Step::Cancelled { text, waited_for } => {
                if let Some(provider) = waited_for {
                    self.shared.waiting_logins.cancel(&provider).await;
                }
                (text, ChatStatus::Idle)
            }
            Step::Begin { provider, method } => {
                let begun = self.shared.begin_login(&provider, method, Whom::Chat(self.id.clone())).await;
                match begun {
                    Ok(step) => {
                        self.login = Some(match step {
                            LoginStep::EnterKey => Login::EnteringKey { provider },
                            LoginStep::Open { .. } | LoginStep::TypeCode { .. } => Login::Waiting { provider },
                        });
                        (step.text(), ChatStatus::Login)
                    }
                    Err(error) => (error.to_string(), ChatStatus::Idle),
                }
            }
            Step::Pasted { provider, text } => match self.shared.paste_login(&provider, &text).await {
                Ok(note) => (note, ChatStatus::Idle),
                // What was pasted was nothing, and the page is still open.
                Err(error) if self.shared.waiting_logins.has(&provider) => {
                    self.login = Some(Login::Waiting { provider });
                    (format!("{error} Try again, or `cancel`:"), ChatStatus::Login)
                }
                Err(error) => (error.to_string(), ChatStatus::Idle),
            },
            Step::Finish { provider, key } => match self.shared.log_in(&provider, Some(key)).await {
                Ok(note) => (note, ChatStatus::Idle),
                Err(error) => (error.to_string(), ChatStatus::Idle),
            },
        };
        self.emit(ChatEvent::SystemText(format!("\n{text}"))).await;
        self.emit_status(status).await;
    }
}

impl ChatActor {
    /// A login that this chat waited for is over.
    pub(super) async fn on_login_over(&mut self, provider: &str, text: &str) {
        let waits = matches!(&self.login, Some(Login::Waiting { provider: waited_for }) if waited_for == provider);
        if waits {
            self.login = None;
            self.emit(ChatEvent::SystemText(format!("\n{text}"))).await;
            self.emit_status(ChatStatus::Idle).await;
            self.emit(ChatEvent::Finished).await;
        }
    }
}

/// The provider named by a `/login` command; empty when none is.
fn login_command(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("/login")?;
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then_some(rest.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_command_itself_logs_in() {
        assert_eq!(login_command("/login"), Some(""));
        assert_eq!(login_command("/login  openai"), Some("openai"));
        assert_eq!(login_command("/loginx"), None);
        assert_eq!(login_command("how do I /login"), None);
    }
}
