//! The commands of `${cmd:…}`, and what else one load of the configuration leaves for the next.
//!
//! Loading never waits for a program. It says which commands it would need; they are run beside it,
//! and a second load finds what they printed in its [`Memory`]. What has not changed since is not
//! run again.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use futures_util::StreamExt;

use crate::base::text::one_line;
use crate::process::spawn::{self, Output};

/// How long a command may take.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// More than a key, a token or a certificate has.
const MAX_OUTPUT_BYTES: u64 = 64 * 1024;
/// Commands that run at a time; password managers do not like to be asked by a crowd.
const AT_ONCE: usize = 8;
const SHOWN_COMPLAINT: usize = 120;

/// A command as a configuration file has it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommandCall {
    pub text: String,
    /// Where it runs: the directory of the containing file.
    pub directory: PathBuf,
    /// When the containing file was written, so that saving it runs its commands again.
    pub written: Option<SystemTime>,
}

impl std::fmt::Debug for CommandCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The text may contain what a log should not.
        f.debug_struct("CommandCall").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// What earlier loads found out.
#[derive(Clone, Default)]
pub struct Memory {
    pub(super) outputs: BTreeMap<CommandCall, Result<String, String>>,
    /// The last text of each file that could be parsed.
    pub(super) texts: BTreeMap<PathBuf, String>,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").field("commands", &self.outputs.len()).finish_non_exhaustive()
    }
}

impl Memory {
    /// Those of `calls` whose output is not known.
    pub fn missing(&self, calls: &[CommandCall]) -> Vec<CommandCall> {
        calls.iter().filter(|call| !self.outputs.contains_key(call)).cloned().collect()
    }

    /// Runs the commands, several at a time, and keeps what they print.
    pub async fn run(&mut self, calls: Vec<CommandCall>) {
        let running = calls.into_iter().map(|call| async {
            let output = run(&call).await;
            (call, output)
        });
        let outputs: Vec<_> = futures_util::stream::iter(running).buffer_unordered(AT_ONCE).collect().await;
        self.outputs.extend(outputs);
    }

    /// Takes over what a load found out; what it did not need is forgotten.
    pub fn keep(&mut self, loaded: &super::load::Loaded) {
        self.outputs.retain(|call, _| loaded.commands.contains(call));
        self.texts.clone_from(&loaded.texts);
    }

    /// Forgets all commands but these.
    pub fn keep_only(&mut self, calls: &[CommandCall]) {
        self.outputs.retain(|call, _| calls.contains(call));
    }

    /// A command that failed is worth another try when something has changed.
    pub fn forget_failures(&mut self) {
        self.outputs.retain(|_, output| output.is_ok());
    }
}

async fn run(call: &CommandCall) -> Result<String, String> {
    // A directory that is gone is no reason not to run.
    let directory = call.directory.is_dir().then_some(call.directory.as_path());
    match spawn::shell(&call.text, directory, PATIENCE, MAX_OUTPUT_BYTES).await {
        Ok(output) => printed(output),
        Err(error) => Err(format!("${{cmd:…}}: {error}")),
    }
}

fn printed(output: Output) -> Result<String, String> {
    if output.code != Some(0) {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let complaint = one_line(complaint.lines().next().unwrap_or_default(), SHOWN_COMPLAINT);
        let code = output.code.map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}"));
        let colon = if complaint.is_empty() { "" } else { ": " };
        return Err(format!("${{cmd:…}} ended with {code}{colon}{complaint}"));
    }
    if output.stdout.len() as u64 >= MAX_OUTPUT_BYTES {
        return Err(format!("${{cmd:…}} printed more than {} KiB", MAX_OUTPUT_BYTES / 1024));
    }
    let text = String::from_utf8(output.stdout).map_err(|_| "${cmd:…} did not print UTF-8 text".to_owned())?;
    Ok(text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(code: Option<i32>, stdout: &[u8], stderr: &[u8]) -> Output {
        Output { code, stdout: stdout.to_vec(), stderr: stderr.to_vec() }
    }

    #[test]
    fn what_is_printed_counts_without_white_space_at_its_end() {
        assert_eq!(printed(output(Some(0), b" key \r\n\n", b"noise")), Ok(" key".to_owned()));
        assert_eq!(
            printed(output(Some(3), b"sk-secret", b"\x1b[31mno\tstore\nmore")),
            Err("${cmd:…} ended with exit code 3: [31mno store".to_owned())
        );
        assert_eq!(printed(output(None, b"", b"")), Err("${cmd:…} ended with a signal".to_owned()));
        assert!(printed(output(Some(0), &[0xff], b"")).is_err());
        assert!(printed(output(Some(0), &vec![b'x'; 64 * 1024], b"")).is_err());
    }

    #[test]
    fn only_what_is_new_is_missing() {
        let call = |text: &str, written| CommandCall { text: text.to_owned(), directory: "/d".into(), written };
        let now = Some(SystemTime::now());
        let mut memory = Memory::default();
        memory.outputs.insert(call("a", None), Ok("1".to_owned()));
        memory.outputs.insert(call("b", None), Err("no".to_owned()));
        let calls = [call("a", None), call("b", None), call("a", now)];
        assert_eq!(memory.missing(&calls), [call("a", now)]);
        memory.forget_failures();
        assert_eq!(memory.missing(&calls), [call("b", None), call("a", now)]);
    }
}
