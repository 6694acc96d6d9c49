//! What is complete of a JSON object that is still being written.

use serde_json::{Deserializer, Value};

use crate::tool::Arguments;

/// The fields that are there whole. Whatever cannot be read ends it.
pub(super) fn complete_fields(text: &str) -> Arguments {
    let mut fields = Arguments::new();
    let Some(mut rest) = text.trim_start().strip_prefix('{') else { return fields };
    while let Some((Value::String(name), after)) = first_value(rest) {
        let Some(after) = after.trim_start().strip_prefix(':') else { break };
        let Some((value, after)) = first_value(after) else { break };
        // More digits may follow a number that nothing follows.
        let after = after.trim_start();
        if !after.starts_with([',', '}']) && !matches!(value, Value::String(_)) {
            break;
        }
        fields.insert(name, value);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => break,
        }
    }
    fields
}

fn first_value(text: &str) -> Option<(Value, &str)> {
    let mut values = Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    let end = values.byte_offset();
    Some((value, text.get(end..)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_whole_is_read() {
        for (text, expected) in [
            ("", json!({})),
            ("{", json!({})),
            (r#"{"path"#, json!({})),
            (r#"{"path": "/a"#, json!({})),
            (r#"{"path": "/a""#, json!({"path": "/a"})),
            (r#" { "path" : "/a" , "limit": 1"#, json!({"path": "/a"})),
            (r#"{"limit": 12, "deep": {"x": [1"#, json!({"limit": 12})),
            (r#"{"a": "\u00e9\"q", "b": tru"#, json!({"a": "é\"q"})),
            (r#"{"a": 1}"#, json!({"a": 1})),
            ("[1]", json!({})),
            (r#"{1: 2}"#, json!({})),
        ] {
            assert_eq!(Value::Object(complete_fields(text)), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_start_of_an_object_has_a_part_of_its_fields(a in ".{0,12}", n: i32, b in ".{0,12}", cut in 0_usize..80) {
            let whole = json!({"a": a, "n": n, "list": [b, null], "z": true});
            let text = whole.to_string();
            let start = crate::base::text::prefix(&text, cut);
            for (name, value) in complete_fields(start) {
                prop_assert_eq!(&whole[&name], &value);
            }
            prop_assert_eq!(Value::Object(complete_fields(&text)), whole);
        }
    }
}
