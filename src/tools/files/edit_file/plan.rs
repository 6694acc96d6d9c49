//! Decides what an edit does to a file, from the file's text and what the model saw of it. Pure.

use std::path::Path;

use super::Request;
use crate::tool::{FileChange, FileText};
use crate::tools::files::change::{Current, file_change};
use crate::tools::files::diff::{self, between_common_ends};
use crate::tools::files::matching::{self, Edit, Mismatch, Rules, Tier};

/// How much is told of what others changed.
const NEWS_BYTES: usize = 4 * 1024;

/// An edit that can be made.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) before: Current,
    pub(super) after: FileText,
    pub(super) shown: FileChange,
    /// For the model, when it is done.
    pub(super) report: String,
}

/// An edit that is not made.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) text: String,
    /// The text tells all that changed, so the model knows this content now.
    pub(super) now_seen: Option<FileText>,
}

/// What the model knows of the file.
#[derive(Debug)]
pub(super) enum Sight {
    /// As it is now.
    Current,
    /// Nothing, or only a part.
    Never,
    /// As it was before somebody changed it.
    Stale(News),
}

/// What changed since the model looked.
#[derive(Debug)]
pub(super) struct News {
    diff: String,
    whole: bool,
}

impl Sight {
    pub(super) fn of(seen: Option<&str>, now: &str) -> Self {
        let Some(seen) = seen else { return Self::Never };
        let seen = seen.strip_prefix('\u{FEFF}').unwrap_or(seen);
        if seen == now {
            return Self::Current;
        }
        let diff = diff::unified(seen, now, &between_common_ends(seen, now), NEWS_BYTES);
        Self::Stale(News { diff: diff.text, whole: !diff.cut })
    }
}

pub(super) fn plan(
    request: &Request,
    path: &Path,
    before: Current,
    sight: &Sight,
    rules: Option<Rules>,
) -> Result<Plan, Refusal> {
    let edit = Edit { original: &request.original, new: &request.new, all: request.all };
    let by_sight = if matches!(sight, Sight::Current) { Rules::Loose } else { Rules::ExactOnce };
    let text = &before.text;
    match matching::apply(text, edit, rules.unwrap_or(by_sight)) {
        Ok(applied) => {
            let done = report(path, text, &applied);
            let after = FileText::with_mark(applied.text, text.is_marked());
            let shown = file_change(path, Some(text), &after, &applied.changes);
            let (added, removed) = (shown.lines_added, shown.lines_removed);
            let report = format!("{done} (+{added} -{removed}).{}", notes(applied.tier, sight));
            Ok(Plan { before, after, shown, report })
        }
        Err(mismatch) => {
            let mut said = refusal(path, &mismatch, request.all);
            let mut now_seen = None;
            if matches!(mismatch, Mismatch::NotFound { .. } | Mismatch::Ambiguous { .. }) {
                said.push_str(&advice(sight));
                if matches!(sight, Sight::Stale(News { whole: true, .. })) {
                    now_seen = Some(text.clone());
                }
            }
            Err(Refusal { text: said, now_seen })
        }
    }
}

fn report(path: &Path, before: &str, applied: &matching::Applied) -> String {
    let path = path.display();
    if applied.places > 1 {
        return format!("Edited {path} in {} places", applied.places);
    }
    let start = applied.changes.first().map_or(0, |change| change.old.start);
    let line = 1 + memchr::memchr_iter(b'\n', &before.as_bytes()[..start]).count();
    format!("Edited {path} at line {line}")
}

/// What the model should know about an edit that was made.
fn notes(tier: Tier, sight: &Sight) -> String {
    let mut notes = String::new();
    notes.push_str(match tier {
        Tier::Exact => "",
        Tier::TrailingBlanks => " The text differed in blanks at line ends.",
        Tier::Indentation => " The text differed in indentation; the new lines are indented as the file is.",
        Tier::WhiteSpace => " The text differed in white space; the new lines are indented as the file is.",
    });
    match sight {
        Sight::Current => {}
        Sight::Never => notes.push_str(" You had not read the whole file; the exact text was found once."),
        Sight::Stale(news) => {
            notes.push_str(" The file had changed since you saw it; the exact text was still found once. ");
            notes.push_str(&tell(news));
        }
    }
    notes
}

fn advice(sight: &Sight) -> String {
    match sight {
        Sight::Current => String::new(),
        Sight::Never => " You have not read the whole file; read it first.".to_owned(),
        Sight::Stale(news) => format!(" The file has changed since you saw it. {}", tell(news)),
    }
}

fn tell(news: &News) -> String {
    let again = if news.whole { "" } else { " Read it again." };
    format!("What changed:\n{}{again}", news.diff)
}

fn refusal(path: &Path, mismatch: &Mismatch, all: bool) -> String {
    let path = path.display();
    match mismatch {
        Mismatch::EmptyOriginal => {
            format!("original_content is empty, but {path} exists: give the text to replace, or use write_file.")
        }
        Mismatch::NoChange => {
            format!("The edit would not change {path}: new_content is what is there already.")
        }
        Mismatch::TooLarge => format!("The edit would make {path} too large."),
        Mismatch::NotFound { near } => {
            let mut said = format!("original_content was not found in {path}; nothing was changed.");
            if !near.is_empty() {
                said.push_str(&format!(" Its first line is at {}, but what follows differs.", lines(near)));
            }
            said
        }
        Mismatch::Ambiguous { tier, places } => {
            let count = if places.more { format!("more than {}", places.count) } else { places.count.to_string() };
            let how = if *tier == Tier::Exact { "" } else { " if white space is ignored" };
            let further = if !places.more && places.lines.len() == places.count { "" } else { " and further on" };
            let wish = if all { "" } else { " Give more of the text around the right one, or set all_occurrences." };
            format!(
                "original_content stands in {count} places of {path}{how}, at {}{further}; nothing was changed.{wish}",
                lines(&places.lines)
            )
        }
    }
}

fn lines(numbers: &[usize]) -> String {
    let list: Vec<String> = numbers.iter().map(usize::to_string).collect();
    let word = if list.len() == 1 { "line" } else { "lines" };
    format!("{word} {}", list.join(", "))
}
