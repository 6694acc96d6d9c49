//! Every method of the protocol, listed once.
//!
//! A line of the table names a marker type, the method's wire name, and the types of its parameters and result. The
//! marker implements the `Request` or `Notification` trait of `lsp-types`, so a transport can be written once for all
//! of them. Adding a method means adding its line here and its types in the module of its area.
//!
//! The server must register what clients may call, and must not forget one. It does so through the four `for_each_…!`
//! macros at the crate's root, which call a macro of the server's with the whole list:
//!
//! ```
//! use lsp_types::request::Request;
//!
//! macro_rules! register {
//!     ([$names:ident] $($method:ty,)*) => { $( $names.push(<$method as Request>::METHOD); )* };
//! }
//!
//! let mut names = Vec::new();
//! custom_methods::for_each_client_request!(register, names);
//! assert!(names.contains(&"chat/prompt"));
//! ```
//!
//! Whatever follows the callback's name arrives in square brackets before the list. The lifecycle methods,
//! `$/cancelRequest` and `workspace/didChangeWorkspaceFolders` are not in the table, because the LSP framework already
//! routes them and would not let them be registered twice; their types are in [`crate::lifecycle`] and
//! [`crate::general`], and [`FRAMEWORK_METHODS`] names them.

use lsp_types::notification::Notification;
use lsp_types::request::Request;

use crate::chat::*;
use crate::common::Empty;
use crate::completion::*;
use crate::config::*;
use crate::editor::*;
use crate::general::*;
use crate::jobs::*;
use crate::lifecycle::{Exit, Initialize, Initialized, Shutdown};
use crate::mcp::*;
use crate::providers::*;
use crate::rewrite::*;
use crate::tools::*;

/// What is known of a method without knowing its types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodInfo {
    /// The name on the wire.
    pub name: &'static str,
    pub kind: MethodKind,
    pub direction: Direction,
    /// The module of this crate that holds the method's types.
    pub area: &'static str,
}

/// Whether a method is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MethodKind {
    Request,
    Notification,
}

/// Who calls a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    ClientToServer,
    ServerToClient,
}

/// Turns the table into marker types, into [`METHODS`] and into the `for_each_…!` macros.
///
/// The first token must be a dollar sign: a macro that writes macros has no other way to spell one.
macro_rules! methods {
    ($d:tt $( $area:ident {
        $( client_requests {
            $( $(#[$cr_meta:meta])* $cr:ident = $cr_method:literal ($cr_params:ty) -> $cr_result:ty; )*
        } )?
        $( client_notifications { $( $(#[$cn_meta:meta])* $cn:ident = $cn_method:literal ($cn_params:ty); )* } )?
        $( server_requests {
            $( $(#[$sr_meta:meta])* $sr:ident = $sr_method:literal ($sr_params:ty) -> $sr_result:ty; )*
        } )?
        $( server_notifications { $( $(#[$sn_meta:meta])* $sn:ident = $sn_method:literal ($sn_params:ty); )* } )?
    } )*) => {
        request_markers! {
            $( $( $( $(#[$cr_meta])* $cr = $cr_method ($cr_params) -> $cr_result; )* )? )*
            $( $( $( $(#[$sr_meta])* $sr = $sr_method ($sr_params) -> $sr_result; )* )? )*
        }
        notification_markers! {
            $( $( $( $(#[$cn_meta])* $cn = $cn_method ($cn_params); )* )? )*
            $( $( $( $(#[$sn_meta])* $sn = $sn_method ($sn_params); )* )? )*
        }

        /// Every method of the table, in its order, area by area.
        pub const METHODS: &[MethodInfo] = &[ $(
            $( $( info($cr_method, MethodKind::Request, Direction::ClientToServer, stringify!($area)), )* )?
            $( $( info($cn_method, MethodKind::Notification, Direction::ClientToServer, stringify!($area)), )* )?
            $( $( info($sr_method, MethodKind::Request, Direction::ServerToClient, stringify!($area)), )* )?
            $( $( info($sn_method, MethodKind::Notification, Direction::ServerToClient, stringify!($area)), )* )?
        )* ];

        /// Calls `$callback! { [passthrough] Type, … }` with every request that a client may send.
        #[macro_export]
        macro_rules! for_each_client_request {
            ($d callback:ident $d(, $d($d passthrough:tt)* )?) => {
                $d callback! { [$d($d($d passthrough)*)?] $( $( $( $crate::methods::$cr, )* )? )* }
            };
        }

        /// Calls `$callback! { [passthrough] Type, … }` with every notification that a client may send.
        #[macro_export]
        macro_rules! for_each_client_notification {
            ($d callback:ident $d(, $d($d passthrough:tt)* )?) => {
                $d callback! { [$d($d($d passthrough)*)?] $( $( $( $crate::methods::$cn, )* )? )* }
            };
        }

        /// Calls `$callback! { [passthrough] Type, … }` with every request that the server may send.
        #[macro_export]
        macro_rules! for_each_server_request {
            ($d callback:ident $d(, $d($d passthrough:tt)* )?) => {
                $d callback! { [$d($d($d passthrough)*)?] $( $( $( $crate::methods::$sr, )* )? )* }
            };
        }

        /// Calls `$callback! { [passthrough] Type, … }` with every notification that the server may send.
        #[macro_export]
        macro_rules! for_each_server_notification {
            ($d callback:ident $d(, $d($d passthrough:tt)* )?) => {
                $d callback! { [$d($d($d passthrough)*)?] $( $( $( $crate::methods::$sn, )* )? )* }
            };
        }
    };
}

methods! { $
    chat {
        client_requests {
            /// Sends the user's message, to a new chat or to an existing one.
            ChatPrompt = "chat/prompt"(ChatPromptParams) -> ChatPromptResult;
            /// Looks for contexts that could be added to a prompt.
            ChatQueryContext = "chat/queryContext"(ChatQueryContextParams) -> ChatQueryContextResult;
            /// Looks for files and directories only.
            ChatQueryFiles = "chat/queryFiles"(ChatQueryFilesParams) -> ChatQueryFilesResult;
            /// Looks for slash commands.
            ChatQueryCommands = "chat/queryCommands"(ChatQueryCommandsParams) -> ChatQueryCommandsResult;
            /// Removes a chat for good.
            ChatDelete = "chat/delete"(ChatDeleteParams) -> Empty;
            /// Empties a chat but keeps it.
            ChatClear = "chat/clear"(ChatClearParams) -> Empty;
            /// Takes a chat back to the state before one of its user messages.
            ChatRollback = "chat/rollback"(ChatRollbackParams) -> Empty;
            /// Puts a named mark at a message.
            ChatAddFlag = "chat/addFlag"(ChatAddFlagParams) -> Empty;
            /// Takes a mark away.
            ChatRemoveFlag = "chat/removeFlag"(ChatRemoveFlagParams) -> Empty;
            /// Copies a chat up to a message into a new chat.
            ChatFork = "chat/fork"(ChatForkParams) -> Empty;
            /// Renames a chat or changes how far it is trusted.
            ChatUpdate = "chat/update"(ChatUpdateParams) -> Empty;
            /// Lists the known chats.
            ChatList = "chat/list"(ChatListParams) -> ChatListResult;
            /// Has a stored chat sent again, content by content.
            ChatOpen = "chat/open"(ChatOpenParams) -> ChatOpenResult;
            /// Returns a page of a chat's contents.
            ChatHistory = "chat/history"(ChatHistoryParams) -> ChatHistoryResult;
        }
        client_notifications {
            /// Lets a waiting tool call run.
            ChatToolCallApprove = "chat/toolCallApprove"(ChatToolCallApproveParams);
            /// Forbids a waiting tool call.
            ChatToolCallReject = "chat/toolCallReject"(ChatToolCallRejectParams);
            /// Ends the running turn.
            ChatPromptStop = "chat/promptStop"(ChatPromptStopParams);
            /// Slips a message into the running turn.
            ChatPromptSteer = "chat/promptSteer"(ChatPromptSteerParams);
            /// Withdraws a message that was not slipped in yet.
            ChatPromptSteerRemove = "chat/promptSteerRemove"(ChatPromptSteerRemoveParams);
            /// The user picked another behavior, which is the older word for agent.
            ChatSelectedBehaviorChanged = "chat/selectedBehaviorChanged"(ChatSelectedBehaviorChangedParams);
            /// The user picked another agent.
            ChatSelectedAgentChanged = "chat/selectedAgentChanged"(ChatSelectedAgentChangedParams);
            /// The user picked another model or variant.
            ChatSelectedModelChanged = "chat/selectedModelChanged"(ChatSelectedModelChangedParams);
        }
        server_requests {
            /// Asks the user something and waits for the answer.
            ChatAskQuestion = "chat/askQuestion"(ChatAskQuestionParams) -> ChatAskQuestionResult;
        }
        server_notifications {
            /// A piece of a chat: what was said, done or measured.
            ChatContentReceived = "chat/contentReceived"(ChatContentReceivedParams);
            /// What the client shows of a chat is void.
            ChatCleared = "chat/cleared"(ChatClearedParams);
            /// A chat came into being, or is about to be sent again.
            ChatOpened = "chat/opened"(ChatOpenedParams);
            /// A chat started or ended work.
            ChatStatusChanged = "chat/statusChanged"(ChatStatusChangedParams);
            /// A chat is gone.
            ChatDeleted = "chat/deleted"(ChatDeletedParams);
        }
    }
    completion {
        client_requests {
            /// Proposes how the text at the cursor goes on.
            CompletionInline = "completion/inline"(CompletionInlineParams) -> CompletionInlineResult;
        }
    }
    rewrite {
        client_requests {
            /// Starts to rewrite a selected text.
            RewritePrompt = "rewrite/prompt"(RewritePromptParams) -> RewritePromptResult;
        }
        server_notifications {
            /// A piece of a rewrite.
            RewriteContentReceived = "rewrite/contentReceived"(RewriteContentReceivedParams);
        }
    }
    mcp {
        client_requests {
            /// Changes how an MCP server is started or reached.
            McpUpdateServer = "mcp/updateServer"(McpUpdateServerParams) -> Empty;
            /// Adds an MCP server to the config.
            McpAddServer = "mcp/addServer"(McpAddServerParams) -> McpAddServerResult;
            /// Removes an MCP server from the config.
            McpRemoveServer = "mcp/removeServer"(McpServerName) -> McpRemoveServerResult;
        }
        client_notifications {
            /// Starts a stopped MCP server.
            McpStartServer = "mcp/startServer"(McpServerName);
            /// Stops an MCP server.
            McpStopServer = "mcp/stopServer"(McpServerName);
            /// Begins the login of an MCP server that asks for one.
            McpConnectServer = "mcp/connectServer"(McpServerName);
            /// Forgets the login of an MCP server.
            McpLogoutServer = "mcp/logoutServer"(McpServerName);
            /// Switches an MCP server off, lastingly.
            McpDisableServer = "mcp/disableServer"(McpServerName);
            /// Switches an MCP server on again.
            McpEnableServer = "mcp/enableServer"(McpServerName);
        }
    }
    tools {
        server_notifications {
            /// A tool server's state or its tools changed.
            ToolServerUpdated = "tool/serverUpdated"(ToolServerUpdatedParams);
            /// A tool server is gone.
            ToolServerRemoved = "tool/serverRemoved"(ToolServerRemovedParams);
        }
    }
    providers {
        client_requests {
            /// Lists the providers with their login state and models.
            ProvidersList = "providers/list"(Empty) -> ProvidersListResult;
            /// Begins a login.
            ProvidersLogin = "providers/login"(ProvidersLoginParams) -> ProvidersLoginResult;
            /// Hands over what a login step asked for.
            ProvidersLoginInput = "providers/loginInput"(ProvidersLoginInputParams) -> ProvidersLoginResult;
            /// Forgets a login.
            ProvidersLogout = "providers/logout"(ProvidersLogoutParams) -> Empty;
        }
        server_notifications {
            /// A provider's login state or models changed.
            ProvidersUpdated = "providers/updated"(ProviderStatus);
        }
    }
    jobs {
        client_requests {
            /// Lists the background jobs.
            JobsList = "jobs/list"(Empty) -> JobsListResult;
            /// Ends a background job.
            JobsKill = "jobs/kill"(JobsKillParams) -> JobsKillResult;
            /// Returns what a background job printed.
            JobsReadOutput = "jobs/readOutput"(JobsReadOutputParams) -> JobsReadOutputResult;
        }
        server_notifications {
            /// The background jobs, all of them, after one changed.
            JobsUpdated = "jobs/updated"(JobsUpdatedParams);
        }
    }
    editor {
        server_requests {
            /// Asks for the problems the editor knows of.
            EditorGetDiagnostics = "editor/getDiagnostics"(EditorGetDiagnosticsParams) -> EditorGetDiagnosticsResult;
            /// Asks where a symbol is defined.
            EditorGetDefinition = "editor/getDefinition"(EditorGetDefinitionParams) -> EditorLocationsResult;
            /// Asks where a symbol is used.
            EditorGetReferences = "editor/getReferences"(EditorGetReferencesParams) -> EditorLocationsResult;
        }
    }
    config {
        server_notifications {
            /// What can be selected, and what is.
            ConfigUpdated = "config/updated"(ConfigUpdatedParams);
        }
    }
    general {
        server_notifications {
            /// A message for the user.
            ShowMessage = "$/showMessage"(ShowMessageParams);
            /// A start-up task began or ended. Not LSP's method of the same name.
            Progress = "$/progress"(ProgressParams);
        }
    }
}

/// The methods that the LSP framework routes; see the module's documentation.
pub const FRAMEWORK_METHODS: &[MethodInfo] = &[
    from_client(Initialize::METHOD, MethodKind::Request, "lifecycle"),
    from_client(Initialized::METHOD, MethodKind::Notification, "lifecycle"),
    from_client(Shutdown::METHOD, MethodKind::Request, "lifecycle"),
    from_client(Exit::METHOD, MethodKind::Notification, "lifecycle"),
    from_client(CancelRequest::METHOD, MethodKind::Notification, "general"),
    from_client(DidChangeWorkspaceFolders::METHOD, MethodKind::Notification, "general"),
];

const fn info(name: &'static str, kind: MethodKind, direction: Direction, area: &'static str) -> MethodInfo {
    MethodInfo { name, kind, direction, area }
}

const fn from_client(name: &'static str, kind: MethodKind, area: &'static str) -> MethodInfo {
    info(name, kind, Direction::ClientToServer, area)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{FRAMEWORK_METHODS, METHODS};

    #[test]
    fn names_are_unique() {
        let mut seen = HashSet::new();
        for method in METHODS.iter().chain(FRAMEWORK_METHODS) {
            assert!(seen.insert(method.name), "{} is listed twice", method.name);
        }
    }
}
