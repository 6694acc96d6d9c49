//! The editor as the engine may ask it: diagnostics, definitions, references, questions, and the
//! documents that an LSP client has not saved.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use custom_methods::chat::{ChatAskQuestionParams, QuestionOption};
use custom_methods::common::Position;
use custom_methods::editor::{
    DiagnosticSeverity, EditorDiagnostic, EditorGetDefinitionParams, EditorGetDiagnosticsParams,
    EditorGetReferencesParams, EditorLocation, EditorLocationsResult, EditorLocationsStatus,
};
use custom_methods::general::MessageType;
use custom_methods::lifecycle::InitializeParams;
use custom_methods::methods::{ChatAskQuestion, EditorGetDefinition, EditorGetDiagnostics, EditorGetReferences};
use futures_util::future::BoxFuture;
use lsp_types::request::ApplyWorkspaceEdit;
use lsp_types::{
    ApplyWorkspaceEditParams, DocumentChanges, OneOf, OptionalVersionedTextDocumentIdentifier, TextDocumentEdit,
    TextEdit, WorkspaceEdit,
};

use super::client::{Client, RequestError};
use super::documents::{Held, Unsaved, edit_between};
use super::session::Session;
use super::sink::show_message;
use crate::base::ChatId;
use crate::base::text::file_name;
use crate::host::{
    Capabilities, Diagnostic, Host, HostError, Location, Locations, OpenChange, Question, Reply, Severity, SymbolPlace,
    Taken,
};
use crate::workspace::{path_from_uri, uri_from_path};

/// How long an editor may take for anything but a person's answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// A question waits for its user; it ends with its turn. This only bounds what is remembered.
const ANSWER_PATIENCE: Duration = Duration::from_secs(24 * 3600);
/// How long an editor may take to report the change that it has just made.
const REPORT_PATIENCE: Duration = Duration::from_secs(2);
/// Clients whose lines begin with 0, against the protocol's documents.
const COUNT_FROM_ZERO: [&str; 3] = ["vscode", "intellij", "neovim"];

pub(super) struct EditorHost {
    client: Client,
    session: Arc<Session>,
    can: Capabilities,
    /// Whether this client counts lines from 0.
    from_zero: OnceLock<bool>,
}

impl EditorHost {
    pub(super) fn new(client: Client, session: Arc<Session>, params: &InitializeParams) -> Self {
        let eca = params.capabilities.code_assistant.as_ref();
        let editor = eca.and_then(|eca| eca.editor.as_ref());
        let yes = |flag: Option<Option<bool>>| flag.flatten().unwrap_or(false);
        let can = Capabilities {
            diagnostics: yes(editor.map(|editor| editor.diagnostics)),
            definition: yes(editor.map(|editor| editor.definition)),
            references: yes(editor.map(|editor| editor.references)),
            ask: yes(eca.and_then(|eca| eca.chat_capabilities.as_ref()).map(|chat| chat.ask_question)),
            approves_file_changes_only: false,
            approves_nothing: false,
            terminal: false,
        };
        Self { client, session, can, from_zero: OnceLock::new() }
    }

    fn counts_from_zero(&self) -> bool {
        *self.from_zero.get_or_init(|| {
            let name = self.session.started().map(|started| started.client.name.to_lowercase()).unwrap_or_default();
            COUNT_FROM_ZERO.iter().any(|known| name.replace([' ', '-'], "").contains(known))
        })
    }
}

impl Host for EditorHost {
    fn capabilities(&self) -> Capabilities {
        Capabilities { approves_file_changes_only: self.session.is_v0(), ..self.can }
    }

    fn diagnostics(&self, path: Option<PathBuf>) -> BoxFuture<'_, Result<Vec<Diagnostic>, HostError>> {
        Box::pin(async move {
            let params = EditorGetDiagnosticsParams { uri: path.as_deref().map(uri_from_path) };
            let result = self.client.request::<EditorGetDiagnostics>(&params, PATIENCE).await.map_err(host_error)?;
            Ok(read_diagnostics(result.diagnostics, self.counts_from_zero()))
        })
    }

    fn definition(&self, place: SymbolPlace) -> BoxFuture<'_, Result<Locations, HostError>> {
        Box::pin(async move {
            let (uri, position) = (uri_from_path(&place.path), position(&place));
            let params = EditorGetDefinitionParams { uri, position };
            let result = self.client.request::<EditorGetDefinition>(&params, PATIENCE).await.map_err(host_error)?;
            Ok(read_locations(result))
        })
    }

    fn references(&self, place: SymbolPlace, include_declaration: bool) -> BoxFuture<'_, Result<Locations, HostError>> {
        Box::pin(async move {
            let (uri, position) = (uri_from_path(&place.path), position(&place));
            let params = EditorGetReferencesParams { uri, position, include_declaration: Some(include_declaration) };
            let result = self.client.request::<EditorGetReferences>(&params, PATIENCE).await.map_err(host_error)?;
            Ok(read_locations(result))
        })
    }

    fn ask(&self, question: Question) -> BoxFuture<'_, Result<Reply, HostError>> {
        Box::pin(async move {
            if !self.can.ask {
                return Err(HostError::Unsupported);
            }
            let options: Vec<QuestionOption> = question
                .options
                .into_iter()
                .map(|choice| QuestionOption { label: choice.label, description: choice.description })
                .collect();
            let params = ChatAskQuestionParams {
                chat_id: super::to_wire::wire_chat_id(&question.chat),
                question: question.text,
                options: (!options.is_empty()).then_some(options),
                tool_call_id: question.call.map(|call| call.as_str().into()),
                allow_freeform: question.allow_freeform,
                request_id: None,
            };
            let result = self.client.request::<ChatAskQuestion>(&params, ANSWER_PATIENCE).await.map_err(host_error)?;
            Ok(match result.answer {
                Some(answer) if !result.cancelled => Reply::Answer(answer),
                _ => Reply::Cancelled,
            })
        })
    }

    fn unsaved(&self, _: ChatId, path: PathBuf) -> BoxFuture<'_, Option<String>> {
        Box::pin(async move { self.session.documents().unsaved(&path).await })
    }

    fn may_write_open(&self) -> bool {
        !self.session.documents().is_empty()
    }

    fn write_open(&self, change: OpenChange) -> BoxFuture<'_, Result<Taken, HostError>> {
        Box::pin(async move {
            let takes_edits = self.session.started().is_some_and(|started| started.client.applies_edits);
            match self.session.documents().held(&change.path).await {
                Held::Nothing => Ok(Taken::NotHeld),
                Held::Unsaved(held) if change.before.as_ref() != Some(&held.text) => Ok(Taken::Changed),
                Held::Unsaved(held) if takes_edits => self.change_document(held, change).await,
                Held::Unsaved(_) => Err(HostError::Impossible(
                    "it has unsaved changes in the editor, and this editor does not let others change its documents; \
                     it has to be saved first"
                        .to_owned(),
                )),
                Held::Unknown => Err(HostError::Impossible(
                    "it has unsaved changes in the editor and is too large to be changed there; it has to be saved \
                     first"
                        .to_owned(),
                )),
            }
        })
    }
}

impl EditorHost {
    /// Has the editor change its document, and asks the user to save it.
    async fn change_document(&self, held: Unsaved, change: OpenChange) -> Result<Taken, HostError> {
        let (documents, path) = (self.session.documents(), &change.path);
        let name = file_name(path);
        let before = held.text.clone();
        let edit = self.workspace_edit(held, edit_between(&before, &change.after));
        let params = ApplyWorkspaceEditParams { label: Some(format!("Change of {name} by ECA")), edit };
        let answer = self.client.request::<ApplyWorkspaceEdit>(&params, PATIENCE).await;
        let refusal = match answer {
            Ok(answer) if answer.applied => None,
            Ok(answer) => Some(HostError::Refused(
                answer.failure_reason.unwrap_or_else(|| "it did not take the change".to_owned()),
            )),
            Err(error) => Some(host_error(error)),
        };
        match refusal {
            // An answer may get lost where the change did not.
            Some(_) if documents.is(path, &change.after) => {}
            // The user typed while the change was on its way.
            Some(_) if !documents.is(path, &before) => return Ok(Taken::Changed),
            Some(refusal) => return Err(refusal),
            // What is worked out next is worked out on the document as it is now.
            None => drop(documents.becomes(path, &change.after, REPORT_PATIENCE).await),
        }
        let text = format!("ECA changed {name} in the editor, where it has unsaved changes. Please save it.");
        for frame in show_message(&self.session, MessageType::Info, text) {
            let _ = self.client.outbox.push(frame).await;
        }
        Ok(Taken::Yes)
    }

    fn workspace_edit(&self, held: Unsaved, edit: TextEdit) -> WorkspaceEdit {
        let checks_versions = self.session.started().is_some_and(|started| started.client.checks_versions);
        if !checks_versions {
            return WorkspaceEdit { changes: Some([(held.uri, vec![edit])].into()), ..WorkspaceEdit::default() };
        }
        let text_document = OptionalVersionedTextDocumentIdentifier { uri: held.uri, version: Some(held.version) };
        let edits = vec![TextDocumentEdit { text_document, edits: vec![OneOf::Left(edit)] }];
        WorkspaceEdit { document_changes: Some(DocumentChanges::Edits(edits)), ..WorkspaceEdit::default() }
    }
}

fn host_error(error: RequestError) -> HostError {
    match error {
        RequestError::Timeout => HostError::Timeout,
        RequestError::Closed => HostError::Gone,
        RequestError::TooMany | RequestError::Refused(_) | RequestError::Shape(_) => {
            HostError::Refused(error.to_string())
        }
    }
}

fn position(place: &SymbolPlace) -> Position {
    let number = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    Position { line: number(place.line), character: number(place.column) }
}

/// A line 0 anywhere tells that this client counts from 0, whatever its name.
fn read_diagnostics(found: Vec<EditorDiagnostic>, from_zero: bool) -> Vec<Diagnostic> {
    let from_zero = from_zero || found.iter().any(|one| one.range.start.line == 0);
    let shift = u64::from(from_zero);
    let place = |position: Position| (u64::from(position.line) + shift, u64::from(position.character) + shift);
    let read = |one: EditorDiagnostic| Diagnostic {
        path: path_from_uri(&one.uri).unwrap_or_else(|_| PathBuf::from(&one.uri)),
        severity: match one.severity {
            DiagnosticSeverity::Error => Severity::Error,
            DiagnosticSeverity::Warning => Severity::Warning,
            DiagnosticSeverity::Hint => Severity::Hint,
            _ => Severity::Information,
        },
        code: one.code,
        start: place(one.range.start),
        end: place(one.range.end),
        source: one.source,
        message: one.message,
    };
    found.into_iter().map(read).collect()
}

fn read_locations(result: EditorLocationsResult) -> Locations {
    let message = result.message.unwrap_or_default();
    match result.status {
        EditorLocationsStatus::Success => {
            Locations::Found(result.locations.unwrap_or_default().iter().filter_map(read_location).collect())
        }
        EditorLocationsStatus::Starting => Locations::Starting,
        EditorLocationsStatus::NoServer => Locations::NoServer,
        _ if message.is_empty() => Locations::Failed("the editor gave no reason".to_owned()),
        _ => Locations::Failed(message),
    }
}

fn read_location(location: &EditorLocation) -> Option<Location> {
    let path: Box<Path> = path_from_uri(&location.uri).ok()?.into();
    let start = location.range.start;
    Some(Location { path: path.into(), line: start.line.into(), column: start.character.into() })
}

#[cfg(test)]
mod tests {
    use custom_methods::common::Range;

    use super::*;

    fn diagnostic(line: u32) -> EditorDiagnostic {
        let start = Position { line, character: 4 };
        EditorDiagnostic {
            uri: "file:///a%20b.rs".into(),
            range: Range { start, end: start },
            ..EditorDiagnostic::default()
        }
    }

    #[test]
    fn lines_are_counted_from_one_whoever_counts() {
        let lines = |found: Vec<EditorDiagnostic>, zero: bool| {
            read_diagnostics(found, zero).into_iter().map(|one| one.start).collect::<Vec<_>>()
        };
        assert_eq!(lines(vec![diagnostic(3)], false), [(3, 4)]);
        assert_eq!(lines(vec![diagnostic(3)], true), [(4, 5)]);
        assert_eq!(lines(vec![diagnostic(3), diagnostic(0)], false), [(4, 5), (1, 5)], "a line 0 tells");
        assert_eq!(read_diagnostics(vec![diagnostic(1)], false)[0].path, Path::new("/a b.rs"));
    }

    #[test]
    fn every_status_is_understood() {
        let result = |status, message: Option<&str>| {
            read_locations(EditorLocationsResult { status, locations: None, message: message.map(Into::into) })
        };
        assert_eq!(result(EditorLocationsStatus::Success, None), Locations::Found(Vec::new()));
        assert_eq!(result(EditorLocationsStatus::Starting, None), Locations::Starting);
        assert_eq!(result(EditorLocationsStatus::NoServer, None), Locations::NoServer);
        assert_eq!(result(EditorLocationsStatus::Error, Some("no")), Locations::Failed("no".into()));
    }
}
