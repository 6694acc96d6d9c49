//! Diffs are checked by applying them.

use super::*;

/// Applies a diff the way `patch` does, without any leeway.
pub(in super::super) fn patched(before: &str, diff: &str) -> String {
    let old: Vec<&str> = lines_of(before);
    let mut out = String::new();
    let mut at = 0;
    let mut lines = diff.split_inclusive('\n').peekable();
    while let Some(header) = lines.next() {
        let numbers: Vec<usize> =
            header.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect();
        let [old_start, old_count, new_start, new_count] = numbers[..] else { panic!("not a header: {header:?}") };
        let start = old_start - usize::from(old_count > 0);
        out.push_str(&old[at..start].concat());
        at = start;
        let written = lines_of(&out).len();
        assert_eq!(written, new_start - usize::from(new_count > 0), "{diff}");
        let (mut olds, mut news) = (0, 0);
        while let Some(line) = lines.next_if(|line| !line.starts_with("@@")) {
            let (sign, rest) = line.split_at(1);
            let no_end = lines.next_if(|next| next.starts_with('\\')).is_some();
            let rest = if no_end { &rest[..rest.len() - 1] } else { rest };
            if sign != "+" {
                assert_eq!(old[at], rest, "{diff}");
                at += 1;
                olds += 1;
            }
            if sign != "-" {
                out.push_str(rest);
                news += 1;
            }
            assert!([" ", "+", "-"].contains(&sign), "{line:?}");
        }
        assert_eq!((olds, news), (old_count, new_count), "{diff}");
    }
    out.push_str(&old[at..].concat());
    out
}

fn diff(before: &str, after: &str) -> Unified {
    unified(before, after, &between_common_ends(before, after), SHOWN_BYTES)
}

#[test]
fn small_diffs_as_everybody_writes_them() {
    for (before, after, expected) in [
        ("", "", ""),
        ("a\n", "a\n", ""),
        ("", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"),
        ("a\nb\n", "", "@@ -1,2 +0,0 @@\n-a\n-b\n"),
        ("a\nb\nc\n", "a\nx\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n"),
        ("a", "a\n", "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n"),
        ("a\n", "a\nb", "@@ -1,1 +1,2 @@\n a\n+b\n\\ No newline at end of file\n"),
        ("1\n2\n3\n4\n5\n6\n7\n", "1\n2\n3\n4\n5\n6\n7\n8\n", "@@ -5,3 +5,4 @@\n 5\n 6\n 7\n+8\n"),
        ("a\r\nb\r\n", "a\r\nc\r\n", "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n"),
    ] {
        let found = diff(before, after);
        assert_eq!(found.text, expected);
        assert!(!found.cut);
    }
}

#[test]
fn distant_changes_are_hunks_of_their_own() {
    let before: String = (0..30).map(|n| format!("{n}\n")).collect();
    let after = before.replace("\n2\n", "\ntwo\n").replace("\n20\n", "\ntwenty\nand more\n");
    let found = diff(&before, &after);
    assert_eq!(found.text.matches("@@ -").count(), 2, "{}", found.text);
    assert_eq!((found.added, found.removed), (3, 2));
    assert_eq!(patched(&before, &found.text), after);
    let near = before.replace("\n2\n", "\ntwo\n").replace("\n9\n", "\nnine\n");
    assert_eq!(diff(&before, &near).text.matches("@@ -").count(), 1, "six lines between are one hunk");
}

#[test]
fn too_much_is_cut_at_a_line_and_what_is_shown_is_still_valid() {
    let after: String = (0..10_000).map(|n| format!("line {n}\n")).collect();
    let found = diff("", &after);
    assert!(found.cut && found.text.len() <= SHOWN_BYTES + CUT.len());
    assert_eq!((found.added, found.removed), (10_000, 0));
    let shown = found.text.strip_suffix(CUT).unwrap();
    let start = patched("", shown);
    assert!(after.starts_with(&start) && start.len() > SHOWN_BYTES / 2);
    let long = "x".repeat(SHOWN_BYTES);
    assert_eq!(diff("", &long).text, CUT, "a line is never torn");
}

#[test]
fn large_texts_are_compared_only_where_they_differ() {
    let before: String = (0..300_000).map(|n| format!("{n}\n")).collect();
    let after = before.replacen("\n150000\n", "\n", 1);
    let found = diff(&before, &after);
    assert_eq!((found.added, found.removed), (0, 1));
    assert_eq!(patched(&before, &found.text), after);
    let other: String = (0..300_000).map(|n| format!("{}\n", n * 7 + 1)).collect();
    let found = diff(&before, &other);
    assert_eq!((found.added, found.removed), (300_000, 300_000), "compared as a whole");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_diff_leads_from_one_text_to_the_other(before in "([ab]?\r?\n|é){0,24}", after in "([ab]?\r?\n|é){0,24}") {
        let found = diff(&before, &after);
        proptest::prop_assert_eq!(patched(&before, &found.text), after);
        let count = |sign: &str| found.text.lines().filter(|line| line.starts_with(sign)).count();
        proptest::prop_assert_eq!((count("+"), count("-")), (found.added, found.removed));
    }

    #[test]
    fn known_changes_are_enough(
        pieces in proptest::collection::vec(("([ab]?\n){0,9}|[ab]", "([ab]?\n){0,2}|[ab]{1,2}", "([ab]?\n){0,2}|[ab]{1,2}"), 0..5),
        tail in "([ab]?\n){0,9}[ab]?",
    ) {
        let (mut before, mut after, mut changes) = (String::new(), String::new(), Vec::new());
        for (same, old, new) in pieces {
            before.push_str(&same);
            after.push_str(&same);
            let change = Change {
                old: before.len()..before.len() + old.len(),
                new: after.len()..after.len() + new.len(),
            };
            before.push_str(&old);
            after.push_str(&new);
            changes.push(change);
        }
        before.push_str(&tail);
        after.push_str(&tail);
        let found = unified(&before, &after, &changes, SHOWN_BYTES);
        proptest::prop_assert_eq!(patched(&before, &found.text), after);
    }
}
