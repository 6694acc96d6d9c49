//! The sections `completion` and `rewrite`; their prompts have been brought to `prompts` before.

use serde_json::{Map, Value};

use super::{Blank, Decoder};
use crate::config::{AssistConfig, Config};

impl<'a> Decoder<'a> {
    pub(super) fn assist(&mut self, values: &'a Map<String, Value>, config: &mut Config) {
        let defaults = AssistConfig::default();
        let AssistConfig { completion_model, rewrite_model, full_file_max_lines } = &mut config.assist;
        self.object(values, "completion", |decoder, entry| {
            decoder.optional_text(entry, "model", completion_model, Blank::IsNone);
        });
        self.object(values, "rewrite", |decoder, entry| {
            decoder.optional_text(entry, "model", rewrite_model, Blank::IsNone);
            decoder.size(entry, "fullFileMaxLines", full_file_max_lines, defaults.full_file_max_lines);
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::apply;
    use super::*;
    use crate::config::document::Document;

    #[test]
    fn models_and_sizes_are_read() {
        let mut config = Config::default();
        let mut problems = Vec::new();
        let mut read = |value: Value| {
            let document = Document::from_value("test", value).expect("an object");
            apply(&mut config, &document, false, &mut problems);
            config.assist.clone()
        };
        let assist = read(json!({"completion": {"model": "a/b"}, "rewrite": {"model": "c/d", "fullFileMaxLines": 7}}));
        let names = (assist.completion_model.as_deref(), assist.rewrite_model.as_deref());
        assert_eq!((names, assist.full_file_max_lines), ((Some("a/b"), Some("c/d")), 7));
        let reset = read(json!({"completion": {"model": null}, "rewrite": {"model": " ", "fullFileMaxLines": null}}));
        assert_eq!(reset, AssistConfig::default());
        assert!(problems.is_empty(), "{problems:?}");
    }
}
