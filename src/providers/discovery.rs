//! Which models exist: what a provider lists, what the configuration says, and how both merge.
//!
//! Asking is always bounded in time and size, and a provider that does not answer costs nothing
//! but its discovered models.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::catalog::ModelFacts;
use super::dialects::ListedModel;
use super::dialects::anthropic::Anthropic;
use super::dialects::bedrock::Bedrock;
use super::dialects::gemini::Gemini;
use super::dialects::ollama::Ollama;
use super::dialects::openai_chat::OpenAiChat;
use super::dialects::openai_responses::OpenAiResponses;
use super::vendors::{Place, VENDORS};
use crate::base::ModelId;
use crate::config::{ModelConfig, ProviderConfig};
use crate::llm::{LlmError, ModelInfo, Provider};

/// A provider that can be asked for its models: what every dialect is to the registry.
pub trait Upstream: Provider {
    fn list_models(&self) -> BoxFuture<'_, Result<Vec<ListedModel>, LlmError>>;
}

macro_rules! upstreams {
    ($($dialect:ty,)*) => {
        $(impl Upstream for $dialect {
            fn list_models(&self) -> BoxFuture<'_, Result<Vec<ListedModel>, LlmError>> {
                Box::pin(Self::list_models(self))
            }
        })*
    };
}

upstreams!(Anthropic, Bedrock, Gemini, Ollama, OpenAiChat, OpenAiResponses,);

/// A model server that may run on this machine without being configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalServer {
    /// The provider id it gets when it is found.
    pub id: String,
    /// The dialect it is asked in.
    pub api: String,
    /// Where that dialect begins.
    pub url: String,
}

impl LocalServer {
    /// The servers that are looked for. The address is numeric because `localhost` may resolve
    /// slowly or to another family than the server listens on.
    pub fn well_known(dialects: &[&str]) -> Vec<Self> {
        let looked_for = VENDORS.iter().filter(|vendor| vendor.place == Place::Discovered);
        looked_for
            .filter_map(|vendor| {
                let endpoint = vendor.endpoint(None, dialects)?;
                let url = endpoint.url?.to_owned();
                Some(Self { id: vendor.id.to_owned(), api: endpoint.api.to_owned(), url })
            })
            .collect()
    }
}

/// What became of asking a provider for its models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Listing {
    Models(Vec<ListedModel>),
    /// It answered with an error or could not be reached.
    Failed,
    /// It may be there, but it was too slow to tell.
    TimedOut,
}

/// A list beyond this is a mistake or an attack; nobody picks from so many.
const MAX_MODELS: usize = 2_000;
const MAX_NAME_BYTES: usize = 256;

/// Parts of names of models that cannot hold a conversation. They stay usable by their full id.
const NOT_FOR_CHAT: [&str; 6] = ["embed", "rerank", "whisper", "tts-", "dall-e", "moderation"];

pub(super) async fn list(upstream: &dyn Upstream, patience: Duration) -> Listing {
    match tokio::time::timeout(patience, upstream.list_models()).await {
        Ok(Ok(models)) => Listing::Models(usable(models)),
        Ok(Err(error)) => {
            tracing::debug!(provider = upstream.id(), class = ?error.class, "models not listed: {error}");
            Listing::Failed
        }
        Err(_) => {
            tracing::debug!(provider = upstream.id(), ?patience, "models not listed in time");
            Listing::TimedOut
        }
    }
}

/// The models of one provider: everything listed and everything configured. The configuration
/// wins key by key; an alias (`modelName`) inherits what is known of the model behind it. `facts`
/// says what is publicly known of a model, by the name that is sent and the name that is shown.
pub(super) fn catalogue(
    provider: &str,
    config: &ProviderConfig,
    listed: &[ListedModel],
    facts: &dyn Fn(&str, &str) -> ModelFacts,
) -> Vec<ModelInfo> {
    let listed: BTreeMap<&str, &ListedModel> = listed.iter().map(|model| (model.name.as_str(), model)).collect();
    let mut names: Vec<&str> = listed.keys().copied().chain(config.models.keys().map(String::as_str)).collect();
    names.sort_unstable();
    names.dedup();
    let nothing = ModelConfig::default();
    names
        .into_iter()
        .map(|name| {
            let own = config.models.get(name).unwrap_or(&nothing);
            let real_name = own.model_name.as_deref().unwrap_or(name);
            let real = config.models.get(real_name).unwrap_or(&nothing);
            let found = listed.get(real_name);
            let known = facts(real_name, name);
            let can = found.and_then(|model| model.capabilities);
            let mut info = ModelInfo::named(ModelId::new(provider, name));
            let context = own.context_limit.or(real.context_limit).or(found.and_then(|m| m.context_limit));
            info.context_limit = context.or(known.context);
            let output = own.output_limit.or(real.output_limit).or(found.and_then(|m| m.output_limit));
            // A limit from elsewhere must fit into the window that is really there.
            let fits = |limit: &u64| info.context_limit.is_none_or(|context| *limit < context);
            info.output_limit = output.or(known.output.filter(fits));
            info.cost = own.cost.or(real.cost).or(known.cost);
            info.tools = can.map(|can| can.tools).or(known.tools).unwrap_or(info.tools);
            info.reasoning = can.map(|can| can.reasoning).or(known.reasoning).unwrap_or(info.reasoning);
            let image_input = own.image_input.or(real.image_input);
            info.vision = image_input.or(can.map(|can| can.vision)).or(known.vision).unwrap_or(info.vision);
            info
        })
        .collect()
}

/// Drops what cannot be meant: blank or endless names, models of another kind, limits of zero,
/// and an output limit that would leave no room for the question.
pub(super) fn usable(models: Vec<ListedModel>) -> Vec<ListedModel> {
    let mut kept: Vec<ListedModel> = models
        .into_iter()
        .filter(|model| is_chat_name(&model.name))
        .map(|model| {
            let context_limit = model.context_limit.filter(|limit| *limit > 0);
            let fits = |limit: &u64| *limit > 0 && context_limit.is_none_or(|context| *limit < context);
            let output_limit = model.output_limit.filter(fits);
            ListedModel { context_limit, output_limit, ..model }
        })
        .take(MAX_MODELS)
        .collect();
    kept.sort_by(|a, b| a.name.cmp(&b.name));
    kept.dedup_by(|a, b| a.name == b.name);
    kept
}

fn is_chat_name(name: &str) -> bool {
    let lower = name.to_lowercase();
    !name.trim().is_empty()
        && name.len() <= MAX_NAME_BYTES
        && !name.chars().any(char::is_control)
        && !NOT_FOR_CHAT.iter().any(|part| lower.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::Cost;
    use crate::providers::dialects::Capabilities;

    fn listed(name: &str, context_limit: Option<u64>, output_limit: Option<u64>) -> ListedModel {
        ListedModel { name: name.to_owned(), context_limit, output_limit, ..Default::default() }
    }

    #[test]
    fn only_the_two_known_ports_are_looked_at() {
        let urls = |dialects: &[&str]| -> Vec<String> {
            LocalServer::well_known(dialects).into_iter().map(|s| format!("{} {}", s.id, s.url)).collect()
        };
        assert_eq!(urls(&["openai-chat"]), ["ollama http://127.0.0.1:11434/v1", "lmstudio http://127.0.0.1:1234/v1"]);
        assert_eq!(urls(&["ollama"]), ["ollama http://127.0.0.1:11434"]);
    }

    #[test]
    fn lists_are_cleaned() {
        let names = ["b", "a", "b", " ", "nomic-embed-text", "whisper-1", "x\ny"];
        let got = usable(names.iter().map(|name| listed(name, None, None)).collect());
        assert_eq!(got.iter().map(|m| m.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(usable(vec![listed(&"n".repeat(257), None, None)]), []);
        assert_eq!(usable((0..3_000).map(|n| listed(&n.to_string(), None, None)).collect()).len(), MAX_MODELS);
    }

    #[test]
    fn limits_that_make_no_sense_are_unknown() {
        let got = usable(vec![listed("a", Some(0), Some(0)), listed("b", Some(100), Some(100))]);
        assert_eq!(got, [listed("a", None, None), listed("b", Some(100), None)]);
    }

    #[test]
    fn what_a_model_can_is_taken_from_its_provider() {
        let can = Capabilities { tools: false, reasoning: false, vision: true };
        let found = usable(vec![ListedModel { capabilities: Some(can), ..listed("a", None, None) }]);
        let got = catalogue("p", &ProviderConfig::default(), &found, &|_, _| ModelFacts::default());
        assert_eq!((got[0].tools, got[0].reasoning, got[0].vision), (false, false, true));
    }

    #[test]
    fn configuration_wins_per_key_and_aliases_inherit() {
        let cost = Cost { input: 1.0, ..Cost::default() };
        let mut config = ProviderConfig::default();
        config.models.insert("big".into(), ModelConfig { context_limit: Some(7), ..Default::default() });
        config.models.insert(
            "fast".into(),
            ModelConfig {
                model_name: Some("small".into()),
                cost: Some(cost),
                image_input: Some(true),
                ..Default::default()
            },
        );
        config.models.insert("alias".into(), ModelConfig { model_name: Some("big".into()), ..Default::default() });
        let found = [listed("big", Some(1000), Some(50)), listed("small", Some(200), None)];
        let got = catalogue("p", &config, &found, &|_, _| ModelFacts::default());
        let row = |name: &str| got.iter().find(|m| m.id.model() == name).map(|m| (m.context_limit, m.output_limit));
        assert_eq!(got.iter().map(|m| m.id.as_str()).collect::<Vec<_>>(), ["p/alias", "p/big", "p/fast", "p/small"]);
        assert_eq!(row("big"), Some((Some(7), Some(50))));
        assert_eq!(row("alias"), Some((Some(7), Some(50))));
        assert_eq!(row("fast"), Some((Some(200), None)));
        assert_eq!((got[2].cost, got[2].vision), (Some(cost), true));
        assert_eq!((got[3].cost, got[3].vision), (None, false));
    }

    #[test]
    fn public_facts_fill_what_nobody_else_says() {
        let cost = Cost { input: 1.0, ..Cost::default() };
        let known = ModelFacts {
            context: Some(500),
            output: Some(400),
            cost: Some(cost),
            reasoning: Some(false),
            tools: Some(false),
            vision: Some(true),
        };
        let facts = |real: &str, _: &str| if real == "small" { known } else { ModelFacts::default() };
        let mut config = ProviderConfig::default();
        let alias = ModelConfig { model_name: Some("small".into()), image_input: Some(false), ..Default::default() };
        config.models.insert("alias".into(), alias);
        let got = catalogue("p", &config, &[listed("small", Some(200), None), listed("other", None, None)], &facts);
        let ids: Vec<&str> = got.iter().map(|m| m.id.as_str()).collect();
        assert_eq!(ids, ["p/alias", "p/other", "p/small"]);
        assert_eq!((got[2].context_limit, got[2].output_limit), (Some(200), None), "400 would not fit into 200");
        assert_eq!((got[2].cost, got[2].tools, got[2].reasoning, got[2].vision), (Some(cost), false, false, true));
        assert!(!got[0].vision && got[0].cost == Some(cost), "the user's word counts, the rest is inherited");
        assert_eq!((got[1].tools, got[1].reasoning, got[1].vision, got[1].cost), (true, true, false, None));
    }
}
