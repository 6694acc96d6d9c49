//! `$ref`: what a document's references lead to, without ever leaving the document or going round
//! in circles.

use serde_json::{Map, Value};

use super::problems::{Problems, below};

/// A chain of references that is longer than this is a circle.
const MOST_HOPS: usize = 32;

/// A document and what is wrong with it.
pub(super) struct Document<'a> {
    root: &'a Map<String, Value>,
    /// Where the named types are, as a JSON pointer with a slash at the end.
    models: &'static str,
    pub(super) problems: Problems,
    /// How many shapes were made of it so far.
    pub(super) made: usize,
}

/// What a reference leads to.
pub(super) enum Target<'a> {
    /// A named type.
    Model(String),
    /// Something else, and where it stands.
    Value(&'a Value, String),
    /// Nothing; it has been reported.
    Nothing,
}

impl<'a> Document<'a> {
    pub(super) fn new(root: &'a Map<String, Value>, models: &'static str) -> Self {
        Self { root, models, problems: Problems::default(), made: 0 }
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.root.get(name)
    }

    pub(super) fn at(&self, pointer: &str) -> Option<&'a Value> {
        let mut value: Option<&'a Value> = None;
        for step in pointer.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            value = match value {
                None => self.root.get(&step),
                Some(Value::Object(entries)) => entries.get(&step),
                Some(Value::Array(elements)) => step.parse().ok().and_then(|index: usize| elements.get(index)),
                Some(_) => None,
            };
            value?;
        }
        value
    }

    /// Follows one reference. `place` is where it stands.
    pub(super) fn follow(&mut self, reference: &str, place: &str) -> Target<'a> {
        let place = below(place, "$ref");
        let Some(fragment) = reference.strip_prefix('#') else {
            self.problems.add(&place, format!("the reference \"{reference}\" leads out of the document"));
            return Target::Nothing;
        };
        let pointer = percent_decoded(fragment);
        let Some(value) = self.at(&pointer) else {
            self.problems.add(&place, format!("the reference \"{reference}\" leads to nothing"));
            return Target::Nothing;
        };
        match pointer.strip_prefix(self.models) {
            Some(name) if !name.is_empty() && !name.contains('/') => {
                Target::Model(name.replace("~1", "/").replace("~0", "~"))
            }
            _ => Target::Value(value, pointer),
        }
    }

    /// The object at `place`, through any references.
    pub(super) fn object(&mut self, value: &'a Value, place: &str) -> Option<(&'a Map<String, Value>, String)> {
        let (mut value, mut place) = (value, place.to_owned());
        for _ in 0..MOST_HOPS {
            let Value::Object(entries) = value else {
                self.problems.add(&place, "an object is expected here");
                return None;
            };
            let Some(reference) = entries.get("$ref").and_then(Value::as_str) else { return Some((entries, place)) };
            match self.follow(reference, &place) {
                Target::Nothing => return None,
                Target::Value(found, pointer) => (value, place) = (found, pointer),
                Target::Model(name) => {
                    place = below(self.models.trim_end_matches('/'), &name);
                    value = self.at(&place)?;
                }
            }
        }
        self.problems.add(&place, "the reference goes round in a circle");
        None
    }
}

/// Fragments of URLs are written with `%20` for a space.
fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}
