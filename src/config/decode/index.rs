//! What of a workspace is found and listed: `index.*` and `chat.queryLimit`.

use serde_json::{Map, Value};

use super::{Decoder, expected};
use crate::config::{Config, IndexConfig};

impl<'a> Decoder<'a> {
    pub(super) fn index(&mut self, values: &'a Map<String, Value>, config: &mut Config) {
        let defaults = IndexConfig::default();
        let index = &mut config.index;
        self.object(values, "chat", |decoder, chat| {
            decoder.count(chat, "queryLimit", &mut index.query_limit, defaults.query_limit, 1);
        });
        self.object(values, "index", |decoder, entry| {
            decoder.value(entry, "ignoreFiles", has_gitignore, &mut index.ignores);
            decoder.object(entry, "repoMap", |decoder, entry| {
                let (map, defaults) = (&mut index.repo_map, defaults.repo_map);
                decoder.count(entry, "maxTotalEntries", &mut map.max_total_entries, defaults.max_total_entries, 1);
                let per_dir = &mut map.max_entries_per_dir;
                decoder.count(entry, "maxEntriesPerDir", per_dir, defaults.max_entries_per_dir, 1);
            });
        });
    }
}

/// A list of objects with a `type`, of which there is one: `gitignore`. An empty list ignores
/// nothing.
fn has_gitignore(found: Option<&Value>) -> Result<bool, String> {
    let Some(value) = found else { return Ok(IndexConfig::default().ignores) };
    let items = value.as_array().ok_or_else(|| expected("a list such as [{\"type\": \"gitignore\"}]", value))?;
    let known = |item: &Value| item.get("type").unwrap_or(item) == "gitignore";
    if items.iter().all(known) {
        Ok(!items.is_empty())
    } else {
        Err("expected entries like {\"type\": \"gitignore\"}; the value is ignored".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::apply;
    use super::*;
    use crate::config::RepoMapConfig;
    use crate::config::document::Document;

    fn read(value: Value) -> (IndexConfig, Vec<String>) {
        let mut config = Config::default();
        let mut problems = Vec::new();
        let document = Document::from_value("test", value).expect("an object");
        apply(&mut config, &document, false, &mut problems);
        (config.index, problems.into_iter().map(|problem| problem.message).collect())
    }

    #[test]
    fn the_index_and_its_limits_are_read() {
        let (index, problems) = read(json!({
            "chat": {"queryLimit": 7},
            "index": {"ignoreFiles": [], "repoMap": {"maxTotalEntries": 9, "maxEntriesPerDir": 3}},
        }));
        assert_eq!(problems, Vec::<String>::new());
        let repo_map = RepoMapConfig { max_total_entries: 9, max_entries_per_dir: 3 };
        assert_eq!(index, IndexConfig { ignores: false, repo_map, query_limit: 7 });
    }

    #[test]
    fn ignore_files_are_a_list_of_one_known_type() {
        for (value, ignores, complaints) in [
            (json!(null), true, 0),
            (json!([]), false, 0),
            (json!([{"type": "gitignore"}]), true, 0),
            (json!(["gitignore"]), true, 0),
            (json!([{"type": "other"}]), true, 1),
            (json!([{"type": "gitignore"}, 7]), true, 1),
            (json!("gitignore"), true, 1),
        ] {
            let (index, problems) = read(json!({"index": {"ignoreFiles": value}}));
            assert_eq!((index.ignores, problems.len()), (ignores, complaints), "{value}: {problems:?}");
        }
    }

    #[test]
    fn limits_begin_at_one() {
        let (index, problems) =
            read(json!({"chat": {"queryLimit": 0}, "index": {"repoMap": {"maxTotalEntries": "many"}}}));
        assert_eq!((index, problems.len()), (IndexConfig::default(), 2), "{problems:?}");
    }
}
