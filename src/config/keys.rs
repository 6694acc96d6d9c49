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

/// The table.
pub const KEYS: &[Key] = &[
    read("$schema", Kind::Text, "", "Where an editor finds the schema of this file."),
    read("defaultModel", Kind::Text, "", "The model of new chats: provider/model, or a bare model name."),
    read("defaultAgent", Kind::Text, "\"code\"", "The agent of new chats: code or plan."),
    read("defaultBehavior", Kind::Text, "", "An older name of defaultAgent."),
    read("welcomeMessage", Kind::Text, "", "Markdown that clients show in an empty chat."),
    read("chat.title", Kind::Flag, "true", "Whether the model is asked for a title."),
    read("chat.maxSteps", Kind::Whole(1), "200", "How many model calls one turn may make."),
    read("chat.welcomeMessage", Kind::Text, "", "An older place of welcomeMessage."),
    read("chat.defaultAgent", Kind::Text, "", "Another place of defaultAgent."),
    read("chat.defaultBehavior", Kind::Text, "", "An older name of defaultAgent."),
    read("localDiscovery", Kind::Flag, "true", "Whether Ollama and LM Studio are looked for on this machine."),
    read("modelsDev", Kind::Flag, "true", "Whether limits and prices of models are fetched from models.dev."),
    read("agent.*.defaultModel", Kind::Text, "", "The model that the agent begins with."),
    read("agent.*.variant", Kind::Text, "", "The variant of its model that the agent begins with."),
    read("behavior", Kind::Object, "", "An older name of agent."),
    read("variantsByModel.*.variants", Kind::Object, "", "What each variant adds to the request, by its name."),
    read("variantsByModel.*.api", Kind::Anything, "", "The dialect or dialects it is for."),
    read("variantsByModel.*.excludeProviders", Kind::Texts, "", "Providers it is not for."),
    read("connectTimeoutSeconds", Kind::Seconds, "15", "For a connection to a provider."),
    read("streamIdleTimeoutSeconds", Kind::Seconds, "120", "A stream that is silent for so long is given up."),
    read("copilot.model", Kind::Text, "", "The model that answers `eca copilot`, instead of the default one."),
    read("copilot.generateTimeoutSeconds", Kind::Number(0), "58", "How long `generate` may take; 0 for no limit."),
    read("copilot.customizeTimeoutSeconds", Kind::Number(0), "28", "How long `customize` may take; 0 for no limit."),
    read("copilot.chatTimeoutSeconds", Kind::Number(0), "14", "How long `chat` may take; 0 for no limit."),
    read("copilot.parallelRequests", Kind::Whole(1), "4", "How many requests talk to a model at the same time."),
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
    read("providers.*.models.*.modelName", Kind::Text, "", "The name that is sent."),
    read("providers.*.models.*.extraPayload", Kind::Object, "", "Merged into the request; null removes a key."),
    read("providers.*.models.*.extraHeaders", Kind::TextMap, "", "In addition to the provider's."),
    read("providers.*.models.*.imageInput", Kind::Flag, "", "Whether the model takes images."),
    read("providers.*.models.*.limit.context", Kind::Whole(1), "", "Tokens of the context window."),
    read("providers.*.models.*.limit.output", Kind::Whole(1), "", "Tokens of one answer."),
    read("providers.*.models.*.cost.input", Kind::Number(0), "", "Dollars per million tokens."),
    read("providers.*.models.*.cost.output", Kind::Number(0), "", "Dollars per million tokens."),
    read("providers.*.models.*.cost.cacheRead", Kind::Number(0), "", "Dollars per million tokens."),
    read("providers.*.models.*.cost.cacheWrite", Kind::Number(0), "", "Dollars per million tokens."),
    read("providers.*.models.*.variants", Kind::Object, "", "What each variant adds; {} takes one away."),
    // What follows is known to other ECA servers and accepted in silence.
    other("providers.*.auth"),
    other("providers.*.httpClient"),
    other("providers.*.requiresAuth"),
    other("providers.*.requiresAuth?"),
    other("providers.*.retryRules"),
    other("providers.*.rateLimitMaxWaitSeconds"),
    other("providers.*.retry.prematureStopMaxRetries"),
    other("providers.*.models.*.reasoningHistory"),
    other("chat.defaultTrust"),
    other("chat.autoSyncSystemPrompt"),
    other("chat.queryLimit"),
    other("agent.*.mode"),
    other("agent.*.description"),
    other("agent.*.systemPrompt"),
    other("agent.*.systemPromptFile"),
    other("agent.*.prompts"),
    other("agent.*.maxSteps"),
    other("agent.*.disabledTools"),
    other("agent.*.toolCall"),
    other("agent.*.autoCompactPercentage"),
    other("agent.*.inherit"),
    other("agent.*.spawnableBy"),
    other("prompts"),
    other("completion"),
    other("rewrite"),
    other("autoCompactPercentage"),
    other("includeParentAgentsFiles"),
    other("rules"),
    other("commands"),
    other("skills"),
    other("hooks"),
    other("disabledTools"),
    other("customTools"),
    other("toolCall"),
    other("mcpServers"),
    other("mcpTimeoutSeconds"),
    other("mcpKeepAliveSeconds"),
    other("lspTimeoutSeconds"),
    other("index"),
    other("chatRetentionDays"),
    other("plugins"),
    other("remote"),
    other("otlp"),
    other("env"),
    other("compactPrompt"),
    other("compactPromptFile"),
    other("systemPromptFile"),
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
        problems.into_iter().map(|problem| format!("{}:{}", problem.line.unwrap_or(0), problem.message)).collect()
    }

    #[test]
    fn unknown_keys_are_named_with_their_line_and_the_key_that_was_meant() {
        assert_eq!(
            unknown(
                "{\"defualtModel\": 1,\n \"default_model\": 1,\n\"providers\": {\"p.url\": {\n\"URL\": 1, \"models\": \
                 {\"gpt-4.1\": {\"limits\": {}, \"zzz\": 1, \"limit\": {\"contxt\": 1}}}}},\n\
                 \"agent\": {\"mine\": {\"mod\": 1}}, \"chat\": {\"titel\": true}}"
            ),
            [
                "1:defualtModel: unknown key; did you mean \"defaultModel\"?",
                "2:default_model: unknown key; did you mean \"defaultModel\"?",
                "4:providers.p.url.URL: unknown key; did you mean \"url\"?",
                "4:providers.p.url.models.gpt-4.1.limits: unknown key; did you mean \"limit\"?",
                "4:providers.p.url.models.gpt-4.1.zzz: unknown key; it is ignored",
                "4:providers.p.url.models.gpt-4.1.limit.contxt: unknown key; did you mean \"context\"?",
                "5:agent.mine.mod: unknown key; did you mean \"mode\"?",
                "5:chat.titel: unknown key; did you mean \"title\"?",
            ]
        );
    }

    #[test]
    fn known_keys_and_what_is_inside_of_free_objects_are_silent() {
        let text = r#"{"$schema": "x", "mcpServers": {"any": {"thing": 1}}, "toolCall": [], "chat": 1, "hooks": {},
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
