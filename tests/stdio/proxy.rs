//! Proxies, which the environment names.

use serde_json::json;

use crate::mock_llm::{MockLlm, Script};
use crate::process::Launch;

/// Asks a model whose name nobody can look up, with these variables; says whether it answered.
async fn answered(proxy: &MockLlm, variables: &[(&str, &str)]) -> bool {
    let launch = Launch::with(proxy).arguments(&["chat", "hi"]);
    let mut config = crate::server::default_config("http://models.invalid/v1");
    config["providers"]["mock"]["retry"] = json!({"maxRetries": 0});
    std::fs::write(launch.dirs.eca.config.join("config.json"), config.to_string()).unwrap();
    let mut command = launch.command();
    command.envs(variables.iter().copied());
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.success(), text.contains("by way of"), "{text}");
    output.status.success()
}

#[tokio::test]
async fn a_proxy_is_asked_for_what_is_not_excepted() {
    let proxy = MockLlm::start().await;
    proxy.respond_with(|_| Script::text_stream(&["by way of a proxy"]));
    let address = proxy.url().trim_end_matches("/v1").to_owned();
    assert!(answered(&proxy, &[("HTTP_PROXY", &address)]).await);
    assert_eq!(proxy.next_request().await.path, "http://models.invalid/v1/chat/completions");
    assert!(answered(&proxy, &[("HTTP_PROXY", &address), ("NO_PROXY", "elsewhere.invalid")]).await);
    proxy.next_request().await;
    assert!(!answered(&proxy, &[("HTTP_PROXY", &address), ("NO_PROXY", ".invalid")]).await);
    assert!(!answered(&proxy, &[]).await);
    assert_eq!(proxy.answered(), 2);
}
