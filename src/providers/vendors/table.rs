//! The rows. Addresses and names are the vendors' own.

use super::{Auth, Endpoint, Place, Vendor};

/// Every vendor, sorted by nothing but how often it is asked for.
pub const VENDORS: &[Vendor] = &[
    Vendor {
        id: "openai",
        label: "OpenAI",
        endpoints: &[responses("https://api.openai.com"), chat("https://api.openai.com/v1")],
        needs_key: true,
        models: &["gpt-4.1", "gpt-5", "gpt-5-mini", "gpt-5.2", "gpt-5.3-codex"],
        default_model: Some("gpt-5.2"),
        no_subscription: Some(
            "ChatGPT subscriptions let in only the programs of their maker, and this server does not pose as one. An API key \
             works.",
        ),
        searching_models: &["gpt-4.1", "gpt-5", "o3", "o4"],
        ..REMOTE
    },
    Vendor {
        id: "anthropic",
        label: "Anthropic",
        endpoints: &[anthropic("https://api.anthropic.com")],
        needs_key: true,
        models: &[
            "claude-sonnet-4-6",
            "claude-sonnet-5",
            "claude-opus-4-6",
            "claude-opus-4-7",
            "claude-opus-4-8",
            "claude-opus-5",
            "claude-fable-5",
            "claude-mythos-5",
        ],
        default_model: Some("claude-sonnet-4-6"),
        no_subscription: Some(
            "Claude Pro and Max let in only the programs of their maker, and this server does not pose as one. An API key \
             works.",
        ),
        searching_models: &[
            "claude-haiku-4",
            "claude-sonnet-4",
            "claude-opus-4",
            "claude-haiku-5",
            "claude-sonnet-5",
            "claude-opus-5",
            "claude-fable-5",
            "claude-mythos-5",
        ],
        ..REMOTE
    },
    Vendor {
        id: "google",
        label: "Google Gemini",
        endpoints: &[
            Endpoint {
                think_tags: Some(("<thought>", "</thought>")),
                payload: Some(GOOGLE_PAYLOAD),
                ..chat("https://generativelanguage.googleapis.com/v1beta/openai")
            },
            Endpoint { api: "gemini", url: Some("https://generativelanguage.googleapis.com"), ..NO_ENDPOINT },
        ],
        key_variables: &["GEMINI_API_KEY"],
        needs_key: true,
        models: &["gemini-2.5-pro"],
        default_model: Some("gemini-2.5-pro"),
        searching_models: &["gemini-2.5", "gemini-3"],
        ..REMOTE
    },
    Vendor {
        id: "azure",
        label: "Azure OpenAI",
        endpoints: &[
            Endpoint {
                api: "openai-responses",
                path: Some("/openai/responses?api-version=2025-04-01-preview"),
                ..NO_ENDPOINT
            },
            Endpoint { api: "openai-chat", ..NO_ENDPOINT },
        ],
        key_variables: &["AZURE_OPENAI_API_KEY"],
        auth: Auth::Header("api-key"),
        ..REMOTE
    },
    Vendor {
        id: "bedrock",
        label: "Amazon Bedrock",
        endpoints: &[Endpoint { api: "bedrock", ..NO_ENDPOINT }],
        key_variables: &["AWS_BEARER_TOKEN_BEDROCK"],
        catalogue: Some("amazon-bedrock"),
        ..REMOTE
    },
    Vendor {
        id: "github-copilot",
        label: "GitHub Copilot",
        endpoints: &[chat("https://api.githubcopilot.com")],
        needs_key: true,
        no_login: Some(
            "GitHub gives Copilot's tokens only to programs that present the identity of an approved editor, and \
             this server does not pose as another product.",
        ),
        ..REMOTE
    },
    Vendor {
        id: "ollama",
        label: "Ollama",
        endpoints: &[
            Endpoint { api: "ollama", url: Some("http://127.0.0.1:11434"), ..NO_ENDPOINT },
            chat("http://127.0.0.1:11434/v1"),
        ],
        place: Place::Discovered,
        ..REMOTE
    },
    Vendor {
        id: "lmstudio",
        label: "LM Studio",
        endpoints: &[chat("http://127.0.0.1:1234/v1")],
        place: Place::Discovered,
        ..REMOTE
    },
    Vendor {
        id: "llama.cpp",
        label: "llama.cpp",
        endpoints: &[chat("http://127.0.0.1:8080/v1")],
        place: Place::Configured,
        ..REMOTE
    },
    Vendor {
        id: "litellm",
        label: "LiteLLM",
        endpoints: &[
            Endpoint { api: "openai-responses", ..NO_ENDPOINT },
            Endpoint { api: "openai-chat", ..NO_ENDPOINT },
        ],
        place: Place::Configured,
        ..REMOTE
    },
    Vendor { id: "openrouter", label: "OpenRouter", endpoints: &[chat("https://openrouter.ai/api/v1")], ..REMOTE },
    Vendor { id: "deepseek", label: "DeepSeek", endpoints: &[chat("https://api.deepseek.com")], ..REMOTE },
    Vendor { id: "mistral", label: "Mistral", endpoints: &[chat("https://api.mistral.ai/v1")], ..REMOTE },
    Vendor {
        id: "moonshot",
        label: "Moonshot (Kimi)",
        endpoints: &[chat("https://api.kimi.com/coding/v1")],
        key_variables: &["KIMI_API_KEY"],
        catalogue: Some("kimi-for-coding"),
        ..REMOTE
    },
    Vendor {
        id: "z-ai",
        label: "Z.ai",
        endpoints: &[anthropic("https://api.z.ai/api/anthropic"), chat("https://api.z.ai/api/paas/v4")],
        key_variables: &["ZAI_API_KEY"],
        catalogue: Some("zai"),
        ..REMOTE
    },
    Vendor { id: "groq", label: "Groq", endpoints: &[chat("https://api.groq.com/openai/v1")], ..REMOTE },
    Vendor { id: "xai", label: "xAI", endpoints: &[chat("https://api.x.ai/v1")], ..REMOTE },
];

/// One call at a time, because Google's compatible interface mixes parallel ones up, and the
/// thoughts as text.
const GOOGLE_PAYLOAD: &str = r#"{
    "parallel_tool_calls": false,
    "extra_body": {"google": {"thinking_config": {"include_thoughts": true}}}
}"#;

const REMOTE: Vendor = Vendor {
    id: "",
    label: "",
    endpoints: &[],
    key_variables: &[],
    auth: Auth::Dialect,
    needs_key: false,
    place: Place::Remote,
    models: &[],
    default_model: None,
    catalogue: None,
    no_login: None,
    no_subscription: None,
    searching_models: &[],
};

const NO_ENDPOINT: Endpoint = Endpoint { api: "", url: None, path: None, think_tags: None, payload: None };

const fn chat(url: &'static str) -> Endpoint {
    Endpoint { api: "openai-chat", url: Some(url), ..NO_ENDPOINT }
}

const fn responses(url: &'static str) -> Endpoint {
    Endpoint { api: "openai-responses", url: Some(url), ..NO_ENDPOINT }
}

const fn anthropic(url: &'static str) -> Endpoint {
    Endpoint { api: "anthropic", url: Some(url), ..NO_ENDPOINT }
}
