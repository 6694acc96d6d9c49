//! Logs on stderr (and in a file when asked), without ever making the server wait.
//!
//! Editors often do not read the server's stderr. A full pipe must not stop a chat, so each place
//! that logs go to has its own thread behind a bounded queue; when the queue is full, lines are
//! dropped and counted. One record is one line: `HH:MM:SS.mmm LEVEL [chat=id] text key=value`,
//! with the time in UTC and without colours or control characters.

mod layer;
mod queue;

use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;

use layer::LineLayer;
use queue::Queue;

/// The target of logged traffic; it is silent unless `--verbose` is given.
pub const TRAFFIC_TARGET: &str = "eca::traffic";

/// How long the end of the program waits for the last lines.
const FLUSH_WAIT: Duration = Duration::from_millis(200);

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum LogLevel {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
}

/// A name that is no level.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected one of error, warn, info, debug")]
pub struct UnknownLogLevel;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogOptions {
    pub level: LogLevel,
    /// Whether the messages to and from the client are logged, whatever the level.
    pub verbose: bool,
    pub log_file: Option<PathBuf>,
}

/// Writes what is still queued when it is dropped, for a short time at most.
#[derive(Debug)]
#[must_use = "the last lines are lost when this is dropped early"]
pub struct LogGuard {
    queues: Vec<Queue>,
}

/// Starts logging for the whole process.
pub fn init(options: LogOptions) -> LogGuard {
    let mut sinks: Vec<Box<dyn Write + Send>> = vec![stderr()];
    let mut failure = None;
    if let Some(path) = &options.log_file {
        match std::fs::OpenOptions::new().create(true).append(true).open(path) {
            Ok(file) => sinks.push(Box::new(file)),
            Err(error) => failure = Some((path.clone(), error)),
        }
    }
    let (subscriber, guard) = build(&options, sinks);
    // A second call finds the first one's subscriber in place, which is what it asked for.
    let _ = tracing::subscriber::set_global_default(subscriber);
    if let Some((path, error)) = failure {
        tracing::warn!(file = %path.display(), %error, "the log file cannot be opened");
    }
    guard
}

impl FromStr for LogLevel {
    type Err = UnknownLogLevel;

    fn from_str(name: &str) -> Result<Self, UnknownLogLevel> {
        match name.to_ascii_lowercase().as_str() {
            "error" => Ok(Self::Error),
            "warn" => Ok(Self::Warn),
            "info" => Ok(Self::Info),
            "debug" => Ok(Self::Debug),
            _ => Err(UnknownLogLevel),
        }
    }
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        queue::flush(&self.queues, Instant::now() + FLUSH_WAIT);
    }
}

fn build(options: &LogOptions, sinks: Vec<Box<dyn Write + Send>>) -> (impl Subscriber + Send + Sync, LogGuard) {
    let queues: Vec<Queue> = sinks.into_iter().filter_map(Queue::start).collect();
    let layer = LineLayer::new(queues.clone());
    let subscriber = tracing_subscriber::registry().with(layer).with(targets(options));
    (subscriber, LogGuard { queues })
}

/// Other crates are heard from warnings on.
fn targets(options: &LogOptions) -> Targets {
    let ours = match options.level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    let traffic = if options.verbose { LevelFilter::INFO } else { LevelFilter::OFF };
    Targets::new()
        .with_default(ours.min(LevelFilter::WARN))
        .with_target("eca", ours)
        .with_target("custom_methods", ours)
        .with_target(TRAFFIC_TARGET, traffic)
}

/// Standard error behind its own handle: the standard library's lock would be held while a write
/// is stuck, and then anything else that prints there would hang too.
fn stderr() -> Box<dyn Write + Send> {
    #[cfg(unix)]
    let own = std::os::fd::AsFd::as_fd(&std::io::stderr()).try_clone_to_owned().map(std::fs::File::from);
    #[cfg(windows)]
    let own =
        std::os::windows::io::AsHandle::as_handle(&std::io::stderr()).try_clone_to_owned().map(std::fs::File::from);
    match own {
        Ok(file) => Box::new(file),
        Err(_) => Box::new(std::io::stderr()),
    }
}

#[cfg(test)]
mod tests;
