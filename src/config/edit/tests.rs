//! Files before and after a change.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

fn set(value: Value) -> ServerChange {
    ServerChange::Set(object(value))
}

fn changed(text: &str, name: &str, change: &ServerChange) -> Result<String, String> {
    let document = Document::parse("f", text.to_owned()).map_err(|problem| problem.message)?;
    changed_text(text, &document.values, name, change)
}

#[test]
fn comments_and_layout_stay() {
    let text = "{\n    // models\n    \"defaultModel\": \"a/b\", /* why */\n    \"mcpServers\": {\n        // files\n        \
                \"a\": {\"command\": \"x\"}, // inline\n        \"b\": {\n            // an address\n            \"url\": \
                \"http://x\",\n        },\n    },\n}\n";
    let disabled = changed(text, "b", &set(json!({"disabled": true}))).unwrap();
    assert_eq!(
        disabled,
        "{\n    // models\n    \"defaultModel\": \"a/b\", /* why */\n    \"mcpServers\": {\n        // files\n        \
         \"a\": {\"command\": \"x\"}, // inline\n        \"b\": {\n            // an address\n            \"url\": \
         \"http://x\",\n            \"disabled\": true,\n        },\n    },\n}\n"
    );
    let enabled = changed(&disabled, "b", &set(json!({"disabled": false}))).unwrap();
    assert_eq!(enabled, disabled.replace("true", "false"));
    let back = changed(&disabled, "b", &set(json!({"disabled": null}))).unwrap();
    assert_eq!(back, text);
    let removed = changed(text, "b", &ServerChange::Remove).unwrap();
    assert!(
        removed.contains("// models") && removed.contains("// files") && !removed.contains("http://x"),
        "{removed}"
    );
    assert_eq!(changed(text, "none", &ServerChange::Remove).unwrap(), text);
}

#[test]
fn servers_are_added_wherever_there_is_room() {
    let entry = json!({"command": "npx", "args": ["-y", "a \"b\"\n\u{1}é"], "env": {"K": "v"}});
    for text in [
        "",
        "\n",
        "// only a comment\n",
        "{}",
        "{ }\n",
        "{\"a\": 1}",
        "{\"mcpServers\": null}",
        "{\"mcpServers\": {}}",
        "\u{feff}{\r\n\t\"mcpServers\": {\r\n\t\t\"x\": null\r\n\t}\r\n}\r\n",
        "{\"mcpServers\": {\"s\": null}}",
        "{\"mcpServers\": {\"s\": 1}, \"mcpServers\": {}}",
    ] {
        let new = changed(text, "s", &set(entry.clone())).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        let document = Document::parse("f", new.clone()).unwrap();
        assert_eq!(document.values["mcpServers"]["s"], entry, "{text:?}");
        assert_eq!(text.starts_with('\u{feff}'), new.starts_with('\u{feff}'));
        let comments = |text: &str| text.matches("//").count();
        assert_eq!(comments(text), comments(&new));
        let again = changed(&new, "s", &ServerChange::Remove).unwrap();
        assert!(Document::parse("f", again).unwrap().values["mcpServers"].get("s").is_none());
    }
}

#[test]
fn what_cannot_be_changed_is_left_alone() {
    for (text, reason) in [
        ("[]", "must be an object"),
        ("{\"mcpServers\": []}", "mcpServers is not an object"),
        ("{\"mcpServers\": {\"s\": 7}}", "s is not an object"),
        ("{\"mcpServers\": {", "not valid JSON"),
    ] {
        let error = changed(text, "s", &set(json!({"disabled": true}))).unwrap_err();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn files_are_replaced_in_one_step_and_keep_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = ConfigFile { path: folder.path().join("deep/config.json"), root: None };
    assert_eq!(server_in(&file.path, "s").unwrap(), None);
    let edited = change_server(&file, "s", &set(json!({"command": "x"})), None).unwrap();
    assert_eq!(edited, Edited { hash: None });
    assert_eq!(server_in(&file.path, "s").unwrap(), Some(object(json!({"command": "x"}))));
    #[cfg(unix)]
    {
        use std::os::unix::fs::{PermissionsExt, symlink};
        std::fs::set_permissions(&file.path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let link = folder.path().join("link.json");
        symlink(&file.path, &link).unwrap();
        let linked = ConfigFile { path: link.clone(), root: None };
        change_server(&linked, "s", &set(json!({"disabled": true})), None).unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::metadata(&file.path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(server_in(&file.path, "s").unwrap(), Some(object(json!({"command": "x", "disabled": true}))));
    }
    assert_eq!(std::fs::read_dir(file.path.parent().unwrap()).unwrap().count(), 1, "nothing is left behind");
    std::fs::write(&file.path, "{ broken").unwrap();
    let error = change_server(&file, "s", &ServerChange::Remove, None).unwrap_err();
    assert!(error.to_string().contains("config.json"), "{error}");
    assert_eq!(std::fs::read_to_string(&file.path).unwrap(), "{ broken");
    std::fs::write(&file.path, vec![b' '; 1024 * 1024 + 1]).unwrap();
    assert!(server_in(&file.path, "s").is_err());
}

#[test]
fn a_file_that_counted_before_a_change_can_do_so_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let root = dunce::canonicalize(folder.path()).unwrap();
    let files = candidates(&[folder.path().to_owned()], "/own/config.json".into());
    assert_eq!(files[0].path, root.join(".eca/config.json"));
    assert_eq!(files[1], ConfigFile { path: "/own/config.json".into(), root: None });
    let counts = |trusted: &BTreeMap<PathBuf, String>| counts(&files[0], trusted, None);
    let mut trusted = BTreeMap::new();
    assert!(counts(&trusted), "a file that is not there hides nothing");
    std::fs::create_dir(root.join(".eca")).unwrap();
    std::fs::write(&files[0].path, "{\"defaultModel\": \"a/b\"}").unwrap();
    assert!(counts(&trusted), "and one with harmless keys does not either");
    let first = change_server(&files[0], "s", &set(json!({"command": "x"})), None).unwrap();
    assert!(!counts(&trusted));
    trusted.insert(files[0].path.clone(), first.hash.unwrap());
    assert!(counts(&trusted));
    let second = change_server(&files[0], "s", &set(json!({"command": "y"})), None).unwrap();
    assert!(!counts(&trusted), "another content is another question");
    trusted.insert(files[0].path.clone(), second.hash.unwrap());
    assert!(counts(&trusted) && super::counts(&files[1], &BTreeMap::new(), None));
    std::fs::write(&files[0].path, "{ broken").unwrap();
    assert!(!counts(&trusted));
}

proptest! {
    /// Whatever is set or removed, everything else means what it meant before.
    #[test]
    fn only_the_server_changes(
        before in prop::collection::btree_map("[a-c]{1,2}", "[ -~\n\té\"\\\\]{0,12}", 0..4),
        other in "[ -~\n\té\"\\\\]{0,12}",
        name in "[ -~\n\té\"\\\\]{1,8}",
        value in "[ -~\n\té\"\\\\]{0,12}",
        remove in any::<bool>(),
    ) {
        let text = json!({"other": other, "mcpServers": {"s": before}}).to_string();
        let change = if remove { ServerChange::Remove } else { set(json!({"command": value})) };
        let new = changed(&text, &name, &change).unwrap();
        let values = Document::parse("f", new).unwrap().values;
        prop_assert_eq!(&values["other"], &json!(other));
        if name != "s" {
            prop_assert_eq!(&values["mcpServers"]["s"], &json!(before));
        }
        let expected = if remove { Value::Null } else { json!(value) };
        prop_assert_eq!(values["mcpServers"].get(&name).map_or(&Value::Null, |entry| &entry["command"]), &expected);
    }
}
