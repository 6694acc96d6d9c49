//! The handshake: who we are, what we can do, and how a user gets a model to talk to.

use std::time::Duration;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentCapabilities, AuthMethod, AuthMethodAgent, AuthenticateRequest, AuthenticateResponse, Implementation,
    InitializeRequest, InitializeResponse, McpCapabilities, PromptCapabilities,
    SessionAdditionalDirectoriesCapabilities, SessionCapabilities, SessionCloseCapabilities, SessionDeleteCapabilities,
    SessionListCapabilities, SessionResumeCapabilities,
};
use serde_json::Value;

use super::client::Facts;
use super::desk::result;
use super::failure::{AUTH_REQUIRED, Failure};
use super::from_wire::params;
use super::open::Ground;
use crate::frontends::assemble::Wishes;

/// The one way to authenticate: keys are in the configuration, in the environment, or entered with
/// `/login`.
const CONFIGURED: &str = "configuration";
/// Servers on this machine and providers get so long to tell what they have.
const MODELS_WAIT: Duration = Duration::from_secs(5);

/// What the client said about itself, and our answer.
pub(super) fn initialize(given: Option<Value>) -> Result<(Facts, Value), Failure> {
    let request: InitializeRequest = params(given)?;
    let sessions = SessionCapabilities::new()
        .list(SessionListCapabilities::new())
        .delete(SessionDeleteCapabilities::new())
        .additional_directories(SessionAdditionalDirectoriesCapabilities::new())
        .resume(SessionResumeCapabilities::new())
        .close(SessionCloseCapabilities::new());
    let capabilities = AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(PromptCapabilities::new().image(true).embedded_context(true))
        .mcp_capabilities(McpCapabilities::new().http(true))
        .session_capabilities(sessions);
    let method = AuthMethodAgent::new(CONFIGURED, "Keys of the configuration").description(
        "Put the key of a provider into the configuration file or the environment, or enter it with /login in a \
         session."
            .to_owned(),
    );
    // Whatever version a client asks for, this is the one we speak; it decides whether that will do.
    let response = InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(capabilities)
        .auth_methods(vec![AuthMethod::Agent(method)])
        .agent_info(Implementation::new("eca", env!("CARGO_PKG_VERSION")).title("ECA".to_owned()));
    Ok((Facts::read(&request), result(&response)))
}

/// Succeeds when there is a model to talk to besides the offline guide.
pub(super) async fn authenticate(ground: &Ground, given: Option<Value>) -> Result<Value, Failure> {
    let request: AuthenticateRequest = params(given)?;
    if &*request.method_id.0 != CONFIGURED {
        return Err(Failure::params(format!("methodId: there is only {CONFIGURED:?}")));
    }
    let mut memory = ground.memory.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    let mut loaded = ground.surroundings.complete_configuration(&Wishes::default(), &mut memory).await;
    let registry = ground.surroundings.registry(&mut loaded);
    let has_model = || registry.models().len() > 1;
    if !has_model() {
        let _ = tokio::time::timeout(MODELS_WAIT, registry.refresh()).await;
    }
    if has_model() {
        return Ok(result(&AuthenticateResponse::new()));
    }
    let file = ground.surroundings.own_file();
    Err(Failure::new(
        AUTH_REQUIRED,
        format!("No model is configured: put a provider's key into {}, or type /login in a session", file.display()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_version_is_ours_whatever_is_asked_for() {
        for asked in [0, 1, 2, 65535] {
            let (facts, response) = initialize(Some(json!({"protocolVersion": asked}))).unwrap();
            assert_eq!(response["protocolVersion"], 1);
            assert_eq!(facts, Facts::default());
        }
        assert!(initialize(Some(json!({"protocolVersion": "1"}))).is_err());
        assert!(initialize(None).is_err());
    }

    #[test]
    fn what_a_client_can_do_is_read() {
        let (facts, response) = initialize(Some(json!({
            "protocolVersion": 1,
            "clientCapabilities": {
                "fs": {"readTextFile": true, "writeTextFile": true},
                "terminal": true,
                "elicitation": {"form": {}},
                "session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}},
                "hologram": 3,
            },
            "clientInfo": {"name": "zed", "version": "1"},
            "_meta": {"x": 1},
        })))
        .unwrap();
        let all = Facts {
            name: "zed".into(),
            reads_files: true,
            writes_files: true,
            terminals: true,
            forms: true,
            notices: true,
            compaction: true,
            switches: true,
        };
        assert_eq!(facts, all);
        let can = &response["agentCapabilities"];
        assert_eq!(can["loadSession"], true);
        assert_eq!(
            (&can["promptCapabilities"]["image"], &can["mcpCapabilities"]["http"]),
            (&json!(true), &json!(true))
        );
        for name in ["list", "delete", "resume", "close", "additionalDirectories"] {
            assert!(can["sessionCapabilities"][name].is_object(), "{name}: {can}");
        }
        assert_eq!(response["agentInfo"]["name"], "eca");
    }
}
