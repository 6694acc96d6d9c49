//! `chat`: questions about the application and what it shows, with a short memory per tab.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::budget::Budget;
use super::failure::Failure;
use super::job::{End, Job, Spoken};
use super::params::{By, Chat, Said};
use super::prompts;
use crate::base::text::one_line;
use crate::llm::{ModelInfo, Role};

const MOST_SUGGESTIONS: usize = 3;
const LONGEST_SUGGESTION: usize = 120;
const MOST_TABS: usize = 64;
/// Of one tab: messages, and bytes of them.
const MOST_MESSAGES: usize = 20;
const MOST_BYTES: usize = 32 * 1024;

/// What was said in the tabs; those not used for long are forgotten.
#[derive(Debug, Default)]
pub(super) struct Tabs(VecDeque<(String, VecDeque<Said>)>);

impl Tabs {
    fn history(&self, tab: &str) -> Vec<Said> {
        self.0.iter().find(|(name, _)| name == tab).map(|(_, said)| said.iter().cloned().collect()).unwrap_or_default()
    }

    fn remember(&mut self, tab: &str, question: &str, answer: &str) {
        let known = self.0.iter().position(|(name, _)| name == tab).and_then(|at| self.0.remove(at));
        let (name, mut said) = known.unwrap_or_else(|| (tab.to_owned(), VecDeque::new()));
        said.push_back(Said { by: By::User, text: question.to_owned() });
        said.push_back(Said { by: By::Assistant, text: answer.to_owned() });
        // In pairs, so that the memory always begins with a question.
        while said.len() > MOST_MESSAGES || said.iter().map(|said| said.text.len()).sum::<usize>() > MOST_BYTES {
            said.drain(..2);
        }
        self.0.push_back((name, said));
        while self.0.len() > MOST_TABS {
            self.0.pop_front();
        }
    }
}

pub(super) async fn run(job: &mut Job<'_>, chat: Chat) -> Result<Value, Failure> {
    job.chunks.only_if(chat.stream);
    job.release_input();
    let answer = match job.desk.backend.model().await {
        Some(model) => from_model(job, &model, &chat).await?,
        None => {
            let message = without_model(&chat);
            job.pass_on(&message).await?;
            job.all_passed_on().await?;
            Answer { message, suggestions: Vec::new() }
        }
    };
    if let Some(tab) = &chat.tab {
        job.desk.tabs().remember(tab, &chat.message, &answer.message);
    }
    let suggestions = if answer.suggestions.is_empty() { usual_suggestions(&chat) } else { answer.suggestions };
    Ok(json!({"message": answer.message, "suggestions": suggestions}))
}

#[derive(Debug, PartialEq, Eq)]
struct Answer {
    message: String,
    suggestions: Vec<String>,
}

async fn from_model(job: &mut Job<'_>, model: &ModelInfo, chat: &Chat) -> Result<Answer, Failure> {
    let desk = job.desk;
    let system = prompts::chat_system(chat);
    let history = chat.tab.as_deref().map(|tab| desk.tabs().history(tab)).unwrap_or_default();
    let fitting = Budget::of(Some(model)).fit(system.len() + chat.message.len(), None, history)?;
    let mut messages = prompts::earlier(&fitting.history);
    messages.push(prompts::message(Role::User, chat.message.as_str()));
    let _slot = desk.models.acquire().await;
    let answer = job.ask(model, &system, &messages, &[])?;
    let mut spoken = Spoken::default();
    let end = job.listen(answer, &mut spoken, str::to_owned).await?;
    if let (End::Cut(failure), true) = (end, spoken.text.trim().is_empty()) {
        return Err(failure);
    }
    if spoken.text.trim().is_empty() {
        return Err(Failure::unusable(job.work, "The model gave an empty answer"));
    }
    job.all_passed_on().await?;
    // What was streamed is the message, to the letter.
    Ok(if chat.stream { Answer { message: spoken.text, suggestions: Vec::new() } } else { read(&spoken.text) })
}

/// An object with a message, or simply the message.
fn read(said: &str) -> Answer {
    let inside = said.trim();
    let inside = inside.strip_prefix("```json").or_else(|| inside.strip_prefix("```")).unwrap_or(inside);
    let inside = inside.trim().trim_end_matches('`').trim_end();
    if let Ok(Value::Object(object)) = serde_json::from_str::<Value>(inside)
        && let Some(message) = object.get("message").and_then(Value::as_str).filter(|text| !text.trim().is_empty())
    {
        let list = object.get("suggestions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let texts = list.iter().filter_map(Value::as_str).map(|text| one_line(text, LONGEST_SUGGESTION));
        let suggestions = texts.filter(|text| !text.is_empty()).take(MOST_SUGGESTIONS).collect();
        return Answer { message: message.to_owned(), suggestions };
    }
    Answer { message: said.trim().to_owned(), suggestions: Vec::new() }
}

/// What somebody can do next, by what there is.
fn usual_suggestions(chat: &Chat) -> Vec<String> {
    let suggestions = match (chat.has_spec, chat.has_interface) {
        (_, true) => ["Add a search field", "Change the theme", "Explain what the interface does"],
        (true, false) => ["Generate an interface", "List the endpoints", "Describe the data models"],
        (false, false) => ["Open a specification file", "Load a specification from a URL", "Paste a specification"],
    };
    suggestions.map(str::to_owned).to_vec()
}

fn without_model(chat: &Chat) -> String {
    let next = match (chat.has_spec, chat.has_interface) {
        (_, true) => "The interface that is shown can be used and generated again; changing it needs a model.",
        (true, false) => "An interface can be generated from the loaded specification without a model.",
        (false, false) => "Load a specification, and an interface can be generated from it without a model.",
    };
    format!(
        "OpenAPI 3.0 and 3.1, Swagger 2.0 and GraphQL (schema language or introspection) are supported, as a file, from a \
         URL or pasted. {next} No language model is connected, so I cannot answer freely: start a local one such as \
         Ollama, or name a provider in ~/.config/eca/config.json."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(message: &str, suggestions: &[&str]) -> Answer {
        Answer { message: message.into(), suggestions: suggestions.iter().map(|text| (*text).to_owned()).collect() }
    }

    #[test]
    fn an_answer_is_read_however_it_is_written() {
        let object = r#"{"message": "Yes.", "suggestions": ["a", " b\n", 5, "c", "d"]}"#;
        for said in [object.to_owned(), format!("```json\n{object}\n```"), format!("```\n{object}\n```\n")] {
            assert_eq!(read(&said), answer("Yes.", &["a", "b", "c"]), "{said}");
        }
        assert_eq!(read(r#"{"message": "Yes."}"#), answer("Yes.", &[]));
        for said in ["Plain words.", r#"{"answer": 5}"#, r#"{"message": ""}"#, "{broken"] {
            assert_eq!(read(&format!(" {said}\n")), answer(said, &[]));
        }
    }

    #[test]
    fn a_tab_remembers_a_little() {
        let mut tabs = Tabs::default();
        for number in 0..15 {
            tabs.remember("a", &format!("q{number}"), "x");
        }
        assert_eq!(tabs.history("a").len(), MOST_MESSAGES);
        assert_eq!(tabs.history("a")[0].text, "q5");
        tabs.remember("a", &"long ".repeat(5000), &"long ".repeat(5000));
        assert_eq!(tabs.history("a"), [], "too long to be remembered");
        assert_eq!(tabs.history("b"), []);
        for number in 0..100 {
            tabs.remember(&format!("tab{number}"), "q", "a");
            tabs.remember("a", "q", "a");
        }
        assert_eq!((tabs.0.len(), tabs.history("tab0").len()), (MOST_TABS, 0));
        assert_eq!(tabs.history("a").len(), MOST_MESSAGES);
    }
}
