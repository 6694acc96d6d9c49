//! An API specification in one form, whichever form it came in.
//!
//! OpenAPI 3, Swagger 2, GraphQL (SDL and introspection) and the application's own normalised form
//! are read into [`Spec`]. References stay names, so a cycle of types is no cycle here. Nothing is
//! fetched, and whatever a document does, reading it is bounded in depth and in size.

mod digest;
mod features;
mod graphql;
mod introspection;
mod kinds;
mod normalized;
mod openapi;
mod problems;
mod references;
mod schema;
mod sdl;
mod swagger;
mod yaml;

use std::collections::{BTreeSet, HashMap};

pub(super) use digest::{Detail, digest};
pub(super) use kinds::read;
pub(super) use problems::Problems;

/// One API.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Spec {
    pub(super) format: Format,
    pub(super) title: String,
    pub(super) version: String,
    pub(super) description: Option<String>,
    pub(super) base_url: Option<String>,
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) operations: Vec<Operation>,
    pub(super) models: Vec<Model>,
    pub(super) security: Vec<Security>,
    /// Where each model stands, once all are known.
    places: HashMap<String, usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    OpenApi3,
    Swagger2,
    GraphQl,
}

/// One method of one path.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Endpoint {
    /// In capitals.
    pub(super) method: String,
    pub(super) path: String,
    pub(super) tag: Option<String>,
    pub(super) summary: Option<String>,
    pub(super) deprecated: bool,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<Shape>,
    pub(super) responses: Vec<Response>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Parameter {
    /// `query`, `path`, `header` or `cookie`.
    pub(super) place: String,
    pub(super) field: Field,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Response {
    pub(super) status: String,
    pub(super) shape: Option<Shape>,
}

/// A field of a GraphQL root.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Operation {
    pub(super) root: Root,
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) deprecated: bool,
    pub(super) arguments: Vec<Field>,
    pub(super) returns: Shape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    Query,
    Mutation,
    Subscription,
}

/// A named type.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Model {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) shape: Shape,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Security {
    pub(super) name: String,
    /// `apiKey`, `http`, `oauth2` or what the document says.
    pub(super) kind: String,
    /// Where a key goes, or which scheme it is.
    pub(super) detail: String,
}

/// What a value looks like.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    Any,
    Text {
        format: Option<String>,
    },
    Integer,
    Number,
    Boolean,
    Enum(Vec<String>),
    List(Box<Shape>),
    Map(Box<Shape>),
    Object(Vec<Field>),
    /// One of [`Spec::models`], by name.
    Model(String),
    Union(Vec<Shape>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) shape: Shape,
    pub(super) required: bool,
    pub(super) description: Option<String>,
    pub(super) example: Option<String>,
    /// Its type as it is written, where that can be sent back: GraphQL wants to hear it again.
    pub(super) written: Option<String>,
}

impl Format {
    pub(super) const ALL: [Self; 3] = [Self::OpenApi3, Self::Swagger2, Self::GraphQl];

    /// The contract's word for it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::OpenApi3 => "openapi3",
            Self::Swagger2 => "swagger2",
            Self::GraphQl => "graphql",
        }
    }

    pub(super) fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.word() == word)
    }
}

impl Root {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Mutation => "mutation",
            Self::Subscription => "subscription",
        }
    }
}

impl Spec {
    pub(super) fn new(format: Format) -> Self {
        Self {
            format,
            title: "API".to_owned(),
            version: String::new(),
            description: None,
            base_url: None,
            endpoints: Vec::new(),
            operations: Vec::new(),
            models: Vec::new(),
            security: Vec::new(),
            places: HashMap::new(),
        }
    }

    /// With its models known by their names.
    fn indexed(mut self) -> Self {
        self.places = self.models.iter().enumerate().map(|(at, model)| (model.name.clone(), at)).collect();
        self
    }

    pub(super) fn model(&self, name: &str) -> Option<&Model> {
        self.models.get(*self.places.get(name)?)
    }

    /// The names of the models that an endpoint or operation needs, directly or through another.
    pub(super) fn used_models(&self) -> BTreeSet<&str> {
        let mut waiting: Vec<&Shape> = Vec::new();
        for endpoint in &self.endpoints {
            waiting.extend(endpoint.parameters.iter().map(|parameter| &parameter.field.shape));
            waiting.extend(&endpoint.body);
            waiting.extend(endpoint.responses.iter().filter_map(|response| response.shape.as_ref()));
        }
        for operation in &self.operations {
            waiting.extend(operation.arguments.iter().map(|argument| &argument.shape));
            waiting.push(&operation.returns);
        }
        let mut used = BTreeSet::new();
        while let Some(shape) = waiting.pop() {
            if let Shape::Model(name) = shape {
                if let Some(model) = self.model(name)
                    && used.insert(model.name.as_str())
                {
                    waiting.push(&model.shape);
                }
            } else {
                waiting.extend(shape.parts());
            }
        }
        used
    }
}

impl Shape {
    pub(super) fn text() -> Self {
        Self::Text { format: None }
    }

    pub(super) fn list_of(element: Self) -> Self {
        Self::List(Box::new(element))
    }

    /// The shapes that this one is directly made of.
    fn parts(&self) -> Vec<&Self> {
        match self {
            Self::List(element) | Self::Map(element) => vec![element],
            Self::Object(fields) => fields.iter().map(|field| &field.shape).collect(),
            Self::Union(options) => options.iter().collect(),
            _ => Vec::new(),
        }
    }
}

impl Field {
    pub(super) fn new(name: impl Into<String>, shape: Shape, required: bool) -> Self {
        Self { name: name.into(), shape, required, description: None, example: None, written: None }
    }
}

#[cfg(test)]
mod tests;
