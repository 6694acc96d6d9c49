//! Contexts: what a user attaches to a prompt so that the model sees it.

use serde::{Deserialize, Serialize};

use crate::common::{LineSpan, Position, Range};

tagged_union! {
    /// Something attached to a prompt, or offered to be attached.
    pub enum ChatContext: "context" by "type" {
        File(FileContext) = "file",
        Directory(DirectoryContext) = "directory",
        Web(WebContext) = "web",
        /// v0 only.
        Code(CodeContext) = "code",
        RepoMap(RepoMapContext) = "repoMap",
        Cursor(CursorContext) = "cursor",
        McpResource(McpResourceContext) = "mcpResource",
        Image(ImageContext) = "image",
        Text(TextContext) = "text",
    }
}

/// A file, or lines of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileContext {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines_range: Option<LinesRange>,
    /// How v0 calls `linesRange`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection: Option<LineSpan>,
    /// v0 says here what others say with a cursor context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Position>,
}

/// Whole lines, first and last included, counted from 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LinesRange {
    pub start: u32,
    pub end: u32,
}

/// Every file below a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryContext {
    pub path: String,
}

/// A web page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebContext {
    pub url: String,
}

/// A piece of code without a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeContext {
    pub content: String,
    pub language: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// An overview of the workspace's files, made by the server. Deprecated since v2.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepoMapContext {}

/// Where the user's cursor is. In queries and their answers it stands for "the cursor, wherever it will be", with both
/// fields absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CursorContext {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Start and end are the same without a selection. Counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<Range>,
}

/// A resource of an MCP server; `uri` and `server` find it, the rest is for display and may be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpResourceContext {
    pub uri: String,
    #[serde(default, deserialize_with = "crate::tolerant::null_as_default")]
    pub name: String,
    #[serde(default, deserialize_with = "crate::tolerant::null_as_default")]
    pub description: String,
    #[serde(default, deserialize_with = "crate::tolerant::null_as_default")]
    pub mime_type: String,
    #[serde(default, deserialize_with = "crate::tolerant::null_as_default")]
    pub server: String,
}

/// A picture.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageContext {
    pub media_type: String,
    /// The bytes, without a `data:` prefix.
    pub base64: String,
}

/// A text with a name, from wherever.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextContext {
    pub label: String,
    pub content: String,
}
