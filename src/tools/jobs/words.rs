//! How jobs are told about in words.

use std::time::Duration;

use super::output::{JobLine, JobStream};
use super::{JobReading, JobStatus, JobView};

/// A notice shows so many of the last lines.
pub(super) const NOTICE_LINES: usize = 20;

/// A longer command is cut where it only serves to recognise a job.
const COMMAND_CHARS: usize = 200;

/// `5s`, `5m23s`, `1h2m`.
pub(super) fn elapsed(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds}s"),
        (hours, minutes, _) => format!("{hours}h{minutes}m"),
    }
}

/// One line of a list.
pub(super) fn listed(job: &JobView, other_chat: bool) -> String {
    let code = job.exit_code.map(|code| format!(", exit code {code}")).unwrap_or_default();
    let chat = if other_chat { ", of another chat" } else { "" };
    let (id, status, elapsed, label) = (job.id, job.status.word(), &job.elapsed, &job.label);
    format!("{id} [{status}{code}, {elapsed}{chat}] {label}: {}", short(&job.command))
}

/// What a model is told about a job that has ended by itself, or by the user's hand.
pub(super) fn notice(job: &JobView, last: &[JobLine], more: bool) -> String {
    let end = match (job.status, job.exit_code) {
        (JobStatus::Killed, _) => "was killed by the user".to_owned(),
        (_, Some(code)) => format!("has ended with exit code {code}"),
        (_, None) => "has ended".to_owned(),
    };
    let mut text = format!("Background job {} ({}) {end}, after {}.", job.id, job.label, job.elapsed);
    text.push_str(&format!("\nCommand: {}", short(&job.command)));
    if last.is_empty() {
        text.push_str("\nIt printed nothing.");
    } else {
        text.push_str("\nIts last output:\n");
        text.push_str(&lines(last));
    }
    if more {
        text.push_str("\n(bg_job read_output has more.)");
    }
    text
}

/// What a reading shows the model.
pub(super) fn reading(id: super::JobId, reading: &JobReading) -> String {
    let code = reading.exit_code.map(|code| format!(", exit code {code}")).unwrap_or_default();
    let mut text = format!("{id} [{}{code}]", reading.status.word());
    if reading.dropped > 0 {
        text.push_str(&format!("\n({} earlier lines are no longer kept)", reading.dropped));
    }
    if reading.lines.is_empty() {
        text.push_str("\n(no new output)");
    } else {
        text.push('\n');
        text.push_str(&lines(&reading.lines));
    }
    text
}

pub(super) fn lines(lines: &[JobLine]) -> String {
    let tagged = lines.iter().map(|line| match line.stream {
        JobStream::Stdout => line.text.clone(),
        JobStream::Stderr => format!("[stderr] {}", line.text),
    });
    tagged.collect::<Vec<_>>().join("\n")
}

fn short(command: &str) -> String {
    let line = crate::base::text::one_line(command, COMMAND_CHARS + 1);
    match line.char_indices().nth(COMMAND_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        for (seconds, expected) in
            [(0, "0s"), (5, "5s"), (60, "1m0s"), (323, "5m23s"), (3_600, "1h0m"), (3_725, "1h2m"), (90_000, "25h0m")]
        {
            assert_eq!(elapsed(Duration::from_secs(seconds)), expected);
        }
    }
}
