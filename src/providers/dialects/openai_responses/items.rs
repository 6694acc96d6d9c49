//! The output items of one response, told apart although servers identify them differently.
//!
//! The rule is: the id, else the place in the output. What deviates: no ids, other ids at the end
//! than at the start, all places zero, items that only ever appear when they are done.

use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    Reasoning,
    Call,
    WebSearch,
    ImageGeneration,
    Other,
}

#[derive(Debug)]
pub(super) struct Item {
    pub(super) kind: Kind,
    pub(super) id: String,
    call_id: String,
    place: Option<u64>,
    /// The provider said that it is complete.
    pub(super) done: bool,
    /// Whether the final list of items named it.
    claimed: bool,
    /// Text, thought or arguments that were passed on.
    pub(super) emitted: bool,
    pub(super) cited: bool,
    /// A paragraph of a summary ended; another one may follow.
    pub(super) paragraph_ended: bool,
    /// Which call of the answer it is.
    pub(super) call_index: Option<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Items {
    list: Vec<Item>,
}

impl Kind {
    pub(super) fn of(item: &Value) -> Self {
        match item.get("type").and_then(Value::as_str) {
            Some("message") => Self::Message,
            Some("reasoning") => Self::Reasoning,
            Some("function_call") => Self::Call,
            Some("web_search_call") => Self::WebSearch,
            Some("image_generation_call") => Self::ImageGeneration,
            _ => Self::Other,
        }
    }
}

impl Items {
    pub(super) fn get(&mut self, at: usize) -> Option<&mut Item> {
        self.list.get_mut(at)
    }

    pub(super) fn calls(&self) -> usize {
        self.list.iter().filter(|item| item.call_index.is_some()).count()
    }

    /// An item that begins. One that began before under the same id is the same.
    pub(super) fn added(&mut self, event: &Value) -> usize {
        let item = event.get("item").unwrap_or(&Value::Null);
        let (id, kind) = (text(item, "id"), Kind::of(item));
        let same = |old: &Item| !id.is_empty() && old.id == id && old.kind == kind && !old.done;
        self.list.iter().position(same).unwrap_or_else(|| self.push(item, place(event)))
    }

    /// The item that an event of a running item belongs to; made when nothing announced it.
    pub(super) fn running(&mut self, kind: Kind, event: &Value) -> usize {
        let id = text(event, "item_id");
        self.find(kind, id, "", place(event)).unwrap_or_else(|| {
            let at = self.push(&Value::Null, place(event));
            self.list[at].kind = kind;
            self.list[at].id = id.to_owned();
            at
        })
    }

    /// An item that is complete; made when nothing announced it. `None` when it was complete
    /// before.
    pub(super) fn completed(&mut self, event: &Value) -> Option<usize> {
        let item = event.get("item").unwrap_or(&Value::Null);
        let found = self.find(Kind::of(item), text(item, "id"), text(item, "call_id"), place(event));
        let at = found.unwrap_or_else(|| self.push(item, place(event)));
        self.complete(at)
    }

    /// An item of the final list; `None` when it was complete before.
    pub(super) fn listed(&mut self, item: &Value) -> Option<usize> {
        let (kind, id, call_id) = (Kind::of(item), text(item, "id"), text(item, "call_id"));
        let named = self.list.iter().position(|old| old.is(kind) && !old.claimed && old.is_named(id, call_id));
        let next = || self.list.iter().position(|old| old.is(kind) && !old.claimed);
        let at = named.or_else(next).unwrap_or_else(|| self.push(item, None));
        self.list[at].claimed = true;
        self.complete(at)
    }

    fn complete(&mut self, at: usize) -> Option<usize> {
        let item = &mut self.list[at];
        (!std::mem::replace(&mut item.done, true)).then_some(at)
    }

    fn find(&self, kind: Kind, id: &str, call_id: &str, place: Option<u64>) -> Option<usize> {
        let named = self.list.iter().rposition(|item| item.is(kind) && item.is_named(id, call_id));
        named.or_else(|| {
            let open = |item: &Item| item.is(kind) && !item.done && (place.is_none() || item.place == place);
            self.list.iter().rposition(open)
        })
    }

    fn push(&mut self, item: &Value, place: Option<u64>) -> usize {
        self.list.push(Item {
            kind: Kind::of(item),
            id: text(item, "id").to_owned(),
            call_id: text(item, "call_id").to_owned(),
            place,
            done: false,
            claimed: false,
            emitted: false,
            cited: false,
            paragraph_ended: false,
            call_index: None,
        });
        self.list.len() - 1
    }
}

impl Item {
    fn is(&self, kind: Kind) -> bool {
        self.kind == kind
    }

    fn is_named(&self, id: &str, call_id: &str) -> bool {
        (!id.is_empty() && self.id == id) || (!call_id.is_empty() && self.call_id == call_id)
    }
}

/// A text field, empty when it is missing.
pub(super) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn place(event: &Value) -> Option<u64> {
    event.get("output_index").and_then(Value::as_u64)
}
