//! From the values of one source to the typed configuration, key by key.
//!
//! Sources are applied one after the other, lowest precedence first. A key with a wrong value is
//! reported and skipped, so what a lower source said about it stays. `null` takes a key back to
//! its default. Messages name the place and the kind of value, never the value: it may be a
//! secret.

mod acp_draft;
mod assist;
mod choices;
mod copilot;
mod customization;
mod index;
pub(super) mod mcp;
mod providers;
mod tools;

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use super::document::{Document, KeyPath, kind_of};
use super::{Config, ConfigProblem, NetworkConfig, Secret};

/// A longer time is a mistake, and far larger numbers would overflow clocks.
const MAX_SECONDS: f64 = 30.0 * 24.0 * 3600.0;

/// Applies `document` over `config`; `loose` also accepts keys in kebab-case and snake_case, which
/// some clients send.
pub(super) fn apply(config: &mut Config, document: &Document, loose: bool, problems: &mut Vec<ConfigProblem>) {
    let mut decoder = Decoder { document, loose, path: Vec::new(), problems };
    decoder.root(config);
}

/// None and less than one both mean that chats are kept.
fn retention_days(found: Option<&Value>) -> Result<Option<u32>, String> {
    let Some(value) = found else { return Ok(None) };
    let days = value.as_i64().ok_or_else(|| expected("a whole number of days", value))?;
    Ok(u32::try_from(days).ok().filter(|days| *days > 0))
}

struct Decoder<'a> {
    document: &'a Document,
    loose: bool,
    /// Where the object in hand stands.
    path: KeyPath,
    problems: &'a mut Vec<ConfigProblem>,
}

impl<'a> Decoder<'a> {
    fn root(&mut self, config: &mut Config) {
        let values = &self.document.values;
        let defaults = Config::default();
        self.default_agent(values, config);
        self.optional_text(values, "defaultModel", &mut config.default_model, Blank::IsNone);
        self.object(values, "chat", |decoder, chat| {
            decoder.optional_text(chat, "welcomeMessage", &mut config.welcome_message, Blank::IsText);
            decoder.flag(chat, "title", &mut config.chat.title, defaults.chat.title);
            decoder.count(chat, "maxSteps", &mut config.chat.max_steps, defaults.chat.max_steps, 1);
        });
        self.optional_text(values, "welcomeMessage", &mut config.welcome_message, Blank::IsText);
        self.flag(values, "localDiscovery", &mut config.local_discovery, defaults.local_discovery);
        config.models_dev &= !self.is_isolated(values);
        config.customization.isolated |= self.is_isolated(values);
        self.flag(values, "modelsDev", &mut config.models_dev, defaults.models_dev);
        self.value(values, "chatRetentionDays", retention_days, &mut config.chat_retention_days);
        self.agents(values, config);
        self.tools(values, config);
        self.customization(values, config);
        self.copilot(values, config);
        self.acp_draft(values, config);
        self.assist(values, config);
        self.variants_by_model(values, config);
        self.index(values, config);
        self.seconds(values, "streamIdleTimeoutSeconds", &mut config.stream_idle_timeout, defaults.stream_idle_timeout);
        self.seconds(values, "connectTimeoutSeconds", &mut config.connect_timeout, defaults.connect_timeout);
        self.mcp(values, config);
        self.object(values, "network", |decoder, network| decoder.network(network, &mut config.network));
        self.object(values, "providers", |decoder, providers| {
            for (id, _) in providers {
                decoder.exact_object(providers, id, |decoder, entry| {
                    decoder.provider(entry, config.providers.entry(id.clone()).or_default());
                });
            }
        });
    }

    /// The agent has had several names; the newest that says something counts.
    fn default_agent(&mut self, values: &'a Map<String, Value>, config: &mut Config) {
        let mut places: Vec<(&[&str], &str)> = vec![
            (&[], "defaultAgent"),
            (&["chat"], "defaultAgent"),
            (&[], "defaultBehavior"),
            (&["chat"], "defaultBehavior"),
        ];
        if self.loose {
            // Only clients send these, as the choice that their user made.
            places.extend([(&[] as &[&str], "chatAgent"), (&[], "chatBehavior")]);
        }
        for (parents, key) in places {
            let mut map = Some(values);
            for parent in parents {
                map = map.and_then(|map| self.find(map, parent)).and_then(|(_, value)| value.as_object());
            }
            let Some((written, value)) = map.and_then(|map| self.find(map, key)) else { continue };
            let mut path: KeyPath = parents.iter().map(|parent| (*parent).to_owned()).collect();
            path.push(written.clone());
            match value {
                Value::Null => continue,
                Value::String(name) if name.trim().is_empty() => continue,
                Value::String(name) => config.default_agent = current_agent_name(name).to_owned(),
                other => self.problems.push(self.document.problem(&path, &expected("a string", other))),
            }
            return;
        }
    }

    fn network(&mut self, entry: &'a Map<String, Value>, network: &mut NetworkConfig) {
        self.file(entry, "caCertFile", &mut network.ca_cert_file);
        self.file(entry, "clientCert", &mut network.client_cert);
        self.file(entry, "clientKey", &mut network.client_key);
        self.secret(entry, "clientKeyPassphrase", &mut network.client_key_passphrase);
    }

    fn optional_text(&mut self, map: &'a Map<String, Value>, key: &str, target: &mut Option<String>, blank: Blank) {
        let decode = |found: Option<&Value>| match found {
            None => Ok(None),
            Some(Value::String(text)) if blank == Blank::IsNone && text.trim().is_empty() => Ok(None),
            Some(Value::String(text)) if blank == Blank::IsNone => Ok(Some(text.trim().to_owned())),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(expected("a string", other)),
        };
        self.value(map, key, decode, target);
    }

    fn secret(&mut self, map: &'a Map<String, Value>, key: &str, target: &mut Option<Secret>) {
        let mut text = target.take().map(|secret| secret.expose().to_owned());
        self.optional_text(map, key, &mut text, Blank::IsNone);
        *target = text.map(Secret::new);
    }

    fn file(&mut self, map: &'a Map<String, Value>, key: &str, target: &mut Option<PathBuf>) {
        let mut text = target.take().map(|path| path.to_string_lossy().into_owned());
        self.optional_text(map, key, &mut text, Blank::IsNone);
        *target = text.map(PathBuf::from);
    }

    fn flag(&mut self, map: &'a Map<String, Value>, key: &str, target: &mut bool, default: bool) {
        let decode = |found: Option<&Value>| match found {
            None => Ok(default),
            Some(value) => value.as_bool().ok_or_else(|| expected("true or false", value)),
        };
        self.value(map, key, decode, target);
    }

    fn count(&mut self, map: &'a Map<String, Value>, key: &str, target: &mut u32, default: u32, least: u32) {
        let decode = |found: Option<&Value>| match found {
            None => Ok(default),
            Some(value) => whole_number(value)
                .and_then(|n| u32::try_from(n).ok())
                .filter(|n| *n >= least)
                .ok_or_else(|| expected(&format!("a whole number from {least}"), value)),
        };
        self.value(map, key, decode, target);
    }

    fn tokens(&mut self, map: &'a Map<String, Value>, key: &str, target: &mut Option<u64>) {
        let decode = |found: Option<&Value>| {
            found
                .map(|value| {
                    let tokens = whole_number(value).filter(|n| *n > 0);
                    tokens.ok_or_else(|| expected("a whole number from 1", value))
                })
                .transpose()
        };
        self.value(map, key, decode, target);
    }

    fn dollars(&mut self, map: &'a Map<String, Value>, key: &str, target: &mut f64) {
        let decode = |found: Option<&Value>| match found {
            None => Ok(0.0),
            Some(value) => number(value).filter(|n| *n >= 0.0).ok_or_else(|| expected("a number from 0", value)),
        };
        self.value(map, key, decode, target);
    }

    fn seconds(&mut self, map: &'a Map<String, Value>, key: &str, target: &mut Duration, default: Duration) {
        let decode = |found: Option<&Value>| match found {
            None => Ok(default),
            Some(value) => number(value)
                .filter(|n| *n > 0.0 && *n <= MAX_SECONDS)
                .and_then(|n| Duration::try_from_secs_f64(n).ok())
                .ok_or_else(|| expected("a number of seconds above 0", value)),
        };
        self.value(map, key, decode, target);
    }

    fn milliseconds(&mut self, map: &'a Map<String, Value>, key: &str, target: &mut Duration, default: Duration) {
        let decode = |found: Option<&Value>| match found {
            None => Ok(default),
            Some(value) => number(value)
                .filter(|n| *n >= 0.0 && *n <= MAX_SECONDS * 1000.0)
                .and_then(|n| Duration::try_from_secs_f64(n / 1000.0).ok())
                .ok_or_else(|| expected("a number of milliseconds", value)),
        };
        self.value(map, key, decode, target);
    }

    /// Sets `target` from `key` when it is there: `decode` sees `None` for `null`, which asks for
    /// the default.
    fn value<T>(
        &mut self,
        map: &'a Map<String, Value>,
        key: &str,
        decode: impl FnOnce(Option<&Value>) -> Result<T, String>,
        target: &mut T,
    ) {
        let Some((written, value)) = self.find(map, key) else { return };
        match decode((!value.is_null()).then_some(value)) {
            Ok(decoded) => *target = decoded,
            Err(message) => self.report(written, &message),
        }
    }

    /// Calls `inside` with the object under `key`, if there is one.
    fn object(
        &mut self,
        map: &'a Map<String, Value>,
        key: &str,
        inside: impl FnOnce(&mut Self, &'a Map<String, Value>),
    ) {
        if let Some((written, _)) = self.find(map, key) {
            self.exact_object(map, written, inside);
        }
    }

    fn exact_object(
        &mut self,
        map: &'a Map<String, Value>,
        key: &str,
        inside: impl FnOnce(&mut Self, &'a Map<String, Value>),
    ) {
        match map.get(key) {
            Some(Value::Object(entries)) => {
                self.path.push(key.to_owned());
                inside(self, entries);
                self.path.pop();
            }
            Some(Value::Null) | None => {}
            Some(other) => self.report(key, &expected("an object", other)),
        }
    }

    fn report(&mut self, key: &str, message: &str) {
        let mut path = self.path.clone();
        path.push(key.to_owned());
        self.problems.push(self.document.problem(&path, message));
    }

    /// The entry for `key`, with the key as it is written.
    fn find(&self, map: &'a Map<String, Value>, key: &str) -> Option<(&'a String, &'a Value)> {
        map.get_key_value(key).or_else(|| {
            let same = |written: &str| self.loose && written.contains(['-', '_']) && camel_case(written) == key;
            map.iter().find(|(written, _)| same(written))
        })
    }
}

/// What an empty text means.
#[derive(Clone, Copy, PartialEq)]
enum Blank {
    /// Nothing was said: typically an interpolation that found nothing.
    IsNone,
    /// The user wants it empty.
    IsText,
}

fn expected(what: &str, found: &Value) -> String {
    let why = if found.is_number() && what.contains("number") { "this one" } else { kind_of(found) };
    format!("expected {what}, not {why}; the value is ignored")
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().filter(|n| n.is_finite())
}

/// Whole numbers are also accepted when they are written as `1e6` or `200000.0`.
fn whole_number(value: &Value) -> Option<u64> {
    let exact = |n: f64| n.fract() == 0.0 && (0.0..9e15).contains(&n);
    value.as_u64().or_else(|| number(value).filter(|n| exact(*n)).map(|n| n as u64))
}

pub(super) fn deep_merge(target: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (key, value) in from {
        match (target.get_mut(key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => deep_merge(old, new),
            _ => drop(target.insert(key.clone(), value.clone())),
        }
    }
}

fn current_agent_name(name: &str) -> &str {
    match name.trim() {
        "agent" | "build" => "code",
        other => other,
    }
}

fn camel_case(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    let mut upper = false;
    for c in key.chars() {
        if c == '-' || c == '_' {
            upper = !out.is_empty();
        } else if upper {
            out.extend(c.to_uppercase());
            upper = false;
        } else {
            out.push(c);
        }
    }
    out
}
