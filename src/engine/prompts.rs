//! The instructions that the engine itself sends to models, in our words or in the user's.

/// What stands in for a built-in text, when the user has one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Prompts {
    pub(super) compact: Option<String>,
}

const COMPACT: &str = "Stop working and write a summary of this conversation, so that you can go on from it alone. \
Keep: what the user wants and every decision and preference they stated; what was done, with file paths, names and \
commands; what was found out; what failed and why; what is left to do, in order, and what you were doing just now. \
Leave out greetings and what no longer matters. Do not call tools. Answer with the summary alone.";

impl Prompts {
    /// How a summary is asked for; `about` is what the user wants kept above all.
    pub(super) fn compact_request(&self, about: &str) -> String {
        let text = self.compact.as_deref().unwrap_or(COMPACT);
        match about.trim() {
            "" => text.to_owned(),
            about => format!("{text}\n\nThe user adds: {about}"),
        }
    }
}
