//! Commands that are answered here and not by a model. What they say is shown and not kept.

use std::path::{Path, PathBuf};

use tokio::sync::oneshot;

use super::super::commands::{self, Native};
use super::super::doctor;
use super::super::event::{ChatEvent, ChatStatus};
use super::super::prompt::{Accepted, AcceptedStatus, Hold, Prompt};
use super::ChatActor;
use crate::base::task;
use crate::base::{ContentId, text, time};
use crate::config::show::show;
use crate::store::{ListQuery, PageQuery, SearchQuery};

/// How many chats and search results are listed.
const LISTED: usize = 20;

/// What a typed line asks for.
pub(super) enum Typed {
    /// Not one of our commands.
    ForModel,
    /// Summarise, with these wishes.
    Compact(String),
    /// This instead of what was typed.
    Expanded(String),
    Local(Native, String),
    /// It is a command of the user's that cannot be used so.
    Problem(String),
}

impl ChatActor {
    pub(super) async fn read_command(&mut self, prompt: &Prompt) -> Typed {
        let Some((name, rest)) = commands::split(&prompt.text) else { return Typed::ForModel };
        match commands::native(name) {
            Some(Native::Compact) if !self.history.is_empty() => Typed::Compact(rest.to_owned()),
            Some(Native::Init) => Typed::Expanded(self.init_prompt(prompt)),
            Some(Native::SkillCreate) => match self.skill_prompt(prompt, rest) {
                Ok(text) => Typed::Expanded(text),
                Err(problem) => Typed::Problem(problem),
            },
            // Taken before it gets here.
            Some(Native::Login) => Typed::ForModel,
            Some(native) => Typed::Local(native, rest.to_owned()),
            None => self.expand_command(name, rest, prompt).await,
        }
    }

    /// Answers a command: echo, response, what there is to say, end.
    pub(super) async fn run_local(
        &mut self,
        prompt: &Prompt,
        native: Native,
        rest: &str,
        reply: oneshot::Sender<Accepted>,
    ) {
        self.accept_command(prompt, reply).await;
        let said = match self.carry_out(native, rest, prompt).await {
            Ok(said) => said,
            Err(problem) => problem,
        };
        self.end_command(&said).await;
    }

    /// Says why a command of the user's cannot be used.
    pub(super) async fn refuse_command(&mut self, prompt: &Prompt, problem: &str, reply: oneshot::Sender<Accepted>) {
        self.accept_command(prompt, reply).await;
        self.end_command(problem).await;
    }

    async fn accept_command(&mut self, prompt: &Prompt, reply: oneshot::Sender<Accepted>) {
        self.announce(prompt).await;
        let echo = format!("{}\n", prompt.text.trim());
        self.emit(ChatEvent::UserText { text: echo, content_id: ContentId::random() }).await;
        let (hold, held) = Hold::new();
        let model = self.model.as_ref().map(ToString::to_string).unwrap_or_default();
        let (status, message) = (AcceptedStatus::Prompting, format!("Running {}.", prompt.text.trim()));
        let _ = reply.send(Accepted { chat: self.id.clone(), model, status, message, hold });
        held.released().await;
    }

    async fn end_command(&mut self, said: &str) {
        if !said.is_empty() {
            self.emit(ChatEvent::SystemText(format!("\n{said}\n"))).await;
        }
        self.emit_status(ChatStatus::Idle).await;
        self.emit(ChatEvent::Finished).await;
    }

    async fn carry_out(&mut self, native: Native, rest: &str, prompt: &Prompt) -> Result<String, String> {
        match native {
            Native::Compact => Ok("There is nothing to compact yet.".to_owned()),
            Native::Init | Native::SkillCreate | Native::Login => Ok(String::new()),
            Native::Model => self.choose_by_command(rest),
            Native::Resume => self.resume(rest, prompt).await,
            Native::Search => self.search(rest, prompt).await,
            Native::Fork => self.fork_here().await,
            Native::Costs => Ok(self.costs()),
            Native::Context => Ok(self.context_window(prompt).await),
            Native::Export => self.export(rest).await,
            Native::Import => self.import(rest, prompt).await,
            Native::Config => Ok(format!("```jsonc\n{}\n```", show(&self.shared.settings().loaded))),
            Native::Doctor => Ok(doctor::report(&self.shared, &prompt.workspace).await),
            Native::Rules => Ok(self.list_rules(prompt).await),
            Native::Skills => Ok(self.list_skills(prompt).await),
            Native::Hooks => Ok(self.list_hooks()),
            Native::Subagents => Ok(self.list_subagents(prompt)),
            Native::PromptShow => Ok(self.show_prompt(prompt).await),
            Native::SyncSystemPrompt => {
                self.pinned = None;
                Ok("The next answer sees the rules, skills and AGENTS.md as they are then.".to_owned())
            }
            Native::RepoMapShow => self.show_repo_map(prompt).await,
            Native::DebugChat => Ok(self.debug()),
        }
    }

    fn choose_by_command(&mut self, name: &str) -> Result<String, String> {
        let settings = self.shared.settings();
        if name.is_empty() {
            let current = self.model.clone().unwrap_or_else(|| settings.registry.default_model());
            let list = settings.registry.models();
            let lines = list.iter().map(|model| {
                let mark = if model.id == current { " (in use)" } else { "" };
                format!("- `{}`{mark}", model.id)
            });
            return Ok(format!("Models:\n{}", lines.collect::<Vec<_>>().join("\n")));
        }
        let model = settings.registry.resolve(name, self.model.as_ref()).map_err(|unknown| unknown.to_string())?;
        let said = format!("{model} answers in this chat from now on, unless the editor names another one.");
        self.model = Some(model);
        Ok(said)
    }

    fn costs(&self) -> String {
        let usage = self.totals.usage;
        let money = self.totals.cost.map_or_else(|| "unknown".to_owned(), |cost| format!("${cost:.4}"));
        format!(
            "This chat so far:\n- {} tokens in, {} out\n- {} read from the provider's cache, {} written to it\n- cost: {money}",
            usage.input, usage.output, usage.cache_read, usage.cache_write
        )
    }

    async fn resume(&mut self, which: &str, prompt: &Prompt) -> Result<String, String> {
        let query =
            ListQuery { workspace_key: Some(history_key(prompt).await), limit: Some(LISTED), ..ListQuery::default() };
        let chats = self.shared.store.list(query).await.map_err(|error| error.to_string())?;
        let chats: Vec<_> = chats.into_iter().filter(|chat| chat.id != self.id && chat.message_count > 0).collect();
        if which.is_empty() {
            let line = |(index, chat): (usize, &crate::store::ChatSummary)| {
                let title = chat.title.as_deref().unwrap_or("Untitled");
                format!("{}. {title} ({} messages, {})", index + 1, chat.message_count, time::iso8601(chat.updated_at))
            };
            let lines: Vec<String> = chats.iter().enumerate().map(line).collect();
            return Ok(match lines.is_empty() {
                true => "There are no earlier chats in this workspace.".to_owned(),
                false => {
                    format!("Earlier chats, newest first:\n{}\n\n`/resume 1` goes on with the first.", lines.join("\n"))
                }
            });
        }
        let index = match which {
            "latest" => Some(0),
            number => number.parse::<usize>().ok().and_then(|number| number.checked_sub(1)),
        };
        let Some(chosen) = index.and_then(|index| chats.get(index)) else {
            return Err(format!("There is no chat {which}. `/resume` lists them."));
        };
        if !self.history.is_empty() {
            return Err("This chat has begun already. Start a new one and resume there.".to_owned());
        }
        if self.shared.chats.contains_key(&chosen.id) {
            return Err("That chat is open in this server; go on there.".to_owned());
        }
        self.shared.store.rename_chat(&chosen.id, &self.id).await.map_err(|error| error.to_string())?;
        self.loaded = false;
        self.origin = super::Origin::Client;
        self.load().await;
        self.emit(ChatEvent::Cleared).await;
        self.emit_status(ChatStatus::Running).await;
        let title = chosen.title.clone().unwrap_or_else(|| "Untitled".to_owned());
        self.emit(ChatEvent::SystemText(format!("\nGoing on with \"{title}\".\n\n"))).await;
        self.show(PageQuery::default()).await.map_err(|error| error.to_string())?;
        self.emit(ChatEvent::Title(title)).await;
        Ok(String::new())
    }

    async fn search(&self, words: &str, prompt: &Prompt) -> Result<String, String> {
        if words.is_empty() {
            return Err("Say what to look for: `/search words`.".to_owned());
        }
        let query =
            SearchQuery { text: words.to_owned(), workspace_key: Some(history_key(prompt).await), limit: LISTED };
        let hits = self.shared.store.search(query).await.map_err(|error| error.to_string())?;
        if hits.is_empty() {
            return Ok(format!("Nothing in the chats of this workspace matches \"{words}\"."));
        }
        let line = |hit: &crate::store::SearchHit| {
            let title = hit.title.as_deref().unwrap_or("Untitled");
            format!("- **{title}** ({}): {}", time::iso8601(hit.updated_at), text::one_line(&hit.snippet, 200))
        };
        Ok(hits.iter().map(line).collect::<Vec<_>>().join("\n"))
    }

    async fn fork_here(&mut self) -> Result<String, String> {
        if self.history.is_empty() {
            return Err("There is nothing to copy yet.".to_owned());
        }
        self.fork(None).await.map(|_| String::new()).map_err(|error| error.to_string())
    }

    async fn export(&self, path: &str) -> Result<String, String> {
        let document = self.shared.store.export(&self.id).await.map_err(|error| error.to_string())?;
        let path = match path {
            "" => match self.shared.outputs.as_ref().and_then(|outputs| outputs.parent()) {
                Some(cache) => cache.join(format!("eca-chat-{}.json", self.id)),
                None => return Err("Say where to: `/export /path/to/file.json`.".to_owned()),
            },
            path => absolute(path)?,
        };
        let (written, shown) = (path.clone(), path.display().to_string());
        let text = serde_json::to_string_pretty(&document).map_err(|error| error.to_string())?;
        let write = task::blocking(move || std::fs::write(written, text));
        let written = write.await.map_err(|error| error.to_string())?;
        written.map(|()| format!("This chat is in {shown} now.")).map_err(|error| format!("{shown}: {error}"))
    }

    async fn import(&self, path: &str, prompt: &Prompt) -> Result<String, String> {
        let path = absolute(path)?;
        let shown = path.display().to_string();
        let read = task::blocking(move || std::fs::read(path)).await.map_err(|error| error.to_string())?;
        let bytes = read.map_err(|error| format!("{shown}: {error}"))?;
        let document =
            serde_json::from_slice(&bytes).map_err(|error| format!("{shown} is not an exported chat: {error}"))?;
        let key = Some(history_key(prompt).await);
        let chat = self.shared.store.import(document, key).await.map_err(|error| error.to_string())?;
        Ok(format!("The chat of {shown} is here now; `/resume` lists it. Its id is {chat}."))
    }

    fn debug(&self) -> String {
        let lines = self.history.iter().enumerate().map(|(at, message)| {
            let parts: Vec<String> = message.parts.iter().map(describe).collect();
            format!("{at}. {:?}: {}", message.role, parts.join(", "))
        });
        let model = self.model.as_ref().map_or_else(|| "none yet".to_owned(), ToString::to_string);
        format!("Chat {}, model {model}, {} prompts.\n{}", self.id, self.prompts, lines.collect::<Vec<_>>().join("\n"))
    }
}

/// A part by its kind and size, never by what it says.
fn describe(part: &crate::llm::Part) -> String {
    use crate::llm::Part;
    match part {
        Part::Text(text) => format!("text of {} bytes", text.len()),
        Part::Image(image) => format!("{} of {} bytes", image.media_type, image.base64.len()),
        Part::Reasoning { text, .. } => format!("reasoning of {} bytes", text.len()),
        Part::ToolCall { name, arguments, .. } => format!("call of {name} with {} bytes", arguments.len()),
        Part::ToolResult { text, error, .. } => {
            format!("{} of {} bytes", if *error { "error" } else { "result" }, text.len())
        }
        Part::Opaque(replay) => format!("something of {}", replay.dialect),
    }
}

fn absolute(path: &str) -> Result<PathBuf, String> {
    let path = Path::new(path.trim_matches('"'));
    if path.is_absolute() { Ok(path.to_owned()) } else { Err("Give an absolute path.".to_owned()) }
}

/// Under which key the chats of this workspace are kept; looks at its git folders.
pub(super) async fn history_key(prompt: &Prompt) -> String {
    let workspace = std::sync::Arc::clone(&prompt.workspace);
    let key = task::blocking(move || crate::workspace::history_key(&workspace));
    key.await.unwrap_or_else(|_| prompt.workspace.key())
}
