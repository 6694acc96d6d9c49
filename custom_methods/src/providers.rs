//! Providers of models: whether the user is logged in, how to log in, and what they offer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::common::Empty;
use crate::tolerant::null_as_default;

/// Every provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProvidersListResult {
    pub providers: Vec<ProviderStatus>,
}

/// One provider. The settings page of the webview reads `models` and their `capabilities` unconditionally, so both are
/// always there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderStatus {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    pub configured: bool,
    pub auth: ProviderAuth,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub login: Option<ProviderLogin>,
    pub models: Vec<ProviderModel>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<Value>,
}

/// Whether and how the user is logged in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderAuth {
    pub status: ProviderAuthStatus,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<ProviderAuthType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<ProviderAuthSource>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
    /// The environment variable the key was found in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env_var: Option<String>,
}

closed_words! {
    /// The state of a login.
    pub enum ProviderAuthStatus {
        Authenticated = "authenticated",
        Expiring = "expiring",
        Expired = "expired",
        Unauthenticated = "unauthenticated",
        /// Runs on this machine and needs no login.
        Local = "local",
        /// Would run on this machine, but does not answer.
        NotRunning = "not-running",
    }
    /// What kind of secret the login holds.
    pub enum ProviderAuthType {
        Oauth = "oauth",
        ApiKey = "api-key",
    }
    /// Where the secret was found.
    pub enum ProviderAuthSource {
        Config = "config",
        Login = "login",
        Env = "env",
    }
    /// Whether an input should be shown while it is typed.
    pub enum LoginFieldType {
        Secret = "secret",
        Text = "text",
    }
}

/// The ways to log in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderLogin {
    pub methods: Vec<LoginMethod>,
}

/// One way to log in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginMethod {
    pub key: String,
    pub label: String,
}

/// A model and what it can do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderModel {
    pub id: String,
    pub capabilities: ModelCapabilities,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<ModelCost>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<Value>,
}

/// What a model can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelCapabilities {
    pub reason: bool,
    pub vision: bool,
    pub tools: bool,
    pub web_search: bool,
    pub image_generation: bool,
}

/// Prices per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ModelCost {
    pub input: f64,
    pub output: f64,
}

/// Begins a login; with a single method the method may be left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvidersLoginParams {
    pub provider: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
}

/// What the user entered, by the keys of the fields that were asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvidersLoginInputParams {
    pub provider: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub data: BTreeMap<String, String>,
}

/// Forgets a login.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvidersLogoutParams {
    pub provider: String,
}

tagged_union! {
    /// What the client should do next to log in.
    pub enum ProvidersLoginResult: "login step" by "action" {
        ChooseMethod(ChooseMethodStep) = "choose-method",
        Authorize(AuthorizeStep) = "authorize",
        DeviceCode(DeviceCodeStep) = "device-code",
        Input(InputStep) = "input",
        /// The login is complete.
        Done(Empty) = "done",
    }
}

/// Let the user choose among the ways to log in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChooseMethodStep {
    pub methods: Vec<LoginMethod>,
}

/// Send the user to a page, and ask for what it shows afterwards if there are fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorizeStep {
    pub url: String,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<LoginField>>,
}

/// Send the user to a page and show the code to type in there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceCodeStep {
    pub url: String,
    pub code: String,
    pub message: String,
}

/// Ask the user for something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputStep {
    pub fields: Vec<LoginField>,
}

/// One thing to ask for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginField {
    pub key: String,
    pub label: String,
    #[serde(rename = "type")]
    pub kind: LoginFieldType,
}
