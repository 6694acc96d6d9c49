//! Under which name a consent to a command is remembered.
//!
//! A consent is for what the user saw: `git status`, not all of git. A command that can do anything
//! behind its name has no key, so it is asked about each time.

use super::words::Word;
use crate::approval::key_files;

/// Programs that are many: their first argument says which one.
const WITH_SUBCOMMANDS: &str = "
    apt apt-get aws az bazel brew bun bundle cabal cargo clj clojure cmake composer conda dart deno dnf
    docker docker-compose dotnet flutter gcloud gem gh git glab go gradle gradlew hatch helm hg jj just
    kubectl lein make mise mix mvn mvnw nix npm opam pdm pip pip3 pipx pnpm podman poetry rails rake rustup
    sbt stack svn swift systemctl task terraform tofu uv yarn zig";

/// Programs that run what they are given: their first argument is the program.
const INTERPRETERS: &str = "
    Rscript julia lua node perl php pypy python ruby ts-node tsx";

/// Programs that run other programs, and parts of the shell that change what it does.
const WITHOUT_KEY: &str = "
    . alias ash at awk bash batch builtin bunx busybox bwrap chroot chrt cmd command coproc crontab csh dash
    declare direnv doas ed elvish emacs enable entr env eval ex exec expect export fakeroot fd fdfind fish
    flock gawk gdb getopts hash ionice ksh let local ltrace mapfile mawk mksh nice nix-shell nohup npx
    nsenter nu nvim osascript parallel pnpx powershell proot pwsh rbash read readarray readonly run-parts
    runuser screen script set setpriv setsid sh shopt source ssh stdbuf strace su sudo systemd-run taskset
    tcsh time timeout tmux toybox trap typeset unbuffer unset unshare uvx vi vim wait watch xargs xonsh zsh";

/// What they destroy is in their arguments, so a consent to one call says nothing about the next.
const DESTRUCTIVE: &str = "
    chgrp chmod chown dd fdisk halt kill killall mkfs mount mv pkill poweroff reboot rm rmdir shred shutdown
    tee truncate umount unlink wipefs";

/// The key of the command that these words are; `None` if a consent cannot be remembered.
pub(super) fn key_of(words: &[Word]) -> Option<String> {
    let (command, rest) = words.split_first()?;
    let is_known = words.iter().all(|word| word.doubt.is_none());
    if !is_known || !is_plain(&command.text) || words.iter().any(|word| key_files::is_named_in(&word.text)) {
        return None;
    }
    let name = command.text.as_str();
    // A path does not change what the program is, and neither does the version in its name.
    let program = name.rsplit('/').next().unwrap_or_default();
    let is_any = |list: &str| is_listed(list, program) || is_listed(list, family(program));
    match program {
        "" => None,
        _ if is_any(WITHOUT_KEY) || is_any(DESTRUCTIVE) || program.starts_with("mkfs.") => None,
        "find" => plain_find(rest).then(|| name.to_owned()),
        "sed" => printing_sed(rest).then(|| format!("{name} -n")),
        _ if is_any(INTERPRETERS) => interpreted(name, rest),
        _ if is_any(WITH_SUBCOMMANDS) => subcommand(name, rest),
        _ => Some(name.to_owned()),
    }
}

/// Whether the program runs what it is given, be it a file or its input.
pub(super) fn is_interpreter(program: &str) -> bool {
    is_listed(INTERPRETERS, family(program))
}

/// The name without a version.
fn family(program: &str) -> &str {
    program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

fn is_listed(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|listed| listed == name)
}

fn is_plain(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | '+' | '@');
    !text.is_empty() && text.chars().all(fits)
}

fn subcommand(name: &str, rest: &[Word]) -> Option<String> {
    let Some(first) = rest.first() else { return Some(name.to_owned()) };
    let asks_about_itself = matches!(first.text.as_str(), "--version" | "--help" | "-V" | "-h") && rest.len() == 1;
    // Options before the subcommand can change what it runs.
    let is_subcommand = is_plain(&first.text) && !first.text.starts_with(['-', '+']);
    (is_subcommand || asks_about_itself).then(|| format!("{name} {}", first.text))
}

fn interpreted(name: &str, rest: &[Word]) -> Option<String> {
    match rest {
        [first, module, ..] if first.text == "-m" && is_plain(&module.text) => {
            Some(format!("{name} -m {}", module.text))
        }
        [first] if matches!(first.text.as_str(), "--version" | "-V" | "-v") => Some(format!("{name} {}", first.text)),
        [script, ..] if is_plain(&script.text) && !script.text.starts_with('-') => {
            Some(format!("{name} {}", script.text))
        }
        _ => None,
    }
}

fn plain_find(rest: &[Word]) -> bool {
    let acts =
        |word: &Word| ["-delete", "-exec", "-ok", "-fprint", "-fls"].iter().any(|act| word.text.starts_with(act));
    !rest.iter().any(acts)
}

/// Only lines of a file are shown; any other script of `sed` can write and run.
fn printing_sed(rest: &[Word]) -> bool {
    let shows_lines = |script: &str| {
        let range = script.strip_suffix('p');
        range.is_some_and(|range| {
            !range.is_empty() && range.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | '$'))
        })
    };
    match rest {
        [option, script, files @ ..] => {
            option.text == "-n" && shows_lines(&script.text) && !files.iter().any(|file| file.text.starts_with('-'))
        }
        _ => false,
    }
}
