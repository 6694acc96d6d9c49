//! `eca completions` and `eca man`, as a shell and a reader of manuals use them.

use crate::{Home, run};

#[test]
fn every_shell_gets_a_script_and_nothing_else() {
    let home = Home::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let ran = run(home.eca(&["completions", shell]));
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{shell}");
        assert!(ran.out.contains("chats") && ran.out.contains("log-file"), "{shell}: {}", ran.out);
    }
    let ran = run(home.eca(&["completions", "tcsh"]));
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""));
    assert!(ran.err.contains("tcsh") && ran.err.contains("fish"), "{}", ran.err);
}

/// The script is loaded by a real shell, which is asked what may stand in a line.
#[cfg(unix)]
#[test]
fn bash_completes_commands_options_and_values() {
    use std::process::{Command, Stdio};

    let home = Home::new();
    std::fs::write(home.path("script"), run(home.eca(&["completions", "bash"])).out).unwrap();
    for (line, expected) in [
        (&["eca", "ch"][..], "chat chats"),
        (&["eca", "chats", "ex"], "export"),
        (&["eca", "server", "--log-f"], "--log-file"),
        (&["eca", "completions", "po"], "powershell"),
        (&["eca", "nothing-like-it"], ""),
    ] {
        let mut bash = Command::new("bash");
        let asked = r#". "$0" && COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) && _eca eca "${*: -1}" "${*: -2:1}" && echo "${COMPREPLY[*]}""#;
        bash.args(["--norc", "-c", asked]).arg(home.path("script")).args(line);
        bash.current_dir(home.path("")).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let ran = run(bash);
        assert_eq!((ran.out.trim(), ran.err.as_str()), (expected, ""), "{line:?}");
    }
}

#[test]
fn manual_pages_are_printed_for_the_program_and_its_commands() {
    let home = Home::new();
    let ran = run(home.eca(&["man"]));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.contains(".TH eca 1") && ran.out.contains(".SH FILES"), "{}", ran.out);
    let ran = run(home.eca(&["man", "chats", "search"]));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.contains(".TH eca-chats-search 1") && ran.out.contains(r"\-\-limit"), "{}", ran.out);
    let ran = run(home.eca(&["man", "nothing"]));
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""));
    assert!(ran.err.contains("'nothing'"), "{}", ran.err);
}
