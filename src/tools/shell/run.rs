//! Runs a program to its end, or to that of its time, and puts into words what came of it.

use std::sync::Arc;
use std::time::Duration;

use crate::config::ShellConfig;
use crate::host::{HostError, TerminalCommand, TerminalEnd};
use crate::process::program::{Program, Running, Stream};
use crate::tool::{Content, LiveOutput, ToolContext, ToolOutput};

use super::clean::{Cleaner, Lines};
use super::confinement;
use super::keep::HeadTail;

/// A killed program may take so long to be gone; the guard asks politely for 200 ms first.
const LAST_BREATH: Duration = Duration::from_millis(1_500);

/// A flood is slowed down by this much per MiB, so that it leaves time for everything else.
const PAUSE: Duration = Duration::from_millis(5);

/// So much of an output is shown while the program runs.
const MAX_LIVE_BYTES: usize = 256 * 1024;

/// So much of its output a terminal of the client keeps.
const MAX_TERMINAL_BYTES: u64 = 256 * 1024;

/// Which program runs a command line, and how it is told the command.
pub(crate) fn shell_of(config: &ShellConfig, command: &str) -> (String, Vec<String>) {
    let own_args = if cfg!(windows) { &["-NoProfile", "-Command"][..] } else { &["-c"] };
    let own_path = if cfg!(windows) { "powershell.exe" } else { "bash" };
    let path = config.path.as_deref().filter(|path| !path.trim().is_empty());
    let mut args = match (path, config.args.as_slice()) {
        (Some(_), args) if !args.is_empty() => args.to_vec(),
        _ => own_args.iter().map(|arg| (*arg).to_owned()).collect(),
    };
    args.push(command.to_owned());
    (path.unwrap_or(own_path).to_owned(), args)
}

/// A command line as a program of this call: its shell, and its sandbox.
pub(crate) async fn program_of(
    context: &ToolContext,
    command: &str,
    directory: std::path::PathBuf,
    variables: Vec<(String, String)>,
) -> Result<Program, String> {
    let confinement = confinement::of_call(context).await?;
    let (path, args) = shell_of(&context.settings.shell, command);
    Ok(Program { path, args, directory, variables, confinement })
}

/// What came of a program.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) ending: Ending,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    /// By itself.
    Code(i32),
    /// By a signal, where there is no guard to translate it.
    Signal,
    /// Killed after this time.
    TimedOut(Duration),
    /// Killed because the call had to end.
    Stopped,
    /// Nobody knows.
    Lost(String),
}

/// Runs it to its end. Whatever ends it early, also dropping this, kills all it started.
pub(crate) async fn run(program: &Program, patience: Duration, context: &ToolContext) -> Result<Finished, String> {
    let mut running = program.start().map_err(|error| format!("{} could not be started: {error}", program.path))?;
    let mut ears = Ears::new(Arc::clone(&context.live));
    let early = tokio::select! {
        ending = end_of(&mut running, &mut ears) => return Ok(ears.finish(ending)),
        () = tokio::time::sleep(patience) => Ending::TimedOut(patience),
        () = context.stop.cancelled() => Ending::Stopped,
    };
    running.let_go();
    let _ = tokio::time::timeout(LAST_BREATH, end_of(&mut running, &mut ears)).await;
    Ok(ears.finish(early))
}

/// The same in a terminal of the client, where it has some. Those know no sandbox, so what needs one
/// runs here.
pub(crate) async fn where_the_user_sees_it(
    program: &Program,
    patience: Duration,
    context: &ToolContext,
) -> Result<Finished, String> {
    if program.confinement.is_some() || !context.host.capabilities().terminal {
        return run(program, patience, context).await;
    }
    let command = TerminalCommand {
        chat: context.chat.clone(),
        call: context.call.clone(),
        program: program.path.clone(),
        args: program.args.clone(),
        directory: program.directory.clone(),
        variables: program.variables.clone(),
        most_bytes: MAX_TERMINAL_BYTES,
        patience,
        stop: context.stop.clone(),
    };
    let ran = match context.host.run_in_terminal(command).await {
        Ok(ran) => ran,
        // Nothing was started, so nothing runs twice.
        Err(HostError::Unsupported) => return run(program, patience, context).await,
        Err(error) => return Err(format!("The terminal of the editor failed: {error}.")),
    };
    let mut ear = Ear::default();
    let text = ear.cleaner.push(ran.output.as_bytes());
    ear.keep(&text);
    let cut = if ran.truncated { "[the beginning of the output is left out]\n" } else { "" };
    let ending = match ran.end {
        TerminalEnd::Code(code) => Ending::Code(code),
        TerminalEnd::Signal(_) => Ending::Signal,
        TerminalEnd::TimedOut => Ending::TimedOut(patience),
        TerminalEnd::Stopped => Ending::Stopped,
    };
    Ok(Finished { ending, stdout: format!("{cut}{}", ear.finish()), stderr: String::new() })
}

async fn end_of(running: &mut Running, ears: &mut Ears) -> Ending {
    match running.follow(PAUSE, |stream, bytes| ears.hear(stream, bytes)).await {
        Ok(ended) => ended.code.map_or(Ending::Signal, Ending::Code),
        Err(error) => Ending::Lost(error.to_string()),
    }
}

/// Keeps what a program prints, and shows it as it comes.
struct Ears {
    stdout: Ear,
    stderr: Ear,
    live: Arc<dyn LiveOutput>,
    live_bytes_left: usize,
}

#[derive(Default)]
struct Ear {
    cleaner: Cleaner,
    lines: Lines,
    kept: HeadTail,
}

impl Ears {
    fn new(live: Arc<dyn LiveOutput>) -> Self {
        Self { stdout: Ear::default(), stderr: Ear::default(), live, live_bytes_left: MAX_LIVE_BYTES }
    }

    fn hear(&mut self, stream: Stream, bytes: &[u8]) {
        let ear = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let text = ear.cleaner.push(bytes);
        ear.keep(&text);
        if text.is_empty() || self.live_bytes_left == 0 {
            return;
        }
        let shown = crate::base::text::prefix(&text, self.live_bytes_left);
        self.live.output(shown);
        self.live_bytes_left -= shown.len();
        if shown.len() < text.len() {
            self.live_bytes_left = 0;
            self.live.output("\n[the rest is shown at the end]\n");
        }
    }

    fn finish(self, ending: Ending) -> Finished {
        Finished { ending, stdout: self.stdout.finish(), stderr: self.stderr.finish() }
    }
}

impl Ear {
    fn keep(&mut self, text: &str) {
        // Whole lines that nothing is written over need not be looked at one by one.
        let (before, whole, after) = if text.contains('\r') { (text, "", "") } else { self.around_whole_lines(text) };
        self.keep_lines(before);
        self.kept.push(whole);
        self.keep_lines(after);
    }

    fn around_whole_lines<'a>(&self, text: &'a str) -> (&'a str, &'a str, &'a str) {
        let after_newline = |at: usize| at + 1;
        let start = if self.lines.is_at_start() { 0 } else { text.find('\n').map_or(text.len(), after_newline) };
        let end = text.rfind('\n').map_or(start, after_newline);
        (&text[..start], &text[start..end], &text[end..])
    }

    fn keep_lines(&mut self, text: &str) {
        let kept = &mut self.kept;
        self.lines.push(text, &mut |line, ended| {
            kept.push(line);
            if ended {
                kept.push("\n");
            }
        });
    }

    fn finish(mut self) -> String {
        let rest = self.cleaner.finish();
        self.keep(rest);
        self.kept.push(&self.lines.take_unfinished());
        self.kept.into_text()
    }
}

/// Whether an exit code of zero is worth a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ZeroCode {
    Shown,
    Silent,
}

/// The parts that the model sees: how it ended, stderr, stdout, notes.
pub(crate) fn report(finished: &Finished, zero: ZeroCode, program: &Program, notes: Vec<String>) -> ToolOutput {
    let failed = finished.ending != Ending::Code(0);
    let how = match &finished.ending {
        Ending::Code(0) if zero == ZeroCode::Silent => None,
        Ending::Code(code) => Some(format!("Exit code: {code}")),
        Ending::Signal => Some("A signal ended the command.".to_owned()),
        Ending::TimedOut(patience) => Some(format!(
            "The command did not end within {} ms. It was killed, with everything it started.",
            patience.as_millis()
        )),
        Ending::Stopped => Some("The command was stopped. It was killed, with everything it started.".to_owned()),
        Ending::Lost(error) => Some(format!("How the command ended is not known: {error}")),
    };
    let block = |name: &str, text: &str| {
        // The first line may be indented on purpose.
        let text = text.trim_end().trim_start_matches('\n');
        (!text.is_empty()).then(|| format!("{name}:\n{text}"))
    };
    let hint = program
        .confinement
        .as_ref()
        .and_then(|confinement| confinement::hint(confinement, failed, &finished.stdout, &finished.stderr));
    let mut parts: Vec<String> = how.into_iter().collect();
    parts.extend(block("Stderr", &finished.stderr));
    parts.extend(block("Stdout", &finished.stdout));
    if parts.is_empty() {
        parts.push("The command printed nothing.".to_owned());
    }
    parts.extend(notes.into_iter().chain(hint));
    let contents = parts.into_iter().map(Content::Text).collect();
    ToolOutput { error: failed, contents, ..ToolOutput::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::sandbox::Confinement;
    use std::sync::Mutex;

    fn texts(ending: Ending, zero: ZeroCode, stdout: &str, stderr: &str) -> (bool, Vec<String>) {
        let finished = Finished { ending, stdout: stdout.to_owned(), stderr: stderr.to_owned() };
        let program = Program {
            path: "bash".to_owned(),
            args: Vec::new(),
            directory: "/".into(),
            variables: Vec::new(),
            confinement: Some(Confinement::ReadOnly),
        };
        let output = report(&finished, zero, &program, vec!["a note".to_owned()]);
        let text = |content| match content {
            Content::Text(text) => text,
            Content::Image(_) => unreachable!(),
        };
        (output.error, output.contents.into_iter().map(text).collect())
    }

    #[test]
    fn reports_have_their_parts_in_order() {
        let shown = ZeroCode::Shown;
        assert_eq!(
            texts(Ending::Code(0), shown, "\n  out\n", "err\n"),
            (false, ["Exit code: 0", "Stderr:\nerr", "Stdout:\n  out", "a note"].map(str::to_owned).into())
        );
        assert_eq!(
            texts(Ending::Code(0), ZeroCode::Silent, "\n", ""),
            (false, ["The command printed nothing.", "a note"].map(str::to_owned).into())
        );
        let (error, parts) = texts(Ending::Code(1), ZeroCode::Silent, "", "x: Permission denied");
        assert!(error && parts[0] == "Exit code: 1" && parts[3].contains("sandbox"), "{parts:?}");
        for ending in
            [Ending::Signal, Ending::TimedOut(Duration::from_secs(1)), Ending::Stopped, Ending::Lost("x".to_owned())]
        {
            assert!(texts(ending.clone(), shown, "", "").0, "{ending:?}");
        }
        assert!(texts(Ending::TimedOut(Duration::from_secs(1)), shown, "", "").1[0].contains("1000 ms"));
    }

    #[test]
    fn another_shell_gets_its_own_arguments() {
        let config = |path: Option<&str>, args: &[&str]| ShellConfig {
            path: path.map(str::to_owned),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            summary_max_length: 35,
            sandbox: crate::config::Sandbox::Off,
        };
        let shell = |path, args: &[&str]| {
            let (path, args) = shell_of(&config(path, args), "ls");
            format!("{path} {}", args.join(" "))
        };
        assert_eq!(shell(Some("/bin/zsh"), &["-l", "-c"]), "/bin/zsh -l -c ls");
        #[cfg(unix)]
        for (path, args, expected) in [
            (None, &[][..], "bash -c ls"),
            (None, &["-l"], "bash -c ls"),
            (Some(" "), &[], "bash -c ls"),
            (Some("fish"), &[], "fish -c ls"),
        ] {
            assert_eq!(shell(path, args), expected);
        }
    }

    #[test]
    fn whole_lines_are_kept_as_if_one_by_one() {
        let text = "a\nb\n\nlong line\n10%\r20%\nc\r\nd\ne";
        for cut in 1..=text.len() {
            let mut ear = Ear::default();
            for piece in text.as_bytes().chunks(cut) {
                ear.keep(std::str::from_utf8(piece).unwrap());
            }
            assert_eq!(ear.finish(), "a\nb\n\nlong line\n20%\nc\nd\ne", "cut at {cut}");
        }
    }

    #[derive(Default)]
    struct Heard(Mutex<String>);

    impl LiveOutput for Heard {
        fn output(&self, text: &str) {
            self.0.lock().unwrap().push_str(text);
        }
        fn progress(&self, _: &str) {}
        fn details(&self, _: crate::tool::Details) {}
    }

    #[test]
    fn what_is_shown_live_is_bounded_and_clean() {
        let heard = Arc::new(Heard::default());
        let mut ears = Ears::new(Arc::clone(&heard) as Arc<dyn LiveOutput>);
        ears.hear(Stream::Stderr, b"\x1b[31mred\x1b[0m\n");
        for _ in 0..100 {
            ears.hear(Stream::Stdout, &[b'x'; 10_000]);
        }
        let live = heard.0.lock().unwrap().clone();
        assert!(live.starts_with("red\nxxx") && live.ends_with("at the end]\n"), "{}", &live[live.len() - 50..]);
        assert!(live.len() < MAX_LIVE_BYTES + 100);
        let finished = ears.finish(Ending::Code(0));
        assert_eq!(finished.stderr, "red\n");
        assert!(finished.stdout.len() < 260 * 1024 && finished.stdout.contains("bytes are left out"));
    }
}
