//! What bash really runs, against what the server says it would run.
//!
//! Random command lines go to a real bash that can find no program and reports each one that it looks
//! for. Whenever the server is certain about a line, bash must not look for anything else.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use eca::approval::shell::{Parsed, Unit, parse};
use proptest::prelude::*;

/// Prints what would run, all at once because several may run at the same time, and looks no further.
const REPORT: &str = r#"command_not_found_handle() {
    local report word
    for word; do report+="<$word> "; done
    printf '%s\0' "${report//$'\n'/%NL%}" >&7
}"#;

/// The commands that bash looked for, each with its words in angle brackets.
fn ran_by_bash(line: &str) -> std::io::Result<BTreeSet<String>> {
    let folder = tempfile::tempdir()?;
    let script = format!("{REPORT}\n{line}\n");
    let output = Command::new("bash")
        .args(["--norc", "--noprofile", "-c", "exec 7>&1 >/dev/null 2>&1; PATH=/nonexistent; eval \"$1\"", "bash"])
        .arg(&script)
        .current_dir(folder.path())
        .env_clear()
        // So that it stays what it is when it is used.
        .env("HOME", "$HOME")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.split_terminator('\0').map(|run| run.trim_end_matches(' ').to_owned()).collect())
}

/// The commands that the server saw, in the same form; what begins with a tilde in both its forms.
fn seen(parsed: &Parsed) -> BTreeSet<String> {
    let shown = |unit: &Unit, home: &str| {
        let words = std::iter::once(&unit.command).chain(&unit.args).map(|word| match word.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("<{home}{rest}>"),
            _ => format!("<{word}>"),
        });
        words.collect::<Vec<_>>().join(" ").replace('\n', "%NL%")
    };
    parsed.units.iter().flat_map(|unit| [shown(unit, "~"), shown(unit, "$HOME")]).collect()
}

fn check(line: &str) -> Result<(), TestCaseError> {
    let parsed = parse(line);
    // Numbers that only bash knows.
    let has_numbers = ["$?", "$$", "$#", "$!"].iter().any(|number| line.contains(number));
    if parsed.doubt.is_some() || has_numbers {
        return Ok(());
    }
    let ran = ran_by_bash(line).map_err(|error| TestCaseError::fail(error.to_string()))?;
    let seen = seen(&parsed);
    let unseen: Vec<_> = ran.difference(&seen).collect();
    prop_assert!(unseen.is_empty(), "{line:?}: bash ran {unseen:?}, the server saw {seen:?}");
    Ok(())
}

#[test]
fn the_report_of_bash_can_be_trusted() {
    assert_eq!(
        ran_by_bash("aa x 'y z'; bb").unwrap(),
        BTreeSet::from(["<aa> <x> <y z>".to_owned(), "<bb>".to_owned()])
    );
    assert_eq!(ran_by_bash("true && $(cc)").unwrap(), BTreeSet::from(["<cc>".to_owned()]));
}

/// Each starts a bash; `PROPTEST_CASES` does not count here.
const CASES: u32 = 250;

/// Pieces that mean something to a shell, so that many lines make sense and many nearly do.
const PIECES: &[&str] = &[
    "aa",
    "bb",
    "c1",
    "d1 x",
    "e1 'y z'",
    "-- ",
    "-p ",
    "-v ",
    "-n 5 ",
    "aa b",
    "trap ",
    "'aa b'",
    "\"aa\"",
    "EXIT",
    " ",
    " ",
    " ",
    "\n",
    ";",
    "; ",
    " && ",
    " || ",
    " | ",
    "&",
    "|&",
    "(",
    ")",
    "{ ",
    "; }",
    "!",
    "! ",
    "\"",
    "'",
    "\\",
    "\\\n",
    "\\\r\n",
    "\r\n",
    "\r",
    "\t",
    "#",
    " #",
    "# ",
    "$",
    "$x",
    "$HOME",
    "${x}",
    "$(",
    "`",
    "$'",
    "\\'",
    "$\"",
    "<<EOF\n",
    "<<'EOF'\n",
    "<<-EOF\n",
    "EOF\n",
    "\nEOF\n",
    "\n\tEOF\n",
    " EOF\n",
    "<<< ",
    "< in",
    "> out",
    ">> out",
    "2>&1",
    ">&2",
    "&> out",
    ">| out",
    "<> out",
    "2> out",
    "if aa; then ",
    "; fi",
    "; else ",
    "while false; do ",
    "; done",
    "for i in 1 2; do ",
    "for i in a b\ndo ",
    "case x in x) ",
    ";; esac",
    "f() { ",
    "[ -f x ]",
    "[[ -f x ]]",
    "((1))",
    "x=1",
    "x=1 ",
    "x=(1 2)",
    "*",
    "?",
    "{a,b}",
    "~",
    "time ",
    "command ",
    "eval ",
    "eval 'aa; bb'",
    "-c",
    "=",
    "%",
    "@",
    "\\;",
    "nice ",
    "exec ",
    "builtin ",
    "\u{a0}",
    "é",
    "''",
    "\"\"",
    "\\a",
    "a\"b\"c",
    "'a'b",
    "function f ",
    "coproc ",
    "select ",
    "in ",
    "then ",
    "do ",
    "export x=1",
    "$((1))",
    "$[1]",
    "<(aa)",
    ">(aa)",
    ";;",
    "&&",
    "||",
    "|",
    "!=",
    "a=b",
    "++",
    "--",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_certain_is_all_that_bash_runs(pieces in prop::collection::vec(prop::sample::select(PIECES), 1..9)) {
        check(&pieces.concat())?;
    }

    #[test]
    fn lines_that_nearly_end(line in "(aa|bb 1|cc \"[a-z $`]{0,3}\"|dd '[a-z$#]{0,3}')([;&|\n ]{1,2}(aa|bb|#|\\\\|<<E|E|\"|'|[(){}]| ){0,3}){0,5}") {
        check(&line)?;
    }
}
