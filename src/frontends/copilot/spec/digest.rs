//! A specification in few words, for a model to read: what can be done, with what, and what comes
//! back.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Endpoint, Field, Operation, Root, Shape, Spec};

/// How much of a specification is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::frontends::copilot) enum Detail {
    /// Endpoints, and the models they need.
    Used,
    /// All models too.
    Names,
    /// Descriptions and examples too.
    Everything,
}

impl Detail {
    /// From the most to the least.
    pub(in crate::frontends::copilot) const ALL: [Self; 3] = [Self::Everything, Self::Names, Self::Used];
}

/// Shapes inside of shapes are cut here; models stand on their own.
const DEEPEST: usize = 6;

pub(in crate::frontends::copilot) fn digest(spec: &Spec, detail: Detail) -> String {
    let mut out = Writer { text: String::new(), detail };
    out.head(spec);
    let mut by_tag: BTreeMap<&str, Vec<&Endpoint>> = BTreeMap::new();
    for endpoint in &spec.endpoints {
        by_tag.entry(endpoint.tag.as_deref().unwrap_or_default()).or_default().push(endpoint);
    }
    for (tag, endpoints) in by_tag {
        let title = if tag.is_empty() { "Endpoints" } else { tag };
        out.line(&format!("\n## {title}"));
        endpoints.into_iter().for_each(|endpoint| out.endpoint(endpoint));
    }
    for (root, title) in
        [(Root::Query, "Queries"), (Root::Mutation, "Mutations"), (Root::Subscription, "Subscriptions")]
    {
        let operations: Vec<&Operation> = spec.operations.iter().filter(|operation| operation.root == root).collect();
        if !operations.is_empty() {
            out.line(&format!("\n## {title}"));
            operations.into_iter().for_each(|operation| out.operation(operation));
        }
    }
    out.models(spec);
    out.text
}

struct Writer {
    text: String,
    detail: Detail,
}

impl Writer {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// A description, where those are wanted.
    fn remark(&self, description: Option<&String>) -> String {
        match description {
            Some(text) if self.detail == Detail::Everything => format!(" - {text}"),
            _ => String::new(),
        }
    }

    fn head(&mut self, spec: &Spec) {
        let about = self.remark(spec.description.as_ref());
        let version = if spec.version.is_empty() { String::new() } else { format!(" {}", spec.version) };
        self.line(&format!("# {}{version} ({}){about}", spec.title, spec.format.word()));
        if let Some(url) = &spec.base_url {
            self.line(&format!("Base URL: {url}"));
        }
        for security in &spec.security {
            self.line(format!("Security: {} {} {}", security.name, security.kind, security.detail).trim_end());
        }
    }

    fn endpoint(&mut self, endpoint: &Endpoint) {
        let mut line = format!("{} {}", endpoint.method, endpoint.path);
        if endpoint.deprecated {
            line.push_str(" (deprecated)");
        }
        line.push_str(&self.remark(endpoint.summary.as_ref()));
        for parameter in &endpoint.parameters {
            let _ = write!(line, "; {} {}", parameter.place, self.field(&parameter.field, 0));
        }
        if let Some(body) = &endpoint.body {
            let _ = write!(line, "; body {}", self.shape(body, 0));
        }
        for response in &endpoint.responses {
            let _ = write!(line, "; {}", response.status);
            if let Some(shape) = &response.shape {
                let _ = write!(line, " {}", self.shape(shape, 0));
            }
        }
        self.line(&line);
    }

    fn operation(&mut self, operation: &Operation) {
        let arguments: Vec<String> = operation.arguments.iter().map(|argument| self.field(argument, 0)).collect();
        let mut line = operation.name.clone();
        if !arguments.is_empty() {
            let _ = write!(line, "({})", arguments.join(", "));
        }
        let _ = write!(line, ": {}", self.shape(&operation.returns, 0));
        if operation.deprecated {
            line.push_str(" (deprecated)");
        }
        line.push_str(&self.remark(operation.description.as_ref()));
        self.line(&line);
    }

    fn models(&mut self, spec: &Spec) {
        let used = (self.detail == Detail::Used).then(|| spec.used_models());
        let wanted = |name: &str| used.as_ref().is_none_or(|used| used.contains(name));
        let mut titled = false;
        for model in spec.models.iter().filter(|model| wanted(&model.name)) {
            if !std::mem::replace(&mut titled, true) {
                self.line("\n## Models (* is required)");
            }
            let line =
                format!("{} = {}{}", model.name, self.shape(&model.shape, 0), self.remark(model.description.as_ref()));
            self.line(&line);
        }
    }

    fn field(&self, field: &Field, depth: usize) -> String {
        let mark = if field.required { "*" } else { "" };
        let mut text = format!("{}{mark}: {}", field.name, self.shape(&field.shape, depth));
        if self.detail == Detail::Everything {
            if let Some(example) = &field.example {
                let _ = write!(text, " (e.g. {example})");
            }
            if let Some(description) = &field.description {
                let _ = write!(text, " \"{description}\"");
            }
        }
        text
    }

    fn shape(&self, shape: &Shape, depth: usize) -> String {
        if depth > DEEPEST {
            return "...".to_owned();
        }
        match shape {
            Shape::Any => "any".to_owned(),
            Shape::Text { format: None } => "string".to_owned(),
            Shape::Text { format: Some(format) } => format!("string({format})"),
            Shape::Integer => "integer".to_owned(),
            Shape::Number => "number".to_owned(),
            Shape::Boolean => "boolean".to_owned(),
            Shape::Enum(values) => format!("({})", values.join("|")),
            Shape::List(element) => format!("{}[]", self.shape(element, depth + 1)),
            Shape::Map(value) => format!("map of {}", self.shape(value, depth + 1)),
            Shape::Object(fields) if fields.is_empty() => "object".to_owned(),
            Shape::Object(fields) => {
                let fields: Vec<String> = fields.iter().map(|field| self.field(field, depth + 1)).collect();
                format!("{{{}}}", fields.join(", "))
            }
            Shape::Model(name) => name.clone(),
            Shape::Union(options) => {
                let options: Vec<String> = options.iter().map(|option| self.shape(option, depth + 1)).collect();
                options.join(" or ")
            }
        }
    }
}
