//! `eca chat`: the engine for a person at a terminal, and for a script.
//!
//! With a question, on the command line or piped in, it answers once: the answer on stdout, all
//! else on stderr, and an exit code (0 answered, 1 failed, 2 not asked properly, 130 stopped).
//! Without one, in a terminal, it is a conversation.

mod approval;
mod conversation;
mod editor;
mod input;
mod interactive;
mod markdown;
mod output;
mod screen;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::base::task;
use crate::cli::ChatArgs;
use crate::config::commands::Memory;
use crate::config::load::{self, Loaded, ProcessEnvironment};
use crate::engine::{Engine, Event, EventSink, NoticeLevel, Pace};
use crate::frontends::Surroundings;
use crate::frontends::assemble::{Wishes, trust_command, withheld_text, workspace_in};
use crate::frontends::eca::Lines;
use crate::host::NoHost;
use crate::mcp::{self, ServerEvent};
use crate::process::signals::{Asked, Requests};
use conversation::{Conversation, INTERRUPTED, Outcome};
use editor::LineEditor;
use input::{InputError, Question};
use output::{Form, Output};
use screen::{Look, Stream};

const FAILED: i32 = 1;
const USAGE: i32 = 2;

/// A server on this machine answers within this time, or it is not there.
const LOCAL_MODELS_WAIT: Duration = Duration::from_secs(1);
/// Configured providers are elsewhere, and one of them is the one that is wanted.
const MODELS_WAIT: Duration = Duration::from_secs(5);
/// A pipe that is silent for so long may be one that nobody meant.
const STDIN_HINT_AFTER: Duration = Duration::from_secs(2);

/// Where the program was started.
#[derive(Debug)]
pub struct Place {
    pub environment: ProcessEnvironment,
    pub folder: Option<PathBuf>,
}

/// Runs `eca chat`; returns the exit code.
pub async fn run(args: ChatArgs, place: Place) -> i32 {
    let mut requests = Requests::listen();
    if let Some(file) = args.config_file.as_ref().filter(|file| !file.exists()) {
        return complain(&format!("the configuration file {} does not exist", file.display()), USAGE);
    }
    let interactive = args.prompt.iter().all(|word| word.trim().is_empty()) && is_interactive();
    let question = if interactive {
        None
    } else {
        match question(&args.prompt, &mut requests).await {
            Ok(question) => Some(question),
            Err(NoQuestion::Input(error)) => return complain(&error.to_string(), USAGE),
            Err(NoQuestion::Asked(code)) => return code,
        }
    };
    let data = place.environment.dirs.data.clone();
    let conversation = match begin(args, place, requests, interactive).await {
        Ok(conversation) => conversation,
        Err(code) => return code,
    };
    let (conversation, code) = match question {
        Some(question) => ask_once(conversation, question).await,
        None => {
            let editor = LineEditor::new(&data, look().err == Stream::Colours);
            interactive::run(conversation, editor).await
        }
    };
    let Conversation { engine, output, .. } = conversation;
    output.let_go();
    if let Err(error) = engine.shutdown().await {
        tracing::error!(%error, "shutdown");
    }
    output.close().await;
    code
}

async fn ask_once(mut conversation: Conversation, question: Question) -> (Conversation, i32) {
    let outcome = conversation.ask(question).await;
    let code = outcome.exit_code();
    if let (Outcome::OutputGone(error), true) = (&outcome, code != 0) {
        complain(&format!("the answer cannot be written: {error}"), code);
    }
    (conversation, code)
}

/// Builds everything a conversation needs; an error is an exit code, and has been told.
async fn begin(args: ChatArgs, place: Place, mut requests: Requests, interactive: bool) -> Result<Conversation, i32> {
    let surroundings = Surroundings { environment: place.environment, config_file: args.config_file };
    let workspace = workspace_in(place.folder.as_deref());
    let workspace_roots = workspace.roots().iter().map(|root| root.path.clone()).collect();
    let wishes = Wishes { options: None, workspace_roots };
    let mut memory = Memory::default();
    let mut loaded = tokio::select! {
        loaded = surroundings.complete_configuration(&wishes, &mut memory) => loaded,
        asked = requests.next() => return Err(code_of(asked)),
    };
    // A title is for lists of chats; a single question is not worth a second call of the model.
    loaded.config.chat.title &= interactive;
    let lines = args.json.then(|| Arc::new(Lines::default()));
    let form = lines.clone().map_or_else(|| Form::Screen(look()), Form::Json);
    let output = Output::start(form).map_err(|error| complain(&error.to_string(), FAILED))?;
    let servers = surroundings.servers(false, server_news(output.sink()));
    servers.configure(&loaded.config, &workspace);
    let engine = surroundings.engine(&mut loaded, output.sink(), Arc::new(NoHost), servers, Pace::Normal);
    report_problems(&output, lines.as_deref(), &engine, &loaded).await;

    let agents = engine.catalog().agents;
    if let Some(unknown) = args.agent.as_ref().filter(|agent| !agents.contains(agent)) {
        return Err(complain(&format!("there is no agent named {unknown:?}; there are {}", agents.join(", ")), USAGE));
    }
    let can_ask = !args.json && can_ask();
    let agent =
        args.agent.or_else(|| agents.contains(&loaded.config.default_agent).then_some(loaded.config.default_agent));
    let mut conversation = Conversation {
        engine,
        output,
        requests,
        workspace,
        agent,
        model: args.model,
        chat: None,
        stopped: None,
        trust: args.trust,
        can_ask,
    };
    let patience = if loaded.config.providers.is_empty() { LOCAL_MODELS_WAIT } else { MODELS_WAIT };
    find_models(&mut conversation, interactive, patience).await?;
    Ok(conversation)
}

/// What the user must know of MCP servers is shown; the rest is for the log.
fn server_news(sink: Arc<dyn EventSink>) -> Arc<dyn Fn(ServerEvent) + Send + Sync> {
    Arc::new(move |event| {
        tracing::info!(?event, "MCP");
        let (level, text) = match event {
            ServerEvent::Updated(_) | ServerEvent::Removed { .. } => return,
            ServerEvent::Notice { level: mcp::NoticeLevel::Info, text, .. } => (NoticeLevel::Info, text),
            ServerEvent::Notice { level: mcp::NoticeLevel::Warning, text, .. } => (NoticeLevel::Warning, text),
            ServerEvent::Authorize { server, url } => {
                (NoticeLevel::Info, format!("MCP server {server}: open this address to log in: {url}"))
            }
        };
        if let Some(told) = sink.emit(Event::Notice { level, text }) {
            task::spawn(told);
        }
    })
}

async fn report_problems(output: &Output, lines: Option<&Lines>, engine: &Engine, loaded: &Loaded) {
    match lines {
        Some(lines) => {
            for line in lines.start(engine, loaded) {
                output.line(line).await;
            }
        }
        None => {
            for problem in &loaded.problems {
                let text = format!("configuration: {problem}");
                output.event(Event::Notice { level: NoticeLevel::Warning, text }).await;
            }
            for withheld in &loaded.withheld {
                let text = format!("{} {}", withheld_text(withheld), trust_command(withheld));
                output.event(Event::Notice { level: NoticeLevel::Warning, text }).await;
            }
        }
    }
}

/// Waits for the model that is wanted, as long as it is worth it. A person may choose another one
/// later, so an interactive chat always asks for all of them.
async fn find_models(conversation: &mut Conversation, interactive: bool, patience: Duration) -> Result<(), i32> {
    let catalog = conversation.engine.catalog();
    let known = match &conversation.model {
        Some(name) => conversation.engine.registry().resolve(name, None).is_ok(),
        // The guide, which is listed last, stands in while nothing else is known.
        None => catalog.models.last().is_none_or(|guide| guide.id != catalog.default_model),
    };
    if known && !interactive {
        return Ok(());
    }
    let engine = conversation.engine.clone();
    let refresh = task::spawn(async move { engine.refresh_models().await });
    if known {
        return Ok(());
    }
    tokio::select! {
        _ = tokio::time::timeout(patience, refresh) => Ok(()),
        asked = conversation.requests.next() => Err(code_of(asked)),
    }
}

enum NoQuestion {
    Input(InputError),
    Asked(i32),
}

async fn question(words: &[String], requests: &mut Requests) -> Result<Question, NoQuestion> {
    let asked_in_words = words.iter().any(|word| !word.trim().is_empty());
    if asked_in_words && io::stdin().is_terminal() {
        return input::combine(words, None).map_err(NoQuestion::Input);
    }
    let mut reading = task::blocking(|| input::read(io::stdin().lock()));
    let hint_after = if io::stdin().is_terminal() { Duration::ZERO } else { STDIN_HINT_AFTER };
    let mut hint = std::pin::pin!(tokio::time::sleep(hint_after));
    let mut hinted = !io::stderr().is_terminal();
    let read = loop {
        tokio::select! {
            biased;
            read = &mut reading => break read,
            asked = requests.next() => return Err(NoQuestion::Asked(code_of(asked))),
            () = &mut hint, if !hinted => {
                hinted = true;
                let _ = writeln!(io::stderr(), "Reading stdin to its end (Ctrl-D in a terminal)…");
            }
        }
    };
    let piped = read.map_err(|error| NoQuestion::Input(InputError::Unreadable(io::Error::other(error))))?;
    piped.and_then(|piped| input::combine(words, Some(piped))).map_err(NoQuestion::Input)
}

fn code_of(asked: Asked) -> i32 {
    match asked {
        Asked::Interrupt => INTERRUPTED,
        Asked::End(code) => code,
    }
}

/// The line editor needs all three to be a terminal: it reads one, writes one and asks the third
/// where the cursor is.
fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal()
}

/// A question stands on stderr, and keys are read from stdin.
fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

fn look() -> Look {
    let variable = |name: &str| load::process_variable(name).unwrap_or_default();
    let colours = variable("NO_COLOR").is_empty() && variable("TERM") != "dumb";
    let stream = |is_terminal: bool| match (is_terminal, colours) {
        (false, _) => Stream::Bytes,
        (true, false) => Stream::Plain,
        (true, true) => Stream::Colours,
    };
    Look { out: stream(io::stdout().is_terminal()), err: stream(io::stderr().is_terminal()), can_ask: can_ask() }
}

/// To stderr, in the style of the command line's own complaints.
fn complain(text: &str, code: i32) -> i32 {
    let _ = writeln!(io::stderr(), "error: {text}");
    code
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures_util::future::BoxFuture;

    use super::*;

    #[derive(Default)]
    struct Shown(Mutex<Vec<Event>>);

    impl EventSink for Shown {
        fn emit(&self, event: Event) -> Option<BoxFuture<'static, ()>> {
            self.0.lock().unwrap().push(event);
            None
        }
    }

    #[test]
    fn what_servers_want_of_the_user_is_shown() {
        let shown = Arc::new(Shown::default());
        let news = server_news(Arc::clone(&shown) as Arc<dyn EventSink>);
        let text = "it was given up".to_owned();
        news(ServerEvent::Notice { server: "s".into(), level: mcp::NoticeLevel::Warning, text: text.clone() });
        news(ServerEvent::Authorize { server: "s".into(), url: "https://x/login".into() });
        news(ServerEvent::Removed { name: "s".into() });
        let shown = shown.0.lock().unwrap();
        assert_eq!(shown[0], Event::Notice { level: NoticeLevel::Warning, text });
        assert!(
            matches!(&shown[1..], [Event::Notice { level: NoticeLevel::Info, text }] if text.contains("https://x/login"))
        );
    }
}
