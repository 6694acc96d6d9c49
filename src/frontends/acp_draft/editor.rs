//! The client as our tools may ask it: for the text of a file as its user sees it, saved or not. It
//! cannot be written to, so what it has changed and not saved is left alone.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::files::{Digest, digest_of};
use super::methods::{READ_TEXT_FILE, STAT};
use super::params::Reading;
use crate::base::ChatId;
use crate::base::task;
use crate::host::{Capabilities, Host, HostError, OpenChange, Taken};
use crate::transport::envelope::METHOD_NOT_FOUND;
use crate::transport::newline::{CallError, Peer};

/// A client that has not answered by then is not asked any more.
const PATIENCE: Duration = Duration::from_secs(5);
/// Of so many files it is known what the client said of them.
const MOST_TOLD: usize = 1_024;

pub(super) struct Editor {
    peer: Peer,
    patience: Duration,
    reading: OnceLock<Reading>,
    /// Never answered, or does not know how to.
    cannot_read: AtomicBool,
    cannot_stat: AtomicBool,
    told: Mutex<HashMap<PathBuf, Told>>,
}

/// What the client last said of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Told {
    version: Option<u64>,
    digest: Digest,
}

impl Editor {
    pub(super) fn new(peer: Peer) -> Self {
        Self {
            peer,
            patience: PATIENCE,
            reading: OnceLock::new(),
            cannot_read: AtomicBool::new(false),
            cannot_stat: AtomicBool::new(false),
            told: Mutex::default(),
        }
    }

    /// The first request of a client shows how it reads the document; only the first one counts.
    pub(super) fn is_taken_for(&self, reading: Reading) -> Reading {
        *self.reading.get_or_init(|| {
            tracing::info!(?reading, "how the client reads the document");
            reading
        })
    }

    fn has_files(&self) -> bool {
        self.reading.get() == Some(&Reading::Usual) && !self.cannot_read.load(Ordering::Relaxed)
    }

    /// The text that the client shows, and what identifies it. `None`: it shows none, or does not say.
    async fn shown(&self, chat: &ChatId, path: &Path) -> Option<(String, Told)> {
        if !self.has_files() {
            return None;
        }
        let place = path.to_owned();
        let is_on_disk = task::blocking(move || place.is_file()).await.unwrap_or(false);
        // Most of what is not on the disk is nowhere, and asking for its text would be an error.
        if !is_on_disk && !self.is_file(chat, path).await {
            return None;
        }
        let answer = self.ask(READ_TEXT_FILE, chat, path, &self.cannot_read).await?;
        let content = answer.get("content").and_then(Value::as_str)?.to_owned();
        let told = Told { version: answer.get("version").and_then(Value::as_u64), digest: digest_of(&content) };
        Some((content, told))
    }

    async fn is_file(&self, chat: &ChatId, path: &Path) -> bool {
        let Some(answer) = self.ask(STAT, chat, path, &self.cannot_stat).await else { return false };
        let says = |name: &str| answer.get(name).and_then(Value::as_bool).unwrap_or(false);
        says("exists") && !says("isDirectory")
    }

    async fn ask(&self, method: &str, chat: &ChatId, path: &Path, cannot: &AtomicBool) -> Option<Value> {
        if cannot.load(Ordering::Relaxed) {
            return None;
        }
        let params = json!({"threadId": chat.as_str(), "path": path.to_string_lossy()});
        match self.peer.request(method, &params, self.patience).await {
            Ok(answer) => Some(answer),
            Err(CallError::Timeout) => {
                tracing::info!(method, "the client does not answer; the disk counts from now on");
                self.cannot_read.store(true, Ordering::Relaxed);
                None
            }
            Err(CallError::Refused(error)) if error.code == METHOD_NOT_FOUND => {
                cannot.store(true, Ordering::Relaxed);
                None
            }
            Err(error) => {
                tracing::debug!(method, %error, "the client gave no answer; the disk counts");
                None
            }
        }
    }

    fn remember(&self, path: &Path, now: Told) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() >= MOST_TOLD && !told.contains_key(path) {
            told.clear();
        }
        told.insert(path.to_owned(), now);
    }

    fn remembered(&self, path: &Path) -> Option<Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).get(path).copied()
    }
}

impl Host for Editor {
    fn capabilities(&self) -> Capabilities {
        Capabilities { approves_nothing: true, ..Capabilities::default() }
    }

    fn unsaved(&self, chat: ChatId, path: PathBuf) -> BoxFuture<'_, Option<String>> {
        Box::pin(async move {
            let (content, told) = self.shown(&chat, &path).await?;
            self.remember(&path, told);
            let (differs, content) = differs_from_disk(path, content).await;
            differs.then_some(content)
        })
    }

    fn may_write_open(&self) -> bool {
        self.has_files()
    }

    /// Lets the disk be written where the user has nothing unsaved and nothing has changed since we
    /// last looked.
    fn write_open(&self, change: OpenChange) -> BoxFuture<'_, Result<Taken, HostError>> {
        Box::pin(async move {
            let OpenChange { chat, path, .. } = change;
            let before = self.remembered(&path);
            let Some((content, now)) = self.shown(&chat, &path).await else { return Ok(Taken::NotHeld) };
            self.remember(&path, now);
            if before.is_some_and(|before| before != now) {
                return Err(HostError::Refused("the file has changed meanwhile; read it again".to_owned()));
            }
            match differs_from_disk(path, content).await.0 {
                true => Err(HostError::Refused("the file has changes that are not saved".to_owned())),
                false => Ok(Taken::NotHeld),
            }
        })
    }
}

/// Whether a text is another one than that of the file, and the text. Line ends and a byte order mark
/// make no difference: editors show texts without them.
async fn differs_from_disk(path: PathBuf, content: String) -> (bool, String) {
    let kept = content.clone();
    let compared = task::blocking(move || {
        let same = std::fs::read(&path).is_ok_and(|disk| plain(&String::from_utf8_lossy(&disk)) == plain(&content));
        (!same, content)
    });
    compared.await.unwrap_or((false, kept))
}

fn plain(text: &str) -> String {
    text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n")
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write};

    use super::*;
    use crate::transport::newline::{self, Connection, Dialect};
    use crate::transport::{Incoming, Message};

    /// A client that answers each method in its way.
    struct Client {
        editor: std::sync::Arc<Editor>,
        folder: tempfile::TempDir,
    }

    type Reply = fn(&str, &Value) -> Option<Value>;

    fn client(reading: Reading, patience: Duration, reply: Reply) -> Client {
        let (input, to_server) = std::io::pipe().unwrap();
        let (from_server, output) = std::io::pipe().unwrap();
        let Connection { peer, mut incoming } = newline::connect(input, output, Dialect::UNVERSIONED).unwrap();
        let mut editor = Editor::new(peer.clone());
        editor.patience = patience;
        editor.is_taken_for(reading);
        std::thread::spawn(move || answer_all(from_server, to_server, reply));
        tokio::spawn(async move {
            while let Some(Incoming::Message { message: Message::Response { id, outcome }, .. }) = incoming.recv().await
            {
                peer.resolve(&id, outcome);
            }
        });
        Client { editor: std::sync::Arc::new(editor), folder: tempfile::tempdir().unwrap() }
    }

    fn answer_all(from_server: PipeReader, mut to_server: PipeWriter, reply: Reply) {
        for line in BufReader::new(from_server).lines() {
            let Ok(line) = line else { return };
            let request: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(request["params"]["threadId"], "t");
            let Some(mut answer) = reply(request["method"].as_str().unwrap(), &request["params"]) else { continue };
            answer["id"] = request["id"].clone();
            if to_server.write_all(format!("{answer}\n").as_bytes()).is_err() {
                return;
            }
        }
    }

    impl Client {
        fn file(&self, content: &str) -> PathBuf {
            let path = self.folder.path().join("a");
            std::fs::write(&path, content).unwrap();
            path
        }

        async fn unsaved(&self, path: &Path) -> Option<String> {
            self.editor.unsaved(ChatId::new("t"), path.to_owned()).await
        }

        async fn write(&self, path: &Path) -> Result<Taken, HostError> {
            let (path, after) = (path.to_owned(), String::new());
            self.editor.write_open(OpenChange { chat: ChatId::new("t"), path, before: None, after }).await
        }
    }

    const LONG: Duration = Duration::from_secs(20);

    fn shows_new(method: &str, params: &Value) -> Option<Value> {
        let is_virtual = params["path"].as_str().unwrap().ends_with("virtual");
        Some(match method {
            "readTextFile" => json!({"result": {"version": 3, "content": "new\n"}}),
            "stat" => json!({"result": {"exists": is_virtual, "isDirectory": false}}),
            _ => json!({"error": {"code": -32601, "message": "no"}}),
        })
    }

    #[tokio::test]
    async fn what_the_user_sees_goes_before_the_disk_and_is_never_written_over() {
        let client = client(Reading::Usual, LONG, shows_new);
        let path = client.file("old\n");
        assert_eq!(client.unsaved(&path).await.as_deref(), Some("new\n"));
        assert!(matches!(client.write(&path).await, Err(HostError::Refused(why)) if why.contains("not saved")));
        let path = client.file("\u{feff}new\r\n");
        assert_eq!(client.unsaved(&path).await, None, "the same but for line ends");
        assert_eq!(client.write(&path).await, Ok(Taken::NotHeld));
        // Only in the editor, and nowhere.
        assert_eq!(client.unsaved(&client.folder.path().join("virtual")).await.as_deref(), Some("new\n"));
        assert_eq!(client.unsaved(&client.folder.path().join("nothing")).await, None);
    }

    #[tokio::test]
    async fn a_version_that_grew_since_the_last_look_stops_a_write() {
        use std::sync::atomic::AtomicU64;
        static VERSION: AtomicU64 = AtomicU64::new(0);
        let client = client(Reading::Usual, LONG, |_, _| {
            let version = VERSION.fetch_add(1, Ordering::Relaxed);
            Some(json!({"result": {"version": version, "content": "same"}}))
        });
        let path = client.file("same");
        assert_eq!(client.unsaved(&path).await, None);
        assert!(matches!(client.write(&path).await, Err(HostError::Refused(why)) if why.contains("meanwhile")));
    }

    #[tokio::test]
    async fn a_client_that_cannot_or_does_not_answer_is_not_asked_again() {
        let silent = client(Reading::Usual, Duration::from_millis(1), |_, _| None);
        let path = silent.file("x");
        assert_eq!(silent.unsaved(&path).await, None);
        assert!(!silent.editor.may_write_open());
        let unable = client(Reading::Usual, LONG, |_, _| Some(json!({"error": {"code": -32601, "message": "no"}})));
        let path = unable.file("x");
        assert_eq!(unable.unsaved(&path).await, None);
        assert!(!unable.editor.has_files());
        let unwilling =
            client(Reading::Usual, LONG, |_, _| Some(json!({"error": {"code": -32603, "message": "not this one"}})));
        let path = unwilling.file("x");
        assert_eq!(unwilling.unsaved(&path).await, None);
        assert!(unwilling.editor.has_files(), "another file may do better");
        let odd = client(Reading::Usual, LONG, |_, _| Some(json!({"result": null})));
        assert_eq!(odd.unsaved(&odd.file("x")).await, None);
    }

    #[tokio::test]
    async fn a_client_that_asks_us_for_files_is_asked_for_none() {
        let literal = client(Reading::Literal, LONG, shows_new);
        let path = literal.file("old");
        assert_eq!(literal.unsaved(&path).await, None);
        assert_eq!(literal.write(&path).await, Ok(Taken::NotHeld));
        assert_eq!(literal.editor.is_taken_for(Reading::Usual), Reading::Literal, "the first request counts");
    }
}
