//! Tables for each tier, and random texts against a search that is slow and obvious.

use super::*;

fn edit<'a>(original: &'a str, new: &'a str) -> Edit<'a> {
    Edit { original, new, all: false }
}

fn loose(text: &str, original: &str, new: &str) -> Result<(String, Tier), Mismatch> {
    apply(text, edit(original, new), Rules::Loose).map(|applied| (applied.text, applied.tier))
}

fn places(lines: &[usize], count: usize) -> Places {
    Places { lines: lines.to_vec(), count, more: false }
}

#[test]
fn each_tier_takes_what_the_stricter_ones_leave() {
    use Tier::{Exact, Indentation, TrailingBlanks, WhiteSpace};
    for (text, original, new, expected, tier) in [
        ("one two three", "two", "2", "one 2 three", Exact),
        ("a\nb\nc\n", "b\n", "", "a\nc\n", Exact),
        ("é\nb", "é", "è", "è\nb", Exact),
        // Line ends are those of the file, whatever the model wrote.
        ("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc\r\n", Exact),
        ("a\nb\nc\n", "a\r\nb\r\n", "x\r\ny\r\n", "x\ny\nc\n", Exact),
        ("a\r\nb\r\n", "\nb", "", "a\r\n", Exact),
        ("a\r\nb\r\nc\nd\n", "c\nd", "c\nx", "a\r\nb\r\nc\nx\n", Exact),
        ("one\r\ntwo\r\nthree\r\nx\n", "x", "x\ny", "one\r\ntwo\r\nthree\r\nx\r\ny\n", Exact),
        // A lone CR is a character.
        ("a\rb\n", "a\rb", "c", "c\n", Exact),
        // Blanks at line ends do not count, and those elsewhere stay.
        ("keep  \na  \nb\t\r\nc  ", "a\nb\nc", "x\ny", "keep  \nx\ny  ", TrailingBlanks),
        ("a\nb\nc\n", "a \nb  \n", "x\n", "x\nc\n", TrailingBlanks),
        ("a\rb\rc", "a\nb", "x", "x\rc", TrailingBlanks),
        // Whole lines in another indentation.
        (
            "fn f() {\n    if x {\n        y();\n    }\n}\n",
            "if x {\n  y();\n}",
            "if z {\n    w();\n}",
            "fn f() {\n    if z {\n        w();\n    }\n}\n",
            Indentation,
        ),
        ("\t\ta;\n\t\tb;\n", "    a;\n    b;\n", "    c;\n\n  d;\n", "\t\tc;\n\nd;\n", Indentation),
        ("  a\n    b\n  c\n", " a\n  b\n", "", "  c\n", Indentation),
        ("x\n  a\n    b\n", "a\nb", " c", "x\n   c\n", Indentation),
        ("  a\r\n  b\r\n", "a\nb\n", "c\nd\n", "  c\r\n  d\r\n", Indentation),
        // Other white space between words.
        ("  call( a,b ) ;\nrest\n", "call(a, b);", "other();", "  other();\nrest\n", WhiteSpace),
        ("if (x) {\n  y = 1;\n}\n", "if (x) { y=1; }", "if (z) {\n  y = 2;\n}", "if (z) {\n  y = 2;\n}\n", WhiteSpace),
    ] {
        assert_eq!(loose(text, original, new), Ok((expected.to_owned(), tier)), "{text:?} {original:?}");
        if tier != Exact {
            let strict = apply(text, edit(original, new), Rules::ExactOnce);
            assert!(matches!(strict, Err(Mismatch::NotFound { .. })), "{text:?} {original:?}: {strict:?}");
        }
    }
}

#[test]
fn more_than_one_place_is_named_and_not_replaced() {
    for (text, original, tier, lines, count) in [
        ("a\nb\na\n", "a", Tier::Exact, &[1, 3][..], 2),
        ("}\n}\n}\n", "}\n}\n", Tier::Exact, &[1, 2], 2),
        ("a a a", "a", Tier::Exact, &[1, 1, 1], 3),
        ("a \nb\na  \nb\n", "a\nb", Tier::TrailingBlanks, &[1, 3], 2),
        ("  a\n  b\n    a\n    b\n", "a\nb", Tier::Indentation, &[1, 3], 2),
        ("f( a)\nf (a)\n", "f(a)", Tier::WhiteSpace, &[1, 2], 2),
    ] {
        let expected = Mismatch::Ambiguous { tier, places: places(lines, count) };
        assert_eq!(loose(text, original, "new"), Err(expected), "{text:?} {original:?}");
    }
    let many = "x\n".repeat(5_000);
    let Err(Mismatch::Ambiguous { places, .. }) = loose(&many, "x", "y") else { panic!("not ambiguous") };
    assert_eq!((places.lines.len(), places.count, places.more), (NAMED_PLACES, MOST_PLACES, true));
}

#[test]
fn nothing_is_found_where_words_differ() {
    for (text, original, near) in [
        ("a\nb\n", "c", &[][..]),
        ("", "c", &[]),
        ("  a\nb\nx a\na \nc", "a\nd", &[1, 4]),
        ("intx = 1;", "int x = 1;", &[]),
        ("int x = 12;", "int x=1", &[]),
        ("x f( a)", "f(a)", &[]),
        ("a\n\n\nb", "   \n  ", &[]),
    ] {
        assert_eq!(
            loose(text, original, "new"),
            Err(Mismatch::NotFound { near: near.to_vec() }),
            "{text:?} {original:?}"
        );
    }
}

#[test]
fn empty_and_idle_edits_are_refused() {
    assert_eq!(loose("a", "", "b"), Err(Mismatch::EmptyOriginal));
    assert_eq!(loose("a", "a", "a"), Err(Mismatch::NoChange));
    assert_eq!(loose("a\nb", "a\r\nb", "a\nb"), Err(Mismatch::NoChange));
    assert_eq!(loose("a  b\n", "a b", "a  b"), Err(Mismatch::NoChange), "found loosely, and there already");
    let text = "ab".repeat(1_000);
    let new = "x".repeat(MOST_BYTES / 500);
    assert_eq!(apply(&text, Edit { original: "a", new: &new, all: true }, Rules::Loose), Err(Mismatch::TooLarge));
}

#[test]
fn the_end_of_the_file_stays_as_it_was() {
    for (text, original, new, expected) in [
        ("a\nb\n", "b\n", "c", "a\nc\n"),
        ("a\r\nb\r\n", "b\r\n", "c", "a\r\nc\r\n"),
        ("a\nb", "b", "c\n", "a\nc"),
        ("a\r\nb", "b", "c\nd\n\n", "a\r\nc\r\nd"),
        // Unless the edit is about nothing else.
        ("a\nb", "b", "b\n", "a\nb\n"),
        ("a\nb\n", "b\n", "b", "a\nb"),
        ("a\n", "a\n", "", ""),
        ("a\nb\n", "\nb\n", "", "a\n"),
    ] {
        assert_eq!(loose(text, original, new), Ok((expected.to_owned(), Tier::Exact)), "{text:?} {original:?} {new:?}");
    }
}

#[test]
fn all_occurrences_with_the_first_two_tiers() {
    let all = |text, original, new| {
        let applied = apply(text, Edit { original, new, all: true }, Rules::Loose);
        applied.map(|applied| (applied.text, applied.places, applied.tier))
    };
    assert_eq!(all("aaa", "aa", "b"), Ok(("ba".into(), 1, Tier::Exact)));
    assert_eq!(all("a b a", "a", "c"), Ok(("c b c".into(), 2, Tier::Exact)));
    assert_eq!(all("a \nb\na\t\nb\n", "a\nb\n", "c\n"), Ok(("c\nc\n".into(), 2, Tier::TrailingBlanks)));
    assert_eq!(all("  a\nb\n", "a\n  b", "c"), Err(Mismatch::NotFound { near: vec![1] }), "no third tier");
    let strict = apply("a b a", Edit { original: "a", new: "c", all: true }, Rules::ExactOnce);
    assert!(matches!(strict, Err(Mismatch::Ambiguous { .. })));
}

#[test]
fn many_changes_are_reported_as_fewer() {
    let text = "a\n".repeat(MOST_CHANGES * 2);
    let applied = apply(&text, Edit { original: "a", new: "bc", all: true }, Rules::Loose).unwrap();
    assert_eq!(applied.text, "bc\n".repeat(MOST_CHANGES * 2));
    assert_eq!((applied.changes.len(), applied.places), (MOST_CHANGES, MOST_CHANGES * 2));
    check_changes(&text, &applied);
}

#[test]
fn a_repetitive_text_takes_no_longer() {
    let text = "}\n".repeat(400_000);
    let original = format!(" {}x", "}\n".repeat(20_000));
    assert!(loose(&text, &original, "new").is_err());
    let text = "a".repeat(1_000_000);
    assert!(loose(&text, &"a".repeat(10_000), "b").is_err());
}

#[test]
fn a_whole_new_text_gets_the_style_of_the_old_one() {
    for (before, new, expected) in [
        ("", "a\nb", "a\nb"),
        ("x\n", "a\nb", "a\nb\n"),
        ("x", "a\nb\n", "a\nb\n"),
        ("x\r\ny\r\n", "a\nb", "a\r\nb\r\n"),
        ("x\r\ny\r\n", "a\r\nb\r\n", "a\r\nb\r\n"),
        ("x\ny\n", "a\r\nb\r\n", "a\r\nb\r\n"),
        ("x\n", "", ""),
    ] {
        assert_eq!(in_the_style_of(before, new), expected, "{before:?} {new:?}");
    }
}

/// Outside of the changes, nothing is touched.
fn check_changes(before: &str, applied: &Applied) {
    let (mut old, mut new) = (0, 0);
    for change in &applied.changes {
        assert_eq!(before[old..change.old.start], applied.text[new..change.new.start]);
        (old, new) = (change.old.end, change.new.end);
    }
    assert_eq!(before[old..], applied.text[new..]);
}

/// The slow and obvious search.
mod reference {
    use super::*;

    /// A letter that counts, and the bytes it stands for.
    type Letters = Vec<(char, Range<usize>)>;

    fn letters(text: &str, lone_cr: bool) -> Letters {
        let mut letters: Letters = Vec::new();
        for (at, c) in text.char_indices() {
            match (c, letters.last_mut()) {
                ('\n', Some(last)) if last.0 == '\r' => *last = ('\n', last.1.start..at + 1),
                _ => letters.push((c, at..at + c.len_utf8())),
            }
        }
        if lone_cr {
            letters.iter_mut().for_each(|letter| letter.0 = if letter.0 == '\r' { '\n' } else { letter.0 });
        }
        letters
    }

    /// Blanks before a line end become part of it, those before the end of the text of nothing.
    fn without_blanks(text: &str) -> Letters {
        let mut kept: Letters = Vec::new();
        for letter in letters(text, true).into_iter().chain([('\n', text.len()..text.len())]) {
            let mut start = letter.1.start;
            while letter.0 == '\n' && kept.last().is_some_and(|last| [' ', '\t'].contains(&last.0)) {
                start = kept.pop().unwrap().1.start;
            }
            kept.push((letter.0, start..letter.1.end));
        }
        kept.pop();
        kept
    }

    fn every(text: &Letters, wanted: &Letters) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        for at in 0..text.len() {
            let same = wanted.iter().enumerate().all(|(n, letter)| text.get(at + n).is_some_and(|c| c.0 == letter.0));
            if same {
                found.push(text[at].1.start..text[at + wanted.len() - 1].1.end);
            }
        }
        found
    }

    fn by_lines(text: &str, original: &str) -> Vec<Range<usize>> {
        let mut lines = Vec::new();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            lines.push((line.trim(), at, at + line.trim_end_matches('\n').trim_end_matches('\r').len()));
            at += line.len();
        }
        let wanted: Vec<&str> = original.lines().map(str::trim).collect();
        let windows = lines.windows(wanted.len());
        windows
            .filter(|window| window.iter().zip(&wanted).all(|(line, wanted)| line.0 == *wanted))
            .map(|window| window[0].1..window[window.len() - 1].2)
            .collect()
    }

    fn words(text: &str) -> Vec<(String, Range<usize>, bool)> {
        let mut words: Vec<(String, Range<usize>, bool)> = Vec::new();
        let (mut joins, mut first) = (false, true);
        for (at, c) in text.char_indices() {
            if c.is_ascii_whitespace() {
                joins = false;
                first |= c == '\n';
                continue;
            }
            let is_delimiter = "():[]{}><=,;".contains(c);
            match words.last_mut() {
                Some(last) if joins && !is_delimiter => {
                    last.0.push(c);
                    last.1.end = at + c.len_utf8();
                }
                _ => words.push((c.to_string(), at..at + c.len_utf8(), std::mem::take(&mut first))),
            }
            joins = !is_delimiter;
        }
        words
    }

    fn by_words(text: &str, original: &str) -> Vec<Range<usize>> {
        let (text_words, wanted) = (words(text), words(original));
        let windows = text_words.windows(wanted.len());
        windows
            .filter(|window| window[0].2 && window.iter().zip(&wanted).all(|(word, wanted)| word.0 == wanted.0))
            .map(|window| {
                let start = text[..window[0].1.start].rfind('\n').map_or(0, |at| at + 1);
                start..window[window.len() - 1].1.end
            })
            .collect()
    }

    /// The tier that finds something, and where.
    pub(super) fn find(text: &str, original: &str) -> Option<(Tier, Vec<Range<usize>>)> {
        let unix = original.replace("\r\n", "\n");
        type Find<'a> = &'a dyn Fn() -> Vec<Range<usize>>;
        let tiers: [(Tier, Find<'_>); 4] = [
            (Tier::Exact, &|| every(&letters(text, false), &letters(original, false))),
            (Tier::TrailingBlanks, &|| every(&without_blanks(text), &without_blanks(original))),
            (Tier::Indentation, &|| by_lines(text, &unix)),
            (Tier::WhiteSpace, &|| by_words(text, &unix)),
        ];
        let tiers = tiers.into_iter().take(if original.trim().is_empty() { 1 } else { 4 });
        tiers.map(|(tier, find)| (tier, find())).find(|(_, found)| !found.is_empty())
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(4_000))]

    #[test]
    fn the_same_is_found_as_by_the_slow_search(
        text in "([ab][(= \t]?|\r\n|\n|é| ){0,24}",
        original in "([ab(= \t]|\r\n|\n|é){1,7}",
    ) {
        let found = apply(&text, edit(&original, "NEW"), Rules::Loose);
        match (reference::find(&text, &original), found) {
            (None, Err(Mismatch::NotFound { .. })) => {}
            (Some((tier, ranges)), Err(Mismatch::Ambiguous { tier: found, places })) => {
                proptest::prop_assert_eq!((tier, ranges.len()), (found, places.count));
                let line = |range: &Range<usize>| 1 + text[..range.start].matches('\n').count();
                if tier != Tier::TrailingBlanks {
                    let lines: Vec<usize> = ranges.iter().take(NAMED_PLACES).map(line).collect();
                    proptest::prop_assert_eq!(lines, places.lines);
                }
            }
            (Some((tier, ranges)), Ok(applied)) => {
                proptest::prop_assert_eq!(tier, applied.tier);
                proptest::prop_assert_eq!(&[applied.changes[0].old.clone()][..], &ranges[..]);
                check_changes(&text, &applied);
                let put_in = &applied.text[applied.changes[0].new.clone()];
                proptest::prop_assert_eq!(put_in.trim(), "NEW");
                proptest::prop_assert_eq!(applied.text.ends_with('\n'), text.ends_with('\n'));
            }
            (expected, found) => proptest::prop_assert!(false, "{:?} {:?}", expected, found),
        }
    }

    #[test]
    fn all_exact_places_are_those_of_the_standard_library(text in "[ab\n]{0,40}", original in "[ab\n]{1,3}", new in "[abc]{0,3}") {
        let applied = apply(&text, Edit { original: &original, new: &new, all: true }, Rules::Loose);
        if let Ok(applied) = applied && applied.tier == Tier::Exact {
            let expected = text.replace(&original, &new);
            check_changes(&text, &applied);
            proptest::prop_assert_eq!(applied.text.trim_end_matches('\n'), expected.trim_end_matches('\n'));
        }
    }

    #[test]
    fn no_edit_makes_it_panic(text in ".{0,40}", original in ".{0,6}", new in ".{0,6}", all: bool) {
        let _ = apply(&text, Edit { original: &original, new: &new, all }, Rules::Loose);
        let _ = in_the_style_of(&text, &new);
    }
}
