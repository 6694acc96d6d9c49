//! A job in its first moments, while the call that started it still waits for its first words.

use std::time::Duration;

use super::{JobId, JobStatus, Jobs, NewJob, Signals, StartError, words};

/// Kills the job when dropped, unless it is kept.
#[derive(Debug)]
pub(crate) struct Started {
    jobs: Jobs,
    id: JobId,
    signals: Signals,
    keep: bool,
}

/// How the job stands when the call returns.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) state: String,
    pub(crate) output: String,
    pub(crate) ended: bool,
    pub(crate) failed: bool,
}

impl Started {
    pub(crate) fn new(jobs: &Jobs, new: NewJob) -> Result<Self, StartError> {
        let id = jobs.start(new)?;
        let signals = jobs.signals(id).unwrap_or_default();
        Ok(Self { jobs: jobs.clone(), id, signals, keep: false })
    }

    /// Returns when the job has ended, or has spoken and not ended within `settle`; after `patience`
    /// in any case.
    pub(crate) async fn first_words(&self, patience: Duration, settle: Duration) {
        let first = async {
            tokio::select! {
                () = self.signals.gone.cancelled() => {}
                () = self.signals.spoke.cancelled() => {
                    let _ = tokio::time::timeout(settle, self.signals.gone.cancelled()).await;
                }
            }
        };
        let _ = tokio::time::timeout(patience, first).await;
    }

    /// Lets it run on. What is told here counts as read.
    pub(crate) fn keep(mut self) -> (JobId, Told) {
        self.keep = true;
        let id = self.id;
        let Some(reading) = self.jobs.read_output(id) else {
            let state = format!("{id} has ended.");
            return (id, Told { state, output: String::new(), ended: true, failed: false });
        };
        let state = match (reading.status, reading.exit_code) {
            (JobStatus::Running, _) => format!("Started in the background as {id}."),
            (JobStatus::Killed, _) => format!("{id} was killed."),
            (_, Some(code)) => format!("{id} has already ended, with exit code {code}."),
            (_, None) => format!("{id} has already ended."),
        };
        let told = Told {
            state,
            output: words::lines(&reading.lines),
            ended: reading.status != JobStatus::Running,
            failed: matches!(reading.status, JobStatus::Failed | JobStatus::Killed),
        };
        (id, told)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if !self.keep {
            self.jobs.kill(self.id);
            self.jobs.set_reported(self.id);
        }
    }
}
