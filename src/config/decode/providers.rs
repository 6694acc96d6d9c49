//! `providers`, entry by entry.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Blank, Decoder, choices, deep_merge, expected, number, whole_number};
use crate::config::{ModelConfig, OAuthConfig, ProviderConfig, RetryConfig, RetryRule};

/// More rules than this are a mistake, and each costs with every error.
const MOST_RETRY_RULES: usize = 32;

impl<'a> Decoder<'a> {
    pub(super) fn provider(&mut self, entry: &'a Map<String, Value>, provider: &mut ProviderConfig) {
        self.optional_text(entry, "api", &mut provider.api, Blank::IsNone);
        if let Some(api) = &mut provider.api {
            *api = current_api_name(api).to_owned();
        }
        self.optional_text(entry, "url", &mut provider.url, Blank::IsNone);
        self.secret(entry, "key", &mut provider.key);
        self.optional_text(entry, "keyRc", &mut provider.key_rc, Blank::IsNone);
        self.optional_text(entry, "keyEnv", &mut provider.key_env, Blank::IsNone);
        self.optional_text(entry, "urlEnv", &mut provider.url_env, Blank::IsNone);
        let path = &mut provider.completion_url_relative_path;
        self.optional_text(entry, "completionUrlRelativePath", path, Blank::IsText);
        self.optional_text(entry, "thinkTagStart", &mut provider.think_tag_start, Blank::IsText);
        self.optional_text(entry, "thinkTagEnd", &mut provider.think_tag_end, Blank::IsText);
        self.object(entry, "oauth", |decoder, oauth| decoder.oauth(oauth, &mut provider.oauth));
        self.http_client(entry, provider);
        self.text_map(entry, "extraHeaders", &mut provider.extra_headers);
        self.flag(entry, "fetchModels", &mut provider.fetch_models, true);
        self.value(entry, "cacheRetention", choices::cache_retention, &mut provider.cache_retention);
        self.object(entry, "retry", |decoder, retry| decoder.retry(retry, &mut provider.retry));
        let patience = &mut provider.retry.rate_limit_max_wait;
        self.seconds(entry, "rateLimitMaxWaitSeconds", patience, RetryConfig::default().rate_limit_max_wait);
        self.value(entry, "retryRules", retry_rules, &mut provider.retry.rules);
        self.object(entry, "models", |decoder, models| {
            for (name, value) in models {
                // A bare `null` says "this model exists" just as `{}` does.
                if value.is_null() {
                    provider.models.entry(name.clone()).or_default();
                }
                decoder.exact_object(models, name, |decoder, entry| {
                    decoder.model(entry, provider.models.entry(name.clone()).or_default());
                });
            }
        });
    }

    fn retry(&mut self, entry: &'a Map<String, Value>, retry: &mut RetryConfig) {
        let defaults = RetryConfig::default();
        self.count(entry, "maxRetries", &mut retry.max_retries, defaults.max_retries, 0);
        self.milliseconds(entry, "baseDelayMs", &mut retry.base_delay, defaults.base_delay);
        self.milliseconds(entry, "maxDelayMs", &mut retry.max_delay, defaults.max_delay);
        self.count(entry, "maxAutoContinues", &mut retry.max_auto_continues, defaults.max_auto_continues, 0);
        let stops = (&mut retry.premature_stop_max_retries, defaults.premature_stop_max_retries);
        self.count(entry, "prematureStopMaxRetries", stops.0, stops.1, 0);
        self.value(
            entry,
            "backoffMultiplier",
            |found| match found {
                None => Ok(defaults.backoff_multiplier),
                Some(value) => number(value).filter(|n| *n >= 1.0).ok_or_else(|| expected("a number from 1", value)),
            },
            &mut retry.backoff_multiplier,
        );
    }

    fn model(&mut self, entry: &'a Map<String, Value>, model: &mut ModelConfig) {
        self.optional_text(entry, "modelName", &mut model.model_name, Blank::IsNone);
        self.text_map(entry, "extraHeaders", &mut model.extra_headers);
        self.object(entry, "extraPayload", |_, payload| deep_merge(&mut model.extra_payload, payload));
        self.variants(entry, &mut model.variants);
        self.value(entry, "reasoningHistory", choices::reasoning_history, &mut model.reasoning_history);
        self.value(
            entry,
            "imageInput",
            |found| found.map(|value| value.as_bool().ok_or_else(|| expected("true or false", value))).transpose(),
            &mut model.image_input,
        );
        self.object(entry, "limit", |decoder, limit| {
            decoder.tokens(limit, "context", &mut model.context_limit);
            decoder.tokens(limit, "output", &mut model.output_limit);
        });
        self.object(entry, "cost", |decoder, entry| {
            let mut cost = model.cost.unwrap_or_default();
            let known = decoder.problems.len();
            decoder.dollars(entry, "input", &mut cost.input);
            decoder.dollars(entry, "output", &mut cost.output);
            decoder.dollars(entry, "cacheRead", &mut cost.cache_read);
            decoder.dollars(entry, "cacheWrite", &mut cost.cache_write);
            // A price of which a part is unreadable would be shown as a wrong, lower price.
            if decoder.problems.len() == known && !entry.is_empty() {
                model.cost = Some(cost);
            }
        });
    }

    fn oauth(&mut self, entry: &'a Map<String, Value>, oauth: &mut OAuthConfig) {
        self.optional_text(entry, "clientId", &mut oauth.client_id, Blank::IsNone);
        self.secret(entry, "clientSecret", &mut oauth.client_secret);
        self.optional_text(entry, "authorizationUrl", &mut oauth.authorization_url, Blank::IsNone);
        self.optional_text(entry, "tokenUrl", &mut oauth.token_url, Blank::IsNone);
        self.optional_text(entry, "deviceAuthorizationUrl", &mut oauth.device_authorization_url, Blank::IsNone);
        self.value(entry, "scopes", choices::texts, &mut oauth.scopes);
        self.optional_text(entry, "redirectUri", &mut oauth.redirect_uri, Blank::IsNone);
        self.text_map(entry, "authorizationParams", &mut oauth.authorization_params);
    }

    /// Of the public server's many options, the one that means something here. Its schema has words
    /// in this place instead of an object; they choose among libraries that are not ours.
    fn http_client(&mut self, entry: &'a Map<String, Value>, provider: &mut ProviderConfig) {
        if self.find(entry, "httpClient").is_some_and(|(_, value)| value.is_string()) {
            return;
        }
        self.object(entry, "httpClient", |decoder, options| {
            decoder.value(options, "version", choices::http_version, &mut provider.http_version);
        });
    }

    fn text_map(&mut self, entry: &'a Map<String, Value>, key: &str, target: &mut BTreeMap<String, String>) {
        self.object(entry, key, |decoder, entries| {
            for (name, value) in entries {
                match value {
                    Value::String(text) => drop(target.insert(name.clone(), text.clone())),
                    Value::Null => drop(target.remove(name)),
                    other => decoder.report(name, &expected("a string", other)),
                }
            }
        });
    }
}

fn retry_rules(found: Option<&Value>) -> Result<Vec<RetryRule>, String> {
    let Some(value) = found else { return Ok(Vec::new()) };
    let rules = value.as_array().filter(|rules| rules.len() <= MOST_RETRY_RULES);
    let rules = rules.ok_or_else(|| expected(&format!("a list of at most {MOST_RETRY_RULES} rules"), value))?;
    rules.iter().map(retry_rule).collect()
}

fn retry_rule(value: &Value) -> Result<RetryRule, String> {
    let text = |key: &str| match value.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(expected("a string", other)),
    };
    let status = match value.get("status") {
        None | Some(Value::Null) => None,
        Some(status) => {
            let number = whole_number(status).and_then(|number| u16::try_from(number).ok());
            Some(number.ok_or_else(|| expected("the number of a status", status))?)
        }
    };
    let rule = RetryRule { status, error_pattern: text("errorPattern")?, label: text("label")? };
    if let Some(pattern) = &rule.error_pattern
        && fancy_regex::Regex::new(pattern).is_err()
    {
        return Err("an errorPattern is not a regular expression; the rules are ignored".to_owned());
    }
    match (rule.status, &rule.error_pattern) {
        (None, None) => Err("a rule needs a status or an errorPattern; the rules are ignored".to_owned()),
        _ => Ok(rule),
    }
}

/// `openai` is an old name. Which of the two OpenAI dialects it means is settled here only.
fn current_api_name(name: &str) -> &str {
    match name {
        "openai" => "openai-responses",
        other => other,
    }
}
