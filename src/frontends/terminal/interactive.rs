//! The interactive chat: a prompt, commands that begin with a slash, and one turn per question.

use std::io::{self, Write};

use super::conversation::{Conversation, INTERRUPTED, Outcome};
use super::editor::{self, LineEditor, Typed};
use super::input::Question;
use crate::base::task;
use crate::process::signals::Asked;

const HELP: &str = "\
/model         list the models
/model NAME    use another model
/new           begin a new chat
/login         enter the API key of a provider
/help          show this
/quit          leave (or Ctrl-D)
Alt-Enter, or a backslash at the end of a line, begins another line.
Ctrl-C stops an answer; twice, it leaves.";

/// A line that is for us and not for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Command {
    Help,
    ListModels,
    UseModel(String),
    New,
    Quit,
}

/// Talks until the user leaves; returns the exit code.
pub(super) async fn run(mut conversation: Conversation, editor: LineEditor) -> (Conversation, i32) {
    say(&format!("ECA {}, {}. /help lists what you can do, Ctrl-D leaves.", env!("CARGO_PKG_VERSION"), {
        current_model(&conversation)
    }));
    let mut editor = Some(editor);
    let code = loop {
        let text = match read(&mut conversation, &mut editor).await {
            Ok(Typed::Text(text)) => text,
            Ok(Typed::Nothing) if conversation.was_just_stopped() => break INTERRUPTED,
            Ok(Typed::Nothing) => continue,
            Ok(Typed::Leave) => break 0,
            Err(Left::Asked(code)) => break code,
            Err(Left::Broken(error)) => {
                say(&format!("error: the terminal cannot be read: {error}"));
                break 1;
            }
        };
        if text.trim().is_empty() {
            continue;
        }
        let for_us = if conversation.is_logging_in() { None } else { command(&text) };
        match for_us {
            Some(Command::Quit) => break 0,
            Some(command) => obey(&mut conversation, command),
            None => {
                let outcome = conversation.ask(Question { text, contexts: Vec::new() }).await;
                if matches!(outcome, Outcome::Leave(_) | Outcome::OutputGone(_)) {
                    break outcome.exit_code();
                }
                say("");
            }
        }
    };
    (conversation, code)
}

enum Left {
    Asked(i32),
    Broken(io::Error),
}

/// Reads at the prompt, in a thread of its own because the editor blocks.
async fn read(conversation: &mut Conversation, editor: &mut Option<LineEditor>) -> Result<Typed, Left> {
    let Some(mut taken) = editor.take() else { return Ok(Typed::Leave) };
    conversation.output.prompting(true).await;
    let login = conversation.is_logging_in();
    let mut reading = task::blocking(move || {
        let typed = if login { LineEditor::read_untraced() } else { taken.read() };
        (taken, typed)
    });
    let (given_back, typed) = loop {
        tokio::select! {
            done = &mut reading => break done.map_err(|error| Left::Broken(io::Error::other(error)))?,
            asked = conversation.requests.next() => match asked {
                // At the prompt Ctrl-C is a key; a signal of that name has nothing to stop.
                Asked::Interrupt => {}
                Asked::End(code) => {
                    editor::restore_terminal();
                    return Err(Left::Asked(code));
                }
            },
        }
    };
    *editor = Some(given_back);
    conversation.output.prompting(false).await;
    typed.map_err(Left::Broken)
}

fn command(line: &str) -> Option<Command> {
    let mut words = line.split_whitespace();
    let name = words.next()?;
    let rest: Vec<&str> = words.collect();
    match (name, &rest[..]) {
        ("/help", []) => Some(Command::Help),
        ("/model", []) => Some(Command::ListModels),
        ("/model", [model]) => Some(Command::UseModel((*model).to_owned())),
        ("/new", []) => Some(Command::New),
        ("/quit" | "/exit", []) => Some(Command::Quit),
        _ => None,
    }
}

fn obey(conversation: &mut Conversation, command: Command) {
    match command {
        Command::Help => say(HELP),
        Command::ListModels => {
            let current = current_model(conversation);
            for model in conversation.engine.catalog().models.iter() {
                let mark = if model.id.as_str() == current { '*' } else { ' ' };
                say(&format!("{mark} {}", model.id));
            }
        }
        Command::UseModel(name) => match conversation.engine.registry().resolve(&name, None) {
            Ok(model) => {
                say(&format!("{model} answers from now on."));
                conversation.model = Some(model.to_string());
            }
            Err(unknown) => {
                let close: Vec<String> = unknown.close.iter().map(ToString::to_string).collect();
                let hint =
                    if close.is_empty() { String::new() } else { format!(" Close to it: {}.", close.join(", ")) };
                say(&format!("There is no model named {}.{hint} /model lists them.", unknown.wanted));
            }
        },
        Command::New => {
            conversation.chat = None;
            say("A new chat begins.");
        }
        Command::Quit => {}
    }
}

fn current_model(conversation: &Conversation) -> String {
    let wanted = conversation.model.as_deref().unwrap_or_default();
    match conversation.engine.registry().resolve(wanted, None) {
        Ok(model) => model.to_string(),
        Err(unknown) => unknown.wanted,
    }
}

/// To the terminal, beside the answers. Nobody has to read it.
fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_commands_are_ours() {
        for (line, expected) in [
            ("/help", Some(Command::Help)),
            (" /model ", Some(Command::ListModels)),
            ("/model a/b", Some(Command::UseModel("a/b".into()))),
            ("/new", Some(Command::New)),
            ("/quit", Some(Command::Quit)),
            ("/exit", Some(Command::Quit)),
            ("/doctor", None),
            ("/new york", None),
            ("/models", None),
            ("what does /help do?", None),
            ("", None),
        ] {
            assert_eq!(command(line), expected, "{line:?}");
        }
    }
}
