//! The API keys that a user gave the public server's login, so that they need not be given again.
//!
//! Only read, and only keys: a token of an OAuth login is renewed by whoever holds it, which ends
//! it for everybody else, and it was given to another product.

use std::collections::BTreeMap;
use std::path::Path;

use super::Secret;
use super::files::read_bytes;
use crate::base::transit::{self, Value};

const FILE: &str = "db.transit.json";
const MAX_BYTES: u64 = 4 * 1024 * 1024;
/// The only format whose meaning is known.
const VERSION: i64 = 6;

/// The keys in the public server's cache, by provider id. `cache_dir` is [`super::Dirs::cache`].
/// A file that cannot be used is as good as none.
pub fn imported_api_keys(cache_dir: &Path) -> BTreeMap<String, Secret> {
    let file = cache_dir.join(FILE);
    if !file.exists() {
        return BTreeMap::new();
    }
    let keys = read_bytes(&file, MAX_BYTES).and_then(|bytes| keys_in(&bytes));
    keys.unwrap_or_else(|why| {
        tracing::info!(file = %file.display(), why, "the keys of the public server's login are not used");
        BTreeMap::new()
    })
}

fn keys_in(bytes: &[u8]) -> Result<BTreeMap<String, Secret>, String> {
    let document = transit::decode(bytes).map_err(|error| error.to_string())?;
    if document.get("version") != Some(&Value::Integer(VERSION)) {
        return Err("it is of an unknown version".to_owned());
    }
    let entries = document.get("auth").and_then(Value::entries).unwrap_or_default();
    Ok(entries.iter().filter_map(|(id, login)| Some((id.name()?.to_owned(), api_key(login)?))).collect())
}

/// The key of one login, unless it is or might be a token.
fn api_key(login: &Value) -> Option<Secret> {
    // An OAuth login also has an `api-key`: it is the token. One that does not say what it is counts
    // as OAuth at the public server too.
    let is_token = ["access-token", "refresh-token", "expires-at"].iter().any(|name| login.get(name).is_some());
    if is_token || login.get("type").and_then(Value::name) != Some("auth/token") {
        return None;
    }
    let key = login.get("api-key").and_then(Value::text)?.trim();
    (!key.is_empty()).then(|| Secret::new(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(logins: &str) -> BTreeMap<String, String> {
        let text = format!(r#"["^ ","~:version",6,"~:auth",["^ ",{logins}],"~:mcp-auth",["^ "]]"#);
        let keys = keys_in(text.as_bytes()).unwrap();
        keys.into_iter().map(|(id, key)| (id, key.expose().to_owned())).collect()
    }

    #[test]
    fn only_plain_keys_count() {
        let token = r#""~:type","~:auth/token""#;
        for (login, expected) in [
            (format!(r#"["^ ","~:step","~:login/done",{token},"~:api-key","k1","~:mode","~:manual"]"#), Some("k1")),
            (format!(r#"["^ ",{token},"~:api-key"," ~^k2 "]"#), Some("~^k2")),
            (format!(r#"["^ ",{token},"~:api-key","~~k3"]"#), Some("~k3")),
            (r#"["^ ","~:type","~:auth/oauth","~:api-key","t"]"#.to_owned(), None),
            (r#"["^ ","~:type","~:oauth","~:api-key","t"]"#.to_owned(), None),
            (r#"["^ ","~:api-key","t"]"#.to_owned(), None),
            (r#"["^ ","~:type",null,"~:api-key","t"]"#.to_owned(), None),
            (format!(r#"["^ ",{token},"~:api-key","t","~:refresh-token","r"]"#), None),
            (format!(r#"["^ ",{token},"~:api-key","t","~:access-token","a"]"#), None),
            (format!(r#"["^ ",{token},"~:api-key","t","~:expires-at",1]"#), None),
            (format!(r#"["^ ",{token},"~:api-key","t","~:expires-at",null]"#), None),
            (format!(r#"["^ ",{token},"~:api-key","  "]"#), None),
            (format!(r#"["^ ",{token},"~:api-key","~:keyword"]"#), None),
            (format!(r#"["^ ",{token}]"#), None),
            (r#"["^ "]"#.to_owned(), None),
            ("null".to_owned(), None),
        ] {
            let expected: BTreeMap<_, _> =
                expected.map(|key| ("openai".to_owned(), key.to_owned())).into_iter().collect();
            assert_eq!(found(&format!(r#""openai",{login}"#)), expected, "{login}");
        }
    }

    #[test]
    fn several_logins_share_codes() {
        // ^0 version, ^1 auth, ^2 openai, ^3 type, ^4 auth/token, ^5 api-key, ^6 anthropic
        let logins = r#""openai",["^ ","~:type","~:auth/token","~:api-key","one"],
            "anthropic",["^ ","^5","two","^3","^4"],"z-ai",["^ ","^3","~:auth/oauth","^5","never"]"#;
        let expected = [("openai", "one"), ("anthropic", "two")];
        let expected: BTreeMap<_, _> = expected.map(|(id, key)| (id.to_owned(), key.to_owned())).into_iter().collect();
        assert_eq!(found(logins), expected);
    }

    #[test]
    fn other_documents_have_none_and_errors_quote_nothing() {
        for broken in [
            r#"["^ ","~:version",7,"~:auth",["^ ","openai",["^ ","~:type","~:auth/token","~:api-key","sk-secret"]]]"#,
            r#"["^ ","~:auth",["^ ","openai",["^ ","~:api-key","sk-secret"]]]"#,
            r#"["^ ","~:version",6,"~:auth",["^ ","sk-secret"]]"#,
            r#"["^ ","~:version",6,"sk-secret"#,
            r#"["sk-secret","^9"]"#,
            "",
        ] {
            let why = keys_in(broken.as_bytes()).unwrap_err();
            assert!(!why.contains("sk-secret") && !why.is_empty(), "{why}");
        }
        assert!(keys_in(br#"["^ ","~:version",6,"~:auth",7]"#).unwrap().is_empty());
    }

    #[test]
    fn files() {
        let cache = tempfile::tempdir().unwrap();
        assert!(imported_api_keys(cache.path()).is_empty());
        let file = cache.path().join(FILE);
        let text = r#"["^ ","~:version",6,"~:auth",["^ ","openai",["^ ","~:type","~:auth/token","~:api-key","k"]]]"#;
        std::fs::write(&file, text).unwrap();
        assert_eq!(imported_api_keys(cache.path()), BTreeMap::from([("openai".to_owned(), Secret::new("k"))]));
        std::fs::write(&file, format!("{text}{}", " ".repeat(MAX_BYTES as usize))).unwrap();
        assert!(imported_api_keys(cache.path()).is_empty());
        std::fs::write(&file, "no json").unwrap();
        assert!(imported_api_keys(cache.path()).is_empty());
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        assert!(imported_api_keys(cache.path()).is_empty());
    }
}
