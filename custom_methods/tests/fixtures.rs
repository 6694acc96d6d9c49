//! Every shape of the protocol, as it stands on the wire, read and written again.
//!
//! `fixtures/v0` and `fixtures/v2` hold one file per interface of the published protocol documents (001's interfaces are contained in
//! 002's), and `fixtures/public` what the public server and its clients added; these must come back exactly as they
//! were. `fixtures/tolerant` holds pairs of what some client sends and how it must be understood. A file that no type
//! claims, or a claim without a file, fails.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use custom_methods::Empty;
use custom_methods::chat::*;
use custom_methods::completion::*;
use custom_methods::config::*;
use custom_methods::editor::*;
use custom_methods::general::*;
use custom_methods::jobs::*;
use custom_methods::lifecycle::*;
use custom_methods::mcp::*;
use custom_methods::providers::*;
use custom_methods::rewrite::*;
use custom_methods::tools::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads a value as some type of the protocol and writes it again.
type RoundTrip = fn(Value) -> Result<Value, String>;

/// `Type: "file", …;` for plain types, `union Type: …;` where the file must be a known member, `unknown Type: …;` where
/// it must not.
macro_rules! fixtures {
    (@one $ty:ty) => { plain::<$ty> };
    (@one union $ty:ident) => {
        |value| match read::<$ty>(value)? {
            $ty::Unknown(raw) => Err(format!("read as an unknown member: {raw}")),
            known => write(&known),
        }
    };
    (@one unknown $ty:ident) => {
        |value| match read::<$ty>(value)? {
            unknown @ $ty::Unknown(_) => write(&unknown),
            known => Err(format!("read as a known member: {known:?}")),
        }
    };
    (@list [$($done:tt)*]) => { &[$($done)*] };
    (@list [$($done:tt)*] union $ty:ident: $($file:literal),+; $($rest:tt)*) => {
        fixtures!(@list [$($done)* $(($file, fixtures!(@one union $ty)),)+] $($rest)*)
    };
    (@list [$($done:tt)*] unknown $ty:ident: $($file:literal),+; $($rest:tt)*) => {
        fixtures!(@list [$($done)* $(($file, fixtures!(@one unknown $ty)),)+] $($rest)*)
    };
    (@list [$($done:tt)*] $ty:ident: $($file:literal),+; $($rest:tt)*) => {
        fixtures!(@list [$($done)* $(($file, fixtures!(@one $ty)),)+] $($rest)*)
    };
    ($($table:tt)*) => { fixtures!(@list [] $($table)*) };
}

const EXACT: &[(&str, RoundTrip)] = fixtures! {
    InitializeParams: "v0/InitializeParams", "v2/InitializeParams", "public/InitializeParams";
    ClientCapabilities: "v0/ClientCapabilities", "v2/ClientCapabilities";
    WorkspaceFolder: "v2/WorkspaceFolder";
    InitializeResult: "v0/InitializedResult", "v2/InitializeResponse", "public/InitializeResult";
    Empty: "v0/InitializedParams", "v2/InitializedParams", "v2/ChatDeleteResponse";

    ChatPromptParams: "v0/ChatPromptParams", "v2/ChatPromptParams", "public/ChatPromptParams";
    ChatPromptResult: "v0/ChatPromptResponse", "v2/ChatPromptResponse", "public/ChatPromptResult";
    ChatPromptStopParams: "v2/ChatPromptStopParams";
    ChatPromptSteerParams: "public/ChatPromptSteerParams";
    ChatPromptSteerRemoveParams: "public/ChatPromptSteerRemoveParams";
    ChatSelectedBehaviorChangedParams: "v2/ChatSelectedBehaviorChanged";
    ChatSelectedAgentChangedParams: "public/ChatSelectedAgentChangedParams";
    ChatSelectedModelChangedParams: "public/ChatSelectedModelChangedParams";

    union ChatContext: "v0/FileContext", "v0/WebContext", "v0/CodeContext", "v2/FileContext", "v2/DirectoryContext",
        "v2/WebContext", "v2/RepoMapContext", "v2/CursorContext", "v2/McpResourceContext", "public/ImageContext",
        "public/TextContext";
    unknown ChatContext: "public/UnknownContext";
    LinesRange: "v2/LinesRange";

    ChatContentReceivedParams: "v0/ChatContentReceivedParams", "v2/ChatContentReceivedParams",
        "public/ChatContentReceivedParams";
    union ChatContent: "v0/TextContent", "v0/FileChangeContent", "v2/ChatTextContent", "v2/ChatProgressContent",
        "v2/ChatReasonStartedContent", "v2/ChatReasonTextContent", "v2/ChatReasonFinishedContent", "v2/ChatURLContent",
        "v2/ChatUsageContent", "v2/ChatToolCallPrepareContent", "v2/ChatToolCallRunContent",
        "v2/ChatToolCallRunningContent", "v2/ChatToolCalledContent", "v2/ChatToolCallRejectedContent",
        "v2/ChatMetadataContent", "public/ChatTextContent", "public/ChatUsageContent", "public/ChatImageContent",
        "public/ChatHookActionStartedContent", "public/ChatHookActionFinishedContent", "public/ChatFlagContent",
        "public/ChatToolCallPrepareContent", "public/ChatToolCallRejectedContent";
    unknown ChatContent: "public/UnknownContent";
    union ToolCallDetails: "v2/FileChangeDetails", "public/JsonOutputsDetails", "public/SubagentDetails",
        "public/TaskDetails", "public/ShellCommandDetails";
    unknown ToolCallDetails: "public/UnknownDetails";
    ChatToolCallApproveParams: "v2/ChatToolCallApproveParams";
    ChatToolCallRejectParams: "v2/ChatToolCallRejectParams";

    ChatQueryContextParams: "v2/ChatQueryContextParams";
    ChatQueryContextResult: "v2/ChatQueryContextResponse";
    ChatQueryFilesParams: "public/ChatQueryFilesParams";
    ChatQueryFilesResult: "public/ChatQueryFilesResult";
    ChatQueryCommandsParams: "v2/ChatQueryCommandsParams";
    ChatQueryCommandsResult: "v2/ChatQueryCommandsResponse", "public/ChatQueryCommandsResult";
    ChatCommand: "v2/ChatCommand";

    ChatDeleteParams: "v2/ChatDeleteParams";
    ChatClearParams: "public/ChatClearParams";
    ChatRollbackParams: "public/ChatRollbackParams";
    ChatAddFlagParams: "public/ChatAddFlagParams";
    ChatRemoveFlagParams: "public/ChatRemoveFlagParams";
    ChatForkParams: "public/ChatForkParams";
    ChatUpdateParams: "public/ChatUpdateParams";
    ChatListParams: "public/ChatListParams";
    ChatListResult: "public/ChatListResult";
    ChatOpenParams: "public/ChatOpenParams";
    ChatOpenResult: "public/ChatOpenResult", "public/ChatOpenResultNotFound", "public/ChatOpenResultError";
    ChatHistoryParams: "public/ChatHistoryParams";
    ChatHistoryResult: "public/ChatHistoryResult", "public/ChatHistoryResultError";
    ChatClearedParams: "public/ChatClearedParams";
    ChatOpenedParams: "public/ChatOpenedParams";
    ChatStatusChangedParams: "public/ChatStatusChangedParams";
    ChatDeletedParams: "public/ChatDeletedParams";
    ChatAskQuestionParams: "public/ChatAskQuestionParams";
    ChatAskQuestionResult: "public/ChatAskQuestionResult";

    CompletionInlineParams: "public/CompletionInlineParams";
    CompletionInlineResult: "public/CompletionInlineResult", "public/CompletionInlineResultError";
    RewritePromptParams: "public/RewritePromptParams";
    RewritePromptResult: "public/RewritePromptResult";
    RewriteContentReceivedParams: "public/RewriteContentReceivedParams";
    union RewriteContent: "public/RewriteStartedContent", "public/RewriteReasoningContent", "public/RewriteTextContent",
        "public/RewriteReplaceContent", "public/RewriteErrorContent", "public/RewriteFinishedContent";

    ConfigUpdatedParams: "v2/ConfigUpdatedParams", "public/ConfigUpdatedParams",
        "public/ConfigUpdatedParamsDefaultVariant";
    union ToolServerUpdatedParams: "v2/EcaServerUpdatedParams", "v2/MCPServerUpdatedParams",
        "public/McpServerUpdatedParams";
    ServerTool: "v2/ServerTool";
    ToolServerRemovedParams: "public/ToolServerRemovedParams";

    McpServerName: "v2/MCPStopServerParams", "v2/MCPStartServerParams", "public/McpServerName";
    McpUpdateServerParams: "public/McpUpdateServerParams";
    McpAddServerParams: "public/McpAddServerParams";
    McpAddServerResult: "public/McpAddServerResult", "public/McpAddServerResultError";
    McpRemoveServerResult: "public/McpRemoveServerResult";

    ProviderStatus: "public/ProviderStatus";
    ProvidersListResult: "public/ProvidersListResult";
    ProvidersLoginParams: "public/ProvidersLoginParams";
    ProvidersLoginInputParams: "public/ProvidersLoginInputParams";
    ProvidersLogoutParams: "public/ProvidersLogoutParams";
    union ProvidersLoginResult: "public/ChooseMethodStep", "public/AuthorizeStep", "public/DeviceCodeStep",
        "public/InputStep", "public/DoneStep";

    JobSummary: "public/JobSummary";
    JobsListResult: "public/JobsListResult";
    JobsUpdatedParams: "public/JobsUpdatedParams";
    JobsKillParams: "public/JobsKillParams";
    JobsKillResult: "public/JobsKillResult";
    JobsReadOutputParams: "public/JobsReadOutputParams";
    JobsReadOutputResult: "public/JobsReadOutputResult", "public/JobsReadOutputResultUnknown";

    EditorGetDiagnosticsParams: "v2/EditorGetDiagnosticsParams";
    EditorGetDiagnosticsResult: "v2/EditorGetDiagnosticsResponse";
    EditorDiagnostic: "v2/EditorDiagnostic";
    EditorGetDefinitionParams: "public/EditorGetDefinitionParams";
    EditorGetReferencesParams: "public/EditorGetReferencesParams";
    EditorLocationsResult: "public/EditorLocationsResult", "public/EditorLocationsResultNoServer";

    ShowMessageParams: "v2/ShowMessageParams";
    ProgressParams: "public/ProgressParams";
    CancelParams: "public/CancelParams";
    DidChangeWorkspaceFoldersParams: "public/DidChangeWorkspaceFoldersParams";
};

const TOLERANT: &[(&str, RoundTrip)] = fixtures! {
    InitializeParams: "tolerant/InitializeParams_empty", "tolerant/InitializeParams_loose",
        "tolerant/InitializeParams_null";
    ChatPromptParams: "tolerant/ChatPromptParams_nvim", "tolerant/ChatPromptParams_emacs";
    ChatPromptResult: "tolerant/ChatPromptResult_v0";
    ChatQueryContextParams: "tolerant/ChatQueryContextParams_vscode", "tolerant/ChatQueryContextParams_lua";
    ChatRollbackParams: "tolerant/ChatRollbackParams_intellij", "tolerant/ChatRollbackParams_absent";
    ChatDeleteParams: "tolerant/ChatDeleteParams_null";
    ChatListParams: "tolerant/ChatListParams_negative";
    ChatToolCallApproveParams: "tolerant/ChatToolCallApproveParams_novel";
    ChatSelectedBehaviorChangedParams: "tolerant/ChatSelectedBehaviorChangedParams_agent";
    ChatAskQuestionResult: "tolerant/ChatAskQuestionResult_partial";
    union ChatContent: "tolerant/ChatProgressContent_public";
    ChatCommand: "tolerant/ChatCommand_skill";
    union ChatContext: "tolerant/McpResourceContext_bare";
    EditorGetDiagnosticsResult: "tolerant/EditorGetDiagnosticsResult_vscode";
    EditorLocationsResult: "tolerant/EditorLocationsResult_loose";
    McpAddServerParams: "tolerant/McpAddServerParams_plain";
    Empty: "tolerant/Empty_list", "tolerant/Empty_null";
    ConfigUpdatedParams: "tolerant/ConfigUpdatedParams_nulls";
    DidChangeWorkspaceFoldersParams: "tolerant/DidChangeWorkspaceFoldersParams_bare";
};

#[test]
fn every_shape_survives_a_round_trip() {
    let failures: Vec<String> = EXACT
        .iter()
        .filter_map(|(name, round_trip)| {
            let fixture = load(name);
            mismatch(name, round_trip(fixture.clone()), &fixture)
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn loose_input_is_understood() {
    let failures: Vec<String> = TOLERANT
        .iter()
        .filter_map(|(name, round_trip)| {
            let fixture = load(name);
            mismatch(name, round_trip(fixture["input"].clone()), &fixture["expected"])
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_file_is_claimed_once() {
    let mut claimed = BTreeSet::new();
    for (name, _) in EXACT.iter().chain(TOLERANT) {
        assert!(claimed.insert((*name).to_owned()), "{name} is claimed twice");
    }
    assert_eq!(claimed, files(), "left: what this test claims; right: what is in the directory");
}

fn plain<T: DeserializeOwned + Serialize>(value: Value) -> Result<Value, String> {
    write(&read::<T>(value)?)
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

fn write<T: Serialize>(value: &T) -> Result<Value, String> {
    serde_json::to_value(value).map_err(|error| error.to_string())
}

fn mismatch(name: &str, got: Result<Value, String>, expected: &Value) -> Option<String> {
    match got {
        Ok(value) if value == *expected => None,
        Ok(value) => Some(format!("{name}:\n  expected {expected}\n  got      {value}")),
        Err(error) => Some(format!("{name}: {error}")),
    }
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn load(name: &str) -> Value {
    let path = directory().join(name).with_extension("json");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The fixtures that exist, as `set/Name`.
fn files() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for set in fs::read_dir(directory()).unwrap() {
        let set = set.unwrap();
        for file in fs::read_dir(set.path()).unwrap() {
            let file = file.unwrap().path();
            let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
            names.insert(format!("{}/{stem}", set.file_name().to_string_lossy()));
        }
    }
    names
}
