//! Finds words in chats: what the user and the model said, and what tools printed.
//!
//! The index holds words in a form of our own, and a question is brought into the same form, so
//! that nothing a user types can be an error of syntax. Matches come newest first: the terms of a
//! question must all be in one message, so there is little left to rank, and the newest can be
//! found without looking at all the others.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};

use super::record::StoredMessage;
use super::{Store, StoreError, upkeep};
use crate::base::ChatId;
use crate::base::text::{one_line, prefix};

/// So much of a message is indexed: whoever pasted a book does not look for its last page here.
const INDEXED_BYTES: usize = 64 * 1024;

/// Longer runs of letters and digits are no words but data.
const LONGEST_WORD: usize = 64;

/// So much of a question is read.
const QUESTION_BYTES: usize = 1000;
const QUESTION_TERMS: usize = 16;

/// One chat shows so many of its matches, so that it does not hide the others.
const HITS_PER_CHAT: usize = 3;

/// So many of the newest matches are looked at for those of one workspace.
const MOST_CANDIDATES: usize = 50_000;

/// Characters around a match.
const SNIPPET_BEFORE: usize = 40;
const SNIPPET_LENGTH: usize = 160;

/// What to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuery {
    /// Any text. Every word of it must be there; the last one may be unfinished.
    pub text: String,
    /// `None` looks into the chats of every workspace.
    pub workspace_key: Option<String>,
    pub limit: usize,
}

/// One place where it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    pub chat: ChatId,
    pub title: Option<String>,
    /// The message; `None` when it is the title that matches.
    pub seq: Option<i64>,
    /// One line around the match.
    pub snippet: String,
    pub updated_at: i64,
}

impl Store {
    /// Matching titles first, then matching messages, each newest first. A question without any
    /// word has no answer.
    pub async fn search(&self, query: SearchQuery) -> Result<Vec<SearchHit>, StoreError> {
        let question = Question::new(&query.text);
        if question.terms.is_empty() || query.limit == 0 {
            return Ok(Vec::new());
        }
        let found = self.read(move |connection| find(connection, &question, &query)).await;
        if let Err(StoreError::IndexDamaged { .. }) = found {
            self.write(upkeep::make_index_anew).await?;
        }
        found
    }
}

/// The words by which a message is found.
pub(super) fn words_of(message: &StoredMessage) -> String {
    let mut words = String::new();
    for text in message.texts() {
        if words.len() >= INDEXED_BYTES {
            break;
        }
        push_words(&mut words, text, INDEXED_BYTES);
    }
    words
}

/// Puts a message into the index, in the place of an older one with its number.
pub(super) fn index(connection: &Connection, id: i64, words: &str) -> rusqlite::Result<()> {
    if words.is_empty() {
        return Ok(());
    }
    connection
        .prepare_cached("INSERT OR REPLACE INTO search (rowid, text) VALUES (?1, ?2)")?
        .execute(params![id, words])
        .map(|_| ())
}

/// Takes the chat's messages from `seq` on out of the index. Comes before they are deleted.
pub(super) fn forget(connection: &Connection, chat: &ChatId, seq: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM search WHERE rowid IN (SELECT id FROM messages WHERE chat_id = ?1 AND seq >= ?2)")?
        .execute(params![chat.as_str(), seq])
        .map(|_| ())
}

/// A user's text in the form of the index.
struct Question {
    /// Each is a run of words that must follow each other.
    terms: Vec<Vec<String>>,
}

impl Question {
    fn new(text: &str) -> Self {
        let words = |term: &str| {
            let mut words = String::new();
            push_words(&mut words, term, QUESTION_BYTES);
            words.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        let terms = prefix(text, QUESTION_BYTES).split_whitespace().map(words).filter(|words| !words.is_empty());
        Self { terms: terms.take(QUESTION_TERMS).collect() }
    }

    /// In quotes everything is a word; there are no quotes inside.
    fn expression(&self) -> String {
        let mut terms: Vec<String> = self.terms.iter().map(|words| format!("\"{}\"", words.join(" "))).collect();
        if let (Some(last), true) = (terms.last_mut(), self.may_go_on()) {
            last.push('*');
        }
        terms.join(" ")
    }

    /// Whether the last word may be the beginning of a longer one. A single letter begins too many.
    fn may_go_on(&self) -> bool {
        self.terms.last().and_then(|words| words.last()).is_some_and(|word| word.chars().nth(1).is_some())
    }

    fn matches_title(&self, title: &str) -> bool {
        let mut words = String::new();
        push_words(&mut words, title, INDEXED_BYTES);
        let title = format!(" {}", words.to_lowercase());
        let last = self.terms.len() - 1;
        self.terms.iter().enumerate().all(|(at, words)| {
            let end = if at == last && self.may_go_on() { "" } else { " " };
            title.contains(&format!(" {}{end}", words.join(" ").to_lowercase()))
        })
    }

    /// One line of `text` around the first word that matches, as far as it can be found without
    /// the index's own rules.
    fn snippet<'a>(&self, texts: impl Iterator<Item = &'a str>) -> String {
        let mut first = None;
        for text in texts {
            let text = prefix(text, INDEXED_BYTES);
            first = first.or(Some(text));
            let hay: Vec<char> = text.chars().flat_map(first_lower).collect();
            let needles = self.terms.iter().filter_map(|words| words.first());
            let at = needles.filter_map(|word| find_word(&hay, word)).min();
            if let Some(at) = at {
                let start = at.saturating_sub(SNIPPET_BEFORE);
                let cut: String = text.chars().skip(start).take(SNIPPET_LENGTH).collect();
                let dots = if start > 0 { "…" } else { "" };
                return format!("{dots}{}", one_line(&cut, SNIPPET_LENGTH));
            }
        }
        one_line(&first.unwrap_or_default().chars().take(SNIPPET_LENGTH).collect::<String>(), SNIPPET_LENGTH)
    }
}

fn find(connection: &Connection, question: &Question, query: &SearchQuery) -> rusqlite::Result<Vec<SearchHit>> {
    let mut hits = titles(connection, question, query)?;
    let mut matches =
        connection.prepare_cached("SELECT rowid FROM search WHERE search MATCH ?1 ORDER BY rowid DESC LIMIT ?2")?;
    let mut rows = matches.query(params![question.expression(), MOST_CANDIDATES as i64])?;
    let mut place = connection.prepare_cached("SELECT chat_id, seq FROM messages WHERE id = ?1")?;
    // How many more of its matches a chat may show; most matches are those of few chats.
    let mut shown: HashMap<String, Option<Shown>> = HashMap::new();
    while hits.len() < query.limit
        && let Some(row) = rows.next()?
    {
        let id: i64 = row.get(0)?;
        let mut found = place.query([id])?;
        let Some(message) = found.next()? else { continue };
        let chat = message.get_ref(0)?.as_str()?;
        if !shown.contains_key(chat) {
            shown.insert(chat.to_owned(), looked_at(connection, chat, query.workspace_key.as_deref())?);
        }
        if let Some(Some(Shown { left, hit })) = shown.get_mut(chat)
            && *left > 0
        {
            *left -= 1;
            let seq = message.get(1)?;
            hits.push(SearchHit { seq, snippet: snippet_of(connection, id, question)?, ..hit.clone() });
        }
    }
    Ok(hits)
}

/// A chat with matches.
struct Shown {
    /// So many more are shown.
    left: usize,
    /// What all its hits have in common.
    hit: SearchHit,
}

/// The chat, if it is one that is looked at.
fn looked_at(connection: &Connection, chat: &str, workspace: Option<&str>) -> rusqlite::Result<Option<Shown>> {
    connection
        .prepare_cached(
            "SELECT title, updated_at FROM chats
             WHERE id = ?1 AND parent_chat IS NULL AND (?2 IS NULL OR workspace_key = ?2)",
        )?
        .query_row(params![chat, workspace], |row| {
            let (title, updated_at) = (row.get(0)?, row.get(1)?);
            let hit = SearchHit { chat: ChatId::new(chat), title, updated_at, seq: None, snippet: String::new() };
            Ok(Shown { left: HITS_PER_CHAT, hit })
        })
        .optional()
}

/// At most half of what was asked for, so that titles never hide all messages.
fn titles(connection: &Connection, question: &Question, query: &SearchQuery) -> rusqlite::Result<Vec<SearchHit>> {
    let mut statement = connection.prepare_cached(
        "SELECT id, title, updated_at FROM chats
         WHERE parent_chat IS NULL AND title IS NOT NULL AND (?1 IS NULL OR workspace_key = ?1)
         ORDER BY updated_at DESC",
    )?;
    let mut rows = statement.query([&query.workspace_key])?;
    let mut hits = Vec::new();
    while let Some(row) = rows.next()?
        && hits.len() < query.limit.div_ceil(2)
    {
        let title: String = row.get(1)?;
        if question.matches_title(&title) {
            let chat = ChatId::new(row.get::<_, String>(0)?);
            let snippet = one_line(&title, SNIPPET_LENGTH);
            hits.push(SearchHit { chat, title: Some(title), seq: None, snippet, updated_at: row.get(2)? });
        }
    }
    Ok(hits)
}

fn snippet_of(connection: &Connection, id: i64, question: &Question) -> rusqlite::Result<String> {
    let body: Option<String> = connection
        .prepare_cached("SELECT body FROM messages WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()?;
    let message = body.and_then(|body| StoredMessage::from_json(body.as_bytes()).ok());
    Ok(message.map(|message| question.snippet(message.texts())).unwrap_or_default())
}

/// Appends the words of `text`, divided by spaces, until `words` is as long as `cap`.
fn push_words(words: &mut String, text: &str, cap: usize) {
    let mut start = words.len();
    let end_word = |words: &mut String, start: &mut usize| {
        if words.len() - *start > LONGEST_WORD {
            words.truncate(*start);
        } else if words.len() > *start {
            words.push(' ');
        }
        *start = words.len();
    };
    for c in text.chars() {
        if is_accent(c) {
            continue;
        }
        if stands_alone(c) || !c.is_alphanumeric() {
            end_word(words, &mut start);
            if words.len() >= cap {
                return;
            }
        }
        if c.is_alphanumeric() {
            words.push(c);
        }
        if stands_alone(c) {
            end_word(words, &mut start);
        }
    }
    end_word(words, &mut start);
}

/// Accents that stand as characters of their own; those that are part of a letter are the
/// index's to ignore.
fn is_accent(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

/// Scripts that write no spaces: each character is indexed as a word, and a run of them is found
/// as words that follow each other.
fn stands_alone(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
        || matches!(c, '\u{e00}'..='\u{eff}')
}

/// One character for one, so that places in the text stay what they are.
fn first_lower(c: char) -> Option<char> {
    c.to_lowercase().next()
}

/// Where `word` begins a word of `hay`.
fn find_word(hay: &[char], word: &str) -> Option<usize> {
    let word: Vec<char> = word.chars().filter_map(first_lower).collect();
    let begins = |at: &usize| *at == 0 || !hay[at - 1].is_alphanumeric() || stands_alone(hay[*at]);
    (0..hay.len()).filter(begins).find(|at| hay[*at..].starts_with(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        let mut words = String::new();
        push_words(&mut words, text, 100);
        words
    }

    #[test]
    fn words_are_letters_and_digits() {
        for (text, expected) in [
            ("", ""),
            ("one  two", "one two "),
            ("fn foo_bar(x: u8) -> Vec<T>;", "fn foo bar x u8 Vec T "),
            ("\"quoted\" AND* (x)", "quoted AND x "),
            ("cafe\u{301} naïve", "cafe naïve "),
            ("日本語のtest", "日 本 語 の test "),
            ("한국어", "한국어 "),
            ("a\0b\u{7f}c", "a b c "),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
        assert_eq!(words(&format!("a {} b", "x".repeat(65))), "a b ");
        assert_eq!(words(&"ab ".repeat(1000)).len(), 102);
        assert!(words(&"語".repeat(1000)).len() < 120);
    }

    #[test]
    fn questions_are_quoted_and_the_last_word_may_go_on() {
        for (text, expected) in [
            ("hello", "\"hello\"*"),
            ("hello world", "\"hello\" \"world\"*"),
            ("a", "\"a\""),
            ("foo.bar baz", "\"foo bar\" \"baz\"*"),
            ("NEAR(a b) OR \"c", "\"NEAR a\" \"b\" \"OR\" \"c\""),
            ("col:x ^y -z *", "\"col x\" \"y\" \"z\""),
            ("日本", "\"日 本\""),
        ] {
            assert_eq!(Question::new(text).expression(), expected, "{text}");
        }
        assert!(Question::new(" \"*()- ").terms.is_empty());
        assert_eq!(Question::new(&"x ".repeat(900)).terms.len(), QUESTION_TERMS);
    }

    #[test]
    fn titles_match_by_words_and_a_last_beginning() {
        for (question, title, expected) in [
            ("parser", "Fix the Parser", true),
            ("pars", "Fix the Parser", true),
            ("pars fix", "Fix the Parser", false),
            ("fix pars", "Fix the Parser", true),
            ("arser", "Fix the Parser", false),
            ("the-parser", "Fix the Parser", true),
            ("日本", "新しい日本語", true),
        ] {
            assert_eq!(Question::new(question).matches_title(title), expected, "{question} in {title}");
        }
    }

    #[test]
    fn snippets_show_the_match() {
        let long = format!("{} the NEEDLE is here {}", "hay ".repeat(100), "hay ".repeat(100));
        let snippet = Question::new("needle").snippet([long.as_str()].into_iter());
        assert!(snippet.starts_with('…') && snippet.contains("the NEEDLE is here"), "{snippet}");
        assert!(snippet.chars().count() <= SNIPPET_LENGTH + 1);
        let at_start = Question::new("İx é").snippet(["nothing", "an é\nand more"].into_iter());
        assert_eq!(at_start, "an é and more");
        assert_eq!(Question::new("resume").snippet(["un résumé"].into_iter()), "un résumé");
        assert_eq!(Question::new("x").snippet(std::iter::empty()), "");
    }

    proptest::proptest! {
        #[test]
        fn any_question_can_be_asked(text in "\\PC{0,60}", odd in "[\"*^:(){}+\\-A-Z ]{0,40}") {
            let connection = Connection::open_in_memory().unwrap();
            connection.execute_batch(super::super::schema::SEARCH).unwrap();
            index(&connection, 1, &words(&text)).unwrap();
            for question in [text.as_str(), odd.as_str()] {
                let question = Question::new(question);
                if !question.terms.is_empty() {
                    let count = "SELECT count(*) FROM search WHERE search MATCH ?1";
                    let found: i64 = connection.query_row(count, [question.expression()], |row| row.get(0)).unwrap();
                    assert!(found <= 1);
                    question.snippet([text.as_str()].into_iter());
                    question.matches_title(&text);
                }
            }
        }
    }
}
