//! `write_file`: a whole file, new or instead of an old one.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::json;

use super::change::{self, Current, Locks};
use super::diff::between_common_ends;
use super::disk::MAX_TEXT_BYTES;
use super::matching::in_the_style_of;
use super::paths::{self, Target};
use super::replace::{self, NotReplaced};
use super::{STOPPED, arguments, blocking};
use crate::base::text::file_name;
use crate::tool::{
    Access, Arguments, Details, FileChange, FileText, Preview, Tool, ToolContext, ToolOutput, ToolSpec, summary_of_file,
};

#[derive(Debug)]
pub(super) struct WriteFile {
    spec: ToolSpec,
    locks: Arc<Locks>,
}

/// What will be written over what.
struct Plan {
    before: Option<Current>,
    after: FileText,
    shown: FileChange,
}

impl WriteFile {
    pub(super) fn new(locks: Arc<Locks>) -> Self {
        let description = "Writes a whole file: creates it, with the folders it needs, or replaces all of its content. \
                           For a change of a part, use edit_file.";
        let parameters = json!({
            "type": "object",
            "required": ["path", "content"],
            "properties": {
                "path": {"type": "string", "description": "Absolute path."},
                "content": {"type": "string", "description": "The whole content."}
            }
        });
        Self { spec: ToolSpec::native("write_file", description, parameters), locks }
    }

    async fn write(&self, arguments: &Arguments, context: &ToolContext) -> Result<ToolOutput, String> {
        let target = paths::target(arguments::text(arguments, "path")?, context).await?;
        let _alone = self.locks.hold(&target.real, &context.stop).await?;
        let path = target.written.display();
        for _ in 0..2 {
            let plan = plan(arguments, &target, context).await?;
            if context.stop.is_cancelled() {
                return Err(STOPPED.to_owned());
            }
            let (added, removed) = (plan.shown.lines_added, plan.shown.lines_removed);
            let report = match &plan.before {
                None => format!("Created {path} ({added} lines)."),
                Some(before) if before.text == plan.after => {
                    context.seen.saw(&target.real, plan.after);
                    return Ok(ToolOutput::text(format!("{path} has this content already.")));
                }
                Some(before) => {
                    let unseen = match context.seen.last(&target.real) {
                        Some(seen) if *seen == *before.text => "",
                        Some(_) => " It had changed since you saw it; that is overwritten.",
                        None => " You had not read what was there before.",
                    };
                    format!("Replaced {path} (+{added} -{removed}).{unseen}")
                }
            };
            let text = plan.after.clone();
            match change::commit(&target, plan.before, plan.after, context).await {
                Ok(place) => {
                    context.seen.saw(&target.real, text);
                    return Ok(ToolOutput {
                        details: Some(Details::FileChange(plan.shown)),
                        ..ToolOutput::text(report + change::note(place))
                    });
                }
                Err(NotReplaced::Failed(problem)) => return Err(problem),
                Err(NotReplaced::Changed) => {}
            }
        }
        Err(format!("{path} keeps changing; nothing was written."))
    }
}

impl Tool for WriteFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn summary(&self, arguments: &Arguments) -> Option<String> {
        Some(summary_of_file("Writing", arguments, "path"))
    }

    fn preview<'a>(
        &'a self,
        arguments: &'a Arguments,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<Preview, String>> {
        Box::pin(async move {
            let target = paths::target(arguments::text(arguments, "path")?, context).await?;
            let plan = plan(arguments, &target, context).await?;
            let real = target.real.clone();
            blocking(&context.stop, move || replace::check(&real)).await?;
            let verb = if plan.before.is_some() { "Rewriting" } else { "Creating" };
            Ok(Preview {
                summary: Some(format!("{verb} {}", file_name(&target.written))),
                details: Some(Details::FileChange(plan.shown)),
                paths: vec![target.touched(Access::Write)],
                ..Preview::default()
            })
        })
    }

    fn run<'a>(&'a self, arguments: Arguments, context: ToolContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { self.write(&arguments, &context).await.unwrap_or_else(ToolOutput::error) })
    }
}

async fn plan(arguments: &Arguments, target: &Target, context: &ToolContext) -> Result<Plan, String> {
    let content = FileText::from(arguments::text(arguments, "content")?);
    if content.whole().len() as u64 > MAX_TEXT_BYTES {
        return Err("The content is too large.".to_owned());
    }
    let before = change::current(target, context).await?;
    let path = target.written.clone();
    blocking(&context.stop, move || {
        let old = before.as_ref().map(|before| &before.text);
        let after = after(old, content);
        let changes = between_common_ends(old.map_or("", |old| old), &after);
        let shown = change::file_change(&path, old, &after, &changes);
        Ok(Plan { before, after, shown })
    })
    .await
}

/// What is written: the content, with the mark, the line ends and the last line end of the file
/// that it replaces.
fn after(before: Option<&FileText>, content: FileText) -> FileText {
    let Some(before) = before else { return content };
    let is_marked = before.is_marked() || content.is_marked();
    match in_the_style_of(before, &content) {
        Cow::Borrowed(_) if is_marked == content.is_marked() => content,
        text => FileText::with_mark(text.into_owned(), is_marked),
    }
}
