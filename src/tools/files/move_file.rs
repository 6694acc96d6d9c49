//! `move_file`: moves or renames a file or a folder, and never over something else.

#[cfg(test)]
mod tests;

use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde_json::json;

use super::change::{self, Locks};
use super::paths::{self, Target, in_words};
use super::replace::{rename_to_nothing, sync_folder};
use super::{STOPPED, arguments, blocking, disk, to_the_end};
use crate::base::text::file_name;
use crate::tool::{
    Access, Arguments, PlannedChange, Preview, Tool, ToolContext, ToolOutput, ToolSpec, TouchedPath, summary_of_file,
};

/// Larger files are moved without a copy in the journal.
const MAX_KEPT_BYTES: u64 = 32 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct MoveFile {
    spec: ToolSpec,
    locks: Arc<Locks>,
}

/// A move that can be made. A link is moved itself, not what it leads to.
#[derive(Debug)]
struct Plan {
    source: PathBuf,
    destination: PathBuf,
    metadata: Metadata,
}

impl MoveFile {
    pub(super) fn new(locks: Arc<Locks>) -> Self {
        let description = "Moves or renames a file or folder. Nothing may exist at the destination; its folders are \
                           created as needed.";
        let parameters = json!({
            "type": "object",
            "required": ["source", "destination"],
            "properties": {
                "source": {"type": "string", "description": "Absolute path."},
                "destination": {"type": "string", "description": "Absolute path, with the new name."}
            }
        });
        Self { spec: ToolSpec::native("move_file", description, parameters), locks }
    }

    async fn go(&self, arguments: &Arguments, context: &ToolContext) -> Result<ToolOutput, String> {
        let (source, destination) = both(arguments, context).await?;
        let mut names = [source.clone(), destination.clone()];
        names.sort_unstable();
        let _alone = self.locks.hold(&names[0], &context.stop).await?;
        let _too = if names[0] == names[1] { None } else { Some(self.locks.hold(&names[1], &context.stop).await?) };
        let plan = plan(source, destination, context).await?;
        if context.stop.is_cancelled() {
            return Err(STOPPED.to_owned());
        }
        let kept = keep(&plan, context).await?;
        let (from, to) = (plan.source.clone(), plan.destination.clone());
        let is_file = plan.metadata.is_file();
        to_the_end(move || carry_out(&from, &to, is_file)).await?;
        if is_file {
            // The model knows it under its new name now.
            if let Some(seen) = context.seen.last(&plan.source) {
                context.seen.saw(&plan.destination, seen);
            }
            context.seen.forget(&plan.source);
        }
        let note = if kept { "" } else { " This cannot be taken back by a rollback." };
        Ok(ToolOutput::text(format!("Moved {} to {}.{note}", plan.source.display(), plan.destination.display())))
    }
}

impl Tool for MoveFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn summary(&self, arguments: &Arguments) -> Option<String> {
        Some(summary_of_file("Moving", arguments, "source"))
    }

    fn preview<'a>(
        &'a self,
        arguments: &'a Arguments,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<Preview, String>> {
        Box::pin(async move {
            let from = paths::resolve(arguments::text(arguments, "source")?, context).await?;
            let to = paths::resolve(arguments::text(arguments, "destination")?, context).await?;
            let (source, destination) = both(arguments, context).await?;
            let renames = source.parent() == destination.parent();
            plan(source, destination, context).await?;
            let verb = if renames { "Renaming" } else { "Moving" };
            Ok(Preview {
                summary: Some(format!("{verb} {}", file_name(&from))),
                paths: [from, to].into_iter().map(|path| TouchedPath { path, access: Access::Write }).collect(),
                ..Preview::default()
            })
        })
    }

    fn run<'a>(&'a self, arguments: Arguments, context: ToolContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { self.go(&arguments, &context).await.unwrap_or_else(ToolOutput::error) })
    }
}

/// Source and destination, in their real folders. The names themselves are not followed.
async fn both(arguments: &Arguments, context: &ToolContext) -> Result<(PathBuf, PathBuf), String> {
    let source = paths::resolve(arguments::text(arguments, "source")?, context).await?;
    let destination = paths::resolve(arguments::text(arguments, "destination")?, context).await?;
    blocking(&context.stop, move || Ok((in_real_folder(source)?, in_real_folder(destination)?))).await
}

fn in_real_folder(path: PathBuf) -> Result<PathBuf, String> {
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => Ok(paths::target_of(folder.to_owned())?.real.join(name)),
        _ => Err(format!("{} has no name that could be moved.", path.display())),
    }
}

async fn plan(source: PathBuf, destination: PathBuf, context: &ToolContext) -> Result<Plan, String> {
    let plan = blocking(&context.stop, move || {
        let metadata = match source.symlink_metadata() {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(paths::not_found(&source)),
            Err(error) => return Err(format!("{}: {}.", source.display(), in_words(&error))),
        };
        if source == destination {
            return Err(format!("{} is there already: source and destination are the same.", source.display()));
        }
        if metadata.is_dir() && destination.starts_with(&source) {
            return Err(format!("{} cannot be moved into itself.", source.display()));
        }
        if destination.symlink_metadata().is_ok_and(|there| !is_same_file(&metadata, &there)) {
            let hint = if destination.is_dir() { " Give the name in it too." } else { "" };
            return Err(format!("{} exists already; nothing was moved.{hint}", destination.display()));
        }
        let folder = destination.ancestors().skip(1).find(|folder| folder.symlink_metadata().is_ok());
        if let Some(file) = folder.filter(|folder| !folder.is_dir()) {
            return Err(format!("{} is a file, not a folder; nothing was moved.", file.display()));
        }
        Ok(Plan { source, destination, metadata })
    })
    .await?;
    let target = Target { written: plan.source.clone(), real: plan.source.clone() };
    if plan.metadata.is_file() && change::unsaved(&target, context).await.is_some() {
        return Err(format!(
            "{} has changes in the editor that are not saved; save them first.",
            plan.source.display()
        ));
    }
    Ok(plan)
}

/// Where letters of both cases are one, a name can be changed into itself.
#[cfg(unix)]
fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    // Two names of one file are two files to the user.
    (one.dev(), one.ino()) == (other.dev(), other.ino()) && one.nlink() == 1
}

#[cfg(not(unix))]
fn is_same_file(_: &Metadata, _: &Metadata) -> bool {
    false
}

/// Tells the journal of both ends. Returns whether the move can be taken back with it: folders,
/// links and very large files cannot.
async fn keep(plan: &Plan, context: &ToolContext) -> Result<bool, String> {
    if !plan.metadata.is_file() || plan.metadata.len() > MAX_KEPT_BYTES {
        return Ok(false);
    }
    let source = plan.source.clone();
    let bytes = blocking(&context.stop, move || {
        let Some((file, _)) = disk::open(&source)? else { return Err(paths::not_found(&source)) };
        let mut bytes = Vec::new();
        let read = file.take(MAX_KEPT_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(|error| format!("{}: {}.", source.display(), in_words(&error)))?;
        Ok(Bytes::from(bytes))
    })
    .await?;
    let call = &context.call;
    let before = Some(bytes.clone());
    change::record(PlannedChange { call: call.clone(), path: plan.source.clone(), before, after: None }, context)
        .await?;
    let after = Some(bytes);
    let planned = PlannedChange { call: call.clone(), path: plan.destination.clone(), before: None, after };
    change::record(planned, context).await?;
    Ok(true)
}

fn carry_out(source: &Path, destination: &Path, is_file: bool) -> Result<(), String> {
    let failed = |error: &io::Error| format!("{} was not moved: {}.", source.display(), in_words(error));
    if let Some(folder) = destination.parent() {
        fs::create_dir_all(folder).map_err(|error| failed(&error))?;
    }
    let case_only = destination.symlink_metadata().is_ok();
    let renamed = if case_only && same_place(source, destination) {
        fs::rename(source, destination)
    } else {
        rename_to_nothing(source, destination)
    };
    match renamed {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(format!("{} exists already; nothing was moved.", destination.display()));
        }
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices && is_file => {
            copy_over(source, destination).map_err(|error| failed(&error))?;
        }
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            return Err(format!(
                "{} was not moved: the destination is on another file system. A shell command can do it.",
                source.display()
            ));
        }
        Err(error) => return Err(failed(&error)),
    }
    sync_folder(source);
    sync_folder(destination);
    Ok(())
}

fn same_place(source: &Path, destination: &Path) -> bool {
    match (source.symlink_metadata(), destination.symlink_metadata()) {
        (Ok(one), Ok(other)) => is_same_file(&one, &other),
        _ => false,
    }
}

/// Moves a file to another file system: a complete copy takes its name there before the original
/// goes.
fn copy_over(source: &Path, destination: &Path) -> io::Result<()> {
    let temporary = destination.with_file_name(format!(".eca-{}.tmp", uuid::Uuid::new_v4().simple()));
    let copied = fs::copy(source, &temporary)
        .and_then(|_| fs::File::open(&temporary)?.sync_all())
        .and_then(|()| rename_to_nothing(&temporary, destination));
    if let Err(error) = copied {
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    fs::remove_file(source)
}
