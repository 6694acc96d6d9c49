//! Sessions that are kept, page by page: the chats of the store, with the folders they work in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_client_protocol_schema::v1::{ListSessionsRequest, ListSessionsResponse, SessionInfo};

use super::failure::Failure;
use super::session::{PLACE, Place};
use crate::base::task;
use crate::base::time;
use crate::store::{ChatSummary, ListQuery, Store, StoreError};
use crate::workspace::{Workspace, history_key};

const PAGE: usize = 100;

/// The page behind the cursor, newest first.
pub(super) async fn list(store: &Store, request: ListSessionsRequest) -> Result<ListSessionsResponse, Failure> {
    let cwd = request.cwd;
    if cwd.as_deref().is_some_and(|cwd| !cwd.is_absolute()) {
        return Err(Failure::params("cwd: an absolute path is expected"));
    }
    let after = request.cursor.as_deref().map(Cursor::read).transpose()?;
    let key = match &cwd {
        Some(cwd) => Some(key_of(cwd.clone()).await),
        None => None,
    };
    let failed = |error: StoreError| Failure::internal(format!("the chats could not be listed: {error}"));
    let chats = store.list(ListQuery::default()).await.map_err(failed)?;
    let is_candidate =
        |chat: &&ChatSummary| chat.message_count > 0 && key.as_ref().is_none_or(|key| has_root(chat, key));
    let begin = after.map_or(0, |after| after.position(&chats));
    let mut sessions = Vec::new();
    let mut last = None;
    for chat in chats.iter().skip(begin).filter(is_candidate) {
        let kept = store.state(&chat.id, PLACE).await.map_err(failed)?;
        let Some(place) = kept.as_ref().and_then(Place::from_json).or_else(|| place_of(chat)) else { continue };
        if cwd.as_ref().is_some_and(|cwd| !is_of(&place, cwd, kept.is_some())) {
            continue;
        }
        if sessions.len() == PAGE {
            return Ok(ListSessionsResponse::new(sessions).next_cursor(last.map(Cursor::write)));
        }
        last = Some(chat);
        sessions.push(info(chat, place));
    }
    Ok(ListSessionsResponse::new(sessions))
}

fn info(chat: &ChatSummary, place: Place) -> SessionInfo {
    SessionInfo::new(chat.id.to_string(), place.cwd)
        .additional_directories(place.additional)
        .title(chat.title.clone())
        .updated_at(time::iso8601(chat.updated_at))
}

/// Chats of other front ends know only the set of their folders, sorted.
fn place_of(chat: &ChatSummary) -> Option<Place> {
    let key = chat.workspace_key.as_deref().filter(|key| Path::new(key).is_absolute())?;
    if cfg!(windows) {
        return Some(Place { cwd: key.into(), additional: Vec::new() });
    }
    let mut folders = key.split(":/");
    let cwd = folders.next().map(PathBuf::from)?;
    Some(Place { cwd, additional: folders.map(|folder| PathBuf::from(format!("/{folder}"))).collect() })
}

/// Whether a session belongs to a folder. One of which only the history's key is known does when
/// the folder has that key.
fn is_of(place: &Place, cwd: &Path, is_kept: bool) -> bool {
    !is_kept || place.cwd == cwd
}

fn has_root(chat: &ChatSummary, key: &str) -> bool {
    let Some(roots) = chat.workspace_key.as_deref() else { return false };
    roots == key || roots.split(':').any(|root| root == key)
}

/// Worktrees of one repository share their chats; finding out looks at the disk.
async fn key_of(cwd: PathBuf) -> String {
    let workspace: Arc<Workspace> = Arc::new(Place { cwd, additional: Vec::new() }.workspace());
    let plain = workspace.key();
    task::blocking(move || history_key(&workspace)).await.unwrap_or(plain)
}

/// The last session of a page: when it was used, and which it is.
struct Cursor {
    updated_at: i64,
    id: String,
}

impl Cursor {
    fn read(text: &str) -> Result<Self, Failure> {
        let parts = text.split_once(':').and_then(|(at, id)| Some((at.parse().ok()?, id.to_owned())));
        let (updated_at, id) = parts.ok_or_else(|| Failure::params("cursor: it is not one of ours"))?;
        Ok(Self { updated_at, id })
    }

    fn write(chat: &ChatSummary) -> String {
        format!("{}:{}", chat.updated_at, chat.id)
    }

    /// How many chats come before the next page. The last one of the page before may have been used
    /// or deleted since; then its time tells.
    fn position(&self, chats: &[ChatSummary]) -> usize {
        let is_it = |chat: &ChatSummary| chat.updated_at == self.updated_at && chat.id.as_str() == self.id;
        let found = chats.iter().position(is_it).map(|at| at + 1);
        found.unwrap_or_else(|| chats.partition_point(|chat| chat.updated_at >= self.updated_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ChatId;

    fn chat(id: &str, updated_at: i64, key: &str) -> ChatSummary {
        ChatSummary {
            id: ChatId::new(id),
            title: None,
            workspace_key: Some(key.to_owned()),
            model: None,
            created_at: 0,
            updated_at,
            message_count: 1,
        }
    }

    #[test]
    fn a_cursor_finds_its_place_also_when_its_chat_is_gone() {
        let chats = [chat("a", 9, "/x"), chat("b", 5, "/x"), chat("c", 5, "/x"), chat("d", 1, "/x")];
        let next = |cursor: &str| Cursor::read(cursor).map(|cursor| cursor.position(&chats)).ok();
        assert_eq!(next("5:b"), Some(2));
        assert_eq!(next("5:gone"), Some(3));
        assert_eq!(next("1:d"), Some(4));
        assert_eq!(next("7:b"), Some(1), "it was used since");
        assert_eq!(next("x"), None);
        assert_eq!(Cursor::write(&chats[1]), "5:b");
    }

    #[cfg(unix)]
    #[test]
    fn chats_of_other_front_ends_have_folders_too() {
        let place = |key: &str| place_of(&chat("a", 1, key));
        assert_eq!(place("/a:/b c"), Some(Place { cwd: "/a".into(), additional: vec!["/b c".into()] }));
        assert_eq!(place("/a:b"), Some(Place { cwd: "/a:b".into(), additional: Vec::new() }));
        assert_eq!(place(""), None);
        assert!(has_root(&chat("a", 1, "/a:/b"), "/b") && !has_root(&chat("a", 1, "/ab"), "/a"));
    }
}
