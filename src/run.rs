//! Puts a front end on its feet: limits, logging, runtime, and a clean end.

use std::io::Write;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::cli::{self, ChatArgs, ChatsArgs, Cli, CliExit, ServerArgs, pages};
use crate::config::load;
use crate::frontends::{Surroundings, acp, chats, copilot, eca, manage, stdio, terminal};
use crate::logging::{self, LogLevel, LogOptions};
use crate::process::{guard, home, limits, parent};
use crate::transport::standard_streams;

/// Two threads serve any number of chats: nothing on them blocks or computes for long.
const WORKERS: usize = 2;

/// Everything `main` does.
pub fn run() -> ExitCode {
    if let Some(code) = guard::run_if_asked(cli::process_arguments(), cli::temporary_directory) {
        std::process::exit(code);
    }
    if let Some(path) = cli::own_executable() {
        guard::use_own_executable(path);
    }
    if let Some(path) = cli::home_directory() {
        home::use_home(path);
    }
    // The standard hook writes to stderr itself, which may be blocked.
    std::panic::set_hook(Box::new(|info| tracing::error!("panic: {info}")));
    parent::remember_parent();
    limits::raise_nofile();
    match cli::parse(cli::process_arguments()) {
        Ok(Cli::Server(args)) => server(args, Contract::Eca),
        Ok(Cli::Acp(args)) => server(args.server, if args.draft { Contract::AcpDraft } else { Contract::Acp }),
        Ok(Cli::Copilot(args)) => server(args, Contract::Copilot),
        Ok(Cli::Stdio(args)) => server(args, Contract::OfTheClient),
        Ok(Cli::Chat(args)) => chat(args),
        Ok(Cli::Config(args)) => exit_code(manage::config(args, load::process_environment(), cli::current_directory())),
        Ok(Cli::Trust(args)) => exit_code(manage::trust(args, load::process_environment(), cli::current_directory())),
        Ok(Cli::Chats(args)) => kept_chats(args),
        Ok(Cli::Completions(args)) => leave_at_once(&pages::completions(&args)),
        Ok(Cli::Man(args)) => leave_at_once(&pages::manual(&args)),
        Err(exit) => leave_at_once(&exit),
    }
}

/// What is spoken on stdin and stdout.
#[derive(Clone, Copy)]
enum Contract {
    Eca,
    Acp,
    AcpDraft,
    Copilot,
    /// What the first message says.
    OfTheClient,
}

fn server(args: ServerArgs, contract: Contract) -> ExitCode {
    let log = logging::init(LogOptions { level: args.log_level, verbose: args.verbose, log_file: args.log_file });
    let surroundings = Surroundings { environment: load::process_environment(), config_file: args.config_file };
    let code = match serve(surroundings, contract) {
        Ok(()) => 0,
        Err(error) => {
            tracing::error!(%error, "the server could not start");
            1
        }
    };
    drop(log);
    // Not a return: threads that are blocked on stdin or a stuck stdout must not keep us alive.
    std::process::exit(code)
}

fn serve(surroundings: Surroundings, contract: Contract) -> std::io::Result<()> {
    let (input, output) = (standard_streams::raw_stdin()?, standard_streams::raw_stdout()?);
    let serving: BoxFuture<'_, std::io::Result<()>> = match contract {
        Contract::Eca => Box::pin(eca::serve(input, output, surroundings)),
        Contract::Acp => Box::pin(acp::serve(input, output, surroundings)),
        Contract::AcpDraft => Box::pin(stdio::serve_as(stdio::Contract::AcpDraft, input, output, surroundings)),
        Contract::Copilot => Box::pin(copilot::serve(input, output, surroundings)),
        Contract::OfTheClient => Box::pin(stdio::serve(input, output, surroundings)),
    };
    let runtime = runtime()?;
    // On this thread, because the others are still about to start.
    let served = runtime.block_on(AssertUnwindSafe(serving).catch_unwind());
    runtime.shutdown_background();
    served.unwrap_or_else(|_| Err(std::io::Error::other("it failed inside; the log has the details")))
}

fn chat(args: ChatArgs) -> ExitCode {
    let level = args.log_level.unwrap_or(LogLevel::Error);
    let log = logging::init(LogOptions { level, verbose: false, log_file: None });
    let place = terminal::Place { environment: load::process_environment(), folder: cli::current_directory() };
    let code = match runtime() {
        Ok(runtime) => {
            let code = runtime.block_on(terminal::run(args, place));
            runtime.shutdown_background();
            code
        }
        Err(error) => {
            tracing::error!(%error, "the terminal chat could not start");
            1
        }
    };
    drop(log);
    std::process::exit(code)
}

fn kept_chats(args: ChatsArgs) -> ExitCode {
    let log = logging::init(LogOptions { level: LogLevel::Error, verbose: false, log_file: None });
    let code = match runtime() {
        Ok(runtime) => {
            runtime.block_on(chats::run(args.command, &load::process_environment().dirs, cli::current_directory()))
        }
        Err(error) => {
            tracing::error!(%error, "the chats could not be looked at");
            1
        }
    };
    drop(log);
    exit_code(code)
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).thread_name("eca-worker").enable_all().build()
}

fn leave_at_once(exit: &CliExit) -> ExitCode {
    // A closed stream is no reason to complain about a help text.
    let _ = if exit.to_stdout {
        writeln!(std::io::stdout(), "{}", exit.text.trim_end())
    } else {
        writeln!(std::io::stderr(), "{}", exit.text.trim_end())
    };
    exit_code(exit.code)
}

fn exit_code(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
