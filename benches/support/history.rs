//! The chat history at the sizes it may grow to: a long chat, many chats, many words.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use eca::base::{ChatId, ContentId};
use eca::llm::{Message, Part, Role};
use eca::store::{ChatMeta, ListQuery, MessageKind, NewMessage, PageQuery, SearchQuery, Store};

use crate::Outcome;
use crate::report::Row;

const LONG: &str = "long";
const LONG_CHAT: usize = 10_000;
const MANY_CHATS: usize = 5_000;
const PAGE: usize = 100;
const ROUNDS: usize = 15;

const MOST_APPEND: f64 = 2.0;
const MOST_GROWTH: f64 = 3.0;
const MOST_OPEN: f64 = 30.0;
const MOST_LIST: f64 = 20.0;
const MOST_SEARCH: f64 = 50.0;

pub(crate) fn rows() -> Outcome<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("chats.db");
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        let mut rows = growing(&file).await?;
        rows.extend(grown(&file).await?);
        Ok(rows)
    })
}

/// Fills the history, and measures what that costs.
async fn growing(file: &Path) -> Outcome<Vec<Row>> {
    let store = Store::at(file.to_owned());
    let (short, long) = (ChatId::new("short"), ChatId::new(LONG));
    fill(&store, &long, LONG_CHAT).await?;
    let in_short = append(&store, &short).await?;
    let in_long = append(&store, &long).await?;
    let growth = in_long / in_short;
    for number in 0..MANY_CHATS {
        let workspace_key = Some(format!("/w{}", number % 5));
        let meta = ChatMeta { workspace_key, ..ChatMeta::new(ChatId::new(format!("chat-{number}"))) };
        let id = meta.id.clone();
        let messages = vec![message(number), message(number + 1)];
        let (made, filled) =
            futures_util::future::join(store.create_or_touch_chat(meta), store.append(&id, messages)).await;
        made?;
        filled?;
    }
    store.close().await;
    let figure = format!("the same in a chat of {LONG_CHAT} messages, against a new chat");
    let measured = format!("{growth:.2} × ({in_short:.2} ms)");
    Ok(vec![
        milliseconds("one message appended, durable and indexed", in_long, MOST_APPEND),
        Row::at_most(&figure, growth, MOST_GROWTH, "×", measured),
    ])
}

/// Reads a history that has grown.
async fn grown(file: &Path) -> Outcome<Vec<Row>> {
    let opening = best(async || {
        let store = Store::at(file.to_owned());
        let long = ChatId::new(LONG);
        let head = store.head(&long).await?.ok_or("no chat")?;
        let query = PageQuery { limit: Some(PAGE), ..PageQuery::default() };
        let page = store.load_page(&long, query).await?.ok_or("no page")?;
        demand(black_box(page).entries.len() == PAGE && head.message_count >= LONG_CHAT as u64)
    })
    .await?;
    let store = Store::at(file.to_owned());
    let listing = best(async || demand(black_box(store.list(ListQuery::default()).await?).len() >= MANY_CHATS)).await?;
    let search = async |text: &str, workspace: Option<&str>| {
        let workspace_key = workspace.map(str::to_owned);
        let hits = store.search(SearchQuery { text: text.to_owned(), workspace_key, limit: 20 }).await?;
        demand(!black_box(hits).is_empty())
    };
    let rare = best(async || search("parser question 77", Some("/w2")).await).await?;
    let common = best(async || search("question", None).await).await?;
    store.close().await;
    let figure = format!("the history opened and the last {PAGE} of {LONG_CHAT} messages read");
    Ok(vec![
        milliseconds(&figure, opening, MOST_OPEN),
        milliseconds(&format!("a list of {MANY_CHATS} chats"), listing, MOST_LIST),
        milliseconds("a search for a rare word in one workspace", rare, MOST_SEARCH),
        milliseconds("a search for a word that every message has", common, MOST_SEARCH),
    ])
}

fn milliseconds(figure: &str, value: f64, most: f64) -> Row {
    Row::at_most(figure, value, most, "ms", format!("{value:.2} ms"))
}

fn demand(is_whole: bool) -> Outcome<()> {
    if is_whole { Ok(()) } else { Err("something is missing".into()) }
}

fn message(number: usize) -> NewMessage {
    let text = format!(
        "question {number} about the parser, with some words that every message has: {}",
        "lorem ipsum ".repeat(30)
    );
    let message = Message { role: Role::User, parts: vec![Part::Text(text)] };
    NewMessage { content_id: Some(ContentId::new(number.to_string())), ..NewMessage::new(MessageKind::User, message) }
}

async fn fill(store: &Store, chat: &ChatId, count: usize) -> Outcome<()> {
    for first in (0..count).step_by(100) {
        store.append(chat, (first..first + 100).map(message).collect()).await?;
    }
    Ok(())
}

/// Milliseconds of one append on average: a single one may fall together with a checkpoint.
async fn append(store: &Store, chat: &ChatId) -> Outcome<f64> {
    const EACH: usize = 50;
    let per_round = best(async || {
        for number in 0..EACH {
            store.append(chat, vec![message(number)]).await?;
        }
        Ok(())
    })
    .await?;
    Ok(per_round / EACH as f64)
}

/// Milliseconds of the best round.
async fn best(mut round: impl AsyncFnMut() -> Outcome<()>) -> Outcome<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        round().await?;
        least = least.min(started.elapsed().as_secs_f64() * 1e3);
    }
    Ok(least)
}
