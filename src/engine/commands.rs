//! What can be typed after a slash: the table of our own commands, and how a typed line is read.

/// A command as clients list it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandInfo {
    pub name: String,
    pub kind: CommandKind,
    pub description: String,
    pub arguments: Vec<CommandArgument>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandKind {
    Native,
    McpPrompt,
    CustomPrompt,
    Skill,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandArgument {
    pub name: String,
    pub description: Option<String>,
    pub required: bool,
}

/// Our own commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Native {
    Init,
    Login,
    Model,
    Compact,
    Resume,
    Search,
    Fork,
    Costs,
    Context,
    Export,
    Import,
    Config,
    Doctor,
    Rules,
    Skills,
    SkillCreate,
    Hooks,
    Subagents,
    PromptShow,
    SyncSystemPrompt,
    RepoMapShow,
    DebugChat,
}

type Row = (Native, &'static str, &'static str, &'static [(&'static str, &'static str, bool)]);

/// In the order in which they are offered.
const TABLE: &[Row] = &[
    (Native::Init, "init", "Look through the workspace and write an AGENTS.md about it", &[]),
    (Native::Login, "login", "Enter the API key of a provider", &[("provider", "its name", false)]),
    (Native::Model, "model", "List the models, or use another one in this chat", &[("name", "provider/model", false)]),
    (Native::Skills, "skills", "List the skills", &[]),
    (
        Native::SkillCreate,
        "skill-create",
        "Have a skill of your own written",
        &[("name", "in small letters, with hyphens", true), ("prompt", "what it should do", true)],
    ),
    (Native::Costs, "costs", "What this chat has used and cost", &[]),
    (Native::Context, "context", "What fills the context window", &[]),
    (
        Native::Compact,
        "compact",
        "Replace what was said so far by a summary, to make room",
        &[("instructions", "what to keep above all", false)],
    ),
    (Native::Fork, "fork", "Go on in a copy of this chat", &[]),
    (
        Native::Resume,
        "resume",
        "List earlier chats, or go on with one here",
        &[("chat", "its number in the list, or latest", false)],
    ),
    (Native::Search, "search", "Find words in all chats of this workspace", &[("words", "what to look for", true)]),
    (Native::Export, "export", "Write this chat to a file", &[("path", "where to", false)]),
    (Native::Import, "import", "Read a chat from a file", &[("path", "the file", true)]),
    (Native::Config, "config", "Show the configuration that counts, with secrets masked", &[]),
    (Native::Doctor, "doctor", "Show how this server is set up and what is wrong", &[]),
    (Native::DebugChat, "debug-chat", "Show what the next request would be made of", &[]),
    (Native::RepoMapShow, "repo-map-show", "Show the overview of the workspace", &[]),
    (Native::Rules, "rules", "List the rules", &[]),
    (Native::PromptShow, "prompt-show", "Show what the model is told, part by part", &[]),
    (Native::SyncSystemPrompt, "sync-system-prompt", "Let this chat see changed rules and AGENTS.md", &[]),
    (Native::Subagents, "subagents", "List the agents that can be started by others", &[]),
    (Native::Hooks, "hooks", "List the hooks", &[]),
];

/// Our own commands, as they are listed.
pub(super) fn listed() -> impl Iterator<Item = CommandInfo> {
    TABLE.iter().map(|(_, name, description, arguments)| CommandInfo {
        name: (*name).to_owned(),
        kind: CommandKind::Native,
        description: (*description).to_owned(),
        arguments: arguments
            .iter()
            .map(|(name, description, required)| CommandArgument {
                name: (*name).to_owned(),
                description: Some((*description).to_owned()),
                required: *required,
            })
            .collect(),
    })
}

/// The name and the rest of a line that begins with a slash.
pub(super) fn split(text: &str) -> Option<(&str, &str)> {
    let line = text.trim().strip_prefix('/')?;
    let end = line.find(char::is_whitespace).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    // A path is no command.
    (!name.is_empty() && !name.contains('/')).then(|| (name, rest.trim()))
}

pub(super) fn native(name: &str) -> Option<Native> {
    TABLE.iter().find(|(_, known, ..)| *known == name).map(|(command, ..)| *command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_and_paths_are_not_commands() {
        assert_eq!(split("/compact keep the plan "), Some(("compact", "keep the plan")));
        assert_eq!(split(" /costs"), Some(("costs", "")));
        for text in ["/", "/home/me/file what is this", "costs", "//x"] {
            assert_eq!(split(text), None, "{text}");
        }
        assert_eq!(native("costs"), Some(Native::Costs));
        assert_eq!(native("nothing"), None);
    }

    #[test]
    fn every_name_is_there_once() {
        let mut names: Vec<String> = listed().map(|command| command.name).collect();
        names.sort();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
