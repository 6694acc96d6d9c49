//! One source of configuration as parsed text: its values, and on which line each of them stands.
//!
//! Problems are rare, so lines are not recorded while parsing; the text is parsed a second time
//! when a problem asks for one.

use jsonc_parser::ast;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};

use super::ConfigProblem;

/// Where a value stands: object keys and array positions from the top.
pub(super) type KeyPath = Vec<String>;

/// A parsed source.
#[derive(Debug)]
pub(super) struct Document {
    /// The file, or the name of another source.
    pub(super) source: String,
    /// `None` when the values did not come from text, so that there are no lines to name.
    text: Option<String>,
    pub(super) values: Map<String, Value>,
}

impl Document {
    /// Parses JSON with comments and trailing commas; text without any value is an empty document.
    /// The problem does not say yet what becomes of the source.
    pub(super) fn parse(source: &str, text: String) -> Result<Self, ConfigProblem> {
        let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
        let problem = |line, message| ConfigProblem { source: source.to_owned(), line, message };
        let value = match parse_to_ast(&text, &CollectOptions::default(), &parse_options()) {
            Ok(parsed) => parsed.value.map(Value::from),
            Err(error) => {
                return Err(problem(Some(error.line_display()), format!("not valid JSON: {}", error.kind())));
            }
        };
        match value {
            None => Ok(Self { source: source.to_owned(), text: Some(text), values: Map::new() }),
            Some(Value::Object(values)) => Ok(Self { source: source.to_owned(), text: Some(text), values }),
            Some(other) => Err(problem(None, not_an_object(&other))),
        }
    }

    /// Values that a client sent.
    pub(super) fn from_value(source: &str, value: Value) -> Result<Self, ConfigProblem> {
        match value {
            Value::Null => Ok(Self { source: source.to_owned(), text: None, values: Map::new() }),
            Value::Object(values) => Ok(Self { source: source.to_owned(), text: None, values }),
            other => Err(ConfigProblem { source: source.to_owned(), line: None, message: not_an_object(&other) }),
        }
    }

    /// A problem with the value at `path`.
    pub(super) fn problem(&self, path: &[String], message: &str) -> ConfigProblem {
        ConfigProblem {
            source: self.source.clone(),
            line: self.line_of(path),
            message: format!("{}: {message}", path.join(".")),
        }
    }

    /// The 1-based line on which the key (or array element) at `path` starts.
    fn line_of(&self, path: &[String]) -> Option<usize> {
        let text = self.text.as_deref()?;
        let root = parse_to_ast(text, &CollectOptions::default(), &parse_options()).ok()?.value?;
        let mut value = &root;
        let mut start = 0;
        for step in path {
            (value, start) = match value {
                ast::Value::Object(object) => {
                    // The last of several equal keys is the one whose value counts.
                    let property = object.properties.iter().rev().find(|p| p.name.as_str() == step)?;
                    (&property.value, property.range.start)
                }
                ast::Value::Array(array) => {
                    let element = array.elements.get(step.parse::<usize>().ok()?)?;
                    (element, start_of(element))
                }
                _ => return None,
            };
        }
        Some(text.get(..start)?.bytes().filter(|byte| *byte == b'\n').count() + 1)
    }
}

/// What a value is, for messages. The value itself is never shown: it may be a secret.
pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn not_an_object(value: &Value) -> String {
    format!("the configuration must be an object, not {}", kind_of(value))
}

/// Comments and trailing commas are what the public format allows; anything looser would hide
/// typing errors.
pub(super) fn parse_options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

fn start_of(value: &ast::Value<'_>) -> usize {
    match value {
        ast::Value::StringLit(node) => node.range.start,
        ast::Value::NumberLit(node) => node.range.start,
        ast::Value::BooleanLit(node) => node.range.start,
        ast::Value::Object(node) => node.range.start,
        ast::Value::Array(node) => node.range.start,
        ast::Value::NullKeyword(node) => node.range.start,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> KeyPath {
        text.split('/').map(str::to_owned).collect()
    }

    #[test]
    fn comments_trailing_commas_and_a_byte_order_mark_are_accepted() {
        let text = "\u{feff}// first\n{ \"a\": 1, /* b */ \"b\": [1, 2,], }\n";
        let document = Document::parse("f", text.to_owned()).unwrap();
        assert_eq!(Value::Object(document.values), serde_json::json!({"a": 1, "b": [1, 2]}));
        for empty in ["", "  \n", "// nothing\n"] {
            assert!(Document::parse("f", empty.to_owned()).unwrap().values.is_empty(), "{empty:?}");
        }
    }

    #[test]
    fn broken_text_is_reported_with_its_line() {
        for (text, line) in [
            ("{\n  \"a\": 1\n  \"b\": 2\n}", 2),
            ("{\n  \"a\": tru\n}", 2),
            ("{\r\n  'a': 1\r\n}", 2),
            ("{ \"a\": 1 } {", 1),
            ("{\n\n", 1),
        ] {
            let problem = Document::parse("file.json", text.to_owned()).unwrap_err();
            assert_eq!(problem.line, Some(line), "{text:?}: {problem}");
            assert_eq!(problem.source, "file.json");
        }
        let nested = "[".repeat(100_000);
        assert!(Document::parse("f", nested).is_err());
        assert!(Document::parse("f", "[1]".to_owned()).is_err());
    }

    #[test]
    fn lines_of_keys() {
        let text =
            "{\n \"é\": {\n  \"gpt-4.1\": 1,\n  \"list\": [\n   1,\n   {\"x\": 2}]},\n \"twice\": 1,\n \"twice\": 2}";
        let document = Document::parse("f", text.to_owned()).unwrap();
        for (key, line) in [
            ("é", Some(2)),
            ("é/gpt-4.1", Some(3)),
            ("é/list/0", Some(5)),
            ("é/list/1/x", Some(6)),
            ("twice", Some(8)),
            ("missing", None),
            ("é/list/7", None),
            ("twice/deeper", None),
        ] {
            assert_eq!(document.line_of(&path(key)), line, "{key}");
        }
        let sent = Document::from_value("s", serde_json::json!({"a": 1})).unwrap();
        assert_eq!(sent.problem(&path("a"), "bad").to_string(), "s: a: bad");
    }
}
