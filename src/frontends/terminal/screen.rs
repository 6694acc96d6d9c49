//! What a person sees: the answer on stdout, everything else on stderr.
//!
//! When both are the same terminal they share its lines, so the screen remembers which of them
//! ended in the middle of one, and takes the spinner away before anything else is written.

use std::io::{self, Write};
use std::time::Instant;

use serde_json::{Map, Value};

use super::markdown::Markdown;
use crate::base::text;
use crate::engine::{ChatEvent, Event, NoticeLevel, ToolCallEvent, ToolCallStage, UsageReport};
use crate::tool::Details;

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const MAX_SUMMARY: usize = 80;
const MAX_SOURCES: usize = 50;

const DIM: &str = "\u{1b}[2m";
const RED: &str = "\u{1b}[31m";
const YELLOW: &str = "\u{1b}[33m";
const OFF: &str = "\u{1b}[0m";
const ERASE_LINE: &str = "\r\u{1b}[K";

/// What the two streams are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) out: Stream,
    pub(super) err: Stream,
    /// Whether there is a person who can be asked.
    pub(super) can_ask: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    /// A file or a pipe: it gets the text as it is.
    Bytes,
    /// A terminal that gets no colours.
    Plain,
    Colours,
}

impl Stream {
    fn is_terminal(self) -> bool {
        self != Self::Bytes
    }

    fn has_colours(self) -> bool {
        self == Self::Colours
    }
}

/// Draws one conversation.
#[derive(Debug)]
pub(super) struct Screen<O, E> {
    out: O,
    err: E,
    look: Look,
    /// The columns of the terminal, asked each time because it changes.
    width: fn() -> usize,
    markdown: Markdown,
    /// Whether the last thing written to the stream was not a line break.
    out_open: bool,
    err_open: bool,
    /// Something else happened since the last piece of the answer.
    interrupted: bool,
    /// The last thing on the screen was reasoning.
    reasoned: bool,
    progress: Option<Progress>,
    usage: Option<UsageReport>,
    sources: Vec<String>,
}

#[derive(Debug)]
struct Progress {
    text: String,
    since: Instant,
    frame: usize,
    drawn: bool,
}

impl<O: Write, E: Write> Screen<O, E> {
    pub(super) fn new(out: O, err: E, look: Look, width: fn() -> usize) -> Self {
        Self {
            out,
            err,
            look,
            width,
            markdown: Markdown::new(look.out.has_colours()),
            out_open: false,
            err_open: false,
            interrupted: false,
            reasoned: false,
            progress: None,
            usage: None,
            sources: Vec::new(),
        }
    }

    /// Only an answer that cannot be written is an error; nobody has to read the rest.
    pub(super) fn show(&mut self, event: Event) -> io::Result<()> {
        match event {
            Event::Chat { event, .. } => self.chat_event(event),
            // What it calls is shown; what it says comes back as the output of the call it works for.
            Event::Subagent { event: ChatEvent::ToolCall(call), .. } => self.tool_call(call),
            Event::Subagent { .. } => Ok(()),
            Event::Notice { level, text } => {
                let (word, colour) = match level {
                    NoticeLevel::Info => ("note", DIM),
                    NoticeLevel::Warning => ("warning", YELLOW),
                    NoticeLevel::Error => ("error", RED),
                };
                self.note(&format!("{word}: {text}"), colour)
            }
            Event::ModelsChanged | Event::ProviderChanged { .. } => Ok(()),
        }
    }

    /// Moves the spinner. To be called several times a second.
    pub(super) fn tick(&mut self) {
        // It may not stand in the middle of the answer, which a pipe may bring to the same terminal.
        if self.look.err != Stream::Colours || self.err_open || self.out_open {
            return;
        }
        let Some(progress) = &mut self.progress else { return };
        progress.frame = (progress.frame + 1) % SPINNER.len();
        progress.drawn = true;
        let seconds = progress.since.elapsed().as_secs();
        let time = if seconds > 0 { format!(" {seconds}s") } else { String::new() };
        // Room for the spinner, the time and the cursor; a second line could not be erased.
        let room = (self.width)().saturating_sub(time.len() + 3);
        let text: String = text::one_line(&progress.text, 200).chars().take(room).collect();
        let _ = write!(self.err, "{ERASE_LINE}{DIM}{} {text}{time}{OFF}", SPINNER[progress.frame]);
        let _ = self.err.flush();
    }

    /// Leaves the terminal as it was found, in the middle of whatever.
    pub(super) fn close(&mut self) -> io::Result<()> {
        self.erase_spinner();
        self.progress = None;
        self.end_answer()?;
        self.close_err_line();
        self.out.flush()
    }

    fn chat_event(&mut self, event: ChatEvent) -> io::Result<()> {
        match event {
            ChatEvent::Text(text) => self.answer(&text),
            ChatEvent::ReasonText { text, .. } => self.reasoning(&text),
            ChatEvent::ReasonFinished { .. } => {
                self.close_err_line();
                Ok(())
            }
            ChatEvent::Progress(text) => {
                self.progress(text);
                Ok(())
            }
            ChatEvent::SystemText(text) => self.note(text.trim(), YELLOW),
            ChatEvent::Failed(text) => self.note(&format!("error: {}", text.trim()), RED),
            ChatEvent::ToolCall(call) => self.tool_call(call),
            ChatEvent::Citation { title, url } => {
                // They come in the middle of sentences, and are read after them.
                let source = format!("source: {title} {url}");
                if self.sources.len() < MAX_SOURCES && !self.sources.contains(&source) {
                    self.sources.push(source);
                }
                Ok(())
            }
            ChatEvent::Image { media_type, .. } => {
                self.note(&format!("(the model sent an image, {media_type}, which is not shown here)"), DIM)
            }
            ChatEvent::Usage(report) => {
                self.usage = Some(report);
                Ok(())
            }
            ChatEvent::Finished => self.finish(),
            ChatEvent::Opened { .. }
            | ChatEvent::Status(_)
            | ChatEvent::UserText { .. }
            | ChatEvent::ReasonStarted { .. }
            | ChatEvent::Title(_)
            | ChatEvent::ToolOutput { .. }
            | ChatEvent::Ending(_)
            | ChatEvent::Compaction(_)
            | ChatEvent::HookStarted { .. }
            | ChatEvent::HookFinished { .. }
            | ChatEvent::Flag { .. }
            | ChatEvent::Cleared
            | ChatEvent::Deleted => Ok(()),
        }
    }

    fn answer(&mut self, text: &str) -> io::Result<()> {
        self.erase_spinner();
        self.progress = None;
        if self.look.out.is_terminal() {
            self.close_err_line();
            if std::mem::take(&mut self.reasoned) && self.look.err.is_terminal() {
                let _ = self.err.write_all(b"\n");
            }
        }
        // What the model says after a tool call is not the same sentence.
        if std::mem::take(&mut self.interrupted) {
            self.end_answer()?;
        }
        let text = shown(text, self.look.out);
        let Some(last) = text.chars().last() else { return Ok(()) };
        let mut styled = String::with_capacity(text.len() + 16);
        self.markdown.feed(&text, &mut styled);
        self.out_open = last != '\n';
        self.out.write_all(styled.as_bytes())?;
        self.out.flush()
    }

    /// Ends the line of the answer, if there is one.
    fn end_answer(&mut self) -> io::Result<()> {
        let mut rest = String::new();
        self.markdown.finish(&mut rest);
        if std::mem::take(&mut self.out_open) {
            rest.push('\n');
        }
        self.out.write_all(rest.as_bytes())?;
        self.out.flush()
    }

    fn reasoning(&mut self, text: &str) -> io::Result<()> {
        self.begin_note()?;
        self.progress = None;
        self.interrupted = true;
        self.reasoned = true;
        let text = shown(text, self.look.err);
        self.err_open = !text.ends_with('\n') && (self.err_open || !text.is_empty());
        self.write_err(&text, DIM);
        Ok(())
    }

    fn progress(&mut self, text: String) {
        match &mut self.progress {
            Some(progress) => progress.text = text,
            None => self.progress = Some(Progress { text, since: Instant::now(), frame: 0, drawn: false }),
        }
    }

    /// One line, or several, on stderr.
    fn note(&mut self, text: &str, colour: &str) -> io::Result<()> {
        if text.trim().is_empty() {
            return Ok(());
        }
        self.begin_note()?;
        self.close_err_line();
        self.reasoned = false;
        self.write_err(&shown(text, self.look.err), colour);
        let _ = self.err.write_all(b"\n");
        Ok(())
    }

    /// Makes room on the terminal; an answer that goes elsewhere is not touched.
    fn begin_note(&mut self) -> io::Result<()> {
        self.erase_spinner();
        if self.look.out.is_terminal() { self.end_answer() } else { Ok(()) }
    }

    fn tool_call(&mut self, call: Box<ToolCallEvent>) -> io::Result<()> {
        let ToolCallEvent { name, stage, summary: call_summary, details, .. } = *call;
        self.interrupted = true;
        match stage {
            ToolCallStage::Run { arguments, manual_approval: true } => {
                if self.look.out.is_terminal() {
                    self.end_answer()?;
                }
                let what = call_summary.unwrap_or_else(|| summary(&arguments));
                if !self.look.can_ask {
                    let why = "needs your consent, and nobody can be asked here; `--trust` runs everything";
                    return self.note(&format!("! {name} {what}: {why}"), YELLOW);
                }
                self.note(&format!("? {name} {what}"), YELLOW)?;
                if let Some(Details::FileChange(change)) = &details {
                    self.note(&change.diff, DIM)?;
                }
                self.note("  Run it? y: yes, a: always in this chat, n: no", YELLOW)
            }
            ToolCallStage::Prepare { .. } | ToolCallStage::Run { .. } | ToolCallStage::Running { .. } => {
                // The spinner cannot stand behind a sentence that has ended.
                if self.look.out.is_terminal() {
                    self.end_answer()?;
                }
                self.progress(format!("Calling {name}"));
                Ok(())
            }
            ToolCallStage::Called { arguments, error, total_ms, .. } => {
                let end = if error { "failed" } else { "done" };
                self.note(&format!("• {name} {} ({end}, {total_ms} ms)", summary(&arguments)), DIM)
            }
            ToolCallStage::Rejected { arguments, .. } => {
                self.note(&format!("• {name} {} (not run)", summary(&arguments)), DIM)
            }
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.close()?;
        for source in std::mem::take(&mut self.sources) {
            self.note(&source, DIM)?;
        }
        if let Some(report) = self.usage.take()
            && self.look.out.is_terminal()
            && self.look.err.is_terminal()
        {
            self.note(&usage(&report), DIM)?;
        }
        self.interrupted = false;
        self.reasoned = false;
        Ok(())
    }

    fn erase_spinner(&mut self) {
        if let Some(progress) = &mut self.progress
            && std::mem::take(&mut progress.drawn)
        {
            let _ = self.err.write_all(ERASE_LINE.as_bytes());
            let _ = self.err.flush();
        }
    }

    fn close_err_line(&mut self) {
        if std::mem::take(&mut self.err_open) {
            let _ = self.err.write_all(b"\n");
        }
    }

    fn write_err(&mut self, text: &str, colour: &str) {
        let _ = match self.look.err.has_colours() {
            true => write!(self.err, "{colour}{text}{OFF}"),
            false => self.err.write_all(text.as_bytes()),
        };
        let _ = self.err.flush();
    }
}

/// What a model or a file says must not control the terminal.
pub(super) fn shown(text: &str, stream: Stream) -> std::borrow::Cow<'_, str> {
    let harmful = |c: char| c.is_control() && c != '\n' && c != '\t';
    if stream.is_terminal() && text.contains(harmful) {
        return text.chars().filter(|c| !harmful(*c)).collect();
    }
    text.into()
}

fn summary(arguments: &Map<String, Value>) -> String {
    let shown = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name}={}", text::one_line(text, MAX_SUMMARY)),
        other => format!("{name}={other}"),
    };
    let all = arguments.iter().map(shown).collect::<Vec<_>>().join(" ");
    text::one_line(&all, MAX_SUMMARY)
}

fn usage(report: &UsageReport) -> String {
    let mut parts = vec![
        format!("{} tokens in", report.last.occupancy() - report.last.output),
        format!("{} out", report.last.output),
    ];
    if let Some(limit) = report.context_limit.filter(|limit| *limit > 0) {
        parts.push(format!("{}% of the context", (report.last.occupancy() * 100).div_ceil(limit)));
    }
    if let Some(cost) = report.total_cost.filter(|cost| *cost > 0.0) {
        parts.push(format!("${cost:.4} so far"));
    }
    format!("[{}]", parts.join(" · "))
}

#[cfg(test)]
mod tests;
