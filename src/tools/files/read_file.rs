//! `read_file`: a page of a text file, or an image for a model that can look at it.
//!
//! A file counts as seen when it was shown whole, in one page or in several without a change in
//! between. Before that, and for files over 8 MiB, an edit is held to the exact text.

mod page;
mod picture;

pub(super) use picture::prepare as prepare_image;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::path::Path;

use futures_util::future::BoxFuture;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::disk;
use super::paths::{self, Target, in_words};
use super::{STOPPED, arguments, blocking, change, or_stopped};
use crate::base::text::{file_name, prefix};
use crate::llm::Image;
use crate::tool::{
    Access, Arguments, Content as Output, FileText, Preview, Tool, ToolContext, ToolOutput, ToolSpec, TouchedPath,
    summary_of_file,
};
use page::{Page, PageError, Total, Wanted};
use picture::Seen;

/// Left of the largest output for a note.
const NOTE_BYTES: usize = 512;
/// However large outputs may be.
const MAX_PAGE_BYTES: usize = 8 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct ReadFile {
    spec: ToolSpec,
}

/// What was read.
enum Reading {
    Text { text: String, seen: Option<Shown> },
    Picture { image: Image, note: String },
}

/// Which lines were shown of which content.
struct Shown {
    content: FileText,
    lines: Range<usize>,
    total: usize,
}

impl ReadFile {
    pub(super) fn new() -> Self {
        let description = "Reads a text file, or shows an image (png, jpeg, gif, webp). Long files come in pages: \
                           line_offset is the first line to show, from 0, and limit how many.";
        let parameters = json!({
            "type": "object",
            "required": ["path"],
            "properties": {
                "path": {"type": "string", "description": "Absolute path."},
                "line_offset": {"type": "integer", "description": "Lines to skip."},
                "limit": {"type": "integer", "description": "Most lines to show."}
            }
        });
        Self { spec: ToolSpec::native("read_file", description, parameters) }
    }
}

impl Tool for ReadFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn summary(&self, arguments: &Arguments) -> Option<String> {
        Some(summary_of_file("Reading", arguments, "path"))
    }

    fn preview<'a>(
        &'a self,
        arguments: &'a Arguments,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<Preview, String>> {
        Box::pin(async move {
            let path = paths::resolve(arguments::text(arguments, "path")?, context).await?;
            let name = file_name(&path);
            let offset = arguments::count(arguments, "line_offset")?.unwrap_or(0);
            let limit = arguments::count(arguments, "limit")?.filter(|limit| *limit > 0);
            let last = offset.saturating_add(limit.unwrap_or(context.settings.read_file_max_lines));
            let is_part = offset > 0 || limit.is_some();
            let summary = if is_part { format!("Reading {name} ({offset}-{last})") } else { format!("Reading {name}") };
            let paths = vec![TouchedPath { path, access: Access::Read }];
            Ok(Preview { summary: Some(summary), paths, ..Preview::default() })
        })
    }

    fn run<'a>(&'a self, arguments: Arguments, context: ToolContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { read(&arguments, &context).await.unwrap_or_else(ToolOutput::error) })
    }
}

async fn read(arguments: &Arguments, context: &ToolContext) -> Result<ToolOutput, String> {
    let target = paths::target(arguments::text(arguments, "path")?, context).await?;
    let most = context.settings.read_file_max_lines.max(1);
    let limit = arguments::count(arguments, "limit")?.filter(|limit| *limit > 0);
    let room = context.settings.max_output_bytes.saturating_sub(NOTE_BYTES);
    let wanted = Wanted {
        offset: arguments::count(arguments, "line_offset")?.unwrap_or(0),
        lines: limit.map_or(most, |limit| limit.min(most)),
        bytes: room.clamp(1024, MAX_PAGE_BYTES),
        lines_with_note: context.settings.max_output_lines.max(2),
    };
    let unsaved = or_stopped(&context.stop, async { Ok(change::unsaved(&target, context).await) }).await?;
    let (sees_images, stop, wish) = (context.sees_images, context.stop.clone(), target.clone());
    let reading = blocking(&context.stop, move || match unsaved {
        Some(text) => read_text(&wish.written, text.as_bytes(), wanted, &stop),
        None => read_disk(&wish, wanted, sees_images, &stop),
    })
    .await?;
    Ok(match reading {
        Reading::Text { text, seen } => {
            if let Some(Shown { content, lines, total }) = seen {
                context.seen.saw_lines(&target.real, &content, lines, total);
            }
            ToolOutput::text(text)
        }
        Reading::Picture { image, note } => {
            ToolOutput { contents: vec![Output::Text(note), Output::Image(image)], ..ToolOutput::default() }
        }
    })
}

fn read_disk(target: &Target, wanted: Wanted, sees_images: bool, stop: &CancellationToken) -> Result<Reading, String> {
    let path = &target.written;
    let Some((file, metadata)) = disk::open(&target.real).map_err(|problem| folder_hint(&target.real, problem))? else {
        return Err(paths::not_found(path));
    };
    if picture::has_name_of_one(&target.real) || picture::has_name_of_one(path) {
        match picture::look(&file, metadata.len(), sees_images) {
            Ok(Seen::Picture { image, note }) => return Ok(Reading::Picture { image, note }),
            Ok(Seen::Hidden(what)) => {
                return Err(format!("{} is an image ({what}) that this model cannot see.", path.display()));
            }
            // Some names lie: what stands there may be a text that leads to the image.
            Ok(Seen::Nothing) => {}
            Err(problem) => return Err(format!("{} cannot be shown: {problem}.", path.display())),
        }
        let Some((file, _)) = disk::open(&target.real)? else { return Err(paths::not_found(path)) };
        return read_text(path, file, wanted, stop);
    }
    read_text(path, file, wanted, stop)
}

fn folder_hint(path: &Path, problem: String) -> String {
    if path.is_dir() { format!("{problem} Use directory_tree to list it.") } else { problem }
}

fn read_text(
    path: &Path,
    source: impl std::io::Read,
    wanted: Wanted,
    stop: &CancellationToken,
) -> Result<Reading, String> {
    let page = page::read(source, wanted, stop).map_err(|error| match error {
        PageError::Io(error) => format!("{} cannot be read: {}.", path.display(), in_words(&error)),
        PageError::Binary(start) => disk::not_text(path, &start),
        PageError::Stopped => STOPPED.to_owned(),
        PageError::TooFar => format!("{} is too large to be read that far in.", path.display()),
    })?;
    if wanted.offset > 0 && page.shown == 0 {
        let lines = page.total.in_words();
        return Err(format!(
            "{} has {lines} lines, so there is none at line_offset {}.",
            path.display(),
            wanted.offset
        ));
    }
    let text = shown(&page);
    let lines = page.offset..page.offset + page.shown;
    let seen = match (page.total, page.all) {
        // Of a line that was cut, nobody knows the rest.
        (Total::Exactly(total), Some(all)) if !page.cut && memchr::memchr(0, &all).is_none() => {
            String::from_utf8(all).ok().map(|all| Shown { content: all.into(), lines, total })
        }
        _ => None,
    };
    Ok(Reading::Text { text, seen })
}

/// What the model gets to see: lines without their ends, and a note where it is not the whole.
fn shown(page: &Page) -> String {
    let mut notes = Vec::new();
    let complete = match str::from_utf8(&page.raw) {
        // A character may be torn where a line was cut.
        Err(error) if error.error_len().is_none() && page.cut => &page.raw[..error.valid_up_to()],
        _ => &page.raw[..],
    };
    let text = String::from_utf8_lossy(complete);
    if matches!(text, std::borrow::Cow::Owned(_)) {
        notes.push(
            "[NOT UTF-8] Bytes that are no text are shown as \u{FFFD}; this file cannot be edited here.".to_owned(),
        );
    }
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(&text);
    let mut text = text.replace("\r\n", "\n");
    if text.ends_with('\n') {
        text.pop();
    }
    if page.shown == 0 {
        notes.push("[EMPTY FILE]".to_owned());
    }
    if page.has_more() {
        notes.push(more(page));
    }
    for note in notes {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&note);
    }
    text
}

fn more(page: &Page) -> String {
    let total = page.total.in_words();
    let next = page.offset + page.shown;
    if !page.cut {
        return format!(
            "[CONTENT TRUNCATED] Lines {}-{next} of {total}; go on with line_offset {next}.",
            page.offset + 1
        );
    }
    let follows =
        if page.total > Total::Exactly(next) { format!("; go on with line_offset {next}") } else { String::new() };
    prefix(&format!("[CONTENT TRUNCATED] Line {next} of {total} is too long; this is its start{follows}."), NOTE_BYTES)
        .to_owned()
}
