//! Providers as the client's settings page lists them.

use custom_methods::Empty;
use custom_methods::methods::{ProvidersList, ProvidersLogin, ProvidersLoginInput, ProvidersLogout};
use custom_methods::providers::{
    AuthorizeStep, ChooseMethodStep, DeviceCodeStep, InputStep, LoginField, LoginFieldType, LoginMethod,
    ModelCapabilities, ModelCost, ProviderAuth, ProviderAuthSource, ProviderAuthStatus, ProviderAuthType,
    ProviderLogin, ProviderModel, ProviderStatus, ProvidersListResult, ProvidersLoginInputParams, ProvidersLoginParams,
    ProvidersLoginResult, ProvidersLogoutParams,
};
use serde_json::json;
use tower_lsp::jsonrpc::Result;

use super::super::service::{Answer, EcaServer, failed};
use super::super::session::Session;
use crate::config::Secret;
use crate::engine::{LoginError, LoginMethod as Method, LoginStep, login_methods};
use crate::llm::ModelInfo;
use crate::providers::{KeySource, ProviderState, ProviderView};

/// The way to log in that every provider has, and the field that holds the key.
const API_KEY: &str = "api-key";
/// What a user copied out of a browser that could not come back by itself.
const PASTED: &str = "code";

impl Answer<ProvidersList> for EcaServer {
    async fn answer(&self, _: Empty) -> Result<ProvidersListResult> {
        let registry = self.engine()?.registry();
        let models = registry.models();
        let providers = registry.overview().into_iter().map(|view| status(view, &models)).collect();
        Ok(ProvidersListResult { providers })
    }
}

impl Answer<ProvidersLogin> for EcaServer {
    async fn answer(&self, params: ProvidersLoginParams) -> Result<ProvidersLoginResult> {
        let engine = self.engine()?;
        let option = engine.login_options().into_iter().find(|option| option.id == params.provider);
        let option = option.ok_or_else(|| failed(LoginError::UnknownProvider(params.provider.clone()).to_string()))?;
        if let Some(reason) = option.unavailable {
            return Err(failed(LoginError::NoWayIn { provider: option.label, reason }.to_string()));
        }
        let method = match (params.method.as_deref(), &option.methods[..]) {
            (None, [only]) => *only,
            (None, several) => {
                return Ok(ChooseMethodStep { methods: several.iter().map(wire_method).collect() }.into());
            }
            (Some(key), known) => {
                let found = known.iter().find(|method| wire_method(method).key == key);
                *found.ok_or_else(|| failed(format!("{} cannot be logged into by {key:?}.", option.label)))?
            }
        };
        let step = engine.begin_login(&option.id, method).await.map_err(|error| failed(error.to_string()))?;
        Ok(match step {
            LoginStep::EnterKey => {
                let label = format!("API key of {}", option.label);
                InputStep { fields: vec![LoginField { key: API_KEY.into(), label, kind: LoginFieldType::Secret }] }
                    .into()
            }
            LoginStep::Open { url } => {
                let message = format!("Log in at {} in your browser.", option.label);
                AuthorizeStep { url, message, fields: None }.into()
            }
            LoginStep::TypeCode { url, code } => {
                let message = format!("Type in this code at {} to log in at {}.", url, option.label);
                DeviceCodeStep { url, code, message }.into()
            }
        })
    }
}

impl Answer<ProvidersLoginInput> for EcaServer {
    async fn answer(&self, params: ProvidersLoginInputParams) -> Result<ProvidersLoginResult> {
        let given = |field: &str| params.data.get(field).map(|text| text.trim()).filter(|text| !text.is_empty());
        let engine = self.engine()?;
        let logged_in = match (given(API_KEY), given(PASTED)) {
            (Some(key), _) => engine.log_in(&params.provider, Secret::new(key)).await,
            (None, Some(pasted)) => engine.paste_login(&params.provider, pasted).await,
            (None, None) => return Err(failed(format!("{API_KEY} is missing"))),
        };
        logged_in.map(|_| ProvidersLoginResult::Done(Empty)).map_err(|error| failed(error.to_string()))
    }
}

impl Answer<ProvidersLogout> for EcaServer {
    async fn answer(&self, params: ProvidersLogoutParams) -> Result<Empty> {
        let logged_out = self.engine()?.log_out(&params.provider).await;
        logged_out.map(|_| Empty).map_err(|error| failed(error.to_string()))
    }
}

/// One provider as the settings page shows it; nothing for one that is not known.
pub(in crate::frontends::eca) fn provider_status(session: &Session, id: &str) -> Option<ProviderStatus> {
    let registry = session.started()?.engine.registry();
    let view = registry.overview().into_iter().chain(registry.with_keys()).find(|view| view.id == id)?;
    Some(status(view, &registry.models()))
}

fn wire_method(method: &Method) -> LoginMethod {
    let (key, label) = match method {
        Method::Browser => ("oauth", "Browser"),
        Method::Device => ("device", "Code on another device"),
        Method::ApiKey => (API_KEY, "API key"),
    };
    LoginMethod { key: key.into(), label: label.into() }
}

fn status(view: ProviderView, models: &[ModelInfo]) -> ProviderStatus {
    let (source, env_var) = match &view.key_source {
        // A netrc file is named in the configuration, and the protocol has no word for it.
        KeySource::Config | KeySource::Netrc => (Some(ProviderAuthSource::Config), None),
        KeySource::Login | KeySource::OAuth => (Some(ProviderAuthSource::Login), None),
        KeySource::Env(name) => (Some(ProviderAuthSource::Env), Some(name.clone())),
        KeySource::None => (None, None),
    };
    let (auth_status, reason) = match view.state {
        ProviderState::Authenticated => (ProviderAuthStatus::Authenticated, None),
        ProviderState::Expiring => (ProviderAuthStatus::Expiring, None),
        ProviderState::Expired => (ProviderAuthStatus::Expired, None),
        ProviderState::Unauthenticated => (ProviderAuthStatus::Unauthenticated, None),
        ProviderState::Local => (ProviderAuthStatus::Local, None),
        ProviderState::NotRunning => (ProviderAuthStatus::NotRunning, None),
        ProviderState::NoLogin(reason) => (ProviderAuthStatus::Unauthenticated, Some(reason)),
    };
    let can_log_in =
        !matches!(view.state, ProviderState::NoLogin(_) | ProviderState::Local | ProviderState::NotRunning);
    let kind = if view.key_source == KeySource::OAuth { ProviderAuthType::Oauth } else { ProviderAuthType::ApiKey };
    let label = match (view.label, reason) {
        (Some(label), Some(_)) => Some(format!("{label} (not available)")),
        (label, _) => label.map(str::to_owned),
    };
    let of_this = |model: &&ModelInfo| model.id.provider() == view.id;
    ProviderStatus {
        configured: view.configured || view.has_key,
        auth: ProviderAuth {
            status: auth_status,
            kind: view.has_key.then_some(kind),
            source,
            mode: None,
            expires_at: view.expires_at,
            env_var,
        },
        label,
        login: can_log_in.then(|| ProviderLogin { methods: login_methods(&view).iter().map(wire_method).collect() }),
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
            web_search: info.web_search,
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
            ways: Vec::new(),
            expires_at: None,
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
            (
                ProviderState::Expired,
                KeySource::OAuth,
                json!({"status": "expired", "type": "oauth", "source": "login"}),
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
