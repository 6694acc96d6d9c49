//! The guide's own words: Markdown built from what is seen on this machine.

use serde_json::json;

use super::{GuideView, MAX_WORDS, ProviderView};
use crate::base::text;
use crate::providers::registry::KeySource;
use crate::providers::vendors::{self, Place, VENDORS, Vendor};

/// An introduction, what is seen here, and the one step that helps most.
pub(super) fn welcome(view: &GuideView) -> String {
    format!(
        "Hello! I am the built-in guide of ECA {}. I am **not a language model**: I am a small offline program that \
         looks for keywords, so that you can try your editor before a real model is connected.\n\n\
         {}\n{}\n{}",
        view.version,
        what_is_seen(view),
        next_step(view),
        DEMONSTRATIONS
    )
}

/// All ways to connect a model.
pub(super) fn how_to_connect(view: &GuideView) -> String {
    let path = view.config_path.display();
    let local = snippet("local", "http://127.0.0.1:8080/v1");
    let remote = snippet("my-provider", "https://llm.example.org/v1");
    format!(
        "## Connect a model\n\n\
         I am the offline guide and not a language model, but I know the ways to get one. Settings live in \
         `{path}` (JSON, comments are allowed); a running server notices changes.\n\n\
         ### On this machine, without a key\n\n\
         {LOCAL_WAYS}\n\
         For llama.cpp, vLLM or any other OpenAI-compatible server, name its address:\n\n{}\n\
         ### A service with a key\n\n\
         For these, the key in its variable is all that is needed: {}.\n\n\
         Any other service with an OpenAI-compatible interface works as well:\n\n{}\n\
         Keep the key out of the file: a provider named `my-provider` finds its key in the environment variable \
         `MY_PROVIDER_API_KEY`, or write `\"key\": \"${{env:NAME_OF_A_VARIABLE}}\"`. The editor must be started from \
         an environment that has the variable.\n\n\
         ### Choose the model\n\n\
         Pick it in your editor's model selection, or set `\"defaultModel\": \"my-provider/model-name\"`. A server \
         that does not list its models needs them written down: `\"models\": {{\"model-name\": {{}}}}` inside the \
         provider.\n\n\
         {}\n{}",
        fenced_json(&local),
        vendors_by_key(),
        fenced_json(&remote),
        what_is_seen(view),
        next_step(view),
    )
}

/// A thought and what is said after it.
pub(super) fn reasoning(asked: &str) -> (String, String) {
    let quoted = text::one_line(asked, 60);
    (
        format!(
            "This is a demonstration of the reasoning display, not real thinking. The message was \"{quoted}\". \
             It contains a word that asks for reasoning, so a fixed text is shown here, piece by piece, before the \
             answer starts. A model that reasons would weigh the question at this point."
        ),
        "That was a reasoning block: your editor should have shown it apart from this answer, and closed it when this \
         text began. The content was fixed text, because I am a guide and not a model.\n"
            .to_owned(),
    )
}

/// A short answer around a fenced block.
pub(super) fn code() -> String {
    "Here is a code block, so that you can try highlighting, copying and inserting:\n\n\
     ```rust\n\
     /// Counts the words of a text.\n\
     fn count_words(text: &str) -> usize {\n    \
         text.split_whitespace().count()\n\
     }\n\
     ```\n\n\
     And `inline code` beside it. It is a fixed example; I am a guide and cannot write code for you.\n"
        .to_owned()
}

/// Exactly `count` words, numbered now and then so that a lost or doubled piece shows.
pub(super) fn words(count: usize) -> String {
    let vocabulary = ["streaming", "text", "from", "the", "offline", "guide", "goes", "on", "word", "by"];
    let count = count.min(MAX_WORDS);
    let mut out = String::with_capacity(count * 7);
    for index in 1..=count {
        match index % 10 {
            0 => out.push_str(&index.to_string()),
            place => out.push_str(vocabulary[place]),
        }
        out.push_str(match index {
            last if last == count => "\n",
            paragraph if paragraph % 100 == 0 => "\n\n",
            _ => " ",
        });
    }
    out
}

const LOCAL_WAYS: &str = "- **Ollama**: install it, then `ollama pull <a model>`. It is found by itself on port 11434.\n\
    - **LM Studio**: load a model and start its server. It is found by itself on port 1234.\n\
    - **llama.cpp**: `llama-server -m model.gguf --port 8080`, then the setting below.\n";

const DEMONSTRATIONS: &str = "### What I can show you meanwhile\n\n\
    - `connect`: every way to connect a model\n\
    - `think`: a reasoning block before the answer\n\
    - `code`: a fenced code block\n\
    - `tool`: a real tool call, if this chat offers tools (you may add a path)\n\
    - `stream 2000 words`: a long answer, up to 20000 words\n\
    - `error`: how a failed model call looks\n";

fn what_is_seen(view: &GuideView) -> String {
    let mut out = "### What I see here\n\n".to_owned();
    for provider in &view.providers {
        out.push_str(&provider_line(provider));
    }
    if view.providers.is_empty() {
        out.push_str("- No provider is configured.\n");
    }
    let is_local_kind = |provider: &ProviderView| provider.local || ["ollama", "lmstudio"].contains(&&*provider.id);
    if !view.providers.iter().any(is_local_kind) {
        out.push_str(match view.local_discovery {
            true => "- Neither Ollama nor LM Studio was found on its usual port.\n",
            false => "- Looking for local servers is turned off (`localDiscovery: false`).\n",
        });
    }
    if view.key_variables.is_empty() {
        out.push_str("- No `…_API_KEY` variable is set.\n");
    } else {
        let names: Vec<String> = view.key_variables.iter().map(|name| format!("`{name}`")).collect();
        out.push_str(&format!("- Key variables that are set (names only): {}.\n", names.join(", ")));
    }
    out.push_str(&format!("- The configuration file is `{}`.\n", view.config_path.display()));
    out
}

fn provider_line(provider: &ProviderView) -> String {
    let ProviderView { id, url, model_count, .. } = provider;
    let origin = match (provider.local, provider.configured) {
        (true, _) => "found on this machine",
        (false, true) => "configured",
        (false, false) => "known by its key",
    };
    let key = match &provider.key_source {
        KeySource::Config => "its key is in the configuration".to_owned(),
        KeySource::Login => "its key was entered".to_owned(),
        KeySource::OAuth => "you are logged in".to_owned(),
        KeySource::Env(variable) => format!("its key comes from `{variable}`"),
        KeySource::Netrc => "its key comes from the netrc file".to_owned(),
        KeySource::None => "without a key".to_owned(),
    };
    format!("- `{id}` at {url}: {origin}, {key}, {model_count} model(s) known.\n")
}

/// One step, the shortest that is possible here.
fn next_step(view: &GuideView) -> String {
    let path = view.config_path.display();
    let with_models = view.providers.iter().find(|provider| provider.model_count > 0);
    let step = if let Some(provider) = with_models {
        format!("Pick a model whose name starts with `{}/` in your editor's model selection.\n", provider.id)
    } else if let Some(provider) = view.providers.iter().find(|provider| provider.local) {
        let how = match provider.id.as_str() {
            "ollama" => "get one with `ollama pull <a model>`",
            _ => "load one there",
        };
        format!("`{}` is running but has no model yet: {how}, then restart the server.\n", provider.id)
    } else if let Some(provider) = view.providers.first() {
        format!(
            "`{}` is configured but named no model. Check that {} answers{}, or write a model down in `{path}`: \
             `\"models\": {{\"model-name\": {{}}}}`.\n",
            provider.id,
            provider.url,
            if provider.has_key { " and accepts the key" } else { " and needs no key" },
        )
    } else {
        format!(
            "Install Ollama or LM Studio and load a model: both are found by themselves{}. Or start your editor with \
             the key of a service in its variable, such as `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`. For any other \
             OpenAI-compatible server put its address into `{path}`:\n\n{}",
            if view.local_discovery { "" } else { " once `localDiscovery` is on again" },
            fenced_json(&snippet("local", "http://127.0.0.1:8080/v1"))
        )
    };
    format!("### The shortest next step\n\n{step}")
}

/// The vendors that work as soon as their key is known, with the variable for it.
fn vendors_by_key() -> String {
    let ready = |vendor: &&Vendor| {
        vendor.place == Place::Remote && vendor.no_login.is_none() && vendor.endpoints.iter().all(|e| e.url.is_some())
    };
    let row = |vendor: &Vendor| format!("{} (`{}`)", vendor.label, vendors::key_variable(vendor.id));
    let rows: Vec<String> = VENDORS.iter().filter(ready).map(row).collect();
    rows.join(", ")
}

fn snippet(id: &str, url: &str) -> serde_json::Value {
    json!({"providers": {id: {"api": "openai-chat", "url": url}}})
}

fn fenced_json(value: &serde_json::Value) -> String {
    format!("```json\n{value:#}\n```\n")
}
