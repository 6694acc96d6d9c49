//! What editors ask for without a chat: text at the cursor, and a selection written anew. Nothing is
//! stored and no tool runs.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::time::Instant as Deadline;

use super::ask::{Answer, Models, Question};
use super::{Engine, request};
use crate::approval;
use crate::base::{ModelId, text};
use crate::customization::prompt;
use crate::llm::{Delta, LlmError, ModelInfo};

/// A completion that takes longer comes too late.
const COMPLETION_WAIT: Duration = Duration::from_secs(30);
/// So much of a document is shown to a model before and after the cursor.
const BEFORE_CURSOR: usize = 48 * 1024;
const AFTER_CURSOR: usize = 16 * 1024;
const MAX_COMPLETION: usize = 32 * 1024;
/// A larger file is not shown beside the selection.
const MAX_FILE: u64 = 2 * 1024 * 1024;
const MAX_REWRITTEN: usize = 4 * 1024 * 1024;
/// How the cursor is marked; no text has this by chance.
const CURSOR: &str = "<|eca-cursor|>";

/// A selection and what should become of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rewrite {
    pub text: String,
    pub wish: String,
    pub path: Option<PathBuf>,
    /// The lines of the file that it covers, the first being 1.
    pub lines: Option<(u32, u32)>,
}

/// A rewrite on its way.
pub struct Rewriting {
    answer: Answer,
    text: String,
    started: Instant,
    over: bool,
}

impl std::fmt::Debug for Rewriting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rewriting").field("model", self.model()).finish_non_exhaustive()
    }
}

/// What happens in a rewrite, in order; the last of them is `Finished` or `Failed`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RewriteStep {
    Reasoning,
    Text(String),
    /// The whole text, in place of what came so far.
    Replace(String),
    Finished {
        took: Duration,
    },
    Failed(String),
}

/// Why nothing was proposed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoCompletion {
    /// There is nothing useful to say.
    Nothing,
    /// Something is wrong that the user should know.
    Problem(String),
}

impl Engine {
    /// What fits at the cursor. `line` and `column` begin with 1; columns count UTF-16 units.
    pub async fn complete(&self, document: &str, line: u32, column: u32) -> Result<String, NoCompletion> {
        let settings = self.shared.settings();
        let config = settings.config();
        let (models, model) =
            self.assisting(config.assist.completion_model.as_deref()).map_err(NoCompletion::Problem)?;
        let (before, after) = around_cursor(document, line, column);
        let deadline = Deadline::now() + COMPLETION_WAIT;
        let question = Question {
            system: prompt::completion(&config.prompts, CURSOR),
            messages: vec![request::user_text(&format!("{before}{CURSOR}{after}"))],
            tools: Vec::new(),
            deadline: Some(deadline),
        };
        let gone = || NoCompletion::Problem(format!("{} has no provider in the configuration.", model.id));
        let answer = models.ask(&model, question).ok_or_else(gone)?;
        let Ok(answer) = tokio::time::timeout_at(deadline, whole(answer)).await else {
            return Err(NoCompletion::Problem(format!("{} took too long.", model.id)));
        };
        let text = answer.map_err(|error| NoCompletion::Problem(error.user_text))?;
        let text = unfenced(&text).unwrap_or(text).replace(CURSOR, "");
        if text.trim().is_empty() { Err(NoCompletion::Nothing) } else { Ok(text) }
    }

    /// Begins to write a selection anew; an error is a sentence for the user.
    pub async fn rewrite(&self, rewrite: Rewrite) -> Result<Rewriting, String> {
        let settings = self.shared.settings();
        let config = settings.config();
        let (models, model) = self.assisting(config.assist.rewrite_model.as_deref())?;
        let most = config.assist.full_file_max_lines;
        let file = match rewrite.path.clone() {
            Some(path) => {
                let lines = rewrite.lines;
                let reading = tokio::task::spawn_blocking(move || file_around(&path, lines, most));
                reading.await.unwrap_or_default()
            }
            None => None,
        };
        let path = rewrite.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        let lines = rewrite.lines.map(|(first, last)| format!("lines {first} to {last}")).unwrap_or_default();
        let question = Question {
            system: prompt::rewrite(&config.prompts, &rewrite.text, &path, &lines, &file.unwrap_or_default()),
            messages: vec![request::user_text(rewrite.wish.trim())],
            tools: Vec::new(),
            deadline: None,
        };
        let gone = || format!("{} has no provider in the configuration.", model.id);
        let answer = models.ask(&model, question).ok_or_else(gone)?;
        Ok(Rewriting { answer, text: String::new(), started: Instant::now(), over: false })
    }

    fn assisting(&self, wished: Option<&str>) -> Result<(Models, ModelInfo), String> {
        let models = Models::new(self.registry());
        if let Some(name) = wished {
            models.check(name)?;
        }
        let none = || "No model is set up. `/login` enters the key of a provider.".to_owned();
        let model = models.answering(wished).ok_or_else(none)?;
        Ok((models, model))
    }
}

impl Rewriting {
    pub fn model(&self) -> &ModelId {
        self.answer.model()
    }

    /// The next steps, of which there may be two; nothing after the end.
    pub async fn next(&mut self) -> Vec<RewriteStep> {
        while !self.over {
            let end = match self.answer.next().await {
                Some(Ok(Delta::Reasoning(_))) => return vec![RewriteStep::Reasoning],
                Some(Ok(Delta::Text(text))) if self.text.len() + text.len() > MAX_REWRITTEN => {
                    vec![RewriteStep::Failed("The new text is too long.".to_owned())]
                }
                Some(Ok(Delta::Text(text))) => {
                    self.text.push_str(&text);
                    return vec![RewriteStep::Text(text)];
                }
                Some(Ok(Delta::Stop(_))) | None if self.text.trim().is_empty() => {
                    vec![RewriteStep::Failed(format!("{} answered with nothing.", self.answer.model()))]
                }
                Some(Ok(Delta::Stop(_))) | None => {
                    let took = self.started.elapsed();
                    let replace = unfenced(&self.text).map(RewriteStep::Replace);
                    replace.into_iter().chain([RewriteStep::Finished { took }]).collect()
                }
                Some(Ok(_)) => continue,
                Some(Err(error)) => vec![RewriteStep::Failed(error.user_text)],
            };
            self.over = true;
            return end;
        }
        Vec::new()
    }
}

async fn whole(mut answer: Answer) -> Result<String, LlmError> {
    let mut text = String::new();
    while let Some(delta) = answer.next().await {
        if let Delta::Text(more) = delta? {
            text.push_str(&more);
        }
        if text.len() > MAX_COMPLETION {
            break;
        }
    }
    Ok(text::prefix(&text, MAX_COMPLETION).to_owned())
}

/// The document before and after the cursor, as far as a model needs it. A place that does not exist
/// is the nearest one that does.
fn around_cursor(document: &str, line: u32, column: u32) -> (&str, &str) {
    let start = document
        .match_indices('\n')
        .map(|(at, _)| at + 1)
        .take(usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX))
        .last()
        .unwrap_or(0);
    let rest = &document[start..];
    let row = &rest[..rest.find(['\r', '\n']).unwrap_or(rest.len())];
    let mut units = column.saturating_sub(1);
    let mut cursor = start + row.len();
    for (at, letter) in row.char_indices() {
        let width = if letter.len_utf16() == 1 { 1 } else { 2 };
        if units < width {
            cursor = start + at;
            break;
        }
        units -= width;
    }
    let (before, after) = document.split_at(cursor);
    let mut from = before.len().saturating_sub(BEFORE_CURSOR);
    while !before.is_char_boundary(from) {
        from += 1;
    }
    (&before[from..], text::prefix(after, AFTER_CURSOR))
}

/// What a model put into a code fence although it was told not to; `None` when it did not.
fn unfenced(text: &str) -> Option<String> {
    let inside = text.trim().strip_prefix("```")?.strip_suffix("```")?;
    let (_, code) = inside.split_once('\n')?;
    // Two blocks with words between them are no single text in a fence.
    (!code.contains("\n```")).then(|| code.strip_suffix('\n').unwrap_or(code).to_owned())
}

/// The text of a file, or the lines around these if it has more than `most`. Nothing of what may hold
/// keys: the user selected a part of it, not all.
fn file_around(path: &Path, lines: Option<(u32, u32)>, most: usize) -> Option<String> {
    let metadata = std::fs::metadata(path).ok()?;
    if !path.is_absolute() || !metadata.is_file() || metadata.len() > MAX_FILE || approval::is_key_file(path) {
        return None;
    }
    let text = String::from_utf8(std::fs::read(path).ok()?).ok()?;
    let all: Vec<&str> = text.lines().collect();
    if all.len() <= most {
        return Some(text);
    }
    let number = |line: u32| usize::try_from(line).unwrap_or(usize::MAX).saturating_sub(1);
    let (first, last) = lines.map_or((0, 0), |(first, last)| (number(first), number(last)));
    let middle = first.saturating_add(last) / 2;
    let from = middle.saturating_sub(most / 2).min(all.len() - most);
    Some(all[from..from + most].join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_stands_where_the_editor_says_or_near_it() {
        let document = "one\ntwo 😀 x\r\nthree";
        for (line, column, before, after) in [
            (1, 1, "", "one\ntwo 😀 x\r\nthree"),
            (1, 4, "one", "\ntwo 😀 x\r\nthree"),
            (1, 99, "one", "\ntwo 😀 x\r\nthree"),
            (2, 5, "one\ntwo ", "😀 x\r\nthree"),
            (2, 6, "one\ntwo ", "😀 x\r\nthree"),
            (2, 7, "one\ntwo 😀", " x\r\nthree"),
            (2, 50, "one\ntwo 😀 x", "\r\nthree"),
            (3, 3, "one\ntwo 😀 x\r\nth", "ree"),
            (9, 1, "one\ntwo 😀 x\r\n", "three"),
            (0, 0, "", "one\ntwo 😀 x\r\nthree"),
        ] {
            assert_eq!(around_cursor(document, line, column), (before, after), "{line}:{column}");
        }
        let long = "é".repeat(BEFORE_CURSOR);
        let (before, after) = around_cursor(&long, 1, u32::try_from(BEFORE_CURSOR).unwrap());
        assert!(before.len() <= BEFORE_CURSOR && after.len() <= AFTER_CURSOR && !before.is_empty());
    }

    #[test]
    fn a_fence_around_everything_is_taken_off() {
        for (text, code) in [
            ("```rust\nfn a() {}\n```", Some("fn a() {}")),
            ("\n```\n  a\n  b\n```\n", Some("  a\n  b")),
            ("```\n\n```", Some("")),
            ("fn a() {}", None),
            ("```rust\na\n``` and\n```\nb\n```", None),
            ("```", None),
            ("", None),
        ] {
            assert_eq!(unfenced(text).as_deref(), code, "{text:?}");
        }
    }

    #[test]
    fn a_long_file_is_shown_around_the_selection_and_key_files_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.txt");
        let text: String = (1..=100).map(|n| format!("{n}\n")).collect();
        std::fs::write(&file, &text).unwrap();
        assert_eq!(file_around(&file, None, 100), Some(text));
        for (lines, first, last) in [
            (Some((50, 52)), "46", "55"),
            (Some((1, 1)), "1", "10"),
            (Some((100, 100)), "91", "100"),
            (None, "1", "10"),
        ] {
            let shown = file_around(&file, lines, 10).unwrap();
            let ends = (shown.lines().next(), shown.lines().last());
            assert_eq!(ends, (Some(first), Some(last)), "{lines:?}");
        }
        let keys = folder.path().join(".env");
        std::fs::write(&keys, "KEY=1").unwrap();
        assert_eq!(file_around(&keys, None, 10), None);
        assert_eq!(file_around(folder.path(), None, 10), None);
        assert_eq!(file_around(Path::new("relative"), None, 10), None);
    }
}
