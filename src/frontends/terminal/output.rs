//! The way to the screen: a bounded queue and one thread that writes.
//!
//! A pipe that nobody reads blocks its writer. That is this thread, so that Ctrl-C is still heard,
//! and the chat waits for room in the queue instead of for the pipe.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::screen::{Look, Screen};
use crate::base::{ChatId, ToolCallId};
use crate::engine::{ChatEvent, Event, EventSink, ToolCallStage};
use crate::frontends::eca::Lines;

/// Events that may wait for the screen.
const QUEUE: usize = 256;
/// Notices that may wait until the user is done typing; more say nothing new.
const MAX_WAITING_NOTICES: usize = 20;
/// Nothing tells how wide the terminal is; the narrowest that is usual.
const DEFAULT_WIDTH: usize = 80;
/// Leaving waits so long for the last line.
const CLOSE_WAIT: Duration = Duration::from_millis(300);

/// What the writing thread is told.
#[derive(Debug)]
enum Show {
    Event(Event),
    /// A line of `--json` that no event says.
    Line(String),
    Tick,
    /// The prompt stands on the last line now, or is gone again.
    Prompting(bool),
    Close,
}

/// What the writing thread tells.
#[derive(Debug)]
pub(super) enum Report {
    /// Everything of the turn is written.
    TurnOver { failed: bool },
    /// A call that is shown waits for the user's word.
    Approval { chat: ChatId, call: ToolCallId },
    /// Nothing can be written any more, and nothing will be.
    Gone(io::Error),
}

/// How events are written.
pub(super) enum Form {
    Screen(Look),
    Json(Arc<Lines>),
}

/// The asynchronous end of the thread.
#[derive(Debug)]
pub(super) struct Output {
    sender: mpsc::Sender<Show>,
    reports: mpsc::Receiver<Report>,
    leaving: CancellationToken,
}

impl Output {
    pub(super) fn start(form: Form) -> io::Result<Self> {
        let (sender, shows) = mpsc::channel(QUEUE);
        let (reporter, reports) = mpsc::channel(QUEUE);
        std::thread::Builder::new().name("eca-screen".into()).spawn(move || {
            let written = match form {
                // The locks are taken for each write: the line editor writes to the same streams.
                Form::Screen(look) => {
                    write_all(&mut Screen::new(io::stdout(), io::stderr(), look, terminal_width), shows, &reporter)
                }
                Form::Json(lines) => write_all(&mut JsonLines { out: io::stdout(), lines }, shows, &reporter),
            };
            if let Err(error) = written {
                let _ = reporter.blocking_send(Report::Gone(error));
            }
        })?;
        Ok(Self { sender, reports, leaving: CancellationToken::new() })
    }

    /// Where the engine sends its events.
    pub(super) fn sink(&self) -> Arc<dyn EventSink> {
        Arc::new(QueueSink { sender: self.sender.clone(), leaving: self.leaving.clone() })
    }

    /// `None` when the thread is gone and has said why.
    pub(super) async fn report(&mut self) -> Option<Report> {
        self.reports.recv().await
    }

    /// Moves the spinner, unless there is more to do than that.
    pub(super) fn tick(&self) {
        let _ = self.sender.try_send(Show::Tick);
    }

    pub(super) async fn line(&self, line: String) {
        let _ = self.sender.send(Show::Line(line)).await;
    }

    pub(super) async fn event(&self, event: Event) {
        let _ = self.sender.send(Show::Event(event)).await;
    }

    /// While the prompt stands on the last line, notices wait.
    pub(super) async fn prompting(&self, now: bool) {
        let _ = self.sender.send(Show::Prompting(now)).await;
    }

    /// From now on the engine waits for nobody: what it says while it ends is not shown.
    pub(super) fn let_go(&self) {
        self.leaving.cancel();
    }

    /// Leaves the terminal in order, if that takes no time.
    pub(super) async fn close(mut self) {
        let closing = async {
            let _ = self.sender.send(Show::Close).await;
            while self.reports.recv().await.is_some() {}
        };
        let _ = tokio::time::timeout(CLOSE_WAIT, closing).await;
    }
}

/// The terminal's policy for a slow reader: the chat waits, nothing is dropped.
struct QueueSink {
    sender: mpsc::Sender<Show>,
    leaving: CancellationToken,
}

impl EventSink for QueueSink {
    fn emit(&self, event: Event) -> Option<BoxFuture<'static, ()>> {
        if self.leaving.is_cancelled() {
            return None;
        }
        match self.sender.try_send(Show::Event(event)) {
            // Without a screen there is nobody to wait for.
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => None,
            Err(mpsc::error::TrySendError::Full(show)) => {
                let (sender, leaving) = (self.sender.clone(), self.leaving.clone());
                // Sending ends also when the screen goes away.
                Some(Box::pin(async move {
                    tokio::select! {
                        _ = sender.send(show) => {}
                        () = leaving.cancelled() => {}
                    }
                }))
            }
        }
    }
}

/// Something that events can be written to.
trait Writer {
    fn event(&mut self, event: Event) -> io::Result<()>;
    fn line(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }
    fn tick(&mut self) {}
    fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<O: Write, E: Write> Writer for Screen<O, E> {
    fn event(&mut self, event: Event) -> io::Result<()> {
        self.show(event)
    }

    fn tick(&mut self) {
        Screen::tick(self);
    }

    fn close(&mut self) -> io::Result<()> {
        Screen::close(self)
    }
}

struct JsonLines<O> {
    out: O,
    lines: Arc<Lines>,
}

impl<O: Write> Writer for JsonLines<O> {
    fn event(&mut self, event: Event) -> io::Result<()> {
        self.lines.of(event).iter().try_for_each(|line| self.line(line))
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.out, "{line}")?;
        self.out.flush()
    }
}

fn write_all(
    writer: &mut impl Writer,
    mut shows: mpsc::Receiver<Show>,
    reporter: &mpsc::Sender<Report>,
) -> io::Result<()> {
    let mut failed = false;
    let mut prompting = false;
    let mut waiting = Vec::new();
    while let Some(show) = shows.blocking_recv() {
        match show {
            Show::Event(notice @ Event::Notice { .. }) if prompting => {
                if waiting.len() < MAX_WAITING_NOTICES {
                    waiting.push(notice);
                }
            }
            Show::Event(event) => {
                let over = matches!(&event, Event::Chat { event: ChatEvent::Finished, .. });
                failed |= matches!(&event, Event::Chat { event: ChatEvent::Failed(_), .. });
                let approval = approval_asked(&event);
                writer.event(event)?;
                if let Some((chat, call)) = approval
                    && reporter.blocking_send(Report::Approval { chat, call }).is_err()
                {
                    return Ok(());
                }
                // Reports are as few as turns, and each turn waits for its own.
                if over && reporter.blocking_send(Report::TurnOver { failed: std::mem::take(&mut failed) }).is_err() {
                    return Ok(());
                }
            }
            Show::Line(line) => writer.line(&line)?,
            Show::Tick => writer.tick(),
            Show::Prompting(now) => {
                prompting = now;
                if !prompting {
                    waiting.drain(..).try_for_each(|notice| writer.event(notice))?;
                }
            }
            Show::Close => return writer.close(),
        }
    }
    writer.close()
}

fn approval_asked(event: &Event) -> Option<(ChatId, ToolCallId)> {
    match event {
        Event::Chat { chat, event: ChatEvent::ToolCall(call) }
        | Event::Subagent { chat, event: ChatEvent::ToolCall(call), .. } => match call.stage {
            ToolCallStage::Run { manual_approval: true, .. } => Some((chat.clone(), call.id.clone())),
            _ => None,
        },
        _ => None,
    }
}

fn terminal_width() -> usize {
    crossterm::terminal::size().map_or(DEFAULT_WIDTH, |(columns, _)| usize::from(columns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::NoticeLevel;
    use std::sync::Mutex;

    fn chat(event: ChatEvent) -> Event {
        Event::Chat { chat: ChatId::new("c"), event }
    }

    #[derive(Default)]
    struct Recorder(Vec<Event>, Option<io::ErrorKind>);

    impl Writer for Recorder {
        fn event(&mut self, event: Event) -> io::Result<()> {
            if let Some(kind) = self.1 {
                return Err(kind.into());
            }
            self.0.push(event);
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_failure_belongs_to_its_turn_and_notices_wait_for_the_prompt_to_go() {
        let (sender, shows) = mpsc::channel(16);
        let (reporter, mut reports) = mpsc::channel(16);
        let notice = Event::Notice { level: NoticeLevel::Info, text: "n".into() };
        for show in [
            Show::Event(chat(ChatEvent::Failed("x".into()))),
            Show::Event(chat(ChatEvent::Finished)),
            Show::Prompting(true),
            Show::Event(notice.clone()),
            Show::Event(chat(ChatEvent::Title("t".into()))),
            Show::Prompting(false),
            Show::Event(chat(ChatEvent::Finished)),
            Show::Close,
        ] {
            sender.send(show).await.unwrap();
        }
        let recorder = tokio::task::spawn_blocking(move || {
            let mut recorder = Recorder::default();
            write_all(&mut recorder, shows, &reporter).unwrap();
            recorder
        });
        assert!(matches!(reports.recv().await, Some(Report::TurnOver { failed: true })));
        assert!(matches!(reports.recv().await, Some(Report::TurnOver { failed: false })));
        let events = recorder.await.unwrap().0;
        let at = |wanted: &Event| events.iter().position(|event| event == wanted).unwrap();
        assert!(at(&chat(ChatEvent::Title("t".into()))) < at(&notice));
    }

    #[tokio::test]
    async fn nobody_waits_for_a_screen_that_is_gone() {
        let (sender, shows) = mpsc::channel(1);
        let sink = QueueSink { sender, leaving: CancellationToken::new() };
        assert!(sink.emit(chat(ChatEvent::Text("1".into()))).is_none());
        let waits = sink.emit(chat(ChatEvent::Text("2".into()))).expect("the queue is full");
        let written = tokio::task::spawn_blocking(move || {
            let (reporter, _reports) = mpsc::channel(1);
            write_all(&mut Recorder(Vec::new(), Some(io::ErrorKind::BrokenPipe)), shows, &reporter)
        });
        waits.await;
        assert_eq!(written.await.unwrap().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert!(sink.emit(chat(ChatEvent::Text("3".into()))).is_none());
    }

    #[tokio::test]
    async fn nobody_waits_for_a_screen_that_is_stuck_when_we_leave() {
        let (sender, _shows) = mpsc::channel(1);
        let sink = QueueSink { sender, leaving: CancellationToken::new() };
        assert!(sink.emit(chat(ChatEvent::Text("1".into()))).is_none());
        let mut waits = sink.emit(chat(ChatEvent::Text("2".into()))).expect("the queue is full");
        assert!(futures_util::poll!(&mut waits).is_pending());
        sink.leaving.cancel();
        waits.await;
        assert!(sink.emit(chat(ChatEvent::Text("3".into()))).is_none());
    }

    #[test]
    fn json_lines_are_lines() {
        struct Shared(Arc<Mutex<Vec<u8>>>);
        impl Write for Shared {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.lock().unwrap().write(bytes)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let mut writer = JsonLines { out: Shared(Arc::clone(&bytes)), lines: Arc::new(Lines::default()) };
        writer.event(chat(ChatEvent::Text("a\nb".into()))).unwrap();
        writer.event(chat(ChatEvent::Finished)).unwrap();
        let text = String::from_utf8(bytes.lock().unwrap().clone()).unwrap();
        let methods: Vec<String> = text
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["method"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(methods, ["chat/contentReceived", "chat/contentReceived"]);
    }
}
