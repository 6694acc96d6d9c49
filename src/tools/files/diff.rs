//! Unified diffs of large texts in bounded time and space. What is known to be the same on both
//! sides is not compared: an edit says what it replaced, and other changes lie between a common
//! start and a common end.

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp};

use super::matching::Change;
use crate::base::text::common_ends;

const CONTEXT: usize = 3;
/// What a client is shown of a change.
pub(super) const SHOWN_BYTES: usize = 32 * 1024;
/// A diff that is not the shortest is better than one that comes late.
const PATIENCE: Duration = Duration::from_millis(50);
/// More lines than this are not compared one by one.
const MOST_LINES: usize = 200_000;
const CUT: &str = "[the rest of this diff is not shown]\n";

/// How one text became another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unified {
    /// Without a file header.
    pub(super) text: String,
    pub(super) added: usize,
    pub(super) removed: usize,
    /// The text is not the whole diff.
    pub(super) cut: bool,
}

/// Lines that are taken out and put in at one place. Lines count from 0.
#[derive(Debug)]
struct Run {
    old_line: usize,
    new_line: usize,
    old_lines: usize,
    new_lines: usize,
    old: Range<usize>,
    new: Range<usize>,
}

/// The one range outside of which both texts are the same.
pub(super) fn between_common_ends(before: &str, after: &str) -> Vec<Change> {
    if before == after {
        return Vec::new();
    }
    let (start, end) = common_ends(before, after);
    vec![Change { old: start..before.len() - end, new: start..after.len() - end }]
}

/// The diff, of at most `max_bytes` and a note. Outside of `changes`, which are in order, the texts
/// must be the same.
pub(super) fn unified(before: &str, after: &str, changes: &[Change], max_bytes: usize) -> Unified {
    let runs = runs(before, after, changes);
    let added = runs.iter().map(|run| run.new_lines).sum();
    let removed = runs.iter().map(|run| run.old_lines).sum();
    let mut text = String::new();
    let mut first = 0;
    let mut cut = false;
    while first < runs.len() && !cut {
        let mut last = first;
        while last + 1 < runs.len() && gap(&runs[last], &runs[last + 1]) <= 2 * CONTEXT {
            last += 1;
        }
        cut = !hunk(&mut text, before, after, &runs[first..=last], max_bytes);
        first = last + 1;
    }
    if cut {
        text.push_str(CUT);
    }
    Unified { text, added, removed, cut }
}

fn gap(one: &Run, next: &Run) -> usize {
    next.old_line - (one.old_line + one.old_lines)
}

/// The lines that differ, in order.
fn runs(before: &str, after: &str, changes: &[Change]) -> Vec<Run> {
    let deadline = Instant::now() + PATIENCE;
    let mut runs = Vec::new();
    let (mut done_old, mut old_line, mut new_line) = (0, 0, 0);
    for window in windows(before, after, changes) {
        let same = line_ends(&before[done_old..window.old.start]);
        old_line += same;
        new_line += same;
        done_old = window.old.end;
        let old: Vec<&str> = lines_of(&before[window.old.clone()]);
        let new: Vec<&str> = lines_of(&after[window.new.clone()]);
        let ops = if old.len() + new.len() > MOST_LINES {
            vec![DiffOp::Replace { old_index: 0, old_len: old.len(), new_index: 0, new_len: new.len() }]
        } else {
            similar::capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(deadline))
        };
        let (mut old_at, mut new_at) = (window.old.start, window.new.start);
        let mut open: Option<Run> = None;
        for op in ops {
            let (_, old_range, new_range) = op.as_tag_tuple();
            let bytes = |lines: &[&str]| lines.iter().map(|line| line.len()).sum::<usize>();
            let old_bytes = bytes(&old[old_range.clone()]);
            let new_bytes = bytes(&new[new_range.clone()]);
            if matches!(op, DiffOp::Equal { .. }) {
                runs.extend(open.take());
            } else {
                // A deletion and an insertion side by side are one run.
                let run = open.get_or_insert_with(|| Run {
                    old_line: old_line + old_range.start,
                    new_line: new_line + new_range.start,
                    old_lines: 0,
                    new_lines: 0,
                    old: old_at..old_at,
                    new: new_at..new_at,
                });
                run.old_lines += old_range.len();
                run.new_lines += new_range.len();
                run.old.end = old_at + old_bytes;
                run.new.end = new_at + new_bytes;
            }
            old_at += old_bytes;
            new_at += new_bytes;
        }
        runs.extend(open);
        old_line += old.len();
        new_line += new.len();
    }
    runs
}

/// The changes, widened to whole lines on both sides and joined where they then meet.
fn windows(before: &str, after: &str, changes: &[Change]) -> Vec<Change> {
    let mut windows: Vec<Change> = Vec::new();
    let mut changes = changes.iter().peekable();
    while let Some(change) = changes.next() {
        let line_start = before[..change.old.start].rfind('\n').map_or(0, |at| at + 1);
        let back = change.old.start - line_start;
        let mut window = Change { old: line_start..change.old.end, new: change.new.start - back..change.new.end };
        loop {
            let at_line_end = ends_line(before, window.old.end) && ends_line(after, window.new.end);
            let rest = &before[window.old.end..];
            let further = if at_line_end { 0 } else { rest.find('\n').map_or(rest.len(), |at| at + 1) };
            match changes.next_if(|next| next.old.start <= window.old.end + further) {
                Some(next) => {
                    window.old.end = next.old.end;
                    window.new.end = next.new.end;
                }
                None => {
                    window.old.end += further;
                    window.new.end += further;
                    break;
                }
            }
        }
        windows.push(window);
    }
    windows
}

fn ends_line(text: &str, at: usize) -> bool {
    at == 0 || at == text.len() || text.as_bytes()[at - 1] == b'\n'
}

fn lines_of(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn line_ends(text: &str) -> usize {
    memchr::memchr_iter(b'\n', text.as_bytes()).count()
}

/// Writes one hunk; as much of it as there is room for, with a header that says so. Returns whether
/// it is the whole.
fn hunk(out: &mut String, before: &str, after: &str, runs: &[Run], max_bytes: usize) -> bool {
    let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return true };
    let mut lead = first.old.start;
    let mut lead_lines = 0;
    while lead_lines < CONTEXT && lead > 0 {
        lead = before[..lead - 1].rfind('\n').map_or(0, |at| at + 1);
        lead_lines += 1;
    }
    let tail_end =
        last.old.end + before[last.old.end..].split_inclusive('\n').take(CONTEXT).map(str::len).sum::<usize>();

    // Room for the header with the largest numbers there can be.
    let mut body = Body { text: String::new(), room: max_bytes.saturating_sub(out.len() + 96), old: 0, new: 0 };
    let mut done = lead;
    let mut whole = true;
    for run in runs {
        whole = body.lines(' ', &before[done..run.old.start])
            && body.lines('-', &before[run.old.clone()])
            && body.lines('+', &after[run.new.clone()]);
        if !whole {
            break;
        }
        done = run.old.end;
    }
    whole = whole && body.lines(' ', &before[done..tail_end]);
    if body.text.is_empty() {
        return whole;
    }
    // A side without lines is named by the line before it.
    let start = |line: usize, count: usize| line - lead_lines + usize::from(count > 0);
    let (old, new) = (start(first.old_line, body.old), start(first.new_line, body.new));
    out.push_str(&format!("@@ -{old},{} +{new},{} @@\n", body.old, body.new));
    out.push_str(&body.text);
    whole
}

struct Body {
    text: String,
    room: usize,
    old: usize,
    new: usize,
}

impl Body {
    /// Adds lines while there is room; returns whether there was for all.
    fn lines(&mut self, sign: char, text: &str) -> bool {
        const NO_LINE_END: &str = "\n\\ No newline at end of file\n";
        for line in text.split_inclusive('\n') {
            let end = if line.ends_with('\n') { "" } else { NO_LINE_END };
            if self.text.len() + 1 + line.len() + end.len() > self.room {
                return false;
            }
            self.text.push(sign);
            self.text.push_str(line);
            self.text.push_str(end);
            self.old += usize::from(sign != '+');
            self.new += usize::from(sign != '-');
        }
        true
    }
}
