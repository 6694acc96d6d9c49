//! What fits into a model's window, and what is left out when not everything does.

use super::failure::Failure;
use super::params::Said;
use super::spec::{Detail, Spec, digest};
use crate::llm::ModelInfo;

/// Assumed where nothing is known of a model, and where there is none.
const USUAL_WINDOW: u64 = 128_000;
/// Kept free for the answer, unless the model cannot write that much.
const ANSWER: u64 = 16_000;
const BYTES_PER_TOKEN: u64 = 4;

/// Tokens that a question may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Budget {
    limit: u64,
}

/// What of the optional parts fits.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fitting {
    pub(super) digest: String,
    pub(super) history: Vec<Said>,
}

impl Budget {
    pub(super) fn of(model: Option<&ModelInfo>) -> Self {
        let window = model.and_then(|model| model.context_limit).unwrap_or(USUAL_WINDOW);
        let answer = model.and_then(|model| model.output_limit).unwrap_or(ANSWER).min(ANSWER).min(window / 2);
        Self { limit: window - answer }
    }

    /// Fits what may be shortened beside `fixed` bytes that may not: first descriptions and
    /// examples go, then models that no endpoint needs, then the oldest messages.
    pub(super) fn fit(self, fixed: usize, spec: Option<&Spec>, history: Vec<Said>) -> Result<Fitting, Failure> {
        let fixed = tokens(fixed);
        let said = |history: &[Said]| tokens(history.iter().map(|said| said.text.len()).sum());
        let mut history = history;
        let mut text = String::new();
        if let Some(spec) = spec {
            for detail in Detail::ALL {
                text = digest(spec, detail);
                if fixed + tokens(text.len()) + said(&history) <= self.limit {
                    break;
                }
            }
        }
        let needed = fixed + tokens(text.len());
        while !history.is_empty() && needed + said(&history) > self.limit {
            history.remove(0);
        }
        if needed > self.limit {
            return Err(Failure::too_large(needed, self.limit));
        }
        Ok(Fitting { digest: text, history })
    }
}

/// A guess that holds for English and for code.
fn tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(BYTES_PER_TOKEN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ModelId;
    use crate::frontends::copilot::params::By;
    use serde_json::json;

    fn spec() -> Spec {
        let described = "words ".repeat(40);
        super::super::spec::read(&json!({
            "openapi": "3.0.0", "info": {"title": "T"},
            "paths": {"/a": {"get": {"summary": described, "responses": {"200": {"content": {"application/json":
                {"schema": {"$ref": "#/components/schemas/Used"}}}}}}}},
            "components": {"schemas": {
                "Used": {"type": "object", "properties": {"id": {"type": "string"}}},
                "Unused": {"type": "object", "properties": {"field_of_the_unused_one": {"type": "string"}}},
            }},
        }))
        .unwrap()
    }

    fn said(text: &str) -> Said {
        Said { by: By::User, text: text.repeat(100) }
    }

    #[test]
    fn things_are_left_out_one_after_the_other() {
        let spec = spec();
        let fit = |limit: u64, history: Vec<Said>| Budget { limit }.fit(40, Some(&spec), history);
        let history = || vec![said("old "), said("new ")];
        let all = fit(1000, history()).unwrap();
        assert!(all.digest.contains("words") && all.digest.contains("Unused") && all.history.len() == 2);
        let named = fit(250, history()).unwrap();
        assert!(!named.digest.contains("words") && named.digest.contains("Unused") && named.history.len() == 2);
        let used = fit(242, history()).unwrap();
        assert!(!used.digest.contains("Unused") && used.digest.contains("Used") && used.history.len() == 2);
        let newest = fit(150, history()).unwrap();
        assert_eq!(newest.history, [said("new ")]);
        assert_eq!(fit(60, history()).unwrap().history, []);
        let failure = fit(30, history()).unwrap_err();
        assert_eq!(failure.code, -32003);
        let data = failure.data.unwrap();
        assert!(data["estimatedTokens"].as_u64() > data["limit"].as_u64() && data["limit"] == 30, "{data}");
    }

    #[test]
    fn the_window_is_the_models_own() {
        let model = |context_limit, output_limit| ModelInfo {
            context_limit,
            output_limit,
            ..ModelInfo::named(ModelId::new("p", "m"))
        };
        assert_eq!(Budget::of(None).limit, 112_000);
        assert_eq!(Budget::of(Some(&model(None, Some(4_000)))).limit, 124_000);
        assert_eq!(Budget::of(Some(&model(Some(200_000), Some(64_000)))).limit, 184_000);
        assert_eq!(Budget::of(Some(&model(Some(4_096), None))).limit, 2_048);
    }
}
