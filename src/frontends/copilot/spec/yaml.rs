//! YAML as JSON values, for the many specifications that are written in it.
//!
//! The library turns text into events; putting them together is done here, because that is where a
//! document can be made to explode: by depth, and by aliases of aliases.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};
use serde_json::{Map, Number, Value};

/// As deep as JSON may be.
const DEEPEST: usize = 128;
/// Values that aliases may add.
const MOST_COPIES: usize = 500_000;

/// The first document of a text.
pub(super) fn read(text: &str) -> Result<Value, String> {
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        let (event, _) = event.map_err(|error| error.to_string())?;
        match event {
            Event::DocumentEnd => break,
            event => builder.take(event)?,
        }
    }
    Ok(builder.root.unwrap_or(Value::Null))
}

#[derive(Default)]
struct Builder {
    root: Option<Value>,
    open: Vec<Node>,
    anchors: HashMap<usize, Value>,
    copies: usize,
}

/// A collection that is being read.
struct Node {
    value: Collection,
    anchor: usize,
}

enum Collection {
    List(Vec<Value>),
    Map { entries: Map<String, Value>, key: Option<String> },
}

impl Builder {
    fn take(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let value = scalar(&text, style, tag.as_deref());
                self.keep(anchor, &value);
                self.add(value, || text.into_owned())
            }
            Event::Alias(anchor) => {
                let value = self.anchors.get(&anchor).cloned().ok_or("an alias refers to nothing")?;
                self.copies += size(&value);
                if self.copies > MOST_COPIES {
                    return Err("aliases make the document too large".to_owned());
                }
                let key = value.as_str().unwrap_or_default().to_owned();
                self.add(value, || key)
            }
            Event::SequenceStart(anchor, _) => self.open(Collection::List(Vec::new()), anchor),
            Event::MappingStart(anchor, _) => self.open(Collection::Map { entries: Map::new(), key: None }, anchor),
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            _ => Ok(()),
        }
    }

    fn open(&mut self, value: Collection, anchor: usize) -> Result<(), String> {
        if self.open.len() >= DEEPEST {
            return Err(format!("it is nested more than {DEEPEST} levels deep"));
        }
        self.open.push(Node { value, anchor });
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        let Some(Node { value, anchor }) = self.open.pop() else { return Ok(()) };
        let value = match value {
            Collection::List(elements) => Value::Array(elements),
            Collection::Map { entries, .. } => Value::Object(entries),
        };
        self.keep(anchor, &value);
        self.add(value, || "?".to_owned())
    }

    /// Puts a value where it belongs; `name` is what it is called where it is a key.
    fn add(&mut self, value: Value, name: impl FnOnce() -> String) -> Result<(), String> {
        match self.open.last_mut().map(|node| &mut node.value) {
            None => self.root = Some(value),
            Some(Collection::List(elements)) => elements.push(value),
            Some(Collection::Map { entries, key }) => match key.take() {
                None => *key = Some(name()),
                Some(name) if name == "<<" => merge(entries, value),
                Some(name) => drop(entries.insert(name, value)),
            },
        }
        Ok(())
    }

    fn keep(&mut self, anchor: usize, value: &Value) {
        if anchor > 0 {
            self.anchors.insert(anchor, value.clone());
        }
    }
}

/// `<<`: what is already there stays.
fn merge(entries: &mut Map<String, Value>, from: Value) {
    match from {
        Value::Object(more) => {
            for (name, value) in more {
                entries.entry(name).or_insert(value);
            }
        }
        Value::Array(several) => several.into_iter().for_each(|one| merge(entries, one)),
        _ => {}
    }
}

/// Numbers, booleans and null by YAML's core schema; quoted texts are texts.
fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    let says_text = tag.is_some_and(|tag| tag.suffix == "str");
    if style != ScalarStyle::Plain || says_text {
        return Value::from(text);
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Value::from(text);
    }
    let whole = match digits.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => text.strip_prefix('+').unwrap_or(text).parse().ok(),
    };
    let numeric = || digits.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    let number = whole.map(Number::from).or_else(|| {
        let float = text.parse::<f64>().ok().filter(|_| numeric())?;
        Number::from_f64(float)
    });
    number.map_or_else(|| Value::from(text), Value::Number)
}

fn size(value: &Value) -> usize {
    match value {
        Value::Array(elements) => 1 + elements.iter().map(size).sum::<usize>(),
        Value::Object(entries) => 1 + entries.values().map(size).sum::<usize>(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_document_is_what_json_would_say() {
        let text = "\
openapi: 3.0.3
info: {title: \"A: b\", version: 1.10, 'quoted': '1.10'}
paths:
  /pets/{id}:
    get:
      responses:
        200:
          description: >
            folded
            text
        default: {description: |-
          x}
  ? complex
  : yes
list:
- 1
- -2.5e3
- 0x1f
- 1.2.3
- 2024-01-01
- ~
- true
-
base: &base {a: 1, b: 2}
derived:
  <<: *base
  b: 3
again: *base
";
        let value = read(text).unwrap();
        assert_eq!(value["openapi"], "3.0.3");
        assert_eq!(value["info"], json!({"title": "A: b", "version": 1.1, "quoted": "1.10"}));
        assert_eq!(value["paths"]["/pets/{id}"]["get"]["responses"]["200"]["description"], "folded text\n");
        assert_eq!(value["paths"]["complex"], "yes");
        assert_eq!(value["list"], json!([1, -2500.0, 31, "1.2.3", "2024-01-01", null, true, null]));
        assert_eq!(value["derived"], json!({"a": 1, "b": 3}));
        assert_eq!(value["again"], json!({"a": 1, "b": 2}));
    }

    #[test]
    fn what_would_explode_is_refused() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..20 {
            let before = level - 1;
            let copies = vec![format!("*a{before}"); 9].join(", ");
            bomb.push_str(&format!("a{level}: &a{level} [{copies}]\n"));
        }
        assert!(read(&bomb).unwrap_err().contains("aliases"));
        assert!(read(&"[".repeat(100_000)).is_err());
        assert!(read(&format!("{}x", "- ".repeat(100_000))).is_err());
        assert!(read("a: *nowhere").is_err());
        assert!(read("a: [1").is_err());
        assert!(read("\"\\q\"").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in r##"[a-c:\-\[\]{},&*!|>'"#%@ \n]{0,60}"##) {
            let _ = read(&text);
        }

        #[test]
        fn any_json_is_read_as_json_reads_it(number in any::<i32>(), name in "[a-z]{1,8}", flag: bool) {
            let value = json!({"n": number, "deep": [{name: [flag, null, "x y"]}]});
            prop_assert_eq!(read(&value.to_string()).unwrap(), value);
        }
    }
}
