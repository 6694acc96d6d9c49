//! `directory_tree`: what is in a folder and below it.
//!
//! The whole tree is walked within bounds, and as much of it is shown as there is room for, the
//! upper levels first: what lies deep in one folder must not hide its neighbours.

mod layout;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::paths::{self, in_words};
use super::walk::walker;
use super::{STOPPED, arguments, blocking};
use crate::base::text::file_name;
use crate::tool::{Access, Arguments, Preview, Tool, ToolContext, ToolOutput, ToolSpec, TouchedPath};
use layout::{Kind, Room, Tree};

const DEFAULT_DEPTH: usize = 10;
const MOST_ENTRIES: usize = 2_000;
const MOST_BYTES: usize = 48 * 1024;
/// So many are kept in memory; the rest is only counted.
const MOST_NODES: usize = 100_000;
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct DirectoryTree {
    spec: ToolSpec,
}

impl DirectoryTree {
    pub(super) fn new() -> Self {
        let description = "Lists a folder and what is below it as an indented tree, without hidden and ignored files. \
                           Very large folders are summed up.";
        let parameters = json!({
            "type": "object",
            "required": ["path"],
            "properties": {
                "path": {"type": "string", "description": "Absolute path of the folder."},
                "max_depth": {"type": "integer", "description": "Levels to show, 10 if not given."}
            }
        });
        Self { spec: ToolSpec::native("directory_tree", description, parameters) }
    }
}

impl Tool for DirectoryTree {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn summary(&self, arguments: &Arguments) -> Option<String> {
        let name = arguments.get("path").and_then(Value::as_str).map(|path| file_name(Path::new(path)));
        Some(name.map_or_else(|| "Listing tree".to_owned(), |name| format!("Listing tree: {name}")))
    }

    fn preview<'a>(
        &'a self,
        arguments: &'a Arguments,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<Preview, String>> {
        Box::pin(async move {
            let path = paths::resolve(arguments::text(arguments, "path")?, context).await?;
            let summary = format!("Listing tree: {}", paths::from_root(&path, &context.workspace));
            let paths = vec![TouchedPath { path, access: Access::Read }];
            Ok(Preview { summary: Some(summary), paths, ..Preview::default() })
        })
    }

    fn run<'a>(&'a self, arguments: Arguments, context: ToolContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            match list(&arguments, &context).await {
                Ok(text) => ToolOutput::text(text),
                Err(problem) => ToolOutput::error(problem),
            }
        })
    }
}

async fn list(arguments: &Arguments, context: &ToolContext) -> Result<String, String> {
    let target = paths::target(arguments::text(arguments, "path")?, context).await?;
    let depth = arguments::count(arguments, "max_depth")?.unwrap_or(DEFAULT_DEPTH);
    let room = Room {
        // The first line, the last two and a note are not entries.
        entries: MOST_ENTRIES.min(context.settings.max_output_lines.saturating_sub(5)),
        bytes: MOST_BYTES.min(context.settings.max_output_bytes.saturating_sub(1024)),
    };
    let stop = context.stop.clone();
    blocking(&context.stop, move || {
        match target.real.metadata() {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => return Err(format!("{} is a file, not a folder.", target.written.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(paths::not_found(&target.written));
            }
            Err(error) => return Err(format!("{}: {}.", target.written.display(), in_words(&error))),
        }
        let walked = walk(&target.real, depth, MOST_NODES, &stop)?;
        Ok(walked.render(&target.written, room))
    })
    .await
}

/// A tree, and what is to be said about it.
struct Walked {
    tree: Tree,
    /// Not all was walked.
    out_of_time: bool,
    /// Entries that could not be read.
    unreadable: usize,
}

fn walk(root: &Path, depth: usize, most_nodes: usize, stop: &CancellationToken) -> Result<Walked, String> {
    let mut walked = Walked { tree: Tree::default(), out_of_time: false, unreadable: 0 };
    let deadline = Instant::now() + PATIENCE;
    let mut walker = walker(root);
    walker.max_depth(Some(depth)).sort_by_file_name(Ord::cmp);
    // The folders from the root to where the walk is; those that are not kept stand for the last
    // one that is.
    let mut open: Vec<usize> = vec![Tree::ROOT];
    for entry in walker.build() {
        if stop.is_cancelled() {
            return Err(STOPPED.to_owned());
        }
        if Instant::now() > deadline {
            walked.out_of_time = true;
            break;
        }
        // Folders come and go while they are walked, and not all may be read.
        let Ok(entry) = entry else {
            walked.unreadable += 1;
            continue;
        };
        let depth = entry.depth();
        let Some(file_type) = entry.file_type().filter(|_| depth > 0) else { continue };
        open.truncate(depth);
        let Some(&folder) = open.last() else { continue };
        let kind = if file_type.is_dir() {
            Kind::Folder
        } else if file_type.is_symlink() {
            Kind::Link(entry.path().read_link().map(|to| to.to_string_lossy().into_owned()).unwrap_or_default())
        } else {
            Kind::File
        };
        let is_folder = kind == Kind::Folder;
        let keep = walked.tree.len() < most_nodes;
        let node = walked.tree.add(folder, keep.then(|| entry.file_name().to_string_lossy()), kind);
        if is_folder {
            open.push(node);
        }
    }
    Ok(walked)
}

impl Walked {
    fn render(&self, path: &Path, room: Room) -> String {
        let (body, all_shown) = self.tree.render(room);
        let mut text = format!("{}\n{body}\n", path.display());
        if !all_shown {
            text.push_str("Not everything is shown; list one of these folders for more.\n");
        }
        if self.out_of_time {
            text.push_str("There is more: this took too long. List one of these folders.\n");
        }
        if self.unreadable > 0 {
            text.push_str(&format!("{} entries could not be read.\n", self.unreadable));
        }
        let (folders, files) = self.tree.counts();
        text.push_str(&format!("{folders} directories, {files} files"));
        text
    }
}
