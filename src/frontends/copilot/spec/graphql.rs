//! GraphQL types, from SDL or from introspection, to one specification.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::problems::{Problems, below};
use super::{Field, Format, Model, Operation, Root, Shape, Spec};

/// Scalars that every server knows.
const BUILT_IN: [&str; 5] = ["Int", "Float", "String", "Boolean", "ID"];

/// A schema as its author wrote it.
#[derive(Debug, Default)]
pub(super) struct Schema {
    /// In the order of their first appearance.
    types: Vec<Type>,
    by_name: HashMap<String, usize>,
    pub(super) roots: BTreeMap<&'static str, String>,
    pub(super) description: Option<String>,
}

#[derive(Debug, Clone)]
pub(super) struct Type {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) body: Body,
}

#[derive(Debug, Clone)]
pub(super) enum Body {
    Scalar,
    /// Also interfaces and inputs.
    Object(Vec<Member>),
    Union(Vec<String>),
    Enum(Vec<String>),
}

/// A field, or an argument.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) of: TypeRef,
    pub(super) arguments: Vec<Member>,
    pub(super) deprecated: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TypeRef {
    Named { name: String, required: bool },
    List { of: Box<TypeRef>, required: bool },
}

impl Schema {
    pub(super) fn described(description: Option<String>) -> Self {
        Self { description, ..Self::default() }
    }

    /// The type of this name, made if it is not there yet.
    pub(super) fn entry(&mut self, name: &str, body: Body) -> &mut Type {
        let at = self.by_name.get(name).copied().unwrap_or(self.types.len());
        if at == self.types.len() {
            self.by_name.insert(name.to_owned(), at);
            self.types.push(Type { name: name.to_owned(), description: None, body });
        }
        &mut self.types[at]
    }

    pub(super) fn into_spec(self) -> Result<Spec, Problems> {
        let mut spec = Spec::new(Format::GraphQl);
        "GraphQL API".clone_into(&mut spec.title);
        spec.description = self.description.clone();
        let known: BTreeSet<&str> = self.types.iter().map(|known| known.name.as_str()).chain(BUILT_IN).collect();
        let mut problems = Problems::default();
        let mut roots = BTreeSet::new();
        for (root, word, usual) in [
            (Root::Query, "query", "Query"),
            (Root::Mutation, "mutation", "Mutation"),
            (Root::Subscription, "subscription", "Subscription"),
        ] {
            let name = self.roots.get(word).map(String::as_str);
            // A schema that names its roots has no others.
            let Some(name) = name.or_else(|| self.roots.is_empty().then_some(usual)) else { continue };
            roots.insert(name.to_owned());
            let found = self.by_name.get(name).and_then(|at| self.types.get(*at));
            match found.map(|known| &known.body) {
                Some(Body::Object(fields)) => {
                    spec.operations.extend(fields.iter().map(|field| operation(root, field)));
                }
                None if !self.roots.contains_key(word) => {}
                _ => problems.add(&below("", name), format!("the {word} type {name} is not an object type")),
            }
        }
        for known_type in &self.types {
            check(known_type, &known, &mut problems);
        }
        if !spec.operations.iter().any(|operation| operation.root != Root::Subscription) && problems.is_empty() {
            problems.add("", "the schema has no query and no mutation");
        }
        spec.models = self.types.into_iter().filter(|known| !roots.contains(&known.name)).map(model).collect();
        if problems.is_empty() { Ok(spec) } else { Err(problems) }
    }
}

/// Every name that a type uses must be one.
fn check(known_type: &Type, known: &BTreeSet<&str>, problems: &mut Problems) {
    let place = below("", &known_type.name);
    let mut demand = |name: &str, place: &str| {
        if !known.contains(name) {
            problems.add(place, format!("the type {name} is not defined"));
        }
    };
    match &known_type.body {
        Body::Object(fields) => {
            for field in fields {
                let place = below(&place, &field.name);
                demand(field.of.name(), &place);
                field.arguments.iter().for_each(|argument| demand(argument.of.name(), &below(&place, &argument.name)));
            }
        }
        Body::Union(names) => names.iter().for_each(|name| demand(name, &place)),
        Body::Scalar | Body::Enum(_) => {}
    }
}

fn operation(root: Root, field: &Member) -> Operation {
    Operation {
        root,
        name: field.name.clone(),
        description: field.description.clone(),
        deprecated: field.deprecated,
        arguments: field.arguments.iter().map(field_of).collect(),
        returns: field.of.shape(),
    }
}

fn model(known: Type) -> Model {
    let shape = match known.body {
        Body::Scalar => Shape::Text { format: Some(known.name.clone()) },
        Body::Object(members) => Shape::Object(members.iter().map(field_of).collect()),
        Body::Union(names) => Shape::Union(names.into_iter().map(Shape::Model).collect()),
        Body::Enum(values) => Shape::Enum(values),
    };
    Model { name: known.name, description: known.description, shape }
}

fn field_of(member: &Member) -> Field {
    let description = member.description.clone();
    let written = Some(member.of.to_string());
    Field { description, written, ..Field::new(&member.name, member.of.shape(), member.of.is_required()) }
}

impl TypeRef {
    /// The name inside of all lists.
    fn name(&self) -> &str {
        let mut inside = self;
        loop {
            match inside {
                Self::Named { name, .. } => return name,
                Self::List { of, .. } => inside = of,
            }
        }
    }

    fn is_required(&self) -> bool {
        match self {
            Self::Named { required, .. } | Self::List { required, .. } => *required,
        }
    }

    fn shape(&self) -> Shape {
        match self {
            Self::List { of, .. } => Shape::list_of(of.shape()),
            Self::Named { name, .. } => shape_of_name(name),
        }
    }
}

impl std::fmt::Display for TypeRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Named { name, .. } => f.write_str(name)?,
            Self::List { of, .. } => write!(f, "[{of}]")?,
        }
        if self.is_required() { f.write_str("!") } else { Ok(()) }
    }
}

fn shape_of_name(name: &str) -> Shape {
    match name {
        "Int" => Shape::Integer,
        "Float" => Shape::Number,
        "String" => Shape::text(),
        "ID" => Shape::Text { format: Some("id".to_owned()) },
        "Boolean" => Shape::Boolean,
        _ => Shape::Model(name.to_owned()),
    }
}
