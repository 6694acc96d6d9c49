//! Providers as the client's settings page lists them.

use custom_methods::Empty;
use custom_methods::methods::ProvidersList;
use custom_methods::providers::{
    ModelCapabilities, ModelCost, ProviderAuth, ProviderAuthSource, ProviderAuthStatus, ProviderAuthType,
    ProviderModel, ProviderStatus, ProvidersListResult,
};
use tower_lsp::jsonrpc::Result;

use super::super::service::{Answer, EcaServer};
use crate::llm::ModelInfo;
use crate::providers::{KeySource, ProviderView};

impl Answer<ProvidersList> for EcaServer {
    async fn answer(&self, _: Empty) -> Result<ProvidersListResult> {
        let registry = self.engine()?.registry();
        let models = registry.models();
        let providers = registry.describe().into_iter().map(|view| status(view, &models)).collect();
        Ok(ProvidersListResult { providers })
    }
}

fn status(view: ProviderView, models: &[ModelInfo]) -> ProviderStatus {
    let (source, env_var) = match &view.key_source {
        KeySource::Config => (Some(ProviderAuthSource::Config), None),
        KeySource::Env(name) => (Some(ProviderAuthSource::Env), Some(name.clone())),
        KeySource::None => (None, None),
    };
    let of_this = |model: &&ModelInfo| model.id.provider() == view.id;
    ProviderStatus {
        configured: !view.local,
        auth: ProviderAuth {
            // A server that asks for no key is as good as one on this machine.
            status: if view.has_key { ProviderAuthStatus::Authenticated } else { ProviderAuthStatus::Local },
            kind: view.has_key.then_some(ProviderAuthType::ApiKey),
            source,
            mode: None,
            expires_at: None,
            env_var,
        },
        label: None,
        login: None,
        models: models.iter().filter(of_this).map(model).collect(),
        settings: None,
        id: view.id,
    }
}

fn model(info: &ModelInfo) -> ProviderModel {
    ProviderModel {
        id: info.id.model().to_owned(),
        capabilities: ModelCapabilities {
            reason: info.reasoning,
            vision: info.vision,
            tools: info.tools,
            web_search: false,
            image_generation: false,
        },
        cost: info.cost.map(|cost| ModelCost { input: cost.input, output: cost.output }),
        settings: None,
    }
}
