//! Providers as the client's settings page lists them.

use custom_methods::Empty;
use custom_methods::methods::ProvidersList;
use custom_methods::providers::{
    ModelCapabilities, ModelCost, ProviderAuth, ProviderAuthSource, ProviderAuthStatus, ProviderAuthType,
    ProviderModel, ProviderStatus, ProvidersListResult,
};
use serde_json::json;
use tower_lsp::jsonrpc::Result;

use super::super::service::{Answer, EcaServer};
use crate::llm::ModelInfo;
use crate::providers::{KeySource, ProviderState, ProviderView};

impl Answer<ProvidersList> for EcaServer {
    async fn answer(&self, _: Empty) -> Result<ProvidersListResult> {
        let registry = self.engine()?.registry();
        let models = registry.models();
        let providers = registry.overview().into_iter().map(|view| status(view, &models)).collect();
        Ok(ProvidersListResult { providers })
    }
}

fn status(view: ProviderView, models: &[ModelInfo]) -> ProviderStatus {
    let (source, env_var) = match &view.key_source {
        // A netrc file is named in the configuration, and the protocol has no word for it.
        KeySource::Config | KeySource::Netrc => (Some(ProviderAuthSource::Config), None),
        KeySource::Login => (Some(ProviderAuthSource::Login), None),
        KeySource::Env(name) => (Some(ProviderAuthSource::Env), Some(name.clone())),
        KeySource::None => (None, None),
    };
    let (auth_status, reason) = match view.state {
        ProviderState::Authenticated => (ProviderAuthStatus::Authenticated, None),
        ProviderState::Unauthenticated => (ProviderAuthStatus::Unauthenticated, None),
        ProviderState::Local => (ProviderAuthStatus::Local, None),
        ProviderState::NotRunning => (ProviderAuthStatus::NotRunning, None),
        ProviderState::NoLogin(reason) => (ProviderAuthStatus::Unauthenticated, Some(reason)),
    };
    let label = match (view.label, reason) {
        (Some(label), Some(_)) => Some(format!("{label} (not available)")),
        (label, _) => label.map(str::to_owned),
    };
    let of_this = |model: &&ModelInfo| model.id.provider() == view.id;
    ProviderStatus {
        configured: view.configured || view.has_key,
        auth: ProviderAuth {
            status: auth_status,
            kind: view.has_key.then_some(ProviderAuthType::ApiKey),
            source,
            mode: None,
            expires_at: None,
            env_var,
        },
        label,
        login: None,
        models: models.iter().filter(of_this).map(model).collect(),
        settings: reason.map(|reason| json!({"reason": reason})),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ModelId;
    use crate::llm::Cost;

    fn view(state: ProviderState, key_source: KeySource) -> ProviderView {
        ProviderView {
            id: "p".into(),
            label: Some("P"),
            api: "openai-chat".into(),
            url: "https://p".into(),
            has_key: key_source != KeySource::None,
            key_source,
            state,
            model_count: 1,
            local: false,
            configured: false,
        }
    }

    #[test]
    fn states_become_the_protocols_words() {
        let env = KeySource::Env("P_API_KEY".into());
        for (state, key, expected) in [
            (
                ProviderState::Authenticated,
                env,
                json!({"status": "authenticated", "type": "api-key", "source": "env", "envVar": "P_API_KEY"}),
            ),
            (
                ProviderState::Authenticated,
                KeySource::Login,
                json!({"status": "authenticated", "type": "api-key", "source": "login"}),
            ),
            (ProviderState::Unauthenticated, KeySource::None, json!({"status": "unauthenticated"})),
            (ProviderState::Local, KeySource::None, json!({"status": "local"})),
            (ProviderState::NotRunning, KeySource::None, json!({"status": "not-running"})),
        ] {
            let status = status(view(state, key), &[]);
            assert_eq!(serde_json::to_value(&status.auth).expect("JSON"), expected);
            assert_eq!((status.label.as_deref(), status.settings), (Some("P"), None));
        }
    }

    #[test]
    fn a_vendor_without_a_login_says_why() {
        let status = status(view(ProviderState::NoLogin("because"), KeySource::None), &[]);
        assert_eq!(status.auth.status, ProviderAuthStatus::Unauthenticated);
        assert_eq!(status.settings, Some(json!({"reason": "because"})));
        assert_eq!(status.label.as_deref(), Some("P (not available)"));
        assert!(!status.configured);
    }

    #[test]
    fn models_carry_abilities_and_prices() {
        let cost = Cost { input: 1.0, output: 2.0, ..Cost::default() };
        let info = ModelInfo { cost: Some(cost), vision: true, ..ModelInfo::named(ModelId::new("p", "a/b")) };
        let other = ModelInfo::named(ModelId::new("q", "c"));
        let status = status(view(ProviderState::Local, KeySource::None), &[info, other]);
        assert_eq!(
            serde_json::to_value(&status.models).expect("JSON"),
            json!([{
                "id": "a/b",
                "capabilities": {
                    "reason": true, "vision": true, "tools": true, "webSearch": false, "imageGeneration": false
                },
                "cost": {"input": 1.0, "output": 2.0}
            }])
        );
    }
}
