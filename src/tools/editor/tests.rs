//! The tools against a client that answers by script.

use std::collections::VecDeque;
use std::sync::Mutex;

use super::testing::tool_context;
use super::*;
use crate::base::ChatId;
use crate::host::{Host, Location};
use crate::tool::Content;

type Answer = Result<Locations, HostError>;

/// Answers in the order of its script, then never.
#[derive(Default)]
struct Editor {
    diagnostics: Option<Result<Vec<Diagnostic>, HostError>>,
    locations: Mutex<VecDeque<Answer>>,
    unsaved: Option<String>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Editor {
    fn locating(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self { locations: Mutex::new(answers.into_iter().collect()), ..Self::default() }
    }

    fn note(&self, what: String) {
        self.asked.lock().unwrap().push(what);
    }

    fn locate(&self) -> BoxFuture<'_, Answer> {
        let next = self.locations.lock().unwrap().pop_front();
        Box::pin(async move {
            match next {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        })
    }
}

impl Host for Editor {
    fn capabilities(&self) -> Capabilities {
        Capabilities { diagnostics: true, definition: true, references: true, ..Capabilities::default() }
    }

    fn diagnostics(&self, path: Option<PathBuf>) -> BoxFuture<'_, Result<Vec<Diagnostic>, HostError>> {
        self.note(format!("{path:?}"));
        match &self.diagnostics {
            Some(answer) => Box::pin(std::future::ready(answer.clone())),
            None => Box::pin(std::future::pending()),
        }
    }

    fn definition(&self, place: SymbolPlace) -> BoxFuture<'_, Answer> {
        self.note(format!("definition {}:{}", place.line, place.column));
        self.locate()
    }

    fn references(&self, place: SymbolPlace, include_declaration: bool) -> BoxFuture<'_, Answer> {
        self.note(format!("references {}:{} {include_declaration}", place.line, place.column));
        self.locate()
    }

    fn unsaved(&self, _: ChatId, _: PathBuf) -> BoxFuture<'_, Option<String>> {
        Box::pin(std::future::ready(self.unsaved.clone()))
    }
}

async fn run(tool: &dyn Tool, arguments: Value, roots: &[PathBuf], editor: Editor) -> (bool, String) {
    let output = tool.run(arguments.as_object().cloned().unwrap(), tool_context(roots, editor)).await;
    let [Content::Text(text)] = &output.contents[..] else { panic!("{output:?}") };
    (output.error, text.clone())
}

fn diagnostics() -> Diagnostics {
    Diagnostics::new(Duration::from_millis(200))
}

fn navigation(goal: Goal) -> Navigation {
    Navigation { ask_again: Duration::from_millis(1), ..Navigation::new(goal, Duration::from_millis(200)) }
}

fn diagnostic(line: u64, severity: Severity, code: Option<&str>, message: &str) -> Diagnostic {
    Diagnostic {
        path: "/w/a.rs".into(),
        severity,
        code: code.map(Into::into),
        start: (line, 5),
        end: (line, 9),
        source: None,
        message: message.into(),
    }
}

#[tokio::test]
async fn diagnostics_are_one_per_line() {
    let found = vec![
        diagnostic(3, Severity::Error, Some("E0308"), "mismatched types\nexpected u32"),
        diagnostic(4, Severity::Warning, None, "unused"),
        diagnostic(5, Severity::Information, None, "so"),
        diagnostic(6, Severity::Hint, Some("h"), ""),
    ];
    let editor = Editor { diagnostics: Some(Ok(found)), ..Editor::default() };
    let asked = Arc::clone(&editor.asked);
    let (error, text) = run(&diagnostics(), json!({}), &[], editor).await;
    assert!(!error);
    assert_eq!(
        text,
        "/w/a.rs:3:5: error: [E0308] mismatched types expected u32\n/w/a.rs:4:5: warning: unused\n\
         /w/a.rs:5:5: information: so\n/w/a.rs:6:5: hint: [h] "
    );
    assert_eq!(*asked.lock().unwrap(), ["None"]);
    let many = vec![diagnostic(1, Severity::Hint, None, "x"); MOST_DIAGNOSTICS + 3];
    let editor = Editor { diagnostics: Some(Ok(many)), ..Editor::default() };
    let (_, text) = run(&diagnostics(), json!({"path": ""}), &[], editor).await;
    assert!(text.ends_with("\n… and 3 more"), "{text}");
}

#[tokio::test]
async fn diagnostics_that_cannot_be_had_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let roots = [folder.path().to_owned()];
    for (path, answer, expected) in [
        (Some("."), None, "is a directory"),
        (Some("a.rs"), Some(Ok(Vec::new())), "no problems"),
        (None, Some(Err(HostError::Gone)), "the editor is gone"),
        (None, None, "did not answer in time"),
    ] {
        let is_error = !matches!(answer, Some(Ok(_)));
        let editor = Editor { diagnostics: answer, ..Editor::default() };
        let (error, text) = run(&diagnostics(), json!({"path": path}), &roots, editor).await;
        assert_eq!((error, text.contains(expected)), (is_error, true), "{path:?}: {text}");
    }
}

fn located(path: &Path, line: u64) -> Location {
    Location { path: path.to_owned(), line, column: 2 }
}

#[tokio::test]
async fn a_symbol_is_looked_up_where_it_stands() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.rs");
    std::fs::write(&file, "fn é() {}\n   é 😀 foo(foo)\n").unwrap();
    let found = || Ok(Locations::Found(vec![located(&file, 1), located(Path::new("/gone.rs"), 7)]));
    let roots = [folder.path().to_owned()];
    for (goal, arguments, asked) in [
        (Goal::Definition, json!({"path": file, "line": 2, "symbol": "foo"}), "definition 2:9"),
        (Goal::Definition, json!({"path": "a.rs", "line": "2", "symbol": "foo", "character": 13}), "definition 2:13"),
        (Goal::References, json!({"path": file, "line": 1, "symbol": "é"}), "references 1:4 true"),
        (
            Goal::References,
            json!({"path": file, "line": 1, "symbol": "é", "include_declaration": false}),
            "references 1:4 false",
        ),
    ] {
        let editor = Editor::locating([Ok(Locations::Starting), found()]);
        let record = Arc::clone(&editor.asked);
        let (error, text) = run(&navigation(goal), arguments.clone(), &roots, editor).await;
        assert_eq!(
            (error, text),
            (false, format!("{}:1:2: fn é() {{}}\n/gone.rs:7:2:", file.display())),
            "{arguments}"
        );
        assert_eq!(*record.lock().unwrap(), [asked, asked], "asked again while it was starting: {arguments}");
    }
    // What the editor holds and has not saved counts.
    let editor = Editor { unsaved: Some("\n\n    foo".into()), ..Editor::locating([found()]) };
    let record = Arc::clone(&editor.asked);
    let arguments = json!({"path": file, "line": 3, "symbol": "foo"});
    assert!(!run(&navigation(Goal::Definition), arguments, &roots, editor).await.0);
    assert_eq!(*record.lock().unwrap(), ["definition 3:5"]);
}

#[tokio::test]
async fn references_are_capped_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.rs");
    std::fs::write(&file, "x\n".repeat(300)).unwrap();
    let many = (1..=250).map(|line| located(&file, line)).collect();
    let arguments = json!({"path": file, "line": 1, "symbol": "x"});
    let editor = Editor::locating([Ok(Locations::Found(many))]);
    let (_, text) = run(&navigation(Goal::References), arguments, &[], editor).await;
    assert_eq!(text.lines().count(), 101);
    assert!(text.ends_with("\n… and 150 more"), "{text}");
}

#[tokio::test]
async fn what_does_not_work_suggests_another_way() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.rs");
    std::fs::write(&file, "foo\n").unwrap();
    let good = json!({"path": file, "line": 1, "symbol": "foo"});
    for (answers, expected) in [
        (vec![Ok(Locations::NoServer)], "has no language server"),
        (vec![Ok(Locations::Failed("it\nbroke".into()))], "failed: it broke."),
        (vec![Ok(Locations::Found(Vec::new()))], "knows nothing about \"foo\""),
        (vec![Err(HostError::Unsupported)], "The editor cannot do this."),
        (vec![], "did not answer in time"),
        ((0..10_000).map(|_| Ok(Locations::Starting)).collect(), "still starting"),
    ] {
        let (error, text) = run(&navigation(Goal::Definition), good.clone(), &[], Editor::locating(answers)).await;
        assert!(error && text.contains(expected) && text.ends_with(INSTEAD), "{expected}: {text}");
    }
    for (arguments, expected) in [
        (json!({"line": 1, "symbol": "foo"}), "path must"),
        (json!({"path": file, "line": 0, "symbol": "foo"}), "line must"),
        (json!({"path": file, "line": 1, "symbol": " "}), "symbol must"),
        (json!({"path": file, "line": 9, "symbol": "foo"}), "has no line 9"),
        (json!({"path": file, "line": 1, "symbol": "bar"}), "\"bar\" does not stand on line 1, which is: foo"),
        (json!({"path": "/no/such", "line": 1, "symbol": "bar"}), "does not exist"),
        (json!({"path": folder.path(), "line": 1, "symbol": "bar"}), "is no regular file"),
    ] {
        let (error, text) = run(&navigation(Goal::References), arguments.clone(), &[], Editor::default()).await;
        assert!(error && text.contains(expected), "{arguments}: {text}");
    }
}

#[tokio::test]
async fn a_stopped_call_ends() {
    let context = tool_context(&[], Editor::default());
    context.stop.cancel();
    let patient = Diagnostics::new(Duration::from_secs(600));
    assert!(patient.run(Arguments::new(), context).await.error);
}

#[tokio::test]
async fn previews_name_what_is_touched() {
    let context = tool_context(&["/w".into()], Editor::default());
    let arguments = json!({"path": "src/a.rs", "line": 1, "symbol": "foo"}).as_object().cloned().unwrap();
    let touched = vec![TouchedPath { path: "/w/src/a.rs".into(), access: Access::Read }];
    let preview = navigation(Goal::References).preview(&arguments, &context).await.unwrap();
    assert_eq!((preview.summary.as_deref(), preview.paths), (Some("LSP references: foo"), touched.clone()));
    let preview = diagnostics().preview(&arguments, &context).await.unwrap();
    assert_eq!((preview.summary.as_deref(), preview.paths), (Some("Checking diagnostics: a.rs"), touched));
    let preview = diagnostics().preview(&Arguments::new(), &context).await.unwrap();
    assert_eq!((preview.summary.as_deref(), preview.paths.len()), (Some("Checking diagnostics: all"), 0));
}

#[test]
fn only_what_the_client_can_do_is_offered() {
    let config = Config::default();
    let names = |capabilities: Capabilities, config: &Config| -> Vec<String> {
        tools(capabilities, config).iter().map(|tool| tool.spec().name.clone()).collect()
    };
    let all =
        Capabilities { diagnostics: true, definition: true, references: true, ask: true, ..Capabilities::default() };
    assert_eq!(names(all, &config), ["editor_diagnostics", "editor_definition", "editor_references"]);
    assert_eq!(names(Capabilities { definition: true, ..Capabilities::default() }, &config), ["editor_definition"]);
    assert_eq!(names(Capabilities::default(), &config), Vec::<String>::new());
    let mut config = config;
    config.tool_call.editor_nav = false;
    assert_eq!(names(all, &config), ["editor_diagnostics"]);
    for tool in tools(all, &Config::default()) {
        assert!(tool.spec().description.len() <= 350, "{}: {}", tool.spec().name, tool.spec().description.len());
    }
}
