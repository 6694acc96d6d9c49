//! The one thread that owns the database connection, and how it groups work into transactions.
//!
//! The thread takes everything that waits in its queue at once. Neighbouring writes share one
//! transaction with a savepoint each, so that one that fails takes nothing of the others with it;
//! each is answered after the commit. A read runs between them on a state of its own.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};

use super::contents::Contents;
use super::error::StoreError;
use super::place::{self, Opened};
use super::upkeep::{self, Upkeep};
use super::{Notices, schema};

/// How long closing waits for other servers before it leaves the log as it is.
const CHECKPOINT_TIMEOUT: Duration = Duration::from_millis(200);

#[derive(Debug, Clone)]
pub(super) enum Location {
    File(PathBuf),
    Memory,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Memory => f.write_str(schema::MEMORY),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

pub(super) enum Instruction {
    Run(Access, Box<dyn Job>),
    Close(oneshot::Sender<()>),
}

/// One operation with its answer. Running and answering are apart because the answer must wait
/// for the commit.
pub(super) trait Job: Send {
    /// Does the work and keeps its result. May be called again when the transaction was lost.
    fn run(&mut self, connection: &Connection) -> rusqlite::Result<()>;

    /// Sends the kept result, or the error.
    fn answer(self: Box<Self>, outcome: Result<(), StoreError>);

    /// Whether nobody waits any more.
    fn is_abandoned(&self) -> bool;
}

pub(super) struct Task<T, F> {
    work: F,
    result: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Task<T, F>
where
    T: Send + 'static,
    F: FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
{
    pub(super) fn boxed(work: F, reply: oneshot::Sender<Result<T, StoreError>>) -> Box<dyn Job> {
        Box::new(Self { work, result: None, reply })
    }
}

impl<T, F> Job for Task<T, F>
where
    T: Send,
    F: FnMut(&Connection) -> rusqlite::Result<T> + Send,
{
    fn run(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.result = Some((self.work)(connection)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        let Self { result, reply, work } = *self;
        // Whoever gets the answer may count on nothing of theirs being held here any more.
        drop(work);
        let missing = || StoreError::Internal("an operation ended without a result".into());
        // The caller may have stopped waiting; the work is done all the same.
        let _ = reply.send(outcome.and_then(|()| result.ok_or_else(missing)));
    }

    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }
}

/// Starts the thread. It ends on [`Instruction::Close`], or when every sender is gone and the
/// queue is empty.
pub(super) fn start(
    location: Location,
    reopen_interval: Duration,
    queue_length: usize,
    notices: Arc<Notices>,
    contents: Arc<Contents>,
) -> Result<mpsc::Sender<Instruction>, StoreError> {
    let (sender, queue) = mpsc::channel(queue_length);
    let place = location.to_string();
    let keeper = Keeper {
        place: place.clone(),
        location,
        reopen_interval,
        notices,
        contents,
        connection: None,
        path: None,
        upkeep: Upkeep::default(),
        failure: None,
    };
    std::thread::Builder::new()
        .name("eca-store".into())
        .spawn(move || keeper.serve(queue, queue_length))
        .map_err(|error| StoreError::Failed { place, reason: error.to_string() })?;
    Ok(sender)
}

struct Keeper {
    location: Location,
    /// The file that is open, in the words of an error.
    place: String,
    reopen_interval: Duration,
    notices: Arc<Notices>,
    contents: Arc<Contents>,
    connection: Option<Connection>,
    path: Option<PathBuf>,
    upkeep: Upkeep,
    /// When opening failed last, and why.
    failure: Option<(Instant, StoreError)>,
}

/// Why a shared transaction brought nothing.
enum Lost {
    /// It could not begin; nothing ran.
    NotBegun(StoreError),
    /// A newer server has changed the schema since the file was opened; nothing ran. What this
    /// version would write lacks what the newer one relies on. Opened anew, the file is refused
    /// and another one found.
    Outdated(StoreError),
    /// It was rolled back as a whole.
    RolledBack(StoreError),
}

impl Keeper {
    fn serve(mut self, mut queue: mpsc::Receiver<Instruction>, drain_limit: usize) {
        let mut waiting = Vec::with_capacity(drain_limit);
        while self.fetch(&mut queue, &mut waiting, drain_limit) {
            let mut writes = Vec::new();
            for instruction in waiting.drain(..) {
                match instruction {
                    Instruction::Run(Access::Write, job) => writes.push(job),
                    Instruction::Run(Access::Read, job) => {
                        self.write_all(std::mem::take(&mut writes));
                        self.read(job);
                    }
                    Instruction::Close(done) => {
                        self.write_all(writes);
                        self.end();
                        let _ = done.send(());
                        // What was queued behind the closing is dropped, which its callers notice.
                        return;
                    }
                }
            }
            self.write_all(writes);
        }
        self.end();
    }

    /// Takes what waits, and does other work as long as nothing does. `false` when nothing will
    /// come any more.
    fn fetch(
        &mut self,
        queue: &mut mpsc::Receiver<Instruction>,
        waiting: &mut Vec<Instruction>,
        drain_limit: usize,
    ) -> bool {
        while self.upkeep.is_due() {
            match queue.try_recv() {
                Ok(instruction) => {
                    waiting.push(instruction);
                    while waiting.len() < drain_limit
                        && let Ok(instruction) = queue.try_recv()
                    {
                        waiting.push(instruction);
                    }
                    return true;
                }
                Err(TryRecvError::Disconnected) => return false,
                Err(TryRecvError::Empty) => match &self.connection {
                    Some(connection) => self.upkeep.step(connection),
                    None => break,
                },
            }
        }
        queue.blocking_recv_many(waiting, drain_limit) > 0
    }

    /// Opens the database when it is not open, but not again right after a failure.
    fn connection(&mut self) -> Result<&Connection, StoreError> {
        if self.connection.is_none() {
            if let Some((when, error)) = &self.failure
                && when.elapsed() < self.reopen_interval
            {
                return Err(error.clone());
            }
            match place::open(&self.location) {
                Ok(opened) => self.take_up(opened),
                Err(error) => {
                    tracing::warn!(%error, "chat history is not available");
                    self.failure = Some((Instant::now(), error.clone()));
                    return Err(error);
                }
            }
            self.failure = None;
        }
        self.connection.as_ref().ok_or_else(|| StoreError::Internal("the database is not open".into()))
    }

    fn take_up(&mut self, opened: Opened) {
        let Opened { connection, path, notice } = opened;
        if let Some(notice) = notice
            && self.path != path
        {
            tracing::warn!(notice, "the chat history is kept in another file");
            self.notices.lock().unwrap_or_else(PoisonError::into_inner).push(notice);
        }
        if let Some(path) = &path {
            self.place = path.display().to_string();
        }
        let contents = self.contents.are_beside(path.as_deref());
        self.path = path;
        self.connection = Some(connection);
        self.upkeep = Upkeep::after_opening(contents.as_deref());
    }

    fn read(&mut self, mut job: Box<dyn Job>) {
        if job.is_abandoned() {
            return;
        }
        let place = self.place.clone();
        let outcome = self.connection().and_then(|connection| {
            let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Deferred)
                .map_err(|error| StoreError::from_sqlite(&place, &error))?;
            let outcome = run_caught(job.as_mut(), connection, &place);
            transaction.finish().map_err(|error| StoreError::from_sqlite(&place, &error))?;
            outcome
        });
        self.forget_spoiled_connection(&outcome);
        job.answer(outcome);
    }

    /// Writes of one drain, in one transaction if possible.
    fn write_all(&mut self, mut jobs: Vec<Box<dyn Job>>) {
        if jobs.is_empty() {
            return;
        }
        let mut outcome = self.write_together(&mut jobs);
        if let Err(Lost::Outdated(_) | Lost::RolledBack(StoreError::IndexDamaged { .. })) = outcome {
            match outcome {
                Err(Lost::Outdated(_)) => self.connection = None,
                _ => self.make_index_anew(),
            }
            outcome = self.write_together(&mut jobs);
        }
        match outcome {
            Ok(outcomes) => {
                for (job, outcome) in jobs.into_iter().zip(outcomes) {
                    self.forget_spoiled_connection(&outcome);
                    job.answer(outcome);
                }
            }
            Err(Lost::NotBegun(error) | Lost::Outdated(error)) => self.answer_all(jobs, &error),
            Err(Lost::RolledBack(error)) if jobs.len() == 1 => self.answer_all(jobs, &error),
            Err(Lost::RolledBack(_)) => self.write_one_by_one(jobs),
        }
    }

    /// After a shared transaction was lost (a full disk takes all of it back), each write gets
    /// its own, so that only those fail that cannot succeed.
    fn write_one_by_one(&mut self, jobs: Vec<Box<dyn Job>>) {
        let mut jobs = jobs.into_iter();
        while let Some(mut job) = jobs.next() {
            let outcome = match self.write_together(std::slice::from_mut(&mut job)) {
                Ok(outcomes) => outcomes.into_iter().next().unwrap_or(Ok(())),
                Err(Lost::RolledBack(error)) => Err(error),
                Err(Lost::NotBegun(error) | Lost::Outdated(error)) => {
                    // The others would only repeat the wait for a lock.
                    job.answer(Err(error.clone()));
                    return self.answer_all(jobs.collect(), &error);
                }
            };
            self.forget_spoiled_connection(&outcome);
            job.answer(outcome);
        }
    }

    fn write_together(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<Vec<Result<(), StoreError>>, Lost> {
        let place = self.place.clone();
        let sqlite = |error: rusqlite::Error| StoreError::from_sqlite(&place, &error);
        let rolled_back = |error: rusqlite::Error| Lost::RolledBack(sqlite(error));
        let connection = self.connection().map_err(Lost::NotBegun)?;
        // Taking the write lock first means that no statement inside can fail for want of it.
        let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)
            .map_err(|error| Lost::NotBegun(sqlite(error)))?;
        schema::demand_known_version(connection, &place).map_err(Lost::Outdated)?;
        let mut outcomes = Vec::with_capacity(jobs.len());
        for job in jobs {
            connection.execute_batch("SAVEPOINT job").map_err(rolled_back)?;
            let outcome = run_caught(job.as_mut(), connection, &place);
            if connection.is_autocommit() {
                // SQLite itself ended the transaction, as it does when the disk is full.
                let missing = StoreError::Internal("an operation ended the transaction".into());
                return Err(Lost::RolledBack(outcome.err().unwrap_or(missing)));
            }
            if let Err(error @ StoreError::IndexDamaged { .. }) = outcome {
                // The commit would fail as well.
                return Err(Lost::RolledBack(error));
            }
            let finish = if outcome.is_ok() { "RELEASE job" } else { "ROLLBACK TO job; RELEASE job" };
            connection.execute_batch(finish).map_err(rolled_back)?;
            outcomes.push(outcome);
        }
        transaction.commit().map_err(rolled_back)?;
        self.upkeep.after_writing();
        Ok(outcomes)
    }

    /// A broken index costs no message. When even this fails, what is written next says why.
    fn make_index_anew(&mut self) {
        let Some(connection) = &self.connection else { return };
        let made = Transaction::new_unchecked(connection, TransactionBehavior::Immediate).and_then(|transaction| {
            upkeep::make_index_anew(connection)?;
            transaction.commit()
        });
        if let Err(error) = made {
            tracing::warn!(%error, "the index of words could not be made anew");
        }
    }

    fn answer_all(&mut self, jobs: Vec<Box<dyn Job>>, error: &StoreError) {
        self.forget_spoiled_connection(&Err(error.clone()));
        for job in jobs {
            job.answer(Err(error.clone()));
        }
    }

    /// The next operation opens the file anew after an error that the connection may not survive.
    /// A database in memory lives in its connection and is kept.
    fn forget_spoiled_connection(&mut self, outcome: &Result<(), StoreError>) {
        if let (Err(error), Some(path), Some(_)) = (outcome, &self.path, &self.connection)
            && error.spoils_connection()
        {
            if matches!(error, StoreError::Damaged { .. })
                && let Err(error) = place::mark_damaged(path, error)
            {
                tracing::warn!(%error, "the damage of the chat history could not be noted down");
            }
            self.connection = None;
        }
    }

    /// Folds the log into the database, as far as other servers let us in time.
    fn end(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        self.upkeep.before_closing(&connection);
        let folded = connection
            .busy_timeout(CHECKPOINT_TIMEOUT)
            .and_then(|()| connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
        if let Err(error) = folded {
            tracing::debug!(%error, "the log of the chat history was left as it is");
        }
    }
}

/// A panic costs its own operation and nothing else.
fn run_caught(job: &mut dyn Job, connection: &Connection, place: &str) -> Result<(), StoreError> {
    match catch_unwind(AssertUnwindSafe(|| job.run(connection))) {
        Ok(outcome) => outcome.map_err(|error| StoreError::from_sqlite(place, &error)),
        Err(_) => Err(StoreError::Internal("an operation panicked; the log has the details".into())),
    }
}
