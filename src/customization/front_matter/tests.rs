//! What a front matter says, as tables, and that nothing breaks the reader.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn values(block: &str) -> Value {
    match split(&format!("---\n{block}\n---\nbody")) {
        Ok(split) => {
            assert_eq!(split.body, "body", "{block}");
            Value::Object(split.values)
        }
        Err(flaw) => panic!("{block}: {flaw:?}"),
    }
}

#[test]
fn the_block_is_taken_off() {
    for (text, expected, body) in [
        ("", json!({}), ""),
        ("only text\n", json!({}), "only text"),
        ("---\na: 1\n---\n\nbody\n\n", json!({"a": 1}), "body"),
        ("\u{feff}---\r\na: x\r\nb:\r\n  - y\r\n---\r\nbody\r\nmore\r\n", json!({"a": "x", "b": ["y"]}), "body\nmore"),
        ("---  \na: 1\n---\t\n", json!({"a": 1}), ""),
        ("---\na: 1\n...\nbody", json!({"a": 1}), "body"),
        ("---\n---\nbody", json!({}), "body"),
        ("---\n# only a comment\n\n---\nbody", json!({}), "body"),
        ("---\nno end: here\n", json!({}), "---\nno end: here"),
        (" ---\na: 1\n---\n", json!({}), "---\na: 1\n---"),
        ("---\na: 1\n---\n---\nb: 2\n---", json!({"a": 1}), "---\nb: 2\n---"),
    ] {
        let split = split(text).unwrap();
        assert_eq!((Value::Object(split.values), split.body.as_str()), (expected, body), "{text:?}");
    }
}

#[test]
fn the_body_knows_its_line() {
    for (text, line) in [("x", 1), ("\n\nx", 3), ("---\na: 1\n---\nx", 4), ("---\r\n---\r\n\r\nx\r\ny", 4)] {
        assert_eq!(split(text).unwrap().body_line, line, "{text:?}");
    }
}

#[test]
fn single_values() {
    for (block, expected) in [
        ("a: text", json!("text")),
        ("a:   text with  # a comment", json!("text with")),
        ("a: not#a comment", json!("not#a comment")),
        ("a: # nothing", json!(null)),
        ("a:", json!(null)),
        ("a: ~", json!(null)),
        ("a: true", json!(true)),
        ("a: False", json!(false)),
        ("a: yes", json!("yes")),
        ("a: 12", json!(12)),
        ("a: -1.5", json!(-1.5)),
        ("a: 0123", json!("0123")),
        ("a: 1e5", json!("1e5")),
        ("a: 1.2.3", json!("1.2.3")),
        ("a: \"x: 'y' # z\"  # comment", json!("x: 'y' # z")),
        ("a: 'it''s'", json!("it's")),
        (r#"a: "line\nbreak \"q\" \\ \t\u00e9\x41\ud83d\ude00""#, json!("line\nbreak \"q\" \\ \té\u{41}😀")),
        (r#"a: "lone \ud800 half""#, json!("lone \u{fffd} half")),
        ("a: \"quoted\" and more", json!("\"quoted\" and more")),
        ("a: \"never closed", json!("\"never closed")),
        ("a: Use when: always", json!("Use when: always")),
        ("a: *.ts,*.tsx", json!("*.ts,*.tsx")),
        ("a: [WIP] a sentence", json!("[WIP] a sentence")),
        ("a: {not a map", json!("{not a map")),
        ("a: @scope/name", json!("@scope/name")),
        ("a: http://host:80/x", json!("http://host:80/x")),
        ("a: one\n  two\n\n  three: four", json!("one two three: four")),
        ("a: > 5 files", json!("> 5 files")),
        ("a: grün 日本", json!("grün 日本")),
    ] {
        assert_eq!(values(block)["a"], expected, "{block}");
    }
    assert_eq!(values("\"quoted key\": 1\n'k': 2\nx y: 3"), json!({"quoted key": 1, "k": 2, "x y": 3}));
    assert_eq!(values("a: 1\na: 2"), json!({"a": 2}));
}

#[test]
fn lists_and_maps() {
    for (block, expected) in [
        ("a: [x, \"y, z\", 'w', 1, true]", json!(["x", "y, z", "w", 1, true])),
        ("a: []", json!([])),
        ("a: [x, ]  # comment", json!(["x"])),
        ("a: [\n  x,\n  y # comment\n]", json!(["x", "y"])),
        ("a: [[1], {b: [2]}]", json!([[1], {"b": [2]}])),
        ("a: {b: x, c: {d: 1}, \"e\":2, f: }", json!({"b": "x", "c": {"d": 1}, "e": 2, "f": null})),
        ("a: {}", json!({})),
        ("a:\n  - x\n  - \"y\"\n  -\n  - [1]", json!(["x", "y", null, [1]])),
        ("a:\n- x\n- y", json!(["x", "y"])),
        ("a:\n  - name: n\n    required: true\n  - name: m", json!([{"name": "n", "required": true}, {"name": "m"}])),
        ("a:\n  -   name: n\n      b: 1", json!([{"name": "n", "b": 1}])),
        ("a:\n  -\n    b: 1\n    c: 2", json!([{"b": 1, "c": 2}])),
        ("a:\n  - - 1\n    - 2\n  - - 3", json!([[1, 2], [3]])),
        ("a:\n  b:\n    c: 1\n  d: 2", json!({"b": {"c": 1}, "d": 2})),
        ("a:\n  b:\n  - 1\n  - 2\n  c: 3", json!({"b": [1, 2], "c": 3})),
        ("a:\n\n  # why\n  b: 1\n", json!({"b": 1})),
        ("a:\n  - eca__shell_command(git .*)\n  - \"x(a{1,2})\"", json!(["eca__shell_command(git .*)", "x(a{1,2})"])),
        ("a:\n  - long item\n    goes on", json!(["long item goes on"])),
    ] {
        assert_eq!(values(block)["a"], expected, "{block}");
    }
    assert_eq!(values("  a: 1\n  b: 2"), json!({"a": 1, "b": 2}));
    assert_eq!(values("a:\n  - x\nb: 1\nc:\n- y\nd: 2"), json!({"a": ["x"], "b": 1, "c": ["y"], "d": 2}));
}

#[test]
fn texts_over_several_lines() {
    for (block, expected) in [
        ("a: |\n  one\n   two\n\n  three\nb: 1", "one\n two\n\nthree\n"),
        ("a: |-\n  one\n  two", "one\ntwo"),
        ("a: |+\n  one\n", "one\n\n"),
        ("a: >\n  one\n  two\n\n  three\n  # no comment here", "one two\nthree # no comment here\n"),
        ("a: >-  # folded\n  one\n  two", "one two"),
        ("a: |2-\n  one", "one"),
        ("a: |\nb: 1", ""),
    ] {
        assert_eq!(values(block)["a"], expected, "{block}");
    }
    assert_eq!(values("list:\n  - |\n    x\n    y\n  - z"), json!({"list": ["x\ny\n", "z"]}));
}

#[test]
fn flaws_name_their_line() {
    for (block, line) in [
        ("a: 1\n    b: 2\nno colon", 4),
        ("a: 1\njust words\n", 3),
        ("- a\n- b", 2),
        ("a:\n  b: 1\n c: 2", 4),
        ("\ta: 1", 2),
        ("a:\n\tb: 1", 3),
        ("a:\n  - x\n    - y: 1\n   z: 2\nq", 6),
        (": x", 2),
    ] {
        let flaw = split(&format!("---\n{block}\n---\n")).map(|split| split.values);
        assert_eq!(flaw.as_ref().map_err(|flaw| flaw.line).err(), Some(line), "{block:?}: {flaw:?}");
    }
    let deep: String = (0..40).map(|n| format!("{}k:\n", " ".repeat(n))).collect();
    assert!(split(&format!("---\n{deep}---\n")).is_err());
    let dashes = format!("---\na:\n  {}x\n---\n", "- ".repeat(5_000));
    assert!(split(&dashes).is_err());
    let brackets = format!("---\na: {}\n---\n", "[".repeat(5_000));
    assert!(split(&brackets).unwrap().values["a"].is_string());
    let open = format!("---\na: [\n{}---\n", "  x,\n".repeat(10_000));
    assert!(split(&open).unwrap().values["a"].is_string(), "a list that never ends");
    let large = format!("---\na: {}\n---\n", "x".repeat(70_000));
    assert!(split(&large).is_err());
}

/// Anything that both JSON and a front matter can say.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[^\\x00-\\x1f]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,4}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

/// Writes it with one line per key and item.
fn write(value: &Value, indent: usize, out: &mut String) {
    let pad = " ".repeat(indent);
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                out.push_str(&format!("\n{pad}{key}:"));
                write(value, indent + 2, out);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            for value in list {
                out.push_str(&format!("\n{pad}-"));
                write(value, indent + 2, out);
            }
        }
        other => out.push_str(&format!(" {other}")),
    }
}

proptest! {
    #[test]
    fn json_on_one_line_is_read_back(value in any_value()) {
        prop_assert_eq!(&values(&format!("a: {value}"))["a"], &value);
    }

    #[test]
    fn blocks_are_read_back(value in any_value()) {
        let mut block = String::from("a:");
        write(&value, 2, &mut block);
        prop_assert_eq!(&values(&block)["a"], &value, "{}", block);
    }

    #[test]
    fn nothing_breaks_it(block in "([-:#|>\\[\\]{},'\"\\\\ \\tab1\\n]|\\PC){0,80}") {
        let _ = split(&format!("---\n{block}\n---\nx"));
        let _ = split(&block);
    }
}
