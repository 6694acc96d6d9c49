//! What the server may ask the editor about the code. The results are written by clients and read with patience.

use serde::{Deserialize, Serialize};

use crate::common::{Position, Range};
use crate::tolerant::{code, list_or_empty, null_as_default, optional_list};

/// Which file's problems; without it, those of the whole workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditorGetDiagnosticsParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
}

/// The problems the editor knows of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditorGetDiagnosticsResult {
    #[serde(default, deserialize_with = "list_or_empty")]
    pub diagnostics: Vec<EditorDiagnostic>,
}

/// One problem.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditorDiagnostic {
    pub uri: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub severity: DiagnosticSeverity,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Counted from 1 by the documents and from 0 by some clients.
    pub range: Range,
    /// Some clients send a number, or LSP's object around the code.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "code")]
    pub code: Option<String>,
    pub message: String,
}

open_words! {
    /// How bad a problem is.
    #[derive(Default)]
    pub enum DiagnosticSeverity {
        Error = "error",
        Warning = "warning",
        /// Some clients use LSP's longer word.
        #[default]
        Info = "info" | "information",
        Hint = "hint",
    }
    /// How the editor fared with a question about a symbol.
    pub enum EditorLocationsStatus {
        Success = "success",
        /// The language server is not ready; ask again.
        Starting = "starting",
        NoServer = "no-server",
        Error = "error",
    }
}

/// Which symbol. The position counts from 1, in UTF-16 units.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditorGetDefinitionParams {
    pub uri: String,
    pub position: Position,
}

/// Which symbol, and whether its declaration counts as a use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EditorGetReferencesParams {
    pub uri: String,
    pub position: Position,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_declaration: Option<bool>,
}

/// Where the symbol is defined or used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditorLocationsResult {
    pub status: EditorLocationsStatus,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "optional_list")]
    pub locations: Option<Vec<EditorLocation>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A stretch of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditorLocation {
    pub uri: String,
    pub range: Range,
}
