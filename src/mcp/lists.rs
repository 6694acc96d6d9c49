//! What a running server offers, fetched again when it says that something has changed.

use std::sync::Arc;

use rmcp::model::{Prompt, Resource};

use super::failure::Failure;
use super::handler::Signals;
use super::live::Live;
use super::shared::Shared;
use super::status::{McpError, PromptArgument, PromptInfo, ResourceInfo};
use super::tool;
use crate::base::text::prefix;

const MOST_TEXT: usize = 2 * 1024;

/// Fetches what is said to have changed.
pub(super) async fn refresh(shared: &Arc<Shared>, live: &Live, bits: u8) -> Result<(), Failure> {
    if bits & Signals::LOGIN != 0 {
        return Err(Failure::NeedsLogin(String::new()));
    }
    if bits & Signals::TOOLS != 0 {
        shared.change(|state| state.about_to_be_ready = true);
        let listed = live.tools().await;
        shared.change(|state| state.about_to_be_ready = false);
        if let Some(tools) = kept(shared, "tools", listed) {
            let tools = tool::offered(shared, tools);
            shared.change(|state| state.tools = tools);
        }
    }
    if bits & Signals::PROMPTS != 0
        && let Some(prompts) = kept(shared, "prompts", live.prompts().await)
    {
        let prompts = prompts.into_iter().map(|prompt| prompt_info(shared.name(), prompt)).collect();
        shared.change(|state| state.prompts = prompts);
    }
    if bits & Signals::RESOURCES != 0
        && let Some(resources) = kept(shared, "resources", live.resources().await)
    {
        let resources = resources.into_iter().map(|resource| resource_info(shared.name(), resource)).collect();
        shared.change(|state| state.resources = resources);
    }
    if bits & Signals::DOUBT != 0 && !live.is_alive().await {
        return Err(Failure::Passing("it does not answer any more".to_owned()));
    }
    Ok(())
}

/// A list that could not be fetched leaves the old one in place.
fn kept<T>(shared: &Shared, list: &str, listed: Result<Vec<T>, McpError>) -> Option<Vec<T>> {
    match listed {
        Ok(items) => Some(items),
        // Some servers announce lists that they do not have.
        Err(McpError::Refused(_)) => Some(Vec::new()),
        Err(error) => {
            tracing::warn!(server = shared.name(), list, %error, "a list of an MCP server cannot be fetched");
            None
        }
    }
}

fn prompt_info(server: &str, prompt: Prompt) -> PromptInfo {
    let argument = |argument: rmcp::model::PromptArgument| PromptArgument {
        name: argument.name,
        description: argument.description.or(argument.title).map(|text| prefix(&text, MOST_TEXT).to_owned()),
        required: argument.required.unwrap_or(false),
    };
    PromptInfo {
        server: server.to_owned(),
        description: prompt.description.or(prompt.title).map(|text| prefix(&text, MOST_TEXT).to_owned()),
        arguments: prompt.arguments.unwrap_or_default().into_iter().map(argument).collect(),
        name: prompt.name,
    }
}

fn resource_info(server: &str, resource: Resource) -> ResourceInfo {
    ResourceInfo {
        server: server.to_owned(),
        uri: resource.uri,
        name: resource.title.unwrap_or(resource.name),
        description: resource.description.map(|text| prefix(&text, MOST_TEXT).to_owned()),
        mime_type: resource.mime_type,
    }
}
