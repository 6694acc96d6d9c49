//! The command line: what each editor may pass, and what a person may type.
//!
//! `server` is started by plugins of many versions, so it takes the flags it knows wherever they
//! stand and ignores everything else; so do the other commands that programs start, `acp`, `copilot`
//! and `stdio`. The rest is typed by a person, whose slips are reported.
//! Parsing is pure; [`process_arguments`] is the one place that reads the real ones.

pub mod pages;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::logging::LogLevel;

const EXAMPLES: &str = "\
Examples:
  eca server                                start the server for an editor, on stdin and stdout
  eca server --log-level debug --verbose    the same, with every message logged on stderr
  eca acp                                   the same for editors of the Agent Client Protocol
  eca stdio                                 the same for every contract, told by the first message
  eca chat \"explain this error\"             ask one question and print the answer
  eca chat --model ollama/qwen3 --json      talk to a local model, events as JSON lines
  eca config show                           what counts in this folder, and where it comes from
  eca trust                                 let this folder's own configuration count
  eca chats search \"parser error\"           find words in the chats of this folder";

/// Flags of the commands that are followed by a value.
const FLAGS_WITH_VALUE: [&str; 5] = ["--log-level", "--config-file", "--log-file", "--model", "--agent"];

/// Under this name the program is what applications of the Copilot CLI contract start.
const COPILOT_NAME: &str = "copilot-cli";

/// Flags of `server` that stand alone.
const SERVER_SWITCHES: [&str; 2] = ["--verbose", "--stdio"];

/// The flag of `acp` that stands alone.
const DRAFT: &str = "--draft";

/// What the user asked for.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum Cli {
    /// Serve an editor over stdin and stdout
    Server(ServerArgs),
    /// Serve an editor that speaks the Agent Client Protocol
    Acp(AcpArgs),
    /// Serve an application that turns API specifications into user interfaces
    Copilot(ServerArgs),
    /// Serve whatever the client speaks, told by its first message
    Stdio(ServerArgs),
    /// Chat in the terminal
    Chat(ChatArgs),
    /// Look at the configuration
    Config(ConfigArgs),
    /// Trust the configuration that a workspace comes with
    Trust(TrustArgs),
    /// Look at the chats that are kept, and take them in and out
    Chats(ChatsArgs),
    /// Print what a shell needs to complete commands and options
    Completions(CompletionsArgs),
    /// Print a page for the man command
    Man(ManArgs),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(args_override_self = true)]
pub struct ServerArgs {
    /// How much is logged on stderr: error, warn, info or debug
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = log_level)]
    pub log_level: LogLevel,
    /// Log every message to and from the editor
    #[arg(long)]
    pub verbose: bool,
    /// Read this file instead of the global configuration
    #[arg(long, value_name = "FILE")]
    pub config_file: Option<PathBuf>,
    /// Speak on stdin and stdout; this is always so
    #[arg(long)]
    pub stdio: bool,
    /// Also append the log to this file
    #[arg(long, value_name = "FILE")]
    pub log_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(args_override_self = true)]
pub struct AcpArgs {
    /// Speak the protocol's first draft instead
    #[arg(long)]
    pub draft: bool,
    #[command(flatten)]
    pub server: ServerArgs,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(args_override_self = true)]
pub struct ChatArgs {
    /// What to ask; without it, the conversation is interactive
    #[arg(value_name = "PROMPT")]
    pub prompt: Vec<String>,
    /// The model, as provider/model
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Read this file instead of the global configuration
    #[arg(long, value_name = "FILE")]
    pub config_file: Option<PathBuf>,
    /// Print events as JSON lines
    #[arg(long)]
    pub json: bool,
    /// The agent, such as code or plan
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    /// Let tools run without questions; what the configuration forbids stays forbidden
    #[arg(long)]
    pub trust: bool,
    /// How much is logged on stderr: error, warn, info or debug
    #[arg(long, value_name = "LEVEL", value_parser = log_level)]
    pub log_level: Option<LogLevel>,
}

#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    pub command: ConfigCommand,
}

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum ConfigCommand {
    /// Print the JSON Schema of the configuration, for completion in an editor
    Schema,
    /// Print the configuration that counts in this folder, with secrets masked
    Show {
        /// Read this file instead of the global configuration
        #[arg(long, value_name = "FILE")]
        config_file: Option<PathBuf>,
    },
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct TrustArgs {
    /// The workspace folder, or a file in it; without it, the current folder
    #[arg(value_name = "PATH", conflicts_with = "list")]
    pub path: Option<PathBuf>,
    /// Do not ask
    #[arg(long, conflicts_with_all = ["revoke", "list"])]
    pub yes: bool,
    /// Trust nothing of this workspace any more
    #[arg(long, conflicts_with = "list")]
    pub revoke: bool,
    /// List what is trusted
    #[arg(long)]
    pub list: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ChatsArgs {
    #[command(subcommand)]
    pub command: ChatsCommand,
}

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum ChatsCommand {
    /// List the chats of this folder, the newest first
    List {
        #[command(flatten)]
        scope: ChatsScope,
    },
    /// Print a chat
    Show {
        /// The chat's id, or the beginning of it
        #[arg(value_name = "CHAT")]
        chat: String,
        /// Print it as JSON, as `export` does
        #[arg(long)]
        json: bool,
    },
    /// Find words in chats
    Search {
        /// All of them must be in one message; the last may be unfinished
        #[arg(value_name = "WORD", required = true)]
        words: Vec<String>,
        #[command(flatten)]
        scope: ChatsScope,
    },
    /// Write a chat to a new file, to be taken elsewhere
    Export {
        /// The chat's id, or the beginning of it
        #[arg(value_name = "CHAT")]
        chat: String,
        /// Where to; without it, to stdout
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Take a chat in from a file that `export` wrote
    Import {
        /// The file; - is stdin
        #[arg(value_name = "FILE", required_unless_present = "public")]
        file: Option<PathBuf>,
        /// Take in the chats that the public server keeps for this folder
        #[arg(long, conflicts_with = "file")]
        public: bool,
    },
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct ChatsScope {
    /// Of every folder
    #[arg(long)]
    pub all: bool,
    /// At most so many
    #[arg(long, value_name = "NUMBER")]
    pub limit: Option<usize>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct ManArgs {
    /// The command that the page is about; without it, the program as a whole
    #[arg(value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// The program ends here: with a text that was asked for, or with a complaint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CliExit {
    pub code: i32,
    /// Ends with a line break.
    pub text: String,
    /// Otherwise it belongs on stderr.
    pub to_stdout: bool,
}

/// The arguments of this process, the program's name first.
pub fn process_arguments() -> impl Iterator<Item = OsString> {
    std::env::args_os()
}

/// The file this process runs from.
pub fn own_executable() -> Option<PathBuf> {
    std::env::current_exe().ok()
}

/// Where the user typed the command; `None` when that place is gone.
pub fn current_directory() -> Option<PathBuf> {
    std::env::current_dir().ok()
}

/// The user's home.
pub fn home_directory() -> Option<PathBuf> {
    std::env::home_dir().filter(|path| path.is_absolute())
}

/// Where this system wants files that are needed for a moment.
pub fn temporary_directory() -> PathBuf {
    std::env::temp_dir()
}

/// Parses `args`, of which the first is the program's name.
pub fn parse(mut args: impl Iterator<Item = OsString>) -> Result<Cli, CliExit> {
    let name = args.next().unwrap_or_default();
    let args: Vec<OsString> = args.collect();
    if PathBuf::from(name).file_stem() == Some(OsStr::new(COPILOT_NAME)) {
        return parse_started(&args, None, "copilot");
    }
    match find_command(&args) {
        Found::Started(command, at) => parse_started(&args, at, command),
        Found::Typed(command, at) => parse_person(args, at, command),
        Found::Help => Err(CliExit { code: 0, text: help(), to_stdout: true }),
        Found::Version => Err(version()),
        Found::Nothing => Err(CliExit { code: 1, text: help(), to_stdout: false }),
        Found::Unknown(name) => {
            let text = format!("eca: unknown command '{name}'\n\n{}", help());
            Err(CliExit { code: 1, text, to_stdout: false })
        }
    }
}

#[derive(Parser)]
#[command(name = "eca", about = "AI-assistant server for editors, with any LLM", after_help = EXAMPLES)]
#[command(disable_help_subcommand = true, version)]
struct Root {
    #[command(subcommand)]
    command: Cli,
}

enum Found {
    /// A command that programs start, and the position of the word, unless it was only implied.
    Started(&'static str, Option<usize>),
    /// A command that a person types, and the position of the word.
    Typed(&'static str, usize),
    Help,
    Version,
    Nothing,
    Unknown(String),
}

/// Finds the command among flags that may stand before it.
fn find_command(args: &[OsString]) -> Found {
    let mut stdio = false;
    let mut unknown = None;
    let mut may_be_value = false;
    let mut skip = false;
    for (at, arg) in args.iter().enumerate() {
        if std::mem::take(&mut skip) {
            continue;
        }
        let after_unknown_flag = std::mem::take(&mut may_be_value);
        match arg.to_string_lossy().as_ref() {
            "server" => return Found::Started("server", Some(at)),
            "chat" => return Found::Typed("chat", at),
            // Words that a flag of a newer plugin may well have as its value.
            "acp" if !after_unknown_flag => return Found::Started("acp", Some(at)),
            "copilot" if !after_unknown_flag => return Found::Started("copilot", Some(at)),
            "stdio" if !after_unknown_flag => return Found::Started("stdio", Some(at)),
            "config" if !after_unknown_flag => return Found::Typed("config", at),
            "trust" if !after_unknown_flag => return Found::Typed("trust", at),
            "chats" if !after_unknown_flag => return Found::Typed("chats", at),
            "completions" if !after_unknown_flag => return Found::Typed("completions", at),
            "man" if !after_unknown_flag => return Found::Typed("man", at),
            "--help" | "-h" | "help" => return Found::Help,
            "--version" | "-V" => return Found::Version,
            "--stdio" => stdio = true,
            "--verbose" | "--json" => {}
            flag if FLAGS_WITH_VALUE.contains(&flag) => skip = true,
            flag if flag.starts_with('-') => may_be_value = !flag.contains('='),
            // It may belong to a flag of a newer plugin.
            _ if after_unknown_flag => {}
            word => {
                unknown.get_or_insert_with(|| word.to_owned());
            }
        }
    }
    match unknown {
        Some(word) => Found::Unknown(word),
        None if stdio => Found::Started("stdio", None),
        None => Found::Nothing,
    }
}

/// For the commands that programs start: what is not known is ignored.
fn parse_started(args: &[OsString], command: Option<usize>, name: &str) -> Result<Cli, CliExit> {
    let mut known: Vec<OsString> = vec!["eca".into(), name.into()];
    let has_draft = name == "acp";
    let mut rest = args.iter().enumerate().filter(|(at, _)| Some(*at) != command).map(|(_, arg)| arg).peekable();
    while let Some(arg) = rest.next() {
        let text = arg.to_string_lossy();
        let name = text.split('=').next().unwrap_or_default();
        if matches!(&*text, "--help" | "-h") {
            known.push(arg.clone());
        } else if matches!(&*text, "--version" | "-V") {
            return Err(version());
        } else if SERVER_SWITCHES.contains(&&*text) || (has_draft && text == DRAFT) {
            known.push(arg.clone());
        } else if FLAGS_WITH_VALUE[..3].contains(&name) {
            let mut flag = arg.clone();
            // Without a value the parser complains; it must not swallow the next flag.
            if name == text
                && let Some(value) = rest.next_if(|next| !next.as_encoded_bytes().starts_with(b"--"))
            {
                flag.push("=");
                flag.push(value);
            }
            known.push(flag);
        }
    }
    parse_strictly(known, 1)
}

/// For the commands that a person types, whose slips are reported.
fn parse_person(mut args: Vec<OsString>, command: usize, name: &str) -> Result<Cli, CliExit> {
    args.remove(command);
    let program: [OsString; 2] = [OsStr::new("eca").into(), OsStr::new(name).into()];
    parse_strictly(program.into_iter().chain(args).collect(), 2)
}

fn parse_strictly(args: Vec<OsString>, usage_code: i32) -> Result<Cli, CliExit> {
    Root::try_parse_from(args).map(|root| root.command).map_err(|error| {
        let to_stdout = !error.use_stderr();
        CliExit { code: if to_stdout { 0 } else { usage_code }, text: error.render().to_string(), to_stdout }
    })
}

fn help() -> String {
    Root::command().render_help().to_string()
}

fn version() -> CliExit {
    CliExit { code: 0, text: format!("eca {}\n", env!("CARGO_PKG_VERSION")), to_stdout: true }
}

fn log_level(name: &str) -> Result<LogLevel, crate::logging::UnknownLogLevel> {
    name.parse()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &[&str]) -> Result<Cli, CliExit> {
        parse(std::iter::once("eca").chain(line.iter().copied()).map(OsString::from))
    }

    fn server(level: LogLevel, verbose: bool, config: Option<&str>, log: Option<&str>) -> ServerArgs {
        ServerArgs {
            log_level: level,
            verbose,
            config_file: config.map(PathBuf::from),
            stdio: false,
            log_file: log.map(PathBuf::from),
        }
    }

    #[test]
    fn server_takes_what_it_knows_and_ignores_the_rest() {
        use LogLevel::{Debug, Info, Warn};
        let plain = server(Info, false, None, None);
        let stdio = ServerArgs { stdio: true, ..plain.clone() };
        for (line, expected) in [
            (&["server"][..], plain.clone()),
            (&["server", "--stdio"], stdio.clone()),
            (&["--stdio", "server"], stdio),
            (&["server", "--log-level", "debug", "--verbose"], server(Debug, true, None, None)),
            (&["server", "--log-level=WARN", "--config-file=/a b.json"], server(Warn, false, Some("/a b.json"), None)),
            (&["--log-level", "debug", "server"], server(Debug, false, None, None)),
            (&["--config-file", "server", "server"], server(Info, false, Some("server"), None)),
            (&["server", "--config-file", "-odd", "--log-file", "l"], server(Info, false, Some("-odd"), Some("l"))),
            (&["server", "--log-level", "warn", "--log-level", "debug"], server(Debug, false, None, None)),
            (&["--foo", "server", "--bar", "baz", "-x", "--qux=1", "word", "--"], plain.clone()),
            (&["--foo", "value", "--foo=bar", "server", "--model", "m"], plain.clone()),
            (&["server", "--verbosely", "--log-level-x", "debug"], plain.clone()),
            (&["server", "chat", "server", "é"], plain.clone()),
            (&["server", "stdio", "copilot"], plain),
            (&["server", "--", "--verbose"], server(Info, true, None, None)),
        ] {
            assert_eq!(parsed(line), Ok(Cli::Server(expected)), "{line:?}");
        }
    }

    #[test]
    fn other_contracts_are_as_tolerant() {
        let plain = server(LogLevel::Info, false, None, None);
        let stdio = ServerArgs { stdio: true, ..plain.clone() };
        let warn = ServerArgs { log_level: LogLevel::Warn, ..stdio.clone() };
        for (line, expected) in [
            (&["stdio"][..], Cli::Stdio(plain.clone())),
            (&["--stdio"], Cli::Stdio(stdio.clone())),
            (&["--stdio", "--log-level", "warn"], Cli::Stdio(warn.clone())),
            (&["--unknown", "--stdio"], Cli::Stdio(stdio.clone())),
            (&["stdio", "--from-the-future", "x"], Cli::Stdio(plain.clone())),
            (&["acp"], Cli::Acp(AcpArgs { draft: false, server: plain.clone() })),
            (&["acp", "--new=1", "--draft", "word"], Cli::Acp(AcpArgs { draft: true, server: plain.clone() })),
            (&["--log-level=warn", "acp", "--stdio"], Cli::Acp(AcpArgs { draft: false, server: warn.clone() })),
            (&["copilot", "--draft"], Cli::Copilot(plain.clone())),
            (&["copilot"], Cli::Copilot(plain.clone())),
            (&["copilot", "--stdio", "--new=1", "word"], Cli::Copilot(stdio.clone())),
            (&["--log-level", "warn", "copilot", "--stdio"], Cli::Copilot(warn)),
            (&["--new", "copilot", "server"], Cli::Server(plain.clone())),
        ] {
            assert_eq!(parsed(line), Ok(expected), "{line:?}");
        }
        for name in ["copilot-cli", "/opt/bin/copilot-cli", "copilot-cli.exe"] {
            let run = |line: &[&str]| parse(std::iter::once(name).chain(line.iter().copied()).map(OsString::from));
            assert_eq!(run(&[]), Ok(Cli::Copilot(plain.clone())));
            assert_eq!(run(&["--stdio"]), Ok(Cli::Copilot(stdio.clone())));
            assert_eq!(run(&["server", "chat"]), Ok(Cli::Copilot(plain.clone())), "its name says what it is");
            assert_eq!(run(&["--version"]).unwrap_err().code, 0);
        }
        assert!(matches!(parse(std::iter::empty()), Err(CliExit { code: 1, .. })));
    }

    #[test]
    fn chat_is_strict() {
        let chat = |prompt: &[&str]| ChatArgs {
            prompt: prompt.iter().map(|p| (*p).to_owned()).collect(),
            ..ChatArgs::default()
        };
        let model = |args: ChatArgs| ChatArgs { model: Some("a/b".to_owned()), ..args };
        for (line, expected) in [
            (&["chat"][..], chat(&[])),
            (&["chat", "explain", "server", "chat"], chat(&["explain", "server", "chat"])),
            (&["chat", "--model", "a/b", "hi"], model(chat(&["hi"]))),
            (&["chat", "hi", "--model=a/b"], model(chat(&["hi"]))),
            (&["--model", "a/b", "chat", "hi"], model(chat(&["hi"]))),
            (&["chat", "--json", "--", "-x", "--json"], ChatArgs { json: true, ..chat(&["-x", "--json"]) }),
            (
                &["chat", "--agent", "plan", "--config-file", "f", "--log-level", "debug"],
                ChatArgs {
                    agent: Some("plan".to_owned()),
                    config_file: Some(PathBuf::from("f")),
                    log_level: Some(LogLevel::Debug),
                    ..chat(&[])
                },
            ),
        ] {
            assert_eq!(parsed(line), Ok(Cli::Chat(expected)), "{line:?}");
        }
        for line in
            [&["chat", "--unknown"][..], &["chat", "--model"], &["chat", "--log-level", "loud"], &["--x", "chat"]]
        {
            let exit = parsed(line).unwrap_err();
            assert_eq!((exit.code, exit.to_stdout), (2, false), "{line:?}: {}", exit.text);
        }
    }

    #[test]
    fn configuration_and_trust_are_strict() {
        let show = |file: Option<&str>| {
            Cli::Config(ConfigArgs { command: ConfigCommand::Show { config_file: file.map(PathBuf::from) } })
        };
        let trust = TrustArgs::default();
        for (line, expected) in [
            (&["config", "schema"][..], Cli::Config(ConfigArgs { command: ConfigCommand::Schema })),
            (&["config", "show"], show(None)),
            (&["config", "show", "--config-file", "f"], show(Some("f"))),
            (&["trust"], Cli::Trust(trust.clone())),
            (
                &["trust", "a b", "--yes"],
                Cli::Trust(TrustArgs { path: Some("a b".into()), yes: true, ..trust.clone() }),
            ),
            (&["trust", "--revoke"], Cli::Trust(TrustArgs { revoke: true, ..trust.clone() })),
            (&["trust", "--list"], Cli::Trust(TrustArgs { list: true, ..trust })),
        ] {
            assert_eq!(parsed(line), Ok(expected), "{line:?}");
        }
        for line in [
            &["config"][..],
            &["config", "shwo"],
            &["trust", "--yes", "--revoke"],
            &["trust", "--list", "x"],
            &["trust", "a", "b"],
        ] {
            assert_eq!(parsed(line).unwrap_err().code, 2, "{line:?}");
        }
        // What an editor starts is never anything else.
        for line in [
            &["server", "config"][..],
            &["server", "trust"],
            &["server", "chats"],
            &["--new-flag", "trust", "server"],
            &["--new-flag", "chats", "server"],
        ] {
            assert!(matches!(parsed(line), Ok(Cli::Server(_))), "{line:?}");
        }
    }

    #[test]
    fn chats_are_strict() {
        use ChatsCommand::{Export, Import, List, Search, Show};
        let scope = ChatsScope::default();
        for (line, command) in [
            (&["chats", "list"][..], List { scope: scope.clone() }),
            (
                &["chats", "list", "--all", "--limit", "3", "--json"],
                List { scope: ChatsScope { all: true, limit: Some(3), json: true } },
            ),
            (&["chats", "show", "abc", "--json"], Show { chat: "abc".into(), json: true }),
            (
                &["chats", "search", "two", "words", "--limit=1"],
                Search {
                    words: vec!["two".into(), "words".into()],
                    scope: ChatsScope { limit: Some(1), ..scope.clone() },
                },
            ),
            (&["chats", "search", "--", "--all"], Search { words: vec!["--all".into()], scope }),
            (&["chats", "export", "abc"], Export { chat: "abc".into(), file: None }),
            (&["chats", "export", "abc", "a b"], Export { chat: "abc".into(), file: Some("a b".into()) }),
            (&["chats", "import", "-"], Import { file: Some("-".into()), public: false }),
            (&["chats", "import", "--public"], Import { file: None, public: true }),
        ] {
            assert_eq!(parsed(line), Ok(Cli::Chats(ChatsArgs { command })), "{line:?}");
        }
        for line in [
            &["chats"][..],
            &["chats", "lsit"],
            &["chats", "list", "x"],
            &["chats", "list", "--limit", "-1"],
            &["chats", "show"],
            &["chats", "search"],
            &["chats", "import"],
            &["chats", "import", "--public", "x"],
        ] {
            assert_eq!(parsed(line).unwrap_err().code, 2, "{line:?}");
        }
    }

    #[test]
    fn pages_are_asked_for_strictly() {
        let man = |command: &[&str]| Cli::Man(ManArgs { command: command.iter().map(|&word| word.into()).collect() });
        let bash = Cli::Completions(CompletionsArgs { shell: clap_complete::Shell::Bash });
        for (line, expected) in [
            (&["completions", "bash"][..], bash),
            (&["man"], man(&[])),
            (&["man", "chats", "export"], man(&["chats", "export"])),
            // A word of its own has nothing to say after the command.
            (&["man", "server"], man(&["server"])),
        ] {
            assert_eq!(parsed(line), Ok(expected), "{line:?}");
        }
        for line in [&["completions"][..], &["completions", "tcsh"], &["completions", "bash", "zsh"], &["man", "--all"]]
        {
            assert_eq!(parsed(line).unwrap_err().code, 2, "{line:?}");
        }
        for word in ["completions", "man"] {
            assert!(matches!(parsed(&["server", word]), Ok(Cli::Server(_))), "{word}");
            assert!(matches!(parsed(&["--new-flag", word, "server"]), Ok(Cli::Server(_))), "{word}");
        }
    }

    #[test]
    fn exits() {
        let help_text = "Usage: eca";
        let version_text = format!("eca {}\n", env!("CARGO_PKG_VERSION"));
        for (line, code, to_stdout, contains) in [
            (&[][..], 1, false, help_text),
            (&["--verbose"], 1, false, help_text),
            (&["serve"], 1, false, help_text),
            (&["serve"], 1, false, "unknown command 'serve'"),
            (&["frobnicate", "--stdio"], 1, false, help_text),
            (&["--help"], 0, true, "Examples:"),
            (&["-h"], 0, true, "eca server --log-level debug"),
            (&["help"], 0, true, help_text),
            (&["server", "--help"], 0, true, "--log-file"),
            (&["copilot", "--help"], 0, true, "API specifications"),
            (&["stdio", "--help"], 0, true, "first message"),
            (&["chat", "--help"], 0, true, "--model"),
            (&["--version"], 0, true, &version_text),
            (&["-V"], 0, true, &version_text),
            (&["server", "--version"], 0, true, &version_text),
            (&["server", "--log-level", "loud"], 1, false, "error, warn, info, debug"),
            (&["server", "--log-level=trace"], 1, false, "trace"),
            (&["server", "--log-level"], 1, false, "--log-level"),
            (&["server", "--log-level", "--verbose"], 1, false, "--log-level"),
            (&["--log-level", "loud", "server"], 1, false, "loud"),
        ] {
            let exit = parsed(line).unwrap_err();
            assert_eq!((exit.code, exit.to_stdout), (code, to_stdout), "{line:?}: {}", exit.text);
            assert!(exit.text.contains(contains), "{line:?}: {}", exit.text);
            assert!(exit.text.ends_with('\n') && !exit.text.contains('\u{1b}'), "{line:?}");
        }
        assert_eq!(parsed(&["--version"]).unwrap_err().text, version_text);
    }

    #[cfg(unix)]
    #[test]
    fn arguments_need_not_be_unicode() {
        use std::os::unix::ffi::OsStringExt;
        let odd = OsString::from_vec(vec![b'/', 0xff]);
        let args = [OsString::from("eca"), "server".into(), "--config-file".into(), odd.clone(), odd.clone()];
        let Ok(Cli::Server(server)) = parse(args.into_iter()) else { panic!("must parse") };
        assert_eq!(server.config_file, Some(PathBuf::from(odd.clone())));
        let exit = parse([OsString::from("eca"), "chat".into(), odd].into_iter()).unwrap_err();
        assert_eq!(exit.code, 2);
    }

    #[test]
    fn the_definition_is_consistent() {
        Root::command().debug_assert();
    }
}
