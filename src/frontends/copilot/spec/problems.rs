//! What is wrong with a specification, each with its place.

use serde_json::{Value, json};

/// More than these would only repeat themselves.
const MOST: usize = 50;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::frontends::copilot) struct Problem {
    /// A JSON pointer into the document; for SDL, the type and its field.
    pub(in crate::frontends::copilot) path: String,
    pub(in crate::frontends::copilot) message: String,
}

/// Everything that makes a specification unusable. Never empty when it is returned as an error.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::frontends::copilot) struct Problems {
    found: Vec<Problem>,
    more: usize,
}

impl Problems {
    pub(super) fn one(path: &str, message: impl Into<String>) -> Self {
        let mut problems = Self::default();
        problems.add(path, message);
        problems
    }

    /// A document that made its reader stumble.
    pub(in crate::frontends::copilot) fn unreadable() -> Self {
        Self::one("", "it cannot be read")
    }

    pub(super) fn add(&mut self, path: &str, message: impl Into<String>) {
        if self.found.len() < MOST {
            self.found.push(Problem { path: path.to_owned(), message: message.into() });
        } else {
            self.more += 1;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// One sentence for a message.
    pub(in crate::frontends::copilot) fn summary(&self) -> String {
        let first = self.found.first().map_or("the specification cannot be used", |problem| &problem.message);
        match self.found.len() + self.more {
            0 | 1 => first.to_owned(),
            all => format!("{first} (and {} more)", all - 1),
        }
    }

    /// The details, as the contract has them.
    pub(in crate::frontends::copilot) fn data(&self) -> Value {
        let error = |problem: &Problem| json!({"path": problem.path, "message": problem.message, "severity": "error"});
        json!({"errors": self.found.iter().map(error).collect::<Vec<_>>()})
    }

    #[cfg(test)]
    pub(super) fn paths(&self) -> Vec<&str> {
        self.found.iter().map(|problem| problem.path.as_str()).collect()
    }
}

/// `parent` and one more step, as a JSON pointer.
pub(super) fn below(parent: &str, step: &str) -> String {
    format!("{parent}/{}", step.replace('~', "~0").replace('/', "~1"))
}
