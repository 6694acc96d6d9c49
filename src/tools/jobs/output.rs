//! The last lines that a job printed, and how far they were read.

use std::collections::VecDeque;

use crate::tools::shell::clean::Lines;

const MAX_LINES: usize = 2_000;
const MAX_BYTES: usize = 512 * 1024;

/// A printed line; a very long one comes in several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobLine {
    pub stream: JobStream,
    pub text: String,
}

/// Where a line was printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobStream {
    Stdout,
    Stderr,
}

#[derive(Debug, Default)]
pub(super) struct JobOutput {
    kept: Kept,
    stdout: Lines,
    stderr: Lines,
    /// The number of the first line that was not read.
    next: u64,
}

/// The last lines.
#[derive(Debug, Default)]
struct Kept {
    lines: VecDeque<JobLine>,
    bytes: usize,
    /// The number of the first line that is kept: so many were dropped before.
    first: u64,
}

impl JobOutput {
    pub(super) fn push(&mut self, stream: JobStream, text: &str) {
        let lines = match stream {
            JobStream::Stdout => &mut self.stdout,
            JobStream::Stderr => &mut self.stderr,
        };
        let kept = &mut self.kept;
        let mut text = text;
        // Of a flood, what would not stay anyway is only counted.
        if let Some((last, _)) = text.rmatch_indices('\n').nth(MAX_LINES) {
            let (gone, rest) = text.split_at(last + 1);
            lines.take_unfinished();
            kept.forget_all(gone.matches('\n').count());
            text = rest;
        }
        lines.push(text, &mut |line, _| kept.push(stream, line.to_owned()));
    }

    /// Nothing more comes: what has no end ends here.
    pub(super) fn finish(&mut self) {
        for (stream, lines) in [(JobStream::Stdout, &mut self.stdout), (JobStream::Stderr, &mut self.stderr)] {
            let rest = lines.take_unfinished();
            if !rest.is_empty() {
                self.kept.push(stream, rest);
            }
        }
    }

    /// The lines since the last reading, and how many of them are no longer there. A line that has
    /// not ended is cut here.
    pub(super) fn read(&mut self) -> (Vec<JobLine>, u64) {
        self.finish();
        let dropped = self.kept.first.saturating_sub(self.next);
        let skipped = usize::try_from(self.next.saturating_sub(self.kept.first)).unwrap_or(usize::MAX);
        let lines = self.kept.lines.iter().skip(skipped).cloned().collect();
        self.next = self.kept.end();
        (lines, dropped)
    }

    /// The last `count` lines, and whether others before them were not read. If not, everything is
    /// read now.
    pub(super) fn read_last(&mut self, count: usize) -> (Vec<JobLine>, bool) {
        let end = self.kept.end();
        let first = end.saturating_sub(count as u64);
        let more = self.next < first;
        if !more {
            self.next = end;
        }
        let skipped = self.kept.lines.len().saturating_sub(count);
        (self.kept.lines.iter().skip(skipped).cloned().collect(), more)
    }

    /// All that is kept, and how many lines came before.
    pub(super) fn peek(&self) -> (Vec<JobLine>, u64) {
        let mut lines: Vec<JobLine> = self.kept.lines.iter().cloned().collect();
        for (stream, unfinished) in [(JobStream::Stdout, &self.stdout), (JobStream::Stderr, &self.stderr)] {
            let text = unfinished.unfinished();
            if !text.is_empty() {
                lines.push(JobLine { stream, text: text.to_owned() });
            }
        }
        (lines, self.kept.first)
    }

    pub(super) fn is_read(&self) -> bool {
        self.next >= self.kept.end()
    }
}

impl Kept {
    fn push(&mut self, stream: JobStream, text: String) {
        self.bytes += text.len();
        self.lines.push_back(JobLine { stream, text });
        while self.lines.len() > MAX_LINES || self.bytes > MAX_BYTES {
            let Some(oldest) = self.lines.pop_front() else { return };
            self.bytes -= oldest.text.len();
            self.first += 1;
        }
    }

    /// Drops all lines, and as many that have not come here.
    fn forget_all(&mut self, more: usize) {
        self.first += (self.lines.len() + more) as u64;
        self.lines.clear();
        self.bytes = 0;
    }

    fn end(&self) -> u64 {
        self.first + self.lines.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lines: &[JobLine]) -> Vec<&str> {
        lines.iter().map(|line| line.text.as_str()).collect()
    }

    #[test]
    fn each_reading_goes_on_where_the_last_ended() {
        let mut output = JobOutput::default();
        output.push(JobStream::Stdout, "a\nb\npart");
        output.push(JobStream::Stderr, "oops\n");
        assert_eq!(texts(&output.peek().0), ["a", "b", "oops", "part"]);
        let (lines, dropped) = output.read();
        assert_eq!((texts(&lines), dropped), (vec!["a", "b", "oops", "part"], 0));
        assert_eq!(lines[2].stream, JobStream::Stderr);
        assert!(output.is_read());
        output.push(JobStream::Stdout, "ial\nc\n");
        assert!(!output.is_read());
        assert_eq!(texts(&output.read().0), ["ial", "c"]);
        assert_eq!(output.read(), (Vec::new(), 0));
    }

    #[test]
    fn old_lines_make_room_and_are_counted() {
        let mut output = JobOutput::default();
        output.push(JobStream::Stdout, "first\n");
        output.read();
        for number in 0..MAX_LINES + 10 {
            output.push(JobStream::Stdout, &format!("{number}\n"));
        }
        assert_eq!(output.peek().1, 11);
        let (lines, dropped) = output.read();
        assert_eq!((lines.len(), dropped, lines[0].text.as_str()), (MAX_LINES, 10, "10"));

        let mut output = JobOutput::default();
        output.push(JobStream::Stdout, "first\nunfinished");
        let flood: String = (0..MAX_LINES * 3).map(|number| format!("{number}\n")).collect();
        output.push(JobStream::Stdout, &flood);
        let (lines, dropped) = output.read();
        assert_eq!((lines.len(), lines[0].text.as_str()), (MAX_LINES, "4000"));
        assert_eq!(dropped as usize + lines.len(), 1 + MAX_LINES * 3);

        let mut output = JobOutput::default();
        for _ in 0..300 {
            output.push(JobStream::Stderr, &"x".repeat(10_000));
        }
        let (lines, dropped) = output.read();
        assert!(lines.iter().map(|line| line.text.len()).sum::<usize>() <= MAX_BYTES && dropped > 0);
    }

    #[test]
    fn the_last_lines_may_be_all_of_them() {
        let mut output = JobOutput::default();
        output.push(JobStream::Stdout, "a\nb\nc\n");
        assert_eq!((texts(&output.read_last(2).0), output.is_read()), (vec!["b", "c"], false));
        assert!(output.read_last(2).1);
        assert_eq!((output.read_last(3).1, output.is_read()), (false, true));
        output.push(JobStream::Stdout, "d\n");
        let (lines, more) = output.read_last(2);
        assert_eq!((texts(&lines), more), (vec!["c", "d"], false));
    }
}
