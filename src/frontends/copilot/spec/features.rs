//! What an interface for a specification shows, in one sentence.

use super::{Root, Shape, Spec};

impl Spec {
    /// For example "Generated interface with 3 endpoints, data tables and forms".
    pub(in crate::frontends::copilot) fn summary(&self) -> String {
        let (count, word) = match self.operations.len() {
            0 => (self.endpoints.len(), "endpoint"),
            operations => (operations + self.endpoints.len(), "operation"),
        };
        let plural = if count == 1 { "" } else { "s" };
        let mut parts = vec![format!("{count} {word}{plural}")];
        if self.returns_lists() {
            parts.push("data tables".to_owned());
        }
        if self.takes_input() {
            parts.push("forms".to_owned());
        }
        let list = match &parts[..] {
            [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
            parts => parts.join(""),
        };
        format!("Generated interface with {list}")
    }

    fn returns_lists(&self) -> bool {
        let is_list = |shape: &Shape| matches!(self.resolved(shape), Shape::List(_));
        let responses = self.endpoints.iter().flat_map(|endpoint| &endpoint.responses);
        responses.filter_map(|response| response.shape.as_ref()).any(is_list)
            || self.operations.iter().any(|operation| is_list(&operation.returns))
    }

    fn takes_input(&self) -> bool {
        self.endpoints.iter().any(|endpoint| endpoint.body.is_some() || !endpoint.parameters.is_empty())
            || self
                .operations
                .iter()
                .any(|operation| operation.root == Root::Mutation || !operation.arguments.is_empty())
    }

    /// A shape that is no name of another one; a circle of names is anything.
    pub(in crate::frontends::copilot) fn resolved<'a>(&'a self, shape: &'a Shape) -> &'a Shape {
        const MOST_HOPS: usize = 16;
        let mut shape = shape;
        for _ in 0..MOST_HOPS {
            let Shape::Model(name) = shape else { return shape };
            match self.model(name) {
                Some(model) => shape = &model.shape,
                None => return &Shape::Any,
            }
        }
        &Shape::Any
    }
}
