//! Command lines taken apart: a long table, keys, limits, and lines that nobody would write.

mod lines;

use lines::LINES;
use proptest::prelude::*;

use super::*;

fn shown(text: &str) -> String {
    let parsed = parse(text);
    let unit = |unit: &Unit| if unit.is_transparent { format!("({})", unit.flat) } else { unit.flat.clone() };
    let units = parsed.units.iter().map(unit).collect::<Vec<_>>().join(" ¦ ");
    let doubt = if parsed.doubt.is_some() { "? " } else { "" };
    let writes: String = parsed.writes.iter().map(|target| format!(" > {target}")).collect();
    format!("{doubt}{units}{writes}")
}

#[test]
fn lines_come_to_commands() {
    assert!(LINES.len() > 250);
    let wrong: Vec<String> = LINES
        .iter()
        .map(|(text, expected)| (text, expected, shown(text)))
        .filter(|(_, expected, found)| found != *expected)
        .map(|(text, expected, found)| format!("{text:?}\n  expected {expected:?}\n  found    {found:?}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_unit_keeps_how_it_was_written() {
    let parsed = parse("RUST_LOG=x  cargo   test \\\n  -- 'a b' < in 2>/dev/null");
    let unit = &parsed.units[0];
    assert_eq!(unit.text, "cargo   test \\\n  -- 'a b' < in");
    assert_eq!(unit.flat, "cargo test -- a b < in");
    assert_eq!((unit.command.as_str(), unit.args.join("|")), ("cargo", "test|--|a b".to_owned()));
    assert_eq!(unit.reads, ["in"]);
    let texts: Vec<String> = parse("/bin/rm -rf 'x' < in > y").texts().collect();
    assert_eq!(texts, ["/bin/rm -rf 'x' < in", "/bin/rm -rf x < in", "/bin/rm -rf x", "rm -rf x", "> y"]);
}

#[test]
fn keys_are_for_what_was_seen() {
    for (text, keys) in [
        ("git status -s; ls", "git status, ls"),
        ("git", "git"),
        ("git --version", "git --version"),
        ("git --version status", "-"),
        ("git -C x status", "-"),
        ("git --exec-path=/x status", "-"),
        ("cargo +nightly test", "-"),
        ("cargo test --lib", "cargo test"),
        ("make", "make"),
        ("make -C x y", "-"),
        ("docker compose up", "docker compose"),
        ("/usr/bin/git push --force", "/usr/bin/git push"),
        ("/usr/bin/sudo ls", "-, ls"),
        ("timeout 9 cargo test", "-, cargo test"),
        ("bash -c 'git diff'", "-, git diff"),
        ("./x.sh a", "./x.sh"),
        ("cd x; ./x.sh a; /opt/y", "cd, -, /opt/y"),
        ("python3 a.py", "python3 a.py"),
        ("python3.12 -c 1", "-"),
        ("python3 -m http.server", "python3 -m http.server"),
        ("python3", "-"),
        ("python3 - x", "-"),
        ("node -e 1", "-"),
        ("perl -pi -e s/a/b/ f", "-"),
        ("find . -name x", "find"),
        ("find . -execdir ls ;", "-, ls"),
        ("find . -fprintf x y", "-"),
        ("sed -n 3p f", "sed -n"),
        ("sed -n '1e rm x' f", "-"),
        ("sed -n w f", "-"),
        ("awk 1 f", "-"),
        ("rm x", "-"),
        ("/bin/rm x", "-"),
        ("dd if=a of=b", "-"),
        ("kill 1", "-"),
        ("sh x", "-"),
        ("source x", "-"),
        ("npx y", "-, y"),
        ("ls > x", "-"),
        ("ls > /dev/null; pwd > x", "ls, -"),
        ("ls $x", "-"),
        ("ls; echo $x", "-, -"),
        ("\"ls\" -l", "ls"),
        ("'l s'", "-"),
        ("ls .env", "-"),
        ("docker run --env-file=.env x", "-"),
        ("printf x", "printf"),
        ("read x", "-"),
        ("export LANG=C", "-"),
    ] {
        let parsed = parse(text);
        let found: Vec<&str> = parsed.units.iter().map(|unit| unit.key.as_deref().unwrap_or("-")).collect();
        assert_eq!(found.join(", "), keys, "{text}");
    }
}

#[test]
fn what_is_forbidden_is_found_where_the_grammar_looks_away() {
    for text in [
        "echo $'\\\\'; rm -rf ~; echo '",
        "cat <<E\n`rm -rf ~`\nE",
        "cat <<E\\\\F\nE\nrm -rf ~\nEF",
        "git status \\\r\nrm -rf ~",
        "{rm,-rf,~}",
        "if true; then rm -rf ~",
        "( rm -rf ~",
        "ls; } rm -rf ~ ; x",
        "a 'b; rm -rf ~",
        "cat <<A <<B; rm -rf ~\nA\nB",
    ] {
        let parsed = parse(text);
        assert!(parsed.doubt.is_some(), "{text:?}");
        assert!(parsed.texts().any(|found| found.starts_with("rm -rf ~")), "{text:?}: {parsed:?}");
    }
    let texts: Vec<String> = parse("( echo x >>\"out\" 2>/dev/null").texts().collect();
    assert!(texts.contains(&"> out".to_owned()) && !texts.contains(&"> /dev/null".to_owned()), "{texts:?}");
}

#[test]
fn depth_length_and_number_are_bounded() {
    let many = [
        "(",
        ")",
        "$(",
        "${x:-",
        "`",
        "{ ",
        "[",
        "[[ ",
        "((",
        "\"$(",
        "<(",
        "if a; then ",
        "while ",
        "case x in x) ",
        "f() { ",
        "a <<E\n",
        "<<E",
        "!",
        "! ",
        "$((",
        "$[",
        "'",
        "\"",
        "\\",
        "x=",
        "x[",
        "a;",
        "a|",
        "&",
        "a && ",
        "{a,",
        "*",
        "#",
        "\n",
        "\r",
        "é",
        "\u{200b}",
        "bash -c '",
        "eval ",
        "sudo ",
        "time ",
        "a <<< ",
        "> ",
        "2>&1 ",
        "a=(",
        "@(",
        "!(",
        "${",
        "$'",
    ];
    for piece in many {
        let text: String = piece.repeat(1_000).chars().take(2_000).collect();
        assert!(parse(&text).units.len() <= MOST_UNITS + 1, "{piece}");
    }
    for (open, close) in [("(", ")"), ("$(", ")"), ("{ ", ";}"), ("\"$(", ")\""), ("`", "`"), ("if a; then ", "")] {
        let text = format!("{}a{}", open.repeat(10_000), close.repeat(10_000));
        parse(&text);
        parse(&open.repeat(10_000));
        let within = parse(&format!("{}a{}", open.repeat(20), close.repeat(20)));
        assert!(within.units.len() <= MOST_UNITS, "{open}");
    }
    assert_eq!(parse(&"a".repeat(MAX_TEXT + 1)).doubt, Some(TOO_LONG));
    assert_eq!(parse(&"a;".repeat(MOST_UNITS + 1)).doubt, Some(TOO_MUCH));
    assert_eq!(parse(&"a;".repeat(MOST_UNITS)).doubt, None);
    assert_eq!(parse(&"eval ".repeat(3)).doubt, None);
    assert_eq!(parse(&format!("{}ls", "sudo ".repeat(20))).doubt, Some(TOO_MUCH));
    assert_eq!(parse(&format!("{}ls", "eval ".repeat(12))).doubt, Some(TOO_MUCH));
    let wide: String = (0..40).map(|n| format!("eval 'a{n}';")).collect();
    assert_eq!(parse(&wide).doubt, Some(TOO_MUCH));
}

/// However deep a text is, parsing it must not need a deep stack; this one is small.
#[test]
fn depth_does_not_cost_stack() {
    let small = std::thread::Builder::new().stack_size(512 * 1024);
    let parsing = small.spawn(|| {
        for (open, close) in
            [("(", ")"), ("$(", ")"), ("{ ", ";}"), ("\"$(", ")\""), ("${x:-", "}"), ("`", "`"), ("a <<E\n", "")]
        {
            let text = format!("{}a{}", open.repeat(10_000), close.repeat(10_000));
            let text = crate::base::text::prefix(&text, MAX_TEXT);
            Parsing::new().run(text);
        }
    });
    parsing.unwrap().join().unwrap();
}

#[test]
fn another_shell_is_not_read() {
    let parsed = Parsed::of_other_shell("Remove-Item x; ls > y");
    assert_eq!((parsed.units.len(), parsed.units[0].key.as_deref()), (1, None));
    assert_eq!(parsed.doubt, Some(OTHER_SHELL));
    let texts: Vec<String> = parsed.texts().collect();
    assert!(texts.contains(&"Remove-Item x".to_owned()) && texts.contains(&"> y".to_owned()));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(
        text in ".{0,80}",
        shell in "([;&|<>(){}\\[\\]$`'\"\\\\#!*?~= \n\r\t]|[a-c]|EOF|<<|\\$\\(|é){0,40}",
    ) {
        for text in [text, shell] {
            let parsed = parse(&text);
            prop_assert!(parsed.units.iter().all(|unit| parsed.doubt.is_none() || unit.key.is_none()));
            prop_assert_eq!(&parsed, &parse(&text));
        }
    }

    /// A command behind any other text is a command, or the whole is uncertain.
    #[test]
    fn nothing_hides_a_command(before in "([;&|<>(){}$`'\"\\\\#! \n]|[a-c]|EOF|<<){0,20}") {
        let parsed = parse(&format!("{before}; zz 1"));
        let is_seen = parsed.units.iter().any(|unit| unit.flat == "zz 1");
        // Unless it became a part of a comment or of a quoted text, which must then be all there is.
        let is_text = before.contains(['#', '\'', '"', '\\']);
        prop_assert!(is_seen || parsed.doubt.is_some() || is_text, "{:?}", parsed);
    }
}
