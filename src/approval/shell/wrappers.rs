//! Commands that run other commands: what they carry is judged too.

use super::environment;
use super::keys;
use super::plain;
use super::words::Word;

/// What a command runs besides itself.
#[derive(Debug, Default)]
pub(super) struct Carried {
    pub(super) inner: Vec<Inner>,
    /// Whether it does nothing else, so that it may run when what it carries may.
    pub(super) is_transparent: bool,
    pub(super) doubt: Option<&'static str>,
}

#[derive(Debug)]
pub(super) enum Inner {
    /// A command, word by word.
    Words(Vec<Word>),
    /// A text that a shell reads.
    Script { text: String, is_fixed: bool },
}

/// A command in front of another one.
struct Wrapper {
    name: &'static str,
    /// Options without a value.
    flags: &'static [&'static str],
    /// Options with one.
    values: &'static [&'static str],
    /// Arguments of its own before the command.
    own: usize,
    is_transparent: bool,
}

const fn see_through(
    name: &'static str,
    flags: &'static [&'static str],
    values: &'static [&'static str],
    own: usize,
) -> Wrapper {
    Wrapper { name, flags, values, own, is_transparent: true }
}

const fn solid(
    name: &'static str,
    flags: &'static [&'static str],
    values: &'static [&'static str],
    own: usize,
) -> Wrapper {
    Wrapper { name, flags, values, own, is_transparent: false }
}

const SUDO_VALUES: &[&str] =
    &["-u", "-g", "-h", "-p", "-C", "-T", "-r", "-t", "-U", "-D", "-R", "--user", "--group", "--host", "--prompt"];

const WRAPPERS: &[Wrapper] = &[
    see_through("time", &["-p"], &[], 0),
    see_through("nice", &[], &["-n", "--adjustment"], 0),
    see_through("ionice", &["-t"], &["-c", "-n"], 0),
    see_through("nohup", &[], &[], 0),
    see_through(
        "timeout",
        &["-v", "--verbose", "--foreground", "--preserve-status"],
        &["-k", "--kill-after", "-s", "--signal"],
        1,
    ),
    see_through("stdbuf", &[], &["-i", "-o", "-e", "--input", "--output", "--error"], 0),
    see_through("command", &["-p"], &[], 0),
    see_through("builtin", &[], &[], 0),
    see_through("exec", &["-c", "-l"], &["-a"], 0),
    see_through("env", &["-i", "-", "--ignore-environment"], &["-u", "--unset"], 0),
    solid("sudo", &["-n", "-S", "-E", "-H", "-b", "-k", "-i", "-s", "-A", "-P", "--login"], SUDO_VALUES, 0),
    solid("doas", &["-n", "-s", "-L"], &["-u", "-C"], 0),
    solid("setsid", &["-c", "-f", "-w", "--wait", "--fork", "--ctty"], &[], 0),
    solid("chroot", &[], &["--userspec", "--groups"], 1),
    solid("flock", &["-s", "-x", "-e", "-n", "-o"], &["-w", "-E", "--timeout"], 1),
    solid("unshare", &["-r", "-n", "-m", "-p", "-f", "-u", "-i", "-U"], &[], 0),
    solid("strace", &["-f", "-c", "-v", "-q", "-t"], &["-e", "-o", "-s"], 0),
    solid("ltrace", &["-f", "-c"], &["-e", "-o"], 0),
    solid("fakeroot", &[], &[], 0),
    solid("taskset", &["-a"], &[], 1),
    solid("chrt", &["-f", "-r", "-o", "-b", "-i"], &[], 1),
    solid("busybox", &[], &[], 0),
    solid("toybox", &[], &[], 0),
    solid("unbuffer", &["-p"], &[], 0),
    solid("entr", &["-c", "-d", "-n", "-p", "-r", "-s"], &[], 0),
    solid("npx", &["-y", "--yes", "--no"], &["-p", "--package"], 0),
    solid("bunx", &[], &[], 0),
    solid("uvx", &[], &["--from", "--with"], 0),
    solid("xargs", &["-0", "-r", "-t", "-p", "-x", "--null", "--no-run-if-empty"], XARGS_VALUES, 0),
    solid("parallel", &["-0", "-k", "--null", "--keep-order"], &["-j", "--jobs", "-I"], 0),
];
const XARGS_VALUES: &[&str] =
    &["-I", "-n", "-P", "-L", "-d", "-a", "-E", "-s", "--max-args", "--max-procs", "--delimiter", "--arg-file"];

const SHELLS: [&str; 8] = ["bash", "sh", "dash", "ash", "zsh", "ksh", "mksh", "rbash"];
const FOREIGN: [&str; 9] = ["fish", "csh", "tcsh", "nu", "elvish", "xonsh", "pwsh", "powershell", "cmd"];

const KEYWORDS: [&str; 11] = ["if", "then", "elif", "else", "while", "until", "do", "!", "{", "}", "coproc"];

const UNKNOWN_OPTION: &str = "it runs another command with an option that this server does not know";
const NO_COMMAND: &str = "what it runs is not a plain command";
const FROM_INPUT: &str = "a part of what it runs comes from its input";
const FOREIGN_SHELL: &str = "it uses a shell that this server cannot read";
const VARIABLE: &str = "it sets a variable that other programs obey";
const ALIAS: &str = "it changes what later commands mean";
const GIT_SETTING: &str = "it changes a setting of git that can run programs";
const REMOTE_SETTING: &str = "an option of it can run programs";

/// What the command that these words are carries.
pub(super) fn carried(words: &[Word]) -> Carried {
    let Some((command, rest)) = words.split_first() else { return Carried::default() };
    let name = command.text.rsplit('/').next().unwrap_or_default();
    match name {
        "eval" => Carried { inner: script(after_dashes(rest)), is_transparent: true, doubt: None },
        "trap" => Carried { inner: script(after_dashes(rest).get(..1).unwrap_or_default()), ..Carried::default() },
        "find" => find(rest),
        "fd" | "fdfind" => files_found(rest),
        "git" => git(rest),
        "ssh" => ssh(rest),
        "su" | "runuser" | "script" => behind_option(rest, &["-c", "--command"]),
        "watch" => watch(rest),
        "env" if rest.iter().any(|word| is_split_option(&word.text)) => {
            Carried { inner: script(rest), is_transparent: false, doubt: Some(UNKNOWN_OPTION) }
        }
        // A question, not a run.
        "command" if rest.first().is_some_and(|word| matches!(word.text.as_str(), "-v" | "-V")) => Carried::default(),
        "alias" | "enable" | "hash" => Carried { doubt: Some(ALIAS), ..Carried::default() },
        // Where the grammar took a keyword for a command.
        name if KEYWORDS.contains(&name) => {
            Carried { inner: words_from(rest, 0).into_iter().collect(), is_transparent: false, doubt: Some(NO_COMMAND) }
        }
        name if SHELLS.contains(&name) => shell(rest),
        name if FOREIGN.contains(&name) => {
            Carried { inner: script(rest), is_transparent: false, doubt: Some(FOREIGN_SHELL) }
        }
        name if keys::is_interpreter(name) && rest.first().is_none_or(|word| word.text == "-") => {
            Carried { doubt: Some(FROM_INPUT), ..Carried::default() }
        }
        name => WRAPPERS
            .iter()
            .find(|wrapper| wrapper.name == name)
            .map(|wrapper| unwrap(wrapper, rest))
            .unwrap_or_default(),
    }
}

fn unwrap(wrapper: &Wrapper, rest: &[Word]) -> Carried {
    let mut carried = Carried { is_transparent: wrapper.is_transparent, ..Carried::default() };
    if matches!(wrapper.name, "xargs" | "parallel" | "entr") {
        carried.doubt = Some(FROM_INPUT);
    }
    let takes_variables = matches!(wrapper.name, "env" | "sudo" | "doas");
    let (mut at, mut own) = (0, wrapper.own);
    while let Some(word) = rest.get(at) {
        let text = word.text.as_str();
        if let Some(step) = option(wrapper, text) {
            at += step;
        } else if text == "--" {
            at += 1;
            break;
        } else if text.starts_with('-') && text.len() > 1 {
            carried.doubt.get_or_insert(UNKNOWN_OPTION);
            at += 1;
        } else if let Some(name) = environment::assigned_name(text).filter(|_| takes_variables) {
            if !environment::is_harmless(name, true) {
                carried.doubt.get_or_insert(VARIABLE);
            }
            at += 1;
        } else if own > 0 {
            own -= 1;
            at += 1;
        } else {
            break;
        }
    }
    // After `time` everything counts that counts at the start of a command.
    if rest.get(at).is_some_and(plain::is_special) {
        carried.doubt.get_or_insert(NO_COMMAND);
    }
    let inner = words_from(rest, at);
    carried.inner.extend(if carried.doubt == Some(FROM_INPUT) { inner.map(with_more) } else { inner });
    carried.is_transparent &= !carried.inner.is_empty();
    carried
}

/// The command with an argument that is not known.
fn with_more(inner: Inner) -> Inner {
    match inner {
        Inner::Words(mut words) => {
            let end = words.last().map_or(0, |word| word.end);
            let unknown = Word { text: "{}".to_owned(), doubt: Some(FROM_INPUT), start: end, end, ..Word::default() };
            words.push(unknown);
            Inner::Words(words)
        }
        script => script,
    }
}

/// How many words this option takes; `None` if it is none that is known.
fn option(wrapper: &Wrapper, text: &str) -> Option<usize> {
    if wrapper.flags.contains(&text) {
        return Some(1);
    }
    if wrapper.values.contains(&text) {
        return Some(2);
    }
    let has_value = |name: &&&str| match text.strip_prefix(**name) {
        Some(value) if name.starts_with("--") => value.starts_with('='),
        Some(value) => !value.is_empty() && !text.starts_with("--"),
        None => false,
    };
    let level = text.strip_prefix('-').filter(|level| !level.is_empty() && wrapper.name == "nice");
    let is_level = level.is_some_and(|level| level.bytes().all(|byte| byte.is_ascii_digit()));
    (wrapper.values.iter().any(|name| has_value(&name)) || is_level).then_some(1)
}

/// Without the mark after which there are no options.
fn after_dashes(words: &[Word]) -> &[Word] {
    match words.split_first() {
        Some((first, rest)) if first.text == "--" => rest,
        _ => words,
    }
}

fn words_from(words: &[Word], at: usize) -> Option<Inner> {
    let inner = words.get(at..).filter(|inner| !inner.is_empty())?;
    Some(Inner::Words(inner.to_vec()))
}

/// The words joined as a shell joins them before it reads them again.
fn script(words: &[Word]) -> Vec<Inner> {
    if words.is_empty() {
        return Vec::new();
    }
    let text = words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
    vec![Inner::Script { text, is_fixed: words.iter().all(|word| word.doubt.is_none() && !word.has_glob) }]
}

fn shell(rest: &[Word]) -> Carried {
    let mut carried = Carried { is_transparent: true, ..Carried::default() };
    let (mut at, mut reads_text) = (0, false);
    while let Some(word) = rest.get(at) {
        let text = word.text.as_str();
        match text {
            "--" | "-" => {
                at += 1;
                break;
            }
            "-o" | "+o" | "-O" | "+O" => at += 1,
            "--login" | "--norc" | "--noprofile" | "--posix" => {}
            _ if text.starts_with("--") => carried.doubt = Some(UNKNOWN_OPTION),
            _ if text.starts_with(['-', '+']) => {
                reads_text |= text.starts_with('-') && text.contains('c');
                if !text[1..].chars().all(|c| matches!(c, 'c' | 'e' | 'u' | 'x' | 'v' | 'l' | 'f')) {
                    carried.doubt = Some(UNKNOWN_OPTION);
                }
            }
            _ => break,
        }
        at += 1;
    }
    match rest.get(at) {
        Some(text) if reads_text => carried.inner = script(std::slice::from_ref(text)),
        // A file, which is not looked into.
        Some(_) => carried.is_transparent = false,
        None => carried.doubt = Some(FROM_INPUT),
    }
    carried
}

fn find(rest: &[Word]) -> Carried {
    let mut carried = Carried::default();
    let mut at = 0;
    while let Some(word) = rest.get(at) {
        at += 1;
        if !matches!(word.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir") {
            continue;
        }
        let length = rest[at..].iter().take_while(|word| !matches!(word.text.as_str(), ";" | "+")).count();
        let inner = &rest[at..at + length];
        if inner.first().is_none_or(|command| command.text.contains("{}")) {
            carried.doubt = Some(FROM_INPUT);
        }
        carried.inner.extend(words_from(inner, 0));
        at += length;
    }
    carried
}

fn files_found(rest: &[Word]) -> Carried {
    let runs = |word: &Word| matches!(word.text.as_str(), "-x" | "-X" | "--exec" | "--exec-batch");
    let Some(at) = rest.iter().position(runs) else { return Carried::default() };
    let inner = words_from(rest, at + 1).map(with_more).into_iter().collect();
    Carried { inner, doubt: Some(FROM_INPUT), ..Carried::default() }
}

/// Git runs what its settings and some of its options say.
fn git(rest: &[Word]) -> Carried {
    let mut carried = Carried::default();
    let harmless = ["color.", "advice.", "core.quotepath=", "core.pager=cat", "diff.renames=", "log.showSignature="];
    for (index, word) in rest.iter().enumerate() {
        let text = word.text.as_str();
        let setting = rest.get(index + 1).map(|word| word.text.as_str()).unwrap_or_default();
        let runs =
            ["--exec-path=", "--config-env", "--upload-pack", "--receive-pack", "--ext-diff", "--open-files-in-pager"];
        let is_setting = text == "-c" && !harmless.iter().any(|known| setting.starts_with(known));
        if is_setting || runs.iter().any(|option| text.starts_with(option)) {
            carried.doubt = Some(GIT_SETTING);
        }
    }
    let texts: Vec<&str> = rest.iter().map(|word| word.text.as_str()).collect();
    let after = |word: &str| texts.iter().position(|text| *text == word).map(|at| at + 1);
    match texts.iter().find(|text| !text.starts_with('-')).copied() {
        Some("bisect") => carried.inner.extend(after("run").and_then(|at| words_from(rest, at))),
        Some("submodule") => {
            let options = |at: usize| at + texts[at..].iter().take_while(|text| text.starts_with('-')).count();
            carried.inner.extend(after("foreach").map(options).into_iter().flat_map(|at| script(&rest[at..])));
        }
        Some("rebase") => {
            let at = after("--exec").or_else(|| after("-x"));
            carried.inner.extend(at.and_then(|at| rest.get(at..=at)).into_iter().flat_map(script));
        }
        _ => {}
    }
    carried
}

fn ssh(rest: &[Word]) -> Carried {
    let mut carried = Carried::default();
    let mut at = 0;
    while let Some(word) = rest.get(at).filter(|word| word.text.starts_with('-')) {
        let takes_value = word.text.len() == 2 && "BbcDEeFIiJLlmOopQRSWw".contains(&word.text[1..]);
        if word.text.starts_with("-o") || word.text.starts_with("-F") {
            carried.doubt = Some(REMOTE_SETTING);
        }
        at += if takes_value { 2 } else { 1 };
    }
    carried.inner = script(rest.get(at + 1..).unwrap_or_default());
    carried
}

fn behind_option(rest: &[Word], options: &[&str]) -> Carried {
    match rest.iter().position(|word| options.contains(&word.text.as_str())) {
        Some(at) => Carried { inner: script(rest.get(at + 1..at + 2).unwrap_or_default()), ..Carried::default() },
        None => Carried { doubt: Some(FROM_INPUT), ..Carried::default() },
    }
}

fn watch(rest: &[Word]) -> Carried {
    let mut at = 0;
    while let Some(word) = rest.get(at).filter(|word| word.text.starts_with('-')) {
        at += if matches!(word.text.as_str(), "-n" | "--interval") { 2 } else { 1 };
    }
    Carried { inner: script(rest.get(at..).unwrap_or_default()), ..Carried::default() }
}

fn is_split_option(text: &str) -> bool {
    text.starts_with("-S") || text.starts_with("--split-string") || text.starts_with("-vS")
}
