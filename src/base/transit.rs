//! Transit-JSON, the format in which the public server keeps its files; only reading.
//!
//! It is JSON with a second layer in the strings: `~:name` is a keyword, `["^ ", key, value, …]` a
//! map, `["~#tag", value]` a value of a named type, and `^0` stands for a string that came before.
//! What it stands for is decided by counting, so a reader must count exactly as the writer did.

use std::sync::Arc;

use serde_json::Value as Json;

/// A decoded value. Texts are shared: a file may name one long text very often in few bytes.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(Arc<str>),
    /// Without its colon; a namespace is in front, divided by a slash.
    Keyword(Arc<str>),
    Symbol(Arc<str>),
    Array(Vec<Value>),
    /// In the order of the file; keys are of any kind.
    Map(Vec<(Value, Value)>),
    /// A type that is not one of the above, such as `set`, `list`, `u` or `m`, and what it is made of.
    Tagged(Arc<str>, Box<Value>),
}

/// Why a text is not Transit. It never quotes the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransitError {
    #[error("not valid JSON at line {line}, column {column}")]
    Json { line: usize, column: usize },
    #[error("{0}")]
    Shape(&'static str),
}

/// Decodes one document. The depth is bounded by that of the JSON reader.
pub fn decode(text: &[u8]) -> Result<Value, TransitError> {
    let json: Json = serde_json::from_slice(text)
        .map_err(|error| TransitError::Json { line: error.line(), column: error.column() })?;
    Decoder { cache: Vec::new(), next: 0 }.value(&json, false)
}

impl Value {
    /// The value of a map at a keyword, or at a text of the same name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let entries = self.entries()?;
        entries.iter().find(|(key, _)| key.name() == Some(name)).map(|(_, value)| value)
    }

    pub fn entries(&self) -> Option<&[(Value, Value)]> {
        match self {
            Self::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The elements of an array, a list or a set.
    pub fn items(&self) -> Option<&[Value]> {
        match self {
            Self::Array(items) => Some(items),
            Self::Tagged(tag, inner) if matches!(&**tag, "list" | "set") => inner.items(),
            _ => None,
        }
    }

    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn keyword(&self) -> Option<&str> {
        match self {
            Self::Keyword(name) => Some(name),
            _ => None,
        }
    }

    /// What a keyword or a text says.
    pub fn name(&self) -> Option<&str> {
        self.keyword().or_else(|| self.text())
    }
}

const MAP: &str = "^ ";
const CODE_DIGITS: usize = 44;
const FIRST_DIGIT: u8 = b'0';
const CACHE_SIZE: usize = CODE_DIGITS * CODE_DIGITS;
/// Shorter strings gain nothing from a code. Counted as Java counts, in UTF-16 units.
const MIN_CACHED: usize = 4;

/// What a string can be: most are values, but a tag only announces one.
#[derive(Clone)]
enum Word {
    Value(Value),
    Tag(Arc<str>),
}

struct Decoder {
    /// What has a code, by its number.
    cache: Vec<Word>,
    /// The number of the next string that gets a code; it starts again when all are given out.
    next: usize,
}

impl Decoder {
    fn value(&mut self, json: &Json, is_key: bool) -> Result<Value, TransitError> {
        match json {
            Json::Null => Ok(Value::Null),
            Json::Bool(flag) => Ok(Value::Bool(*flag)),
            Json::Number(number) => Ok(match number.as_i64() {
                Some(number) => Value::Integer(number),
                None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            }),
            Json::String(text) => match self.word(text, is_key)? {
                Word::Value(value) => Ok(value),
                Word::Tag(_) => Err(TransitError::Shape("a tag without a value")),
            },
            Json::Array(items) => self.array(items),
            Json::Object(entries) => self.object(entries),
        }
    }

    fn array(&mut self, items: &[Json]) -> Result<Value, TransitError> {
        let Some((Json::String(first), rest)) = items.split_first() else {
            return self.all(items);
        };
        if first == MAP {
            return self.map(rest);
        }
        // A string gets its code when it is read, so the first one is read only once.
        match self.word(first, false)? {
            Word::Tag(tag) => match rest {
                [value] => self.tagged(tag, value),
                _ => Err(TransitError::Shape("a tag without a value")),
            },
            Word::Value(first) => {
                let mut values = vec![first];
                for item in rest {
                    values.push(self.value(item, false)?);
                }
                Ok(Value::Array(values))
            }
        }
    }

    fn all(&mut self, items: &[Json]) -> Result<Value, TransitError> {
        items.iter().map(|item| self.value(item, false)).collect::<Result<_, _>>().map(Value::Array)
    }

    fn map(&mut self, items: &[Json]) -> Result<Value, TransitError> {
        let (pairs, []) = items.as_chunks::<2>() else {
            return Err(TransitError::Shape("a map whose last key has no value"));
        };
        let mut entries = Vec::with_capacity(pairs.len());
        for [key, value] in pairs {
            let key = self.value(key, true)?;
            entries.push((key, self.value(value, false)?));
        }
        Ok(Value::Map(entries))
    }

    /// Objects are of the verbose form. It has no codes, so it does not matter that the JSON reader
    /// gives the entries in another order.
    fn object(&mut self, object: &serde_json::Map<String, Json>) -> Result<Value, TransitError> {
        let mut entries = Vec::with_capacity(object.len());
        for (key, value) in object {
            match self.word(key, true)? {
                Word::Value(key) => entries.push((key, self.value(value, false)?)),
                Word::Tag(tag) if object.len() == 1 => return self.tagged(tag, value),
                Word::Tag(_) => return Err(TransitError::Shape("a tag among keys")),
            }
        }
        Ok(Value::Map(entries))
    }

    fn tagged(&mut self, tag: Arc<str>, json: &Json) -> Result<Value, TransitError> {
        let value = self.value(json, false)?;
        match (&*tag, value) {
            // A quote is around a single value that is a whole document.
            ("'", value) => Ok(value),
            ("cmap", Value::Array(items)) => pairs(items),
            ("cmap", _) => Err(TransitError::Shape("a map that is no list")),
            (_, value) => Ok(Value::Tagged(tag, Box::new(value))),
        }
    }

    fn word(&mut self, text: &str, is_key: bool) -> Result<Word, TransitError> {
        if text == MAP {
            return Err(TransitError::Shape("the mark of a map in another place"));
        }
        if let Some(code) = text.strip_prefix('^') {
            let known = code_number(code).and_then(|number| self.cache.get(number));
            return known.cloned().ok_or(TransitError::Shape("a code that stands for nothing"));
        }
        let word = parse(text);
        if gets_code(text, is_key) {
            if self.next == CACHE_SIZE {
                self.next = 0;
            }
            match self.cache.get_mut(self.next) {
                Some(place) => *place = word.clone(),
                None => self.cache.push(word.clone()),
            }
            self.next += 1;
        }
        Ok(word)
    }
}

fn pairs(items: Vec<Value>) -> Result<Value, TransitError> {
    let mut entries = Vec::with_capacity(items.len() / 2);
    let mut items = items.into_iter();
    while let Some(key) = items.next() {
        let value = items.next().ok_or(TransitError::Shape("a map whose last key has no value"))?;
        entries.push((key, value));
    }
    Ok(Value::Map(entries))
}

fn gets_code(text: &str, is_key: bool) -> bool {
    let is_name = ["~:", "~$", "~#"].iter().any(|start| text.starts_with(start));
    (is_key || is_name) && text.encode_utf16().take(MIN_CACHED).count() == MIN_CACHED
}

/// The number that one or two digits of a code mean.
fn code_number(code: &str) -> Option<usize> {
    let digit = |byte: &u8| byte.checked_sub(FIRST_DIGIT).map(usize::from).filter(|digit| *digit < CODE_DIGITS);
    match code.as_bytes() {
        [low] => digit(low),
        [high, low] => Some(digit(high)? * CODE_DIGITS + digit(low)?),
        _ => None,
    }
}

fn parse(text: &str) -> Word {
    let plain = |text: &str| Value::Text(text.into());
    let mut rest = text.chars();
    let (Some('~'), Some(kind)) = (rest.next(), rest.next()) else {
        return Word::Value(plain(text));
    };
    let rest = rest.as_str();
    let other = || Value::Tagged(kind.to_string().into(), Box::new(plain(rest)));
    Word::Value(match kind {
        '#' => return Word::Tag(rest.into()),
        '~' | '^' | '`' => plain(&text[1..]),
        ':' => Value::Keyword(rest.into()),
        '$' => Value::Symbol(rest.into()),
        '_' => Value::Null,
        '?' => Value::Bool(rest == "t"),
        'c' => plain(rest),
        'i' => rest.parse().map_or_else(|_| other(), Value::Integer),
        'd' => rest.parse().map_or_else(|_| other(), Value::Float),
        'z' => match rest {
            "NaN" => Value::Float(f64::NAN),
            "INF" => Value::Float(f64::INFINITY),
            "-INF" => Value::Float(f64::NEG_INFINITY),
            _ => other(),
        },
        _ => other(),
    })
}

#[cfg(test)]
mod tests;
