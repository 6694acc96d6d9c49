//! Hooks: programs of the user that run when something happens, and may have a say in it.
//!
//! A hook is given JSON and answers with its exit code and JSON. What an answer means is decided in
//! [`outcome`], without running anything; here hooks are chosen, run one after the other and shown.
//! The hooks of a workspace are not known here until the user trusts its configuration.

pub mod event;
pub mod outcome;

mod matcher;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use crate::base::task;
use crate::base::text::prefix;
use crate::base::{ChatId, ToolCallId};
use crate::config::files::resolve;
use crate::config::{ConfigProblem, HookAction, HookConfig, HookProgram, HookType};
use crate::process::spawn::{self, RunError};

pub use event::{ChatStatus, CompactTrigger, HookEvent, HookedCall};
pub use outcome::{Exit, HookOutcome, Said, Stopped, Verdict, combine, interpret};

/// Of each of its outputs; more is no answer.
const MAX_OUTPUT_BYTES: u64 = 1024 * 1024;
/// What a client is shown of an output.
const MAX_SHOWN_BYTES: usize = 32 * 1024;

/// The hooks of a configuration, ready to run.
#[derive(Debug, Default)]
pub struct HookRunner {
    hooks: Vec<Hook>,
}

#[derive(Debug)]
struct Hook {
    name: String,
    config: HookConfig,
    matcher: matcher::Matcher,
}

/// What every hook of a session is told, and where it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Setting {
    /// Hooks run in the first one, and not at all without any.
    pub workspaces: Vec<PathBuf>,
    pub db_cache_path: PathBuf,
    pub session_id: String,
    /// How this server is started.
    pub eca_executable: String,
    /// Where relative script files are looked for first.
    pub config_dir: PathBuf,
    pub home: Option<PathBuf>,
}

/// What the hooks of a chat are told besides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatFacts {
    pub chat: ChatId,
    pub agent: String,
    /// The full id.
    pub model: Option<String>,
    pub variant: Option<String>,
}

/// What there is to show of a hook that wants to be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookReport {
    Started {
        id: String,
        name: String,
        tool_call: Option<ToolCallId>,
    },
    Finished {
        id: String,
        name: String,
        tool_call: Option<ToolCallId>,
        status: i32,
        output: Option<String>,
        error: Option<String>,
    },
}

/// Where reports go. Must not block.
pub type HookObserver<'a> = &'a (dyn Fn(HookReport) + Send + Sync);

impl HookRunner {
    /// A hook whose matcher is wrong is left out and reported.
    pub fn new(hooks: &BTreeMap<String, HookConfig>) -> (Self, Vec<ConfigProblem>) {
        let mut runner = Self::default();
        let mut problems = Vec::new();
        for (name, config) in hooks {
            match matcher::Matcher::compile(config) {
                Ok(matcher) => runner.hooks.push(Hook { name: name.clone(), config: config.clone(), matcher }),
                Err(why) => problems.push(ConfigProblem {
                    source: format!("hooks.{name}"),
                    line: None,
                    message: format!("{why}; the hook is ignored"),
                }),
            }
        }
        (runner, problems)
    }

    /// Whether there is anything to run, before an event is put together.
    pub fn has(&self, kind: HookType) -> bool {
        self.hooks.iter().any(|hook| hook.config.kind == kind)
    }

    /// For lists: name and settings of each.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &HookConfig)> {
        self.hooks.iter().map(|hook| (hook.name.as_str(), &hook.config))
    }

    /// Runs all hooks for the event, by name, until one says that this is enough or `stop` is
    /// cancelled. Each sees what those before it have changed.
    pub async fn run(
        &self,
        mut event: HookEvent,
        setting: &Setting,
        chat: Option<&ChatFacts>,
        observer: HookObserver<'_>,
        stop: &CancellationToken,
    ) -> Verdict {
        let mut outcomes: Vec<(String, HookOutcome)> = Vec::new();
        let Some(directory) = setting.workspaces.first() else { return Verdict::default() };
        'hooks: for hook in &self.hooks {
            let wanted = hook.config.kind == event.kind()
                && hook.matcher.is_for(&event)
                && (!event.is_failure() || hook.config.run_on_error);
            if !wanted {
                continue;
            }
            for action in &hook.config.actions {
                let input = event.input(&hook.name, setting, chat);
                let show = Show::new(hook, &event, observer);
                let run = run_action(action, &input, directory, setting);
                let ended = tokio::select! {
                    biased;
                    () = stop.cancelled() => {
                        show.finished(&Exit::Interrupted, &HookOutcome::default(), "");
                        break 'hooks;
                    }
                    ended = run => ended,
                };
                let mut outcome = interpret(event.kind(), &ended.exit, &ended.stdout, &ended.stderr);
                event.restrict(&mut outcome);
                show.finished(&ended.exit, &outcome, &ended.stderr);
                if let Some(error) = &outcome.error {
                    tracing::warn!(hook = hook.name, kind = event.kind().name(), error, "a hook failed");
                }
                event.absorb(&outcome);
                let is_last = outcome.stop.is_some();
                outcomes.push((hook.name.clone(), outcome));
                if is_last {
                    break 'hooks;
                }
            }
        }
        combine(event.kind(), outcomes)
    }
}

/// What a program left.
struct Ended {
    exit: Exit,
    stdout: String,
    stderr: String,
}

async fn run_action(action: &HookAction, input: &[u8], directory: &Path, setting: &Setting) -> Ended {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match start(action, input, directory, setting).await {
        Ok(output) => Ended {
            exit: output.code.map_or(Exit::Signal, Exit::Code),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        },
        Err(error) => {
            let exit = match error {
                RunError::Timeout(patience) => Exit::TimedOut(patience),
                RunError::Start(error) => Exit::NotStarted(error.to_string()),
            };
            Ended { exit, stdout: String::new(), stderr: String::new() }
        }
    }
}

async fn start(
    action: &HookAction,
    input: &[u8],
    directory: &Path,
    setting: &Setting,
) -> Result<spawn::Output, RunError> {
    let (shell, flag) = if cfg!(windows) { ("powershell.exe", "-Command") } else { ("bash", "-c") };
    let mut guarded = match &action.program {
        HookProgram::Shell(line) => spawn::guarded(shell, [flag, line])?,
        HookProgram::File(file) => {
            let (file, places) = (PathBuf::from(file), [setting.config_dir.clone(), directory.to_owned()]);
            let home = setting.home.clone();
            let found = task::blocking(move || find_script(&file, &places, home.as_deref())).await;
            let (script, runs_by_itself) = found.map_err(std::io::Error::other)??;
            let script = script.into_os_string();
            let no_arguments: [std::ffi::OsString; 0] = [];
            match runs_by_itself {
                true => spawn::guarded(script, no_arguments)?,
                false if cfg!(windows) => spawn::guarded(shell, ["-File".into(), script])?,
                false => spawn::guarded(shell, [script])?,
            }
        }
    };
    guarded.command.current_dir(directory).env("ECA_EXECUTABLE", &setting.eca_executable);
    spawn::run_with_input(guarded, input, action.timeout, MAX_OUTPUT_BYTES).await
}

/// The script, and whether it can be started as it is. The user's own folder comes first: a
/// stranger's repository must not slip in a file of the same name.
fn find_script(file: &Path, places: &[PathBuf], home: Option<&Path>) -> std::io::Result<(PathBuf, bool)> {
    let candidates = places.iter().filter_map(|place| resolve(file, place, home).ok());
    let found = candidates.into_iter().find_map(|path| Some((std::fs::metadata(&path).ok()?, path)));
    let Some((metadata, path)) = found.filter(|(metadata, _)| metadata.is_file()) else {
        return Err(std::io::Error::other(format!("there is no file {}", file.display())));
    };
    #[cfg(unix)]
    let runs_by_itself = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let runs_by_itself = !metadata.permissions().readonly() && path.extension().is_some_and(|ending| ending == "exe");
    Ok((path, runs_by_itself))
}

/// Shows one run of a hook, unless it does not want to be seen.
struct Show<'a> {
    observer: Option<HookObserver<'a>>,
    id: String,
    name: &'a str,
    tool_call: Option<ToolCallId>,
}

impl<'a> Show<'a> {
    fn new(hook: &'a Hook, event: &HookEvent, observer: HookObserver<'a>) -> Self {
        let show = Self {
            observer: hook.config.visible.then_some(observer),
            id: uuid::Uuid::new_v4().to_string(),
            name: &hook.name,
            tool_call: event.call().map(|call| call.call.clone()),
        };
        show.tell(HookReport::Started {
            id: show.id.clone(),
            name: show.name.to_owned(),
            tool_call: show.tool_call.clone(),
        });
        show
    }

    fn finished(&self, exit: &Exit, outcome: &HookOutcome, stderr: &str) {
        let shown = |text: &str| {
            let text = prefix(text.trim(), MAX_SHOWN_BYTES);
            (!text.is_empty() && !outcome.suppress_output).then(|| text.to_owned())
        };
        self.tell(HookReport::Finished {
            id: self.id.clone(),
            name: self.name.to_owned(),
            tool_call: self.tool_call.clone(),
            status: exit.status(),
            output: outcome.display.as_deref().and_then(shown),
            error: outcome.error.as_deref().and_then(shown).or_else(|| shown(stderr)),
        });
    }

    fn tell(&self, report: HookReport) {
        if let Some(observer) = self.observer {
            observer(report);
        }
    }
}

#[cfg(test)]
mod tests;
