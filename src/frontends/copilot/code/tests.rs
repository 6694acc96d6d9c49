//! Code as models write it, in pieces of every size.

use proptest::prelude::*;

use super::*;

const CODE: &str = "import React from \"react\";\n\nexport default function App() {\n  return <p>Don't `x`</p>;\n}\n";

/// What of an answer is code, however it is cut.
fn taken(answer: &str) -> String {
    let mut results = Vec::new();
    for size in [1, 2, 5, 17, answer.len().max(1)] {
        let mut intake = Intake::default();
        let mut streamed = String::new();
        let characters: Vec<char> = answer.chars().collect();
        for piece in characters.chunks(size) {
            streamed.push_str(&intake.push(&piece.iter().collect::<String>()));
        }
        streamed.push_str(&intake.finish());
        assert_eq!(streamed, intake.code(), "in pieces of {size}");
        results.push(streamed);
    }
    let first = results.remove(0);
    assert!(results.iter().all(|other| *other == first), "{answer:?}: {first:?}, {results:?}");
    first
}

#[test]
fn fences_and_words_around_the_code_are_taken_off() {
    for answer in [
        CODE.to_owned(),
        format!("```tsx\n{CODE}```\n"),
        format!("```\n{CODE}```"),
        format!("\n\n  ```jsx title=\"App\"\n{CODE}  ```  \nThat is it.\n```sh\nnpm start\n```\n"),
        format!("Here is the module:\n\n```tsx\n{CODE}```\nI hope you like it."),
        format!("First run this:\n```bash\nnpm install react\n```\nThen:\n```tsx\n{CODE}```"),
        format!("````tsx\n{CODE}````"),
        format!("{CODE}```\n"),
    ] {
        assert_eq!(taken(&answer), CODE, "{answer:?}");
    }
}

#[test]
fn what_is_no_code_gives_none() {
    for answer in ["", "I am sorry.", "type whatever you like", "class is over", "```json\n{}\n```", "const\n", "```"] {
        assert_eq!(taken(answer), "", "{answer:?}");
    }
}

#[test]
fn shorter_fences_inside_of_longer_ones_are_code() {
    let code = "const text = `\n```\nx\n```\n`;\nexport default text;\n";
    assert_eq!(taken(&format!("````tsx\n{code}````\n")), code);
}

#[test]
fn an_interrupted_answer_goes_on_with_or_without_another_fence() {
    for (first, second) in [
        ("```tsx\nconst a = 1;\nexport def", "ault a;\n```"),
        ("```tsx\nconst a = 1;\nexport def", "```tsx\nault a;\n```"),
        ("```tsx\nconst a = 1;\n", "```\nexport default a;\n```\nDone."),
        ("const a = 1;\n", "export default a;\n"),
    ] {
        let mut intake = Intake::default();
        let mut code = intake.push(first);
        code += &intake.go_on();
        code += &intake.push(second);
        code += &intake.finish();
        assert_eq!(code, "const a = 1;\nexport default a;\n", "{first:?} {second:?}");
    }
    let mut intake = Intake::default();
    let code = intake.push("```tsx\n<p>\n  ") + &intake.go_on() + &intake.push("```\n<b/>\n```") + &intake.finish();
    assert_eq!(code, "<p>\n  <b/>\n");
}

#[test]
fn a_missing_export_is_added() {
    assert_eq!(taken("function App() { return <p/>; }\n"), "function App() { return <p/>; }\n\nexport default App;\n");
    let two = "const One = () => <p/>;\nconst Two = () => <p/>;";
    assert_eq!(taken(two), format!("{two}\n\nexport default Two;\n"));
    for fine in ["const App = 1;\nexport { App as default };\n", "export default () => <p/>;\n"] {
        assert_eq!(taken(fine), fine);
    }
    assert_eq!(taken("const nothing = 1;\n"), "const nothing = 1;\n");
}

/// The words that the application looks for.
const FORBIDDEN: [&str; 12] = [
    "eval(",
    "new Function(",
    "document.cookie",
    "window.parent",
    "window.top",
    "window.opener",
    "require(",
    "import(",
    "process.env",
    "global.",
    "globalThis.",
    "globalThis[",
];

fn guarded(code: &str) -> String {
    let mut results: Vec<String> = [1, 3, 8, code.len().max(1)]
        .iter()
        .map(|size| {
            let mut guard = Guard::default();
            let characters: Vec<char> = code.chars().collect();
            let mut out: String =
                characters.chunks(*size).map(|piece| guard.push(&piece.iter().collect::<String>())).collect();
            out.push_str(&guard.finish());
            out
        })
        .collect();
    results.dedup();
    assert_eq!(results.len(), 1, "{results:?}");
    let out = results.remove(0);
    for word in FORBIDDEN {
        assert!(!out.contains(word), "{word} is left in {out:?}");
    }
    out
}

#[test]
fn what_the_application_refuses_is_made_harmless() {
    for (code, expected) in [
        ("x = eval(y)", "x = ((_code) => undefined)(y)"),
        ("x = eval (y)", "x = ((_code) => undefined)(y)"),
        ("retrieval(y)", "retrieval (y)"),
        ("math.eval(y)", "math.valueOf(y)"),
        ("new Function(a)", "((..._code) => () => undefined)(a)"),
        ("renew Function(a)", "renew Function (a)"),
        ("document.cookie = 1", "({ cookie: String() }).cookie = 1"),
        ("document.cookies", "document .cookies"),
        ("window.document.cookie", "window.document.title"),
        ("window.parent.postMessage(1)", "window.self.postMessage(1)"),
        ("window.topbar", "window .topbar"),
        ("if (window.top) x", "if (window.self) x"),
        ("const fs = require('fs')", "const fs = ((_name) => ({}))('fs')"),
        ("api.require(x)", "api.require (x)"),
        ("await import('x')", "await ((_name) => Promise.resolve({}))('x')"),
        ("import x from 'react'", "import x from 'react'"),
        ("process.env.KEY", "({}).KEY"),
        ("process.environment", "process .environment"),
        ("<p>This is global.</p>", "<p>This is global .</p>"),
        ("globalThis.x", "window.x"),
        ("window.innerWidth + requirement + evaluate()", "window.innerWidth + requirement + evaluate()"),
        ("eval", "eval"),
    ] {
        assert_eq!(guarded(code), expected, "{code}");
    }
    let mut guard = Guard::default();
    guard.push("eval(1); eval(2); retrieval(3); global.x; document.cookie;");
    guard.finish();
    assert_eq!(guard.replaced(), ["eval(", "document.cookie"]);
}

#[test]
fn data_keeps_its_meaning_without_the_words() {
    let data = serde_json::json!({"a": "eval(x) and window.top.document.cookie", "b": ["process.env", "global."]});
    let escaped = escape_forbidden(&data.to_string());
    for word in FORBIDDEN {
        assert!(!escaped.contains(word), "{escaped}");
    }
    assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), data);
}

proptest! {
    #[test]
    fn no_mixture_gets_through(words in prop::collection::vec(prop_oneof![
        prop::sample::select(FORBIDDEN.to_vec()).prop_map(str::to_owned),
        "[a-zé ._(\\[\n]{0,4}",
        Just("win".to_owned()), Just("dow.".to_owned()), Just("ev".to_owned()), Just("al(".to_owned()),
    ], 0..12)) {
        guarded(&words.concat());
    }

    #[test]
    fn any_answer_is_survived(answer in "[`\\na-c<> {}()='/*]{0,80}") {
        taken(&answer);
        component_count(&answer);
        opening_remark(&answer);
    }
}

#[test]
fn components_are_counted() {
    for (code, count) in [
        (CODE, 1),
        ("export default function App() { return <A/> }\nfunction A() { return <p>It's {x}</p>; }", 2),
        ("const A = () => <p/>;\nconst B = memo(() => <A />);\nclass C extends X { render() { return <></>; } }", 3),
        ("const LIMIT = 5;\nconst API = {};\nfunction helper() { return <p/> }\nexport default helper;", 1),
        ("function Data() { return useState<string>(1); }\nfunction View() { return <p/>; }", 1),
        ("// function A() { return <p/> }\nconst s = \"function B() { <p/> }\";\nexport default 5;", 1),
        ("function A<T extends X>(x: T) { return x < y; }", 0),
        ("function App() {\n  const ROWS = [];\n  const Row = () => <tr/>;\n  return <Row/>;\n}", 1),
        ("const A = <T,>(x: T) => x;\nconst B = (x) => x ? <p/> : <b/>;", 1),
        ("export default () => null;", 1),
        ("export { A as default }", 1),
        ("", 0),
    ] {
        assert_eq!(component_count(code), count, "{code}");
    }
}

#[test]
fn the_first_comment_may_say_what_it_is() {
    assert_eq!(opening_remark("// Lists pets and edits them.\ncode").as_deref(), Some("Lists pets and edits them."));
    assert_eq!(opening_remark("\n/* Lists pets and edits them */\n").as_deref(), Some("Lists pets and edits them"));
    for other in ["", "// App", "// eslint-disable next line please", "// @ts-nocheck for this file", "code // a b c"] {
        assert_eq!(opening_remark(other), None, "{other}");
    }
}
