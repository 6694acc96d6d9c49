//! The section `copilot`.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{Blank, Decoder, MAX_SECONDS, expected, number};
use crate::config::{Config, CopilotConfig};

impl<'a> Decoder<'a> {
    pub(super) fn copilot(&mut self, values: &'a Map<String, Value>, config: &mut Config) {
        let copilot = &mut config.copilot;
        let defaults = CopilotConfig::default();
        self.object(values, "copilot", |decoder, entry| {
            decoder.optional_text(entry, "model", &mut copilot.model, Blank::IsNone);
            decoder.patience(entry, "generateTimeoutSeconds", &mut copilot.generate_timeout, defaults.generate_timeout);
            let customize = &mut copilot.customize_timeout;
            decoder.patience(entry, "customizeTimeoutSeconds", customize, defaults.customize_timeout);
            decoder.patience(entry, "chatTimeoutSeconds", &mut copilot.chat_timeout, defaults.chat_timeout);
            let parallel = &mut copilot.parallel_requests;
            decoder.count(entry, "parallelRequests", parallel, defaults.parallel_requests, 1);
        });
    }

    /// Seconds, of which none means that there is no limit.
    fn patience(
        &mut self,
        map: &'a Map<String, Value>,
        key: &str,
        target: &mut Option<Duration>,
        default: Option<Duration>,
    ) {
        let decode = |found: Option<&Value>| match found {
            None => Ok(default),
            Some(value) => number(value)
                .filter(|n| (0.0..=MAX_SECONDS).contains(n))
                .and_then(|n| Duration::try_from_secs_f64(n).ok())
                .map(|time| Some(time).filter(|time| !time.is_zero()))
                .ok_or_else(|| expected("a number of seconds from 0", value)),
        };
        self.value(map, key, decode, target);
    }
}
