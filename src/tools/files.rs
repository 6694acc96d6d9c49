//! The tools that work on files: reading, searching, writing, editing and moving.
//!
//! What a model is shown and what it changes is the text that the user sees: a document that is open
//! and not saved goes before the disk. Nothing is changed that could not be taken back: the journal
//! hears of a change first, and a file is replaced whole or not at all.

mod arguments;
mod change;
mod diff;
mod directory_tree;
mod disk;
mod edit_file;
mod grep;
mod matching;
mod move_file;
mod paths;
mod read_file;
mod replace;
#[cfg(test)]
mod testing;
mod walk;
mod write_file;

use std::future::Future;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::base::task;
use crate::tool::Tool;

pub(crate) use replace::restore;

/// An image of a user's, made small enough for models; the type is told by the bytes.
pub(crate) fn prepare_image(bytes: &[u8], _: &str) -> Result<crate::llm::Image, String> {
    read_file::prepare_image(bytes)
}

/// All of them. They share what keeps two calls from changing one file at the same time, so there
/// should be one set of them.
pub fn tools() -> Vec<Arc<dyn Tool>> {
    let locks = Arc::new(change::Locks::default());
    vec![
        Arc::new(read_file::ReadFile::new()),
        Arc::new(write_file::WriteFile::new(Arc::clone(&locks))),
        Arc::new(edit_file::EditFile::new(Arc::clone(&locks))),
        Arc::new(edit_file::PreviewFileChange::new()),
        Arc::new(move_file::MoveFile::new(locks)),
        Arc::new(directory_tree::DirectoryTree::new()),
        Arc::new(grep::Grep::new()),
    ]
}

const STOPPED: &str = "The call was stopped.";

/// Does blocking work beside the runtime, and does not wait for it any longer than for `stop`. The
/// work itself goes on to its end, so it must be harmless or look at `stop` too.
async fn blocking<T: Send + 'static>(
    stop: &CancellationToken,
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    or_stopped(stop, to_the_end(work)).await
}

/// Does blocking work beside the runtime and waits for it.
async fn to_the_end<T: Send + 'static>(work: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, String> {
    match task::blocking(work).await {
        Ok(result) => result,
        Err(error) => {
            tracing::error!(%error, "a file tool failed");
            Err("The tool failed because of a bug; the log has more.".to_owned())
        }
    }
}

async fn or_stopped<T>(stop: &CancellationToken, work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    tokio::select! {
        biased;
        () = stop.cancelled() => Err(STOPPED.to_owned()),
        result = work => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_model_pays_for_is_short_and_complete() {
        let tools = tools();
        let names: Vec<&str> = tools.iter().map(|tool| tool.spec().name.as_str()).collect();
        assert_eq!(
            names,
            ["read_file", "write_file", "edit_file", "preview_file_change", "move_file", "directory_tree", "grep"]
        );
        for tool in &tools {
            let spec = tool.spec();
            assert!((20..=350).contains(&spec.description.len()), "{}: {}", spec.name, spec.description.len());
            let properties = spec.parameters["properties"].as_object().unwrap();
            assert!(spec.required().count() > 0);
            assert!(spec.required().all(|name| properties.contains_key(name)), "{}", spec.name);
            assert!(spec.parameters.to_string().len() < 700, "{}: {}", spec.name, spec.parameters);
        }
    }
}
