//! `edit_file` and `preview_file_change`: replace a part of a file that the model has seen.
//!
//! An edit is checked against what the model saw last. If the file is still that, small slips in
//! white space are forgiven. If it is not, or was never seen whole, only the exact text counts, and
//! only where it stands once; the model is told what changed.

mod plan;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::json;

use super::change::{self, Current, Locks};
use super::matching::{Change, Rules};
use super::paths::{self, Target};
use super::replace::{self, NotReplaced};
use super::{STOPPED, arguments, blocking};
use crate::base::text::file_name;
use crate::tool::{
    Access, Arguments, Details, FileChange, FileText, Prepared, Preview, Tool, ToolContext, ToolOutput, ToolSpec,
    summary_of_file,
};
use plan::{Plan, Sight};

/// The same for both tools.
fn parameters() -> serde_json::Value {
    json!({
        "type": "object",
        "required": ["path", "original_content", "new_content"],
        "properties": {
            "path": {"type": "string", "description": "Absolute path."},
            "original_content": {"type": "string", "description": "Text to replace, as it is in the file."},
            "new_content": {"type": "string", "description": "Text to put there."},
            "all_occurrences": {"type": "boolean", "description": "Replace every occurrence."}
        }
    })
}

#[derive(Debug, Clone)]
struct Request {
    path: String,
    original: Arc<str>,
    new: Arc<str>,
    all: bool,
}

impl Request {
    fn from(arguments: &Arguments) -> Result<Self, String> {
        Ok(Self {
            path: arguments::text(arguments, "path")?.to_owned(),
            original: arguments::text(arguments, "original_content")?.into(),
            new: arguments::text(arguments, "new_content")?.into(),
            all: arguments::flag(arguments, "all_occurrences")?,
        })
    }
}

#[derive(Debug)]
pub(super) struct EditFile {
    spec: ToolSpec,
    locks: Arc<Locks>,
}

impl EditFile {
    pub(super) fn new(locks: Arc<Locks>) -> Self {
        let description = "Replaces a piece of text in a file. original_content must stand there exactly once, so give \
                           enough lines around it; with all_occurrences every one is replaced. Read the file first. \
                           To create or rewrite a file, use write_file.";
        Self { spec: ToolSpec::native("edit_file", description, parameters()), locks }
    }

    async fn edit(&self, arguments: &Arguments, context: &ToolContext) -> Result<ToolOutput, String> {
        let request = Request::from(arguments)?;
        let target = paths::target(&request.path, context).await?;
        let _alone = self.locks.hold(&target.real, &context.stop).await?;
        // Worked out already for the user to look at; when it is made, the file must still be what it was.
        let prepared: Option<Plan> = context.prepared.take();
        let mut rules = if prepared.is_some() { None } else { Some(Rules::ExactOnce) };
        let mut plan = match prepared {
            Some(plan) => plan,
            None => plan_edit(&request, &target, None, context).await?,
        };
        for is_last in [false, false, true] {
            if context.stop.is_cancelled() {
                return Err(STOPPED.to_owned());
            }
            let text = plan.after.clone();
            match change::commit(&target, Some(plan.before), plan.after, context).await {
                Ok(place) => {
                    context.seen.saw(&target.real, text);
                    let details = Some(Details::FileChange(plan.shown));
                    return Ok(ToolOutput { details, ..ToolOutput::text(plan.report + change::note(place)) });
                }
                Err(NotReplaced::Failed(problem)) => return Err(problem),
                Err(NotReplaced::Changed) if is_last => break,
                // Somebody else was faster. What they wrote was seen by nobody.
                Err(NotReplaced::Changed) => {
                    plan = plan_edit(&request, &target, rules.replace(Rules::ExactOnce), context).await?;
                }
            }
        }
        Err(format!("{} keeps changing; nothing was written.", target.written.display()))
    }
}

impl Tool for EditFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn summary(&self, arguments: &Arguments) -> Option<String> {
        Some(summary_of_file("Editing", arguments, "path"))
    }

    fn preview<'a>(
        &'a self,
        arguments: &'a Arguments,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<Preview, String>> {
        Box::pin(async move {
            let request = Request::from(arguments)?;
            let target = paths::target(&request.path, context).await?;
            let plan = plan_edit(&request, &target, None, context).await?;
            let real = target.real.clone();
            blocking(&context.stop, move || replace::check(&real)).await?;
            Ok(Preview {
                summary: Some(format!("Editing {}", file_name(&target.written))),
                details: Some(Details::FileChange(plan.shown.clone())),
                paths: vec![target.touched(Access::Write)],
                prepared: Prepared::new(plan),
                ..Preview::default()
            })
        })
    }

    fn run<'a>(&'a self, arguments: Arguments, context: ToolContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { self.edit(&arguments, &context).await.unwrap_or_else(ToolOutput::error) })
    }
}

/// Works the edit out on the file as it is now. `rules` of the caller's are stricter than those
/// that follow from what the model has seen.
async fn plan_edit(
    request: &Request,
    target: &Target,
    rules: Option<Rules>,
    context: &ToolContext,
) -> Result<Plan, String> {
    let Some(before) = change::current(target, context).await? else {
        let path = target.written.clone();
        let problem = blocking(&context.stop, move || Ok(paths::not_found(&path))).await?;
        return Err(format!("{problem} Use write_file to create a file."));
    };
    plan_on(request, target, before, rules, context).await
}

async fn plan_on(
    request: &Request,
    target: &Target,
    before: Current,
    rules: Option<Rules>,
    context: &ToolContext,
) -> Result<Plan, String> {
    let seen = context.seen.last(&target.real);
    let (request, path) = (request.clone(), target.written.clone());
    let planned = blocking(&context.stop, move || {
        let sight = Sight::of(seen.as_deref(), &before.text);
        Ok(plan::plan(&request, &path, before, &sight, rules))
    });
    planned.await?.map_err(|refusal| {
        if let Some(now) = refusal.now_seen {
            context.seen.saw(&target.real, now);
        }
        refusal.text
    })
}

/// Shows an edit without making it.
#[derive(Debug)]
pub(super) struct PreviewFileChange {
    spec: ToolSpec,
}

impl PreviewFileChange {
    pub(super) fn new() -> Self {
        let description = "Shows the user a change of a file as a diff and writes nothing. Works like edit_file; for \
                           a new file, original_content is empty and new_content the whole file.";
        Self { spec: ToolSpec::native("preview_file_change", description, parameters()) }
    }

    async fn change(&self, arguments: &Arguments, context: &ToolContext) -> Result<(FileChange, Target), String> {
        let request = Request::from(arguments)?;
        let target = paths::target(&request.path, context).await?;
        let shown = match change::current(&target, context).await? {
            Some(before) => plan_on(&request, &target, before, None, context).await?.shown,
            None if request.original.is_empty() => {
                let (path, new) = (target.written.clone(), FileText::from(&*request.new));
                let whole = [Change { old: 0..0, new: 0..new.len() }];
                blocking(&context.stop, move || Ok(change::file_change(&path, None, &new, &whole))).await?
            }
            None => {
                let path = target.written.clone();
                let problem = blocking(&context.stop, move || Ok(paths::not_found(&path))).await?;
                return Err(format!("{problem} For a new file, original_content must be empty."));
            }
        };
        Ok((shown, target))
    }
}

impl Tool for PreviewFileChange {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn summary(&self, arguments: &Arguments) -> Option<String> {
        Some(summary_of_file("Previewing change of", arguments, "path"))
    }

    fn preview<'a>(
        &'a self,
        arguments: &'a Arguments,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<Preview, String>> {
        Box::pin(async move {
            let (shown, target) = self.change(arguments, context).await?;
            Ok(Preview {
                summary: Some(format!("Previewing change of {}", file_name(&target.written))),
                details: Some(Details::FileChange(shown)),
                paths: vec![target.touched(Access::Read)],
                ..Preview::default()
            })
        })
    }

    fn run<'a>(&'a self, arguments: Arguments, context: ToolContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            match self.change(&arguments, &context).await {
                Ok((shown, target)) => {
                    let (added, removed) = (shown.lines_added, shown.lines_removed);
                    let path = target.written.display();
                    let text =
                        format!("The user sees the change of {path} (+{added} -{removed}). Nothing was written.");
                    ToolOutput { details: Some(Details::FileChange(shown)), ..ToolOutput::text(text) }
                }
                Err(problem) => ToolOutput::error(problem),
            }
        })
    }
}
