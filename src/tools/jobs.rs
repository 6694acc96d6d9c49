//! Commands that run in the background, beyond the call that started them: at most ten at a time,
//! with the last lines of their output, until their end is reported.

mod output;
mod started;
mod tool;
mod words;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::base::task;
use crate::base::time::now_ms;
use crate::base::{ChatId, ToolCallId};
use crate::process::program::{Ended, Program, Running, Stream};

use super::shell::clean::Cleaner;
use output::JobOutput;
pub use output::{JobLine, JobStream};
pub(crate) use started::Started;
pub use tool::BgJob;

const MAX_RUNNING: usize = 10;
/// Those whose end nobody has heard of are kept for a while, but not all of them.
const MAX_FINISHED: usize = 20;
const KEEP_FINISHED: Duration = Duration::from_secs(30 * 60);
/// A flood is slowed down by this much per MiB.
const PAUSE: Duration = Duration::from_millis(100);
/// A killed job may take so long to be gone.
const LAST_BREATH: Duration = Duration::from_millis(1_500);
/// At the end of the server, killed jobs are waited for no longer than this; their guards go on.
const SHUTDOWN_WAIT: Duration = Duration::from_secs(1);

/// All background jobs of this process. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Jobs(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    state: Mutex<State>,
    /// Counts what is worth showing: beginnings, ends, and jobs that are dropped.
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    last: u64,
    jobs: BTreeMap<JobId, Job>,
    closed: bool,
}

/// Written `job-1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobId(u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobStatus {
    Running,
    Completed,
    Failed,
    Killed,
}

/// What to start.
#[derive(Debug, Clone)]
pub struct NewJob {
    pub label: String,
    /// The command as it was written, for people; `program` is what runs.
    pub command: String,
    pub chat: ChatId,
    pub call: ToolCallId,
    pub program: Program,
}

/// How a job stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobView {
    pub id: JobId,
    pub status: JobStatus,
    pub label: String,
    pub command: String,
    /// Milliseconds since the epoch.
    pub started_at: i64,
    /// For people: `5s`, `5m23s`, `1h2m`.
    pub elapsed: String,
    /// None while it runs, and when it was killed.
    pub exit_code: Option<i32>,
    pub chat: ChatId,
    pub call: ToolCallId,
}

/// Lines of a job, and how it stood when they were taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobReading {
    pub lines: Vec<JobLine>,
    /// Lines that came after the last reading and had to make room.
    pub dropped: u64,
    pub status: JobStatus,
    pub exit_code: Option<i32>,
}

/// Why a job was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("{MAX_RUNNING} background jobs are running, which is the most there can be; end one of them first")]
    TooMany,
    #[error("the server is about to end")]
    Closed,
    #[error("{0}")]
    Program(#[from] std::io::Error),
}

#[derive(Debug)]
struct Job {
    label: String,
    command: String,
    chat: ChatId,
    call: ToolCallId,
    status: JobStatus,
    exit_code: Option<i32>,
    started_at: i64,
    started: Instant,
    ended: Option<Instant>,
    output: JobOutput,
    /// The model knows how it ended.
    reported: bool,
    signals: Signals,
}

/// What others wait for.
#[derive(Debug, Clone, Default)]
struct Signals {
    kill: CancellationToken,
    /// It has printed something.
    spoke: CancellationToken,
    /// Nothing of it is left.
    gone: CancellationToken,
}

impl Jobs {
    /// Starts a job. Needs a runtime.
    pub fn start(&self, new: NewJob) -> Result<JobId, StartError> {
        let signals = Signals::default();
        let (id, running) = {
            let mut state = self.state();
            state.purge(Instant::now());
            if state.closed {
                return Err(StartError::Closed);
            }
            if state.jobs.values().filter(|job| job.status == JobStatus::Running).count() >= MAX_RUNNING {
                return Err(StartError::TooMany);
            }
            let running = new.program.start()?;
            state.last += 1;
            let id = JobId(state.last);
            let job = Job {
                label: new.label,
                command: new.command,
                chat: new.chat,
                call: new.call,
                status: JobStatus::Running,
                exit_code: None,
                started_at: now_ms(),
                started: Instant::now(),
                ended: None,
                output: JobOutput::default(),
                reported: false,
                signals: signals.clone(),
            };
            state.jobs.insert(id, job);
            (id, running)
        };
        self.changed();
        let jobs = self.clone();
        task::spawn(async move { jobs.attend(id, running, &signals).await });
        Ok(id)
    }

    /// Oldest first.
    pub fn list(&self) -> Vec<JobView> {
        let now = Instant::now();
        self.with_purged(|state| state.jobs.iter().map(|(id, job)| job.view(*id, now)).collect())
    }

    /// What the job printed since the last reading. When it has ended, that is reported with it.
    pub fn read_output(&self, id: JobId) -> Option<JobReading> {
        self.with_purged(|state| {
            let job = state.jobs.get_mut(&id)?;
            let (lines, dropped) = job.output.read();
            job.reported |= job.status != JobStatus::Running;
            Some(JobReading { lines, dropped, status: job.status, exit_code: job.exit_code })
        })
    }

    /// All that is kept of what it printed; counts as no reading.
    pub fn peek(&self, id: JobId) -> Option<JobReading> {
        self.with_purged(|state| {
            let job = state.jobs.get(&id)?;
            let (lines, dropped) = job.output.peek();
            Some(JobReading { lines, dropped, status: job.status, exit_code: job.exit_code })
        })
    }

    /// Kills the job with all it started; `false` if it does not run.
    pub fn kill(&self, id: JobId) -> bool {
        let killed = self.state().jobs.get_mut(&id).is_some_and(Job::kill);
        if killed {
            self.changed();
        }
        killed
    }

    /// Follows beginnings and ends: the number changes with each.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// What the model of this chat should hear about jobs that have ended; each is told once.
    pub fn take_notices(&self, chat: &ChatId) -> Vec<String> {
        let now = Instant::now();
        self.with_purged(|state| {
            let news = state.jobs.iter_mut().filter(|(_, job)| job.chat == *chat && job.has_news());
            news.map(|(id, job)| {
                job.reported = true;
                let (last, more) = job.output.read_last(words::NOTICE_LINES);
                words::notice(&job.view(*id, now), &last, more)
            })
            .collect()
        })
    }

    /// Kills all jobs and starts no more. Returns when they are gone, or after a second.
    pub async fn shutdown(&self) {
        let gone: Vec<CancellationToken> = {
            let mut state = self.state();
            state.closed = true;
            for job in state.jobs.values_mut() {
                job.kill();
            }
            state.jobs.values().map(|job| job.signals.gone.clone()).collect()
        };
        let all = futures_util::future::join_all(gone.iter().map(CancellationToken::cancelled));
        let _ = tokio::time::timeout(SHUTDOWN_WAIT, all).await;
    }

    fn signals(&self, id: JobId) -> Option<Signals> {
        self.state().jobs.get(&id).map(|job| job.signals.clone())
    }

    /// The model has been told how it ended.
    fn set_reported(&self, id: JobId) {
        self.with_purged(|state| {
            if let Some(job) = state.jobs.get_mut(&id) {
                job.reported = true;
            }
        });
    }

    /// Hears the job to its end.
    async fn attend(&self, id: JobId, mut running: Running, signals: &Signals) {
        let (mut stdout, mut stderr) = (Cleaner::default(), Cleaner::default());
        let mut hear = |stream, bytes: &[u8]| {
            let (cleaner, stream) = match stream {
                Stream::Stdout => (&mut stdout, JobStream::Stdout),
                Stream::Stderr => (&mut stderr, JobStream::Stderr),
            };
            let text = cleaner.push(bytes);
            if let Some(job) = self.state().jobs.get_mut(&id).filter(|_| !text.is_empty()) {
                job.output.push(stream, &text);
                signals.spoke.cancel();
            }
        };
        let ended = tokio::select! {
            ended = running.follow(PAUSE, &mut hear) => ended.ok(),
            () = signals.kill.cancelled() => None,
        };
        if ended.is_none() {
            running.let_go();
            let _ = tokio::time::timeout(LAST_BREATH, running.follow(PAUSE, &mut hear)).await;
        }
        if let Some(job) = self.state().jobs.get_mut(&id) {
            job.finish(ended);
        }
        signals.gone.cancel();
        self.changed();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops what need not be kept, before and after.
    fn with_purged<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let (result, dropped) = {
            let mut state = self.state();
            let before = state.purge(Instant::now());
            let result = act(&mut state);
            (result, before | state.purge(Instant::now()))
        };
        if dropped {
            self.changed();
        }
        result
    }

    fn changed(&self) {
        self.0.changes.send_modify(|count| *count += 1);
    }
}

impl State {
    /// Whether any job went.
    fn purge(&mut self, now: Instant) -> bool {
        let before = self.jobs.len();
        self.jobs.retain(|_, job| !job.is_over(now));
        let finished: Vec<JobId> = self.jobs.iter().filter(|(_, job)| job.ended.is_some()).map(|(id, _)| *id).collect();
        for id in finished.iter().take(finished.len().saturating_sub(MAX_FINISHED)) {
            self.jobs.remove(id);
        }
        self.jobs.len() < before
    }
}

impl Job {
    fn view(&self, id: JobId, now: Instant) -> JobView {
        JobView {
            id,
            status: self.status,
            label: self.label.clone(),
            command: self.command.clone(),
            started_at: self.started_at,
            elapsed: words::elapsed(self.ended.unwrap_or(now).saturating_duration_since(self.started)),
            exit_code: self.exit_code,
            chat: self.chat.clone(),
            call: self.call.clone(),
        }
    }

    fn kill(&mut self) -> bool {
        let runs = self.status == JobStatus::Running;
        if runs {
            self.status = JobStatus::Killed;
            self.signals.kill.cancel();
        }
        runs
    }

    /// `None`: it was killed, or its end was lost.
    fn finish(&mut self, ended: Option<Ended>) {
        self.ended = Some(Instant::now());
        self.output.finish();
        if self.status == JobStatus::Running {
            self.exit_code = ended.and_then(|ended| ended.code);
            self.status = if self.exit_code == Some(0) { JobStatus::Completed } else { JobStatus::Failed };
        }
    }

    fn has_news(&self) -> bool {
        self.ended.is_some() && !self.reported
    }

    /// Everything is said about it, or nobody asked for long.
    fn is_over(&self, now: Instant) -> bool {
        self.ended.is_some_and(|ended| {
            self.reported && self.output.is_read() || now.saturating_duration_since(ended) >= KEEP_FINISHED
        })
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job-{}", self.0)
    }
}

impl JobId {
    /// Also without the prefix, as models write it.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        text.strip_prefix("job-").unwrap_or(text).parse().ok().map(Self)
    }
}

impl JobStatus {
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Killed => "killed",
        }
    }
}

#[cfg(test)]
mod tests;
