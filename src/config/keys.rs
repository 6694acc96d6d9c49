//! Every key of the configuration, once: what the schema says, what counts as known, and what
//! `docs/config.md` must mention all come from this table.

use super::{ConfigProblem, document::Document};
use crate::base::text::{edit_distance, one_line};
use serde_json::{Map, Value};

/// One key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// From the top, with dots; `*` stands for any name.
    pub path: &'static str,
    pub kind: Kind,
    /// As JSON; empty where there is none.
    pub default: &'static str,
    /// Empty for a key of other ECA servers that this one does not read.
    pub doc: &'static str,
}

/// What a value looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    Flag,
    /// A whole number from this one on.
    Whole(u32),
    /// A number from this one on.
    Number(u32),
    /// Seconds, more than none.
    Seconds,
    Texts,
    /// A list of objects with a `path`, or of paths.
    Paths,
    /// A list of objects.
    Objects,
    /// An object of which every value is a text.
    TextMap,
    /// An object whose inside is not ours to know.
    Object,
    Anything,
}

impl Key {
    /// Whether this server does something with it.
    pub fn is_read(&self) -> bool {
        !self.doc.is_empty()
    }
}

const fn read(path: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Key {
    Key { path, kind, default, doc }
}

const fn other(path: &'static str) -> Key {
    Key { path, kind: Kind::Anything, default: "", doc: "" }
}

const IGNORE_FILES: &str = r#"[{"type": "gitignore"}]"#;

/// The table.
pub const KEYS: &[Key] = &[
    read("$schema", Kind::Text, "", "Where an editor finds the schema of this file."),
    read("defaultModel", Kind::Text, "", "The model of new chats: provider/model, or a bare model name."),
    read("defaultAgent", Kind::Text, "\"code\"", "The agent of new chats: code or plan."),
    read("defaultBehavior", Kind::Text, "", "An older name of defaultAgent."),
    read("welcomeMessage", Kind::Text, "", "Markdown that clients show in an empty chat."),
    read("chat.title", Kind::Flag, "true", "Whether the model is asked for a title."),
    read("chat.maxSteps", Kind::Whole(1), "200", "How many model calls one turn may make."),
    read("chat.queryLimit", Kind::Whole(1), "100", "How many files a query for contexts returns."),
    read("chat.welcomeMessage", Kind::Text, "", "An older place of welcomeMessage."),
    read("chat.defaultAgent", Kind::Text, "", "Another place of defaultAgent."),
    read("chat.defaultBehavior", Kind::Text, "", "An older name of defaultAgent."),
    read("chat.defaultTrust", Kind::Flag, "false", "Whether new chats run tools without asking."),
    read("chat.autoSyncSystemPrompt", Kind::Flag, "false", "Whether chats take up changed rules by themselves."),
    read(
        "chatRetentionDays",
        Kind::Anything,
        "",
        "Chats not used for so many days are let go; absent or 0 keeps them.",
    ),
    read("autoCompactPercentage", Kind::Number(1), "75", "How full the context may be before a chat is summed up."),
    read("localDiscovery", Kind::Flag, "true", "Whether Ollama and LM Studio are looked for on this machine."),
    read("modelsDev", Kind::Flag, "true", "Whether limits and prices of models are fetched from models.dev."),
    read("agent.*.defaultModel", Kind::Text, "", "The model that the agent begins with."),
    read("agent.*.variant", Kind::Text, "", "The variant of its model that the agent begins with."),
    read("disabledTools", Kind::Texts, "[]", "Tools that are not offered: names, servers or patterns."),
    read("customTools.*.description", Kind::Text, "", "What the tool is for; the model reads it."),
    read("customTools.*.command", Kind::Text, "", "The shell command, with {{name}} where an argument goes."),
    read("customTools.*.schema", Kind::Object, "", "The JSON schema of the arguments."),
    read("lspTimeoutSeconds", Kind::Seconds, "30", "How long the editor's language servers may take to answer."),
    read("toolCall.approval.byDefault", Kind::Text, "\"ask\"", "What counts without a rule: allow, ask or deny."),
    read("toolCall.approval.allow.*.argsMatchers", Kind::Object, "", "Patterns by argument; without, every call."),
    read("toolCall.approval.ask.*.argsMatchers", Kind::Object, "", "Patterns by argument; without, every call."),
    read("toolCall.approval.deny.*.argsMatchers", Kind::Object, "", "Patterns by argument; without, every call."),
    read("toolCall.approval.rememberFor", Kind::Text, "\"chat\"", "For whom a consent is remembered: chat or server."),
    read("toolCall.manualApproval", Kind::Anything, "", "An older way to ask: true for all tools, or their names."),
    read("toolCall.afterRejection", Kind::Text, "\"continue\"", "What follows a rejected call: continue or ask."),
    read("toolCall.readFile.maxLines", Kind::Whole(1), "2000", "The most lines of one reading."),
    read("toolCall.shellCommand.path", Kind::Text, "", "Another shell than bash."),
    read("toolCall.shellCommand.args", Kind::Texts, "[]", "What that shell gets before the command."),
    read("toolCall.shellCommand.summaryMaxLength", Kind::Whole(1), "35", "How much of a command its title shows."),
    read("toolCall.shellCommand.sandbox", Kind::Text, "\"off\"", "off, workspace-write or read-only."),
    read("toolCall.editorNav.enabled", Kind::Flag, "true", "Whether definitions and references are asked for."),
    read("toolCall.outputTruncation.lines", Kind::Whole(1), "2000", "Longer outputs go to a file."),
    read("toolCall.outputTruncation.sizeKb", Kind::Whole(1), "50", "Larger outputs go to a file."),
    read("agent.*.mode", Kind::Texts, "", "primary, subagent or both."),
    read("agent.*.description", Kind::Text, "", "What the agent is for."),
    read("agent.*.systemPrompt", Kind::Text, "", "What the agent is told first."),
    read("agent.*.maxSteps", Kind::Whole(1), "", "How many model calls a subagent may make."),
    read("agent.*.disabledTools", Kind::Texts, "", "In addition to the general ones."),
    read("agent.*.toolCall.approval.byDefault", Kind::Text, "", "Instead of the general one."),
    read("agent.*.toolCall.approval.allow.*.argsMatchers", Kind::Object, "", "Instead of the general rules."),
    read("agent.*.toolCall.approval.ask.*.argsMatchers", Kind::Object, "", "Instead of the general rules."),
    read("agent.*.toolCall.approval.deny.*.argsMatchers", Kind::Object, "", "Instead of the general rules."),
    read("agent.*.autoCompactPercentage", Kind::Whole(1), "", "How full the context window may be."),
    read("agent.*.inherit", Kind::Text, "", "The agent that says what this one does not."),
    read("agent.*.spawnableBy", Kind::Texts, "", "The agents that may start it."),
    read("rules", Kind::Paths, "[]", "More files or folders of rules."),
    read("commands", Kind::Paths, "[]", "More files or folders of commands."),
    read("skills", Kind::Paths, "[]", "More folders of skills."),
    read("includeParentAgentsFiles", Kind::Flag, "false", "Whether AGENTS.md of the folders above counts too."),
    read("compatRules", Kind::Flag, "true", "Whether CLAUDE.md and .cursor/rules stand in for a missing AGENTS.md."),
    read("prompts.chat", Kind::Text, "", "The instructions of agents that have none of their own."),
    read("prompts.chatTitle", Kind::Text, "", "How a title is asked for."),
    read("prompts.compact", Kind::Text, "", "How a summary of a chat is asked for."),
    read("prompts.init", Kind::Text, "", "What /init asks for."),
    read("prompts.skillCreate", Kind::Text, "", "What /skill-create asks for."),
    read("prompts.completion", Kind::Text, "", "The instructions of inline completion."),
    read("prompts.rewrite", Kind::Text, "", "The instructions of a rewrite."),
    read("prompts.tools", Kind::TextMap, "", "Descriptions of tools, by their full names."),
    read("hooks.*.type", Kind::Text, "", "When the hook runs."),
    read("hooks.*.matcher", Kind::Anything, "", "For which tools or compactions it runs."),
    read("hooks.*.actions", Kind::Objects, "", "What it runs: shell or file, and a timeout in milliseconds."),
    read("hooks.*.visible", Kind::Flag, "true", "Whether the user sees that it runs."),
    read("hooks.*.description", Kind::Text, "", "What it is for."),
    read("hooks.*.runOnError", Kind::Flag, "false", "Whether postToolCall also runs after a call that failed."),
    read("behavior", Kind::Object, "", "An older name of agent."),
    read("variantsByModel.*.variants", Kind::Object, "", "What each variant adds to the request, by its name."),
    read("variantsByModel.*.api", Kind::Anything, "", "The dialect or dialects it is for."),
    read("variantsByModel.*.excludeProviders", Kind::Texts, "", "Providers it is not for."),
    read("connectTimeoutSeconds", Kind::Seconds, "15", "For a connection to a provider."),
    read("streamIdleTimeoutSeconds", Kind::Seconds, "120", "A stream that is silent for so long is given up."),
    read("index.ignoreFiles", Kind::Anything, IGNORE_FILES, "Which files keep others out of the index."),
    read("index.repoMap.maxTotalEntries", Kind::Whole(1), "800", "How many entries an overview may have."),
    read("index.repoMap.maxEntriesPerDir", Kind::Whole(1), "50", "How many of them may be of one directory."),
    read("copilot.model", Kind::Text, "", "The model that answers `eca copilot`, instead of the default one."),
    read("copilot.generateTimeoutSeconds", Kind::Number(0), "58", "How long `generate` may take; 0 for no limit."),
    read("copilot.customizeTimeoutSeconds", Kind::Number(0), "28", "How long `customize` may take; 0 for no limit."),
    read("copilot.chatTimeoutSeconds", Kind::Number(0), "14", "How long `chat` may take; 0 for no limit."),
    read("copilot.parallelRequests", Kind::Whole(1), "4", "How many requests talk to a model at the same time."),
    read(
        "acpDraft.agent",
        Kind::Text,
        "\"plan\"",
        "The agent that answers `eca acp --draft`, which cannot ask for consent.",
    ),
    read("acpDraft.messagePauseMs", Kind::Whole(1), "300", "When a message that comes in pieces is complete."),
    read("netrcFile", Kind::Text, "", "The file that ${netrc:…} in this same document looks into."),
    read("extraConfigs", Kind::Texts, "[]", "More files in this format, applied after all others."),
    read("network.caCertFile", Kind::Text, "", "PEM certificates that are believed besides the system's."),
    read("network.clientCert", Kind::Text, "", "The PEM certificate that this machine shows to servers."),
    read("network.clientKey", Kind::Text, "", "The PEM key of that certificate, not encrypted."),
    read("network.clientKeyPassphrase", Kind::Text, "", "For an encrypted key, which is not supported yet."),
    read("providers.*.api", Kind::Text, "", "The dialect that the provider speaks."),
    read("providers.*.url", Kind::Text, "", "Where the dialect's paths begin."),
    read("providers.*.key", Kind::Text, "", "The key, best as ${env:…}, ${file:…}, ${netrc:…} or ${cmd:…}."),
    read("providers.*.keyRc", Kind::Text, "", "The netrc entry that holds the key: [login@]machine[:port]."),
    read("providers.*.keyEnv", Kind::Text, "", "An old way to name the variable that holds the key."),
    read("providers.*.urlEnv", Kind::Text, "", "An old way to name the variable that holds the url."),
    read("providers.*.oauth.clientId", Kind::Text, "", "Your own client at the provider's authorization server."),
    read("providers.*.oauth.clientSecret", Kind::Text, "", "Its secret, if it has one; best as ${env:…} or ${cmd:…}."),
    read("providers.*.oauth.authorizationUrl", Kind::Text, "", "The page on which you say yes."),
    read("providers.*.oauth.tokenUrl", Kind::Text, "", "Where codes become tokens, and old tokens new ones."),
    read("providers.*.oauth.deviceAuthorizationUrl", Kind::Text, "", "For a login on another device, by a code."),
    read("providers.*.oauth.scopes", Kind::Texts, "", "What the login is for."),
    read(
        "providers.*.oauth.redirectUri",
        Kind::Text,
        "",
        "As registered; else http://127.0.0.1, any port, /auth/callback.",
    ),
    read("providers.*.oauth.authorizationParams", Kind::TextMap, "", "More parameters for the authorization page."),
    read("providers.*.httpClient.version", Kind::Text, "\"http-2\"", "The newest HTTP spoken: http-2 or http-1.1."),
    read(
        "providers.*.rateLimitMaxWaitSeconds",
        Kind::Seconds,
        "60",
        "A provider that asks for a longer wait is given up.",
    ),
    read("providers.*.retryRules", Kind::Objects, "[]", "What else is tried again: status, errorPattern, label."),
    read("providers.*.cacheRetention", Kind::Text, "\"short\"", "How long a provider keeps a prompt: short or long."),
    read("providers.*.completionUrlRelativePath", Kind::Text, "", "The path below the url."),
    read("providers.*.thinkTagStart", Kind::Text, "\"<think>\"", "Opens reasoning at the start of an answer."),
    read("providers.*.thinkTagEnd", Kind::Text, "\"</think>\"", "Closes it."),
    read("providers.*.extraHeaders", Kind::TextMap, "", "Sent with every request; null removes one."),
    read("providers.*.fetchModels", Kind::Flag, "true", "Whether the provider is asked for its models."),
    read("providers.*.retry.maxRetries", Kind::Whole(0), "10", "How often a failed call is tried again."),
    read("providers.*.retry.baseDelayMs", Kind::Number(0), "2000", "The first wait."),
    read("providers.*.retry.maxDelayMs", Kind::Number(0), "60000", "The longest wait."),
    read("providers.*.retry.backoffMultiplier", Kind::Number(1), "2", "How much longer each wait is."),
    read("providers.*.retry.maxAutoContinues", Kind::Whole(0), "3", "How often a broken answer is continued."),
    read("providers.*.retry.prematureStopMaxRetries", Kind::Whole(0), "3", "The same for an answer that was empty."),
    read("providers.*.models.*.modelName", Kind::Text, "", "The name that is sent."),
    read("providers.*.models.*.extraPayload", Kind::Object, "", "Merged into the request; null removes a key."),
    read("providers.*.models.*.extraHeaders", Kind::TextMap, "", "In addition to the provider's."),
    read(
        "providers.*.models.*.reasoningHistory",
        Kind::Text,
        "\"all\"",
        "Which thoughts are sent back: all, turn or off.",
    ),
    read("providers.*.models.*.imageInput", Kind::Flag, "", "Whether the model takes images."),
    read("providers.*.models.*.limit.context", Kind::Whole(1), "", "Tokens of the context window."),
    read("providers.*.models.*.limit.output", Kind::Whole(1), "", "Tokens of one answer."),
    read("providers.*.models.*.cost.input", Kind::Number(0), "", "Dollars per million tokens."),
    read("providers.*.models.*.cost.output", Kind::Number(0), "", "Dollars per million tokens."),
    read("providers.*.models.*.cost.cacheRead", Kind::Number(0), "", "Dollars per million tokens."),
    read("providers.*.models.*.cost.cacheWrite", Kind::Number(0), "", "Dollars per million tokens."),
    read("providers.*.models.*.variants", Kind::Object, "", "What each variant adds; {} takes one away."),
    read("mcpTimeoutSeconds", Kind::Seconds, "60", "For a handshake and a list of an MCP server; a call has twice."),
    read(
        "mcpKeepAliveSeconds",
        Kind::Seconds,
        "30",
        "How often an MCP server behind a url is asked for a sign of life.",
    ),
    read("mcpServers.*.command", Kind::Text, "", "The program of an MCP server; found like a shell finds it."),
    read("mcpServers.*.args", Kind::Texts, "[]", "The program's arguments."),
    read("mcpServers.*.env", Kind::TextMap, "", "Variables added to the program's environment; null removes one."),
    read("mcpServers.*.url", Kind::Text, "", "The address of an MCP server (streamable HTTP)."),
    read("mcpServers.*.headers", Kind::TextMap, "", "Sent with every request; with Authorization, no login is tried."),
    read("mcpServers.*.disabled", Kind::Flag, "false", "Whether the server is left alone."),
    read("mcpServers.*.clientId", Kind::Text, "", "A client that is registered at the authorization server."),
    read("mcpServers.*.clientSecret", Kind::Text, "", "The secret of that client, if it has one."),
    read("mcpServers.*.clientName", Kind::Text, "\"ECA\"", "Under which name a client is registered otherwise."),
    read("mcpServers.*.oauthPort", Kind::Whole(1), "", "The port to which the browser comes back; else any free one."),
    read("mcpServers.*.authScope", Kind::Text, "\"global\"", "Who shares a login: global, workspace, or a name."),
    read("agent.*.prompts", Kind::Object, "", "What models are told when this agent works, by the names of prompts."),
    read("agent.*.systemPromptFile", Kind::Text, "", "An older way to keep the agent's instructions in a file."),
    read("compactPrompt", Kind::Text, "", "An older name of prompts.compact."),
    read("compactPromptFile", Kind::Text, "", "The same in a file."),
    read("systemPrompt", Kind::Text, "", "An older name of prompts.chat."),
    read("systemPromptFile", Kind::Text, "", "The same in a file."),
    read("completion.model", Kind::Text, "", "The model that completes at the cursor; else the default one."),
    read("rewrite.model", Kind::Text, "", "The model that rewrites a selection; else the default one."),
    read("rewrite.fullFileMaxLines", Kind::Whole(1), "2000", "A longer file is shown in part beside the selection."),
    read("completion.systemPrompt", Kind::Text, "", "An older name of prompts.completion."),
    read("completion.systemPromptFile", Kind::Text, "", "The same in a file."),
    read("rewrite.systemPrompt", Kind::Text, "", "An older name of prompts.rewrite."),
    read("rewrite.systemPromptFile", Kind::Text, "", "The same in a file."),
    // What follows is known to other ECA servers and accepted in silence.
    other("mcpServers.*.type"),
    other("providers.*.auth"),
    other("providers.*.requiresAuth"),
    other("providers.*.requiresAuth?"),
    other("plugins"),
    other("remote"),
    other("otlp"),
    other("env"),
];

/// More than these from one document would only repeat themselves.
const MOST_UNKNOWN: usize = 20;
const SHOWN_NAME: usize = 60;

/// One problem for each key of `document` that nobody knows.
pub(super) fn report_unknown(document: &Document, problems: &mut Vec<ConfigProblem>) {
    let mut found = Vec::new();
    collect_unknown(&document.values, "", &mut Vec::new(), &mut |path, parent| {
        if found.len() < MOST_UNKNOWN {
            let close = path.last().and_then(|name| closest(name, children(parent)));
            let hint = close.map_or_else(|| "it is ignored".to_owned(), |name| format!("did you mean \"{name}\"?"));
            let mut shown = path.to_vec();
            if let Some(last) = shown.last_mut() {
                *last = one_line(last, SHOWN_NAME);
            }
            let mut problem = document.problem(path, "");
            problem.message = format!("{}: unknown key; {hint}", shown.join("."));
            found.push(problem);
        }
    });
    problems.append(&mut found);
}

/// The names that may stand below `parent`, of which `*` may be one.
pub(super) fn children(parent: &str) -> impl Iterator<Item = &'static str> {
    let mut last = "";
    let prefix = if parent.is_empty() { String::new() } else { format!("{parent}.") };
    KEYS.iter().filter_map(move |key| {
        let name = key.path.strip_prefix(prefix.as_str())?.split('.').next().unwrap_or_default();
        // Keys of one parent stand together often enough that few names come twice.
        let is_new = name != last;
        last = name;
        is_new.then_some(name)
    })
}

fn collect_unknown(
    values: &Map<String, Value>,
    parent: &str,
    path: &mut Vec<String>,
    report: &mut dyn FnMut(&[String], &str),
) {
    for (name, value) in values {
        let known = children(parent).find(|child| *child == "*" || child == name);
        path.push(name.clone());
        match known {
            None => report(path, parent),
            Some(child) => {
                let below = if parent.is_empty() { child.to_owned() } else { format!("{parent}.{child}") };
                if let Value::Object(inner) = value
                    && children(&below).next().is_some()
                {
                    collect_unknown(inner, &below, path, report);
                }
            }
        }
        path.pop();
    }
}

fn closest(written: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let plain = |name: &str| name.to_lowercase().replace(['-', '_'], "");
    let written = plain(written);
    // A long text is no slip of the finger, and comparing it would cost.
    if written.chars().count() > SHOWN_NAME {
        return None;
    }
    let scored = known.map(|name| (edit_distance(&written, &plain(name)), name));
    // Two letters that changed places count as two; a short name may have that.
    scored.min().filter(|(distance, name)| distance * 5 <= name.len() * 2).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(text: &str) -> Vec<String> {
        let document = Document::parse("f", text.to_owned()).unwrap();
        let mut problems = Vec::new();
        report_unknown(&document, &mut problems);
        let mut found: Vec<String> =
            problems.into_iter().map(|problem| format!("{}:{}", problem.line.unwrap_or(0), problem.message)).collect();
        // Objects keep their order or not, depending on what other crates ask of the JSON library.
        found.sort();
        found
    }

    #[test]
    fn unknown_keys_are_named_with_their_line_and_the_key_that_was_meant() {
        let found = unknown(
            "{\"defualtModel\": 1,\n \"default_model\": 1,\n\"providers\": {\"p.url\": {\n\"URL\": 1, \"models\": \
                 {\"gpt-4.1\": {\"limits\": {}, \"zzz\": 1, \"limit\": {\"contxt\": 1}}}}},\n\
                 \"agent\": {\"mine\": {\"mod\": 1}}, \"chat\": {\"titel\": true}}",
        );
        assert_eq!(
            found,
            [
                "1:defualtModel: unknown key; did you mean \"defaultModel\"?",
                "2:default_model: unknown key; did you mean \"defaultModel\"?",
                "4:providers.p.url.URL: unknown key; did you mean \"url\"?",
                "4:providers.p.url.models.gpt-4.1.limit.contxt: unknown key; did you mean \"context\"?",
                "4:providers.p.url.models.gpt-4.1.limits: unknown key; did you mean \"limit\"?",
                "4:providers.p.url.models.gpt-4.1.zzz: unknown key; it is ignored",
                "5:agent.mine.mod: unknown key; did you mean \"mode\"?",
                "5:chat.titel: unknown key; did you mean \"title\"?",
            ]
        );
    }

    #[test]
    fn known_keys_and_what_is_inside_of_free_objects_are_silent() {
        let text = r#"{"$schema": "x", "plugins": {"any": {"thing": 1}}, "toolCall": [], "chat": 1, "hooks": {},
            "providers": {"p": {"models": {"m": {"extraPayload": {"any": 1}, "variants": {"v": {"x": 1}}},
                "n": null}, "extraHeaders": {"any": "x"}, "httpClient": {"version": 1}}}}"#;
        assert_eq!(unknown(text), Vec::<String>::new());
        let many: Map<String, Value> = (0..100).map(|n| (format!("zz{n}"), Value::Null)).collect();
        assert_eq!(unknown(&Value::Object(many).to_string()).len(), MOST_UNKNOWN);
        let long = "é".repeat(5000);
        let named = unknown(&format!("{{\"{long}\\n\": 1}}"));
        assert!(named[0].chars().count() < 100 && !named[0].contains('\n'), "{named:?}");
    }

    #[test]
    fn the_table_has_no_key_twice_and_only_json_as_defaults() {
        let mut paths: Vec<&str> = KEYS.iter().map(|key| key.path).collect();
        paths.sort_unstable();
        let all = paths.len();
        paths.dedup();
        assert_eq!(paths.len(), all);
        for key in KEYS.iter().filter(|key| !key.default.is_empty()) {
            assert!(serde_json::from_str::<Value>(key.default).is_ok(), "{}", key.path);
        }
    }
}
