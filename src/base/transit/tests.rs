//! The format against tables, against what another implementation writes, and against any text.

use super::*;

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn keyword(name: &str) -> Value {
    Value::Keyword(name.into())
}

fn tagged(tag: &str, value: Value) -> Value {
    Value::Tagged(tag.into(), Box::new(value))
}

fn numbers<const N: usize>(numbers: [i64; N]) -> Value {
    Value::Array(numbers.map(Value::Integer).to_vec())
}

#[test]
fn values() {
    for (json, expected) in [
        ("null", Value::Null),
        ("true", Value::Bool(true)),
        ("-7", Value::Integer(-7)),
        ("1.5", Value::Float(1.5)),
        ("18446744073709551615", Value::Float(18_446_744_073_709_551_615.0)),
        (r#""""#, text("")),
        (r#""~""#, text("~")),
        (r#""plain""#, text("plain")),
        (r#""~~tilde""#, text("~tilde")),
        (r#""~^hat""#, text("^hat")),
        (r#""~^ ""#, text("^ ")),
        (r#""~`tick""#, text("`tick")),
        (r#""~:k""#, keyword("k")),
        (r#""~:auth/token""#, keyword("auth/token")),
        (r#""~$s""#, Value::Symbol("s".into())),
        (r#""~_""#, Value::Null),
        (r#""~?t""#, Value::Bool(true)),
        (r#""~?f""#, Value::Bool(false)),
        (r#""~i9007199254740993""#, Value::Integer(9_007_199_254_740_993)),
        (r#""~i99999999999999999999""#, tagged("i", text("99999999999999999999"))),
        (r#""~d2.5""#, Value::Float(2.5)),
        (r#""~zINF""#, Value::Float(f64::INFINITY)),
        (r#""~cx""#, text("x")),
        (r#""~m0""#, tagged("m", text("0"))),
        (r#""~u531a379e""#, tagged("u", text("531a379e"))),
        (r#""~ée""#, tagged("é", text("e"))),
        ("[]", Value::Array(vec![])),
        ("[1,2]", numbers([1, 2])),
        (r#"["a",[1]]"#, Value::Array(vec![text("a"), numbers([1])])),
        (r#"["^ "]"#, Value::Map(vec![])),
        (
            r#"["^ ","~:a",1,2,"b"]"#,
            Value::Map(vec![(keyword("a"), Value::Integer(1)), (Value::Integer(2), text("b"))]),
        ),
        (r#"["~#set",[1,2]]"#, tagged("set", numbers([1, 2]))),
        (r#"["~#'","top"]"#, text("top")),
        (r#"["~#cmap",[[1],"x"]]"#, Value::Map(vec![(numbers([1]), text("x"))])),
        (r#"["~#own",["^ ","~:a",1]]"#, tagged("own", Value::Map(vec![(keyword("a"), Value::Integer(1))]))),
        (r#"{"~:a":1,"b":"~:c"}"#, Value::Map(vec![(text("b"), keyword("c")), (keyword("a"), Value::Integer(1))])),
        (r#"{"~#set":[1]}"#, tagged("set", numbers([1]))),
    ] {
        let decoded = decode(json.as_bytes()).unwrap();
        match (&decoded, &expected) {
            (Value::Map(decoded), Value::Map(expected)) => {
                assert!(
                    decoded.len() == expected.len() && expected.iter().all(|entry| decoded.contains(entry)),
                    "{json}"
                );
            }
            _ => assert_eq!(decoded, expected, "{json}"),
        }
    }
    assert!(matches!(decode(br#""~zNaN""#), Ok(Value::Float(number)) if number.is_nan()));
}

#[test]
fn what_is_not_transit() {
    for broken in [
        "",
        "[",
        "nul",
        r#""^0""#,
        r#"["~:abcd","^1"]"#,
        r#"["~:abcd","^"]"#,
        r#"["~:abcd","^000"]"#,
        r#"["~:abcd","^\u007f"]"#,
        r#"["~:abcd","^é"]"#,
        r#"["~:abc","^/"]"#,
        r#"["~:ab","~:abc","^ "]"#,
        r#""~#tag""#,
        r#"["~#tag"]"#,
        r#"["~#tag",1,2]"#,
        r#"[1,"~#tag"]"#,
        r#"["^ ","~#tag",1]"#,
        r#"["^ ","~:a"]"#,
        r#"["~#cmap",[1]]"#,
        r#"["~#cmap",1]"#,
        r#"{"~#set":[1],"a":1}"#,
    ] {
        assert!(decode(broken.as_bytes()).is_err(), "{broken}");
    }
    assert!(decode(&[b'['; 100_000]).is_err());
    assert!(decode(&[0xff]).is_err());
}

#[test]
fn codes() {
    // Written by transit-js: names of four characters and more get a code, texts only as keys, and
    // the length is counted in UTF-16 units.
    let document = r##"["~:abcd","^0","~:a","~:a","~:ab","^1","~:abc","~$sym","^3","text","text",["~#set",[1,2]],
        ["^4",[3]],["~#list",[1]],["~#cmap",[[1],"x","kkkk","kkkk"]],["^ ","kkkk",1,"abc",3,"😀a",4],
        ["^ ","😀a",5,"😀😀",6],["^ ","^8",7]]"##;
    let decoded = decode(document.as_bytes()).unwrap();
    let items = decoded.items().unwrap();
    let named = |at: usize| items[at].name().unwrap_or_default();
    assert_eq!((named(1), named(5), named(10)), ("abcd", "ab", "text"));
    assert_eq!(items[8], Value::Symbol("sym".into()));
    assert_eq!(items[12], tagged("set", numbers([3])));
    assert_eq!((items[12].items().unwrap().len(), items[13].items().unwrap().len()), (1, 1));
    assert_eq!(items[14].get("kkkk"), Some(&text("kkkk")));
    assert_eq!(items[17].get("😀😀"), Some(&Value::Integer(7)));
    // A first element that is no tag counts once.
    let twice = decode(br#"[["~:first","x"],["~:other","^0","^1"]]"#).unwrap();
    assert_eq!(twice.items().unwrap()[1].items().unwrap()[1..], [keyword("first"), keyword("other")]);
    // An unusual key is a key all the same.
    let spec =
        r##"[["^ ","~:any-value",["~#cmap",[["a cmap"],"any value","any string","~:victim"]]],["^ ","^2","~:x"]]"##;
    assert_eq!(decode(spec.as_bytes()).unwrap().items().unwrap()[1].get("victim"), Some(&keyword("x")));
}

#[test]
fn codes_start_again_when_all_are_used() {
    let name = |number: usize| format!("key{number:04}");
    let code = |number: usize| match (number / CODE_DIGITS, number % CODE_DIGITS) {
        (0, low) => format!("^{}", char::from(FIRST_DIGIT + low as u8)),
        (high, low) => format!("^{}{}", char::from(FIRST_DIGIT + high as u8), char::from(FIRST_DIGIT + low as u8)),
    };
    for (count, asked, expected) in [
        (45, 43, 43),
        (45, 44, 44),
        (CACHE_SIZE, 0, 0),
        (CACHE_SIZE, CACHE_SIZE - 1, CACHE_SIZE - 1),
        (CACHE_SIZE + 1, 0, CACHE_SIZE),
        (CACHE_SIZE + 1, 1, 1),
        (2 * CACHE_SIZE + 3, 2, 2 * CACHE_SIZE + 2),
        (2 * CACHE_SIZE + 3, 3, CACHE_SIZE + 3),
    ] {
        let mut words: Vec<String> = (0..count).map(|number| format!("~:{}", name(number))).collect();
        words.push(code(asked));
        let decoded = decode(serde_json::to_string(&words).unwrap().as_bytes()).unwrap();
        assert_eq!(decoded.items().unwrap()[count], keyword(&name(expected)), "{count} {asked}");
    }
    assert_eq!(code(CACHE_SIZE - 1), "^[[");
}

#[test]
fn a_long_text_named_often_is_kept_once() {
    let long = "k".repeat(1_000_000);
    let codes = vec![r#""^0""#; 200_000].join(",");
    let decoded = decode(format!(r#"["~:{long}",{codes}]"#).as_bytes()).unwrap();
    let items = decoded.items().unwrap();
    let (Value::Keyword(first), Value::Keyword(last)) = (&items[0], &items[200_000]) else { panic!() };
    assert!(Arc::ptr_eq(first, last));
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[\\[\\]{}\",:~^#$ a-c0-9é]{0,80}") {
        let _ = decode(text.as_bytes());
    }

    #[test]
    fn no_words_make_it_panic(words in proptest::collection::vec(proptest::collection::vec("[~^#:$ 0-[é]{0,2}[a-d0]{0,4}", 0..6), 0..12)) {
        let _ = decode(serde_json::to_string(&words).unwrap().as_bytes());
        let tagged: Vec<_> = words.iter().map(|words| ("^ ", words, "~#cmap", words)).collect();
        let _ = decode(serde_json::to_string(&tagged).unwrap().as_bytes());
    }

    #[test]
    fn texts_come_back(plain in "[~^`a-z é]{0,8}") {
        let escaped = if plain.starts_with(['~', '^', '`']) { format!("~{plain}") } else { plain.clone() };
        let json = serde_json::to_string(&(&escaped, &escaped)).unwrap();
        proptest::prop_assert_eq!(decode(json.as_bytes()).unwrap(), Value::Array(vec![text(&plain), text(&plain)]));
    }
}
