//! Every method of the protocol that is spoken here, once; `docs/contracts.md` is compared with
//! this table.

use crate::frontends::method::{Method, method};

/// The table.
pub const METHODS: &[Method] = &[
    method(INITIALIZE, "request", "to server"),
    method(AUTHENTICATE, "request", "to server"),
    method(SESSION_NEW, "request", "to server"),
    method(SESSION_LOAD, "request", "to server"),
    method(SESSION_RESUME, "request", "to server"),
    method(SESSION_LIST, "request", "to server"),
    method(SESSION_CLOSE, "request", "to server"),
    method(SESSION_DELETE, "request", "to server"),
    method(SESSION_PROMPT, "request", "to server"),
    method(SESSION_CANCEL, "notification", "to server"),
    method(SESSION_SET_MODE, "request", "to server"),
    method(SESSION_SET_CONFIG_OPTION, "request", "to server"),
    method(SESSION_SET_MODEL, "request", "to server"),
    method(CANCEL_REQUEST, "notification", "to server"),
    method(SESSION_UPDATE, "notification", "to client"),
    method(SESSION_REQUEST_PERMISSION, "request", "to client"),
    method(ELICITATION_CREATE, "request", "to client"),
    method(FS_READ_TEXT_FILE, "request", "to client"),
    method(FS_WRITE_TEXT_FILE, "request", "to client"),
    method(TERMINAL_CREATE, "request", "to client"),
    method(TERMINAL_OUTPUT, "request", "to client"),
    method(TERMINAL_WAIT_FOR_EXIT, "request", "to client"),
    method(TERMINAL_KILL, "request", "to client"),
    method(TERMINAL_RELEASE, "request", "to client"),
];

pub(super) const INITIALIZE: &str = "initialize";
pub(super) const AUTHENTICATE: &str = "authenticate";
pub(super) const SESSION_NEW: &str = "session/new";
pub(super) const SESSION_LOAD: &str = "session/load";
pub(super) const SESSION_RESUME: &str = "session/resume";
pub(super) const SESSION_LIST: &str = "session/list";
pub(super) const SESSION_CLOSE: &str = "session/close";
pub(super) const SESSION_DELETE: &str = "session/delete";
pub(super) const SESSION_PROMPT: &str = "session/prompt";
pub(super) const SESSION_CANCEL: &str = "session/cancel";
pub(super) const SESSION_SET_MODE: &str = "session/set_mode";
pub(super) const SESSION_SET_CONFIG_OPTION: &str = "session/set_config_option";
/// Never became stable; clients that were written before config options still send it.
pub(super) const SESSION_SET_MODEL: &str = "session/set_model";
/// In both directions.
pub(super) const CANCEL_REQUEST: &str = "$/cancel_request";
pub(super) const SESSION_UPDATE: &str = "session/update";
pub(super) const SESSION_REQUEST_PERMISSION: &str = "session/request_permission";
pub(super) const ELICITATION_CREATE: &str = "elicitation/create";
pub(super) const FS_READ_TEXT_FILE: &str = "fs/read_text_file";
pub(super) const FS_WRITE_TEXT_FILE: &str = "fs/write_text_file";
pub(super) const TERMINAL_CREATE: &str = "terminal/create";
pub(super) const TERMINAL_OUTPUT: &str = "terminal/output";
pub(super) const TERMINAL_WAIT_FOR_EXIT: &str = "terminal/wait_for_exit";
pub(super) const TERMINAL_KILL: &str = "terminal/kill";
pub(super) const TERMINAL_RELEASE: &str = "terminal/release";

#[cfg(test)]
mod tests {
    use agent_client_protocol_schema::v1::{AGENT_METHOD_NAMES, CLIENT_METHOD_NAMES, PROTOCOL_LEVEL_METHOD_NAMES};

    use super::*;

    #[test]
    fn names_are_those_of_the_published_schema() {
        let (agent, client) = (AGENT_METHOD_NAMES, CLIENT_METHOD_NAMES);
        for (ours, published) in [
            (INITIALIZE, agent.initialize),
            (AUTHENTICATE, agent.authenticate),
            (SESSION_NEW, agent.session_new),
            (SESSION_LOAD, agent.session_load),
            (SESSION_RESUME, agent.session_resume),
            (SESSION_LIST, agent.session_list),
            (SESSION_CLOSE, agent.session_close),
            (SESSION_DELETE, agent.session_delete),
            (SESSION_PROMPT, agent.session_prompt),
            (SESSION_CANCEL, agent.session_cancel),
            (SESSION_SET_MODE, agent.session_set_mode),
            (SESSION_SET_CONFIG_OPTION, agent.session_set_config_option),
            (CANCEL_REQUEST, PROTOCOL_LEVEL_METHOD_NAMES.cancel_request),
            (SESSION_UPDATE, client.session_update),
            (SESSION_REQUEST_PERMISSION, client.session_request_permission),
            (ELICITATION_CREATE, client.elicitation_create),
            (FS_READ_TEXT_FILE, client.fs_read_text_file),
            (FS_WRITE_TEXT_FILE, client.fs_write_text_file),
            (TERMINAL_CREATE, client.terminal_create),
            (TERMINAL_OUTPUT, client.terminal_output),
            (TERMINAL_WAIT_FOR_EXIT, client.terminal_wait_for_exit),
            (TERMINAL_KILL, client.terminal_kill),
            (TERMINAL_RELEASE, client.terminal_release),
        ] {
            assert_eq!(ours, published);
            assert!(METHODS.iter().any(|method| method.name == ours), "{ours}");
        }
    }
}
