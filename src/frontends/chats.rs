//! `eca chats`: a person looks at the chats that are kept, and takes them in and out.
//!
//! What was asked for goes to stdout in one piece, everything else to stderr. Texts of chats were
//! written by models and tools, so nothing in them that a terminal would obey is printed.

mod text;

#[cfg(test)]
mod tests;

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::assemble::history_file;
use crate::base::time::now_ms;
use crate::base::{ChatId, private};
use crate::cli::{ChatsCommand, ChatsScope};
use crate::config::Dirs;
use crate::store::{ChatSummary, ListQuery, PublicChats, SearchHit, SearchQuery, Store, StoreError};
use crate::workspace::{Workspace, history_key};

const OK: i32 = 0;
const FAILED: i32 = 1;
const USAGE: i32 = 2;

/// A search shows so many places unless another number is asked for.
const SEARCH_LIMIT: usize = 20;

/// A file that is larger was not written by `eca chats export`.
const MOST_IMPORT_BYTES: u64 = 512 * 1024 * 1024;

/// Runs `eca chats`; returns the exit code.
pub async fn run(command: ChatsCommand, dirs: &Dirs, folder: Option<PathBuf>) -> i32 {
    let file = history_file(dirs);
    // Looking creates nothing.
    let is_there = file.exists() || matches!(command, ChatsCommand::Import { .. });
    let store = if is_there { Store::at(file) } else { Store::in_memory() };
    let kept = Kept { store, dirs: dirs.clone(), workspace: workspace(folder.as_deref()), now: now_ms() };
    let outcome = kept.answer(command).await;
    kept.store.close().await;
    let mut notes = kept.store.take_notices();
    let code = match outcome {
        Ok(answer) => {
            notes.extend(answer.notes);
            match write_out(&answer.text) {
                Ok(()) => answer.code,
                Err(error) => {
                    notes.push(format!("error: the output cannot be written: {error}"));
                    FAILED
                }
            }
        }
        Err(refusal) => {
            notes.push(format!("error: {}", refusal.text));
            refusal.code
        }
    };
    for note in notes {
        let _ = writeln!(io::stderr(), "{}", text::printable(&note));
    }
    code
}

/// What is printed, and what is said beside it.
#[derive(Debug, Default)]
struct Answer {
    text: String,
    notes: Vec<String>,
    code: i32,
}

impl From<String> for Answer {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

/// Why there is no answer.
#[derive(Debug)]
struct Refusal {
    text: String,
    code: i32,
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let code = if matches!(error, StoreError::UnknownChat { .. }) { USAGE } else { FAILED };
        Self { text: error.to_string(), code }
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self { text: error.to_string(), code: FAILED }
    }
}

fn usage(text: String) -> Refusal {
    Refusal { text, code: USAGE }
}

struct Kept {
    store: Store,
    dirs: Dirs,
    workspace: Workspace,
    now: i64,
}

impl Kept {
    async fn answer(&self, command: ChatsCommand) -> Result<Answer, Refusal> {
        match command {
            ChatsCommand::List { scope } => self.list(&scope).await,
            ChatsCommand::Show { chat, json } => self.show(&chat, json).await,
            ChatsCommand::Search { words, scope } => self.search(&words.join(" "), &scope).await,
            ChatsCommand::Export { chat, file } => self.export(&chat, file.as_deref()).await,
            ChatsCommand::Import { public: true, .. } => self.import_public().await,
            ChatsCommand::Import { file, public: false } => self.import(&file.unwrap_or_default()).await,
        }
    }

    async fn list(&self, scope: &ChatsScope) -> Result<Answer, Refusal> {
        let everything = self.store.list(ListQuery::default()).await?;
        let query = ListQuery { workspace_key: self.key(scope), limit: scope.limit, ..ListQuery::default() };
        let chats = self.store.list(query).await?;
        if scope.json {
            return Ok(pretty(&Value::Array(chats.iter().map(summary_json).collect())).into());
        }
        if chats.is_empty() {
            return Ok(Answer { notes: vec![self.nothing(scope, "There are no chats")], ..Answer::default() });
        }
        Ok(text::list(&chats, &text::short_ids(&everything), self.now).into())
    }

    async fn show(&self, chat: &str, as_json: bool) -> Result<Answer, Refusal> {
        let chat = self.find(chat).await?;
        if as_json {
            return Ok(pretty(&self.store.export(&chat).await?).into());
        }
        let stored = self.store.load(&chat).await?.ok_or_else(|| usage("the chat is gone".into()))?;
        Ok(text::transcript(&stored, self.now).into())
    }

    async fn search(&self, words: &str, scope: &ChatsScope) -> Result<Answer, Refusal> {
        let limit = scope.limit.unwrap_or(SEARCH_LIMIT);
        let query = SearchQuery { text: words.to_owned(), workspace_key: self.key(scope), limit };
        let hits = self.store.search(query).await?;
        if scope.json {
            return Ok(pretty(&Value::Array(hits.iter().map(hit_json).collect())).into());
        }
        if hits.is_empty() {
            // As grep does.
            let notes = vec![self.nothing(scope, "Nothing was found")];
            return Ok(Answer { notes, code: FAILED, ..Answer::default() });
        }
        let everything = self.store.list(ListQuery::default()).await?;
        Ok(text::hits(&hits, &text::short_ids(&everything), self.now).into())
    }

    async fn export(&self, chat: &str, file: Option<&Path>) -> Result<Answer, Refusal> {
        let chat = self.find(chat).await?;
        let document = pretty(&self.store.export(&chat).await?);
        let Some(file) = file.filter(|file| *file != Path::new("-")) else { return Ok(document.into()) };
        private::create_file(file)
            .and_then(|mut created| created.write_all(document.as_bytes()))
            .map_err(|error| Refusal { text: format!("{}: {error}", file.display()), code: FAILED })?;
        Ok(Answer { notes: vec![format!("Written to {}.", file.display())], ..Answer::default() })
    }

    async fn import(&self, file: &Path) -> Result<Answer, Refusal> {
        let bytes = if file == Path::new("-") {
            read_bounded(io::stdin().lock())
        } else {
            std::fs::File::open(file).and_then(read_bounded)
        };
        let bytes = bytes.map_err(|error| Refusal { text: format!("{}: {error}", file.display()), code: FAILED })?;
        let document: Value = serde_json::from_slice(&bytes).map_err(|error| Refusal {
            text: format!("{}: not valid JSON at line {}", file.display(), error.line()),
            code: FAILED,
        })?;
        let chat = self.store.import(document, Some(history_key(&self.workspace))).await?;
        Ok(format!("{chat}\n").into())
    }

    async fn import_public(&self) -> Result<Answer, Refusal> {
        let source = PublicChats {
            places: vec![self.dirs.cache.clone(), self.dirs.data.clone()],
            path_keys: vec![history_key(&self.workspace), self.workspace.key()],
            workspace_key: history_key(&self.workspace),
        };
        let report = self.store.import_public(source).await?;
        let chats = |count: usize| if count == 1 { "1 chat".to_owned() } else { format!("{count} chats") };
        let text = format!("Imported {}; {} not taken again.\n", chats(report.imported), chats(report.skipped));
        let mut notes: Vec<String> = report.problems.iter().map(|problem| format!("problem: {problem}")).collect();
        if report.failed > notes.len() {
            notes.push(format!("and {} more problems", report.failed - notes.len()));
        }
        let code = if report.failed == 0 { OK } else { FAILED };
        Ok(Answer { text, notes, code })
    }

    /// The chat with this id, or the only one whose id begins so.
    async fn find(&self, given: &str) -> Result<ChatId, Refusal> {
        let exact = ChatId::new(given);
        if self.store.head(&exact).await?.is_some() {
            return Ok(exact);
        }
        let chats = self.store.list(ListQuery::default()).await?;
        let mut found = chats.iter().filter(|chat| !given.is_empty() && chat.id.as_str().starts_with(given));
        match (found.next(), found.next()) {
            (Some(chat), None) => Ok(chat.id.clone()),
            (Some(_), Some(_)) => Err(usage(format!("several chats begin with {given:?}; give more of the id"))),
            (None, _) => Err(usage(format!("there is no chat {given:?}; `eca chats list --all` lists all of them"))),
        }
    }

    /// The key of the chats to look at; `None` is all.
    fn key(&self, scope: &ChatsScope) -> Option<String> {
        (!scope.all).then(|| history_key(&self.workspace))
    }

    fn nothing(&self, scope: &ChatsScope, what: &str) -> String {
        if scope.all { format!("{what}.") } else { format!("{what} in this folder; --all looks everywhere.") }
    }
}

fn workspace(folder: Option<&Path>) -> Workspace {
    let folders: Vec<_> = folder.and_then(Path::to_str).map(|path| (path.to_owned(), None)).into_iter().collect();
    Workspace::from_folders(&folders).0
}

fn summary_json(chat: &ChatSummary) -> Value {
    json!({
        "id": chat.id.as_str(),
        "title": chat.title,
        "model": chat.model.as_ref().map(|model| model.as_str()),
        "createdAt": chat.created_at,
        "updatedAt": chat.updated_at,
        "messageCount": chat.message_count,
    })
}

fn hit_json(hit: &SearchHit) -> Value {
    json!({
        "id": hit.chat.as_str(),
        "title": hit.title,
        "message": hit.seq,
        "snippet": hit.snippet,
        "updatedAt": hit.updated_at,
    })
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

fn read_bounded(source: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(MOST_IMPORT_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_IMPORT_BYTES {
        return Err(io::Error::other("the file is too large"));
    }
    Ok(bytes)
}

/// A reader that has seen enough is no error.
fn write_out(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}
