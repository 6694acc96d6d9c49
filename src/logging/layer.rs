//! Turns a tracing record into one line and hands it to the queues.
//!
//! The ready-made formatter cannot put one field of a surrounding span (`chat`) in front of the
//! text, and its ANSI and time features would have to be switched off one by one.

use std::fmt::{Debug, Write};
use std::sync::Arc;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::queue::Queue;

/// Longer lines are cut; together with the queue's capacity this bounds the memory.
pub(super) const MAX_LINE_BYTES: usize = 32 * 1024;

pub(super) struct LineLayer {
    queues: Vec<Queue>,
}

/// The chat that a span belongs to, kept with the span.
struct ChatOfSpan(String);

#[derive(Default)]
struct Fields {
    message: String,
    chat: Option<String>,
    others: String,
}

impl LineLayer {
    pub(super) fn new(queues: Vec<Queue>) -> Self {
        Self { queues }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for LineLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        remember_chat(fields.chat, id, &context);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        remember_chat(fields.chat, id, &context);
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let chat_of_spans = || {
            let mut spans = context.event_scope(event)?;
            spans.find_map(|span| span.extensions().get::<ChatOfSpan>().map(|chat| chat.0.clone()))
        };
        let chat = fields.chat.take().or_else(chat_of_spans);
        let text = if fields.message.is_empty() { fields.others.trim_start() } else { &fields.message };
        let text = if fields.message.is_empty() { text.to_owned() } else { format!("{text}{}", fields.others) };
        let level = event.metadata().level().as_str();
        let line: Arc<str> = line(crate::base::time::now_ms(), level, chat.as_deref(), &text).into();
        for queue in &self.queues {
            queue.push(Arc::clone(&line));
        }
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_text(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_text(field, &format!("{value:?}"));
    }
}

impl Fields {
    fn record_text(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.message.push_str(value),
            // Ids may arrive through `Debug`, which puts them in quotes.
            "chat" => self.chat = Some(value.trim_matches('"').to_owned()),
            name => {
                let _ = write!(self.others, " {name}={value}");
            }
        }
    }
}

/// One line, ended; whatever could start another line or steer a terminal is made visible.
pub(super) fn line(now_ms: i64, level: &str, chat: Option<&str>, text: &str) -> String {
    let of_day = now_ms.rem_euclid(24 * 60 * 60 * 1000);
    let (seconds, millis) = (of_day / 1000, of_day % 1000);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let mut out = String::with_capacity(text.len().min(MAX_LINE_BYTES) + 64);
    let _ = write!(out, "{hours:02}:{minutes:02}:{seconds:02}.{millis:03} {level} ");
    if let Some(chat) = chat {
        let _ = write!(out, "[chat={}] ", visible(chat));
    }
    let shown = crate::base::text::prefix(text, MAX_LINE_BYTES);
    out.push_str(&visible(shown));
    if shown.len() < text.len() {
        let _ = write!(out, "… ({} bytes more)", text.len() - shown.len());
    }
    out.push('\n');
    out
}

fn visible(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.chars().any(|c| c.is_control() && c != '\t') {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if c.is_control() && c != '\t' {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out.into()
}

fn remember_chat<S: Subscriber + for<'a> LookupSpan<'a>>(chat: Option<String>, id: &Id, context: &Context<'_, S>) {
    if let (Some(chat), Some(span)) = (chat, context.span(id)) {
        span.extensions_mut().replace(ChatOfSpan(chat));
    }
}
