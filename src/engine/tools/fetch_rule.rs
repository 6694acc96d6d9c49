//! `fetch_rule`: the model loads a rule that is only for some files, before it touches one.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::super::chat_tools::ChatMemory;
use crate::customization::template::Variables;
use crate::customization::{Audience, Customization};
use crate::tool::{Arguments, Preview, Tool, ToolContext, ToolOutput, ToolSpec, TouchedPath};

/// The rules of a workspace as one turn sees them.
#[derive(Clone)]
pub(crate) struct ScopedRules {
    pub(crate) customization: Arc<Customization>,
    pub(crate) agent: String,
    pub(crate) model: String,
    pub(crate) memory: Arc<ChatMemory>,
}

impl ScopedRules {
    fn audience(&self) -> Audience<'_> {
        Audience { agent: &self.agent, model: &self.model }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.customization.rules.scoped_for(&self.audience()).is_empty()
    }

    /// Why a call must wait, if a rule for what it touches was not read yet.
    pub(crate) fn unread(&self, touched: &[TouchedPath]) -> Option<String> {
        let fetched = self.memory.fetched_rules.lock().unwrap_or_else(PoisonError::into_inner);
        let mut missing = Vec::new();
        for touched in touched {
            for rule in self.customization.rules.enforced(&self.audience(), &touched.path, touched.access) {
                if !fetched.contains(&rule.id) {
                    missing.push(format!("- {} for {}", rule.id, touched.path.display()));
                }
            }
        }
        missing.dedup();
        (!missing.is_empty()).then(|| {
            format!(
                "Rules of the user apply here. Load each with fetch_rule first, then call again:\n{}",
                missing.join("\n")
            )
        })
    }
}

pub(crate) struct FetchRule {
    spec: ToolSpec,
    rules: ScopedRules,
    variables: Variables,
}

impl FetchRule {
    pub(crate) fn new(rules: ScopedRules, variables: Variables) -> Self {
        let description = "Load a listed rule before you read or change a file that it is for.";
        let parameters = json!({
            "type": "object",
            "required": ["id", "path"],
            "properties": {
                "id": {"type": "string"},
                "path": {"type": "string", "description": "The absolute path of the file."},
            },
        });
        Self { spec: ToolSpec::native("fetch_rule", description, parameters), rules, variables }
    }

    fn fetch(&self, arguments: &Arguments) -> ToolOutput {
        let word = |key: &str| arguments.get(key).and_then(Value::as_str).unwrap_or_default();
        let (id, path) = (word("id").trim(), Path::new(word("path")));
        let found = self.rules.customization.rules.fetch(&self.rules.audience(), id, path, &self.variables);
        match found {
            Err(problem) => ToolOutput::error(problem),
            Ok(rule) => {
                let mut fetched = self.rules.memory.fetched_rules.lock().unwrap_or_else(PoisonError::into_inner);
                match fetched.insert(rule.id.clone()) {
                    true => ToolOutput::text(format!("Rule {}\n\n{}", rule.id, rule.text)),
                    false => ToolOutput::text(format!("The rule {} was loaded before and still counts.", rule.id)),
                }
            }
        }
    }
}

impl Tool for FetchRule {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn summary(&self, arguments: &Arguments) -> Option<String> {
        let name = arguments.get("id").and_then(Value::as_str);
        Some(name.map_or_else(|| "Fetching rule".to_owned(), |name| format!("Fetching rule '{name}'")))
    }

    fn preview<'a>(&'a self, arguments: &'a Arguments, _: &'a ToolContext) -> BoxFuture<'a, Result<Preview, String>> {
        let summary = self.summary(arguments);
        Box::pin(std::future::ready(Ok(Preview { summary, ..Preview::default() })))
    }

    fn run<'a>(&'a self, arguments: Arguments, _: ToolContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(std::future::ready(self.fetch(&arguments)))
    }
}

/// The rules that a chat's model has read.
pub(crate) type FetchedRules = HashSet<String>;
