//! Tools of the configuration with a real shell: what a model passes stays data.

use std::collections::BTreeMap;
use std::sync::Arc;

use eca::config::CustomToolConfig;
use eca::tool::Tool;
use eca::tools::custom::custom_tools;
use serde_json::{Value, json};

use super::support::{call, context};

fn tool(command: &str) -> Arc<dyn Tool> {
    let schema = json!({"properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]});
    let config = CustomToolConfig {
        description: "d".to_owned(),
        command: command.to_owned(),
        schema: schema.as_object().unwrap().clone(),
    };
    custom_tools(&BTreeMap::from([("mine".to_owned(), config)])).remove(0)
}

#[tokio::test]
async fn values_stay_data_in_any_quotes() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("x")).unwrap();
    let context = context(Some(root.path()));
    for value in
        ["'; rm -rf x; '", "\"; rm -rf x; \"", "$(rm -rf x)", "`rm -rf x`", "*\n\\ é $HOME ${x}", "-n", "'", "\\"]
    {
        for template in
            ["printf '<%s>' {{a}}", "printf '<%s>' '{{a}}'", "printf '<%s>' \"{{a}}\"", "printf '<%s>' {{ a }}"]
        {
            let (error, output) = call(&*tool(template), json!({"a": value}), &context).await;
            assert!(!error, "{template}: {output}");
            assert_eq!(output, format!("Stdout:\n<{value}>"), "{template}");
            assert!(root.path().join("x").exists(), "{template} {value}");
        }
        // Where the quotes are hard to tell, the value may be split, but is not run.
        for template in
            ["echo \"$(echo {{a}})\"", "# don't\necho {{a}}", "cat <<EOF\n{{a}}\nEOF", "echo `echo '{{a}}'`"]
        {
            call(&*tool(template), json!({"a": value}), &context).await;
            assert!(root.path().join("x").exists(), "{template} {value}");
        }
    }
}

#[tokio::test]
async fn other_values_are_text_and_missing_ones_empty() {
    let root = tempfile::tempdir().unwrap();
    let context = context(Some(root.path()));
    let show = tool("for word in {{a}} {{b}}; do printf '<%s>' \"$word\"; done; printf {{c}}");
    for (value, expected) in [
        (json!(1.5), "<1.5><>{{c}}"),
        (json!(true), "<true><>{{c}}"),
        (json!({"k": ["v w"]}), "<{\"k\":[\"v w\"]}><>{{c}}"),
        (Value::Null, "<><>{{c}}"),
    ] {
        let (_, output) = call(&*show, json!({"a": value}), &context).await;
        assert_eq!(output, format!("Stdout:\n{expected}"));
    }
}

#[tokio::test]
async fn only_a_bad_exit_code_is_told() {
    let root = tempfile::tempdir().unwrap();
    let context = context(Some(root.path()));
    assert_eq!(call(&*tool("true"), json!({}), &context).await, (false, "The command printed nothing.".to_owned()));
    let (error, output) = call(&*tool("echo out; echo err >&2; exit 9"), json!({}), &context).await;
    assert_eq!((error, output.as_str()), (true, "Exit code: 9\nStderr:\nerr\nStdout:\nout"));
    assert_eq!(call(&*tool("pwd"), json!({}), &context).await.1, format!("Stdout:\n{}", root.path().display()));
}
