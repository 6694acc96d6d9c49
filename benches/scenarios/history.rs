//! The chat history at the sizes it may grow to: a long chat, many chats, many words.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use eca::base::{ChatId, ContentId};
use eca::llm::{Message, Part, Role};
use eca::store::{ChatMeta, MessageKind, NewMessage, SearchQuery, Store};
use eca::workspace::{Workspace, history_key};
use serde_json::{Value, json};

use crate::support::client::Server;
use crate::support::report::Row;
use crate::support::{Outcome, proc};

const LONG: &str = "long";
const LONG_CHAT: usize = 10_000;
const MANY_CHATS: usize = 5_000;
const PAGE: usize = 100;
const ROUNDS: usize = 15;

const MOST_GROWTH: f64 = 3.0;
const MOST_OPEN: f64 = 30.0;
const MOST_LIST: f64 = 20.0;
const MOST_SEARCH: f64 = 50.0;

pub(crate) fn run() -> Outcome<Vec<Row>> {
    let home = tempfile::tempdir()?;
    let folder = home.path().join("work");
    std::fs::create_dir(&folder)?;
    let file = home.path().join(".local/share/eca/chats.db");
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let mut rows = runtime.block_on(grow(&file, &folder))?;
    let mut opening = Vec::new();
    let mut listing = Vec::new();
    for _ in 0..5 {
        // A server that has just started, as when an editor opens the chat of yesterday.
        let mut server = Server::in_folder(home.path(), &folder)?;
        let (cpu, frames) = open(&mut server)?;
        opening.push((cpu, frames));
        for _ in 0..3 {
            listing.push(list(&mut server)?);
        }
    }
    let (cpu, frames) =
        opening.into_iter().fold((f64::INFINITY, 0), |best, one| if one.0 < best.0 { one } else { best });
    let figure = format!("a chat of {LONG_CHAT} messages opened: its first page of {PAGE} on the wire, CPU");
    rows.push(milliseconds(&figure, cpu, MOST_OPEN, &format!(", {frames} messages")));
    let cpu = listing.into_iter().fold(f64::INFINITY, f64::min);
    rows.push(milliseconds(&format!("chat/list of {MANY_CHATS} chats, CPU"), cpu, MOST_LIST, ""));
    rows.extend(runtime.block_on(search(&file))?);
    Ok(rows)
}

/// Fills the history, and measures what one more message costs in a chat that is new or long.
async fn grow(file: &Path, folder: &Path) -> Outcome<Vec<Row>> {
    let folder = folder.to_str().ok_or("a folder without a name")?;
    let (workspace, _) = Workspace::from_folders(&[(folder.to_owned(), None)]);
    let key = history_key(&workspace);
    let store = Store::at(file.to_owned());
    for number in 0..MANY_CHATS - 2 {
        let id = ChatId::new(format!("chat-{number}"));
        let meta = ChatMeta { workspace_key: Some(key.clone()), ..ChatMeta::new(id.clone()) };
        let messages = vec![message(number), message(number + 1)];
        let (made, filled) =
            futures_util::future::join(store.create_or_touch_chat(meta), store.append(&id, messages)).await;
        made?;
        filled?;
    }
    for name in ["short", LONG] {
        let meta = ChatMeta { workspace_key: Some(key.clone()), ..ChatMeta::new(ChatId::new(name)) };
        store.create_or_touch_chat(meta).await?;
    }
    let long = ChatId::new(LONG);
    for first in (0..LONG_CHAT).step_by(100) {
        store.append(&long, (first..first + 100).map(message).collect()).await?;
    }
    let in_short = append(&store, &ChatId::new("short")).await?;
    let in_long = append(&store, &long).await?;
    store.close().await;
    let figure = format!("one message appended, durable and indexed: in a chat of {LONG_CHAT} against a new one, CPU");
    let measured = format!("{:.2} × ({in_long:.3} ms / {in_short:.3} ms)", in_long / in_short);
    Ok(vec![Row::at_most(&figure, in_long / in_short, MOST_GROWTH, "×", measured)])
}

fn message(number: usize) -> NewMessage {
    let text = format!(
        "question {number} about the parser, with some words that every message has: {}",
        "lorem ipsum ".repeat(30)
    );
    let message = Message { role: Role::User, parts: vec![Part::Text(text)] };
    NewMessage { content_id: Some(ContentId::new(number.to_string())), ..NewMessage::new(MessageKind::User, message) }
}

/// Milliseconds of CPU for one append on average, in the best round: a single one may fall together
/// with a checkpoint.
async fn append(store: &Store, chat: &ChatId) -> Outcome<f64> {
    const EACH: usize = 50;
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let before = proc::cpu_nanoseconds(std::process::id())?;
        for number in 0..EACH {
            store.append(chat, vec![message(number)]).await?;
        }
        let cpu = proc::cpu_nanoseconds(std::process::id())? - before;
        least = least.min(cpu as f64 / 1e6 / EACH as f64);
    }
    Ok(least)
}

/// The CPU of opening the long chat, and how many messages came.
fn open(server: &mut Server) -> Outcome<(f64, usize)> {
    // The history is opened by whoever asks first; that is part of it.
    let before = server.settled_cpu()?;
    server.request("chat/open", &json!({"chatId": LONG, "limit": PAGE}))?;
    let mut frames = 0;
    loop {
        let message: Value = serde_json::from_slice(server.read()?)?;
        if message.get("id").is_some() {
            let returned = message["result"]["meta"]["returned"].as_u64();
            demand(message["result"]["found"] == true && returned == Some(PAGE as u64) && frames >= PAGE)?;
            return Ok(((server.settled_cpu()? - before) as f64 / 1e6, frames));
        }
        frames += 1;
    }
}

fn list(server: &mut Server) -> Outcome<f64> {
    let before = server.settled_cpu()?;
    let result = server.result_of("chat/list", &json!({}))?;
    demand(result["chats"].as_array().is_some_and(|chats| chats.len() == MANY_CHATS))?;
    Ok((server.settled_cpu()? - before) as f64 / 1e6)
}

async fn search(file: &Path) -> Outcome<Vec<Row>> {
    let store = Store::at(file.to_owned());
    let mut rows = Vec::new();
    for (figure, text) in [
        ("a search for rare words in all chats", "parser question 77"),
        ("a search for a word that every message has", "question"),
    ] {
        let mut least = f64::INFINITY;
        for _ in 0..ROUNDS {
            let started = Instant::now();
            let query = SearchQuery { text: text.to_owned(), workspace_key: None, limit: 20 };
            demand(!black_box(store.search(query).await?).is_empty())?;
            least = least.min(started.elapsed().as_secs_f64() * 1e3);
        }
        rows.push(milliseconds(figure, least, MOST_SEARCH, ""));
    }
    store.close().await;
    Ok(rows)
}

fn milliseconds(figure: &str, value: f64, most: f64, more: &str) -> Row {
    Row::at_most(figure, value, most, "ms", format!("{value:.2} ms{more}"))
}

fn demand(is_whole: bool) -> Outcome<()> {
    if is_whole { Ok(()) } else { Err("something is missing".into()) }
}
