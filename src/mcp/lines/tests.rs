//! Lines cut anywhere, too long, or full of nonsense.

use proptest::prelude::*;
use serde_json::json;

use super::*;

async fn lines_of(bytes: &[u8], limit: usize, chunk: usize) -> Vec<Line> {
    let (mut writer, reader) = tokio::io::duplex(chunk.max(1));
    let bytes = bytes.to_vec();
    tokio::spawn(async move {
        use tokio::io::AsyncWriteExt;
        let _ = writer.write_all(&bytes).await;
    });
    let mut lines = Lines::new(reader, limit);
    let mut found = Vec::new();
    while let Some(line) = lines.next().await.unwrap() {
        found.push(line);
    }
    found
}

fn whole(text: &str) -> Line {
    Line::Whole(text.as_bytes().to_vec())
}

#[tokio::test]
async fn lines_come_whole_however_they_are_cut() {
    for chunk in [1, 2, 3, 7, 64] {
        let found = lines_of("{}\r\n\n[1]\nlast".as_bytes(), 100, chunk).await;
        assert_eq!(found, [whole("{}\r"), whole(""), whole("[1]"), whole("last")]);
    }
    assert_eq!(lines_of(b"", 10, 4).await, []);
    assert_eq!(lines_of(b"\n", 10, 4).await, [whole("")]);
}

#[tokio::test]
async fn a_line_that_is_too_long_is_skipped_with_its_ends_kept() {
    let long = format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"{}\"}}", "x".repeat(100_000));
    let text = format!("a\n{long}\nb\n{}", "y".repeat(2000));
    for chunk in [1000, 4096, 1 << 20] {
        let found = lines_of(text.as_bytes(), 1000, chunk).await;
        assert_eq!(found.len(), 4);
        assert_eq!((&found[0], &found[2]), (&whole("a"), &whole("b")));
        for (line, start, end) in [(&found[1], "{\"jsonrpc", "x\"}"), (&found[3], "yyy", "yyy")] {
            let Line::TooLong { head, tail } = line else { panic!("{line:?}") };
            assert!(head.len() <= KEPT_BYTES && tail.len() <= KEPT_BYTES);
            assert!(head.starts_with(start.as_bytes()) && tail.ends_with(end.as_bytes()));
        }
    }
}

#[test]
fn who_waits_for_a_lost_answer_is_found_at_either_end() {
    let id = |head: &str, tail: &str| answered_id(head.as_bytes(), tail.as_bytes());
    let seven = Some(RequestId::Number(7));
    assert_eq!(id(r#"{"jsonrpc":"2.0", "id": 7, "result": {"id": 8, "#, "..."), seven);
    assert_eq!(id(r#"{"id":7,"jsonrpc":"2.0","result":"#, ""), seven);
    assert_eq!(id(r#"{"result":{"id":9,"#, r#"xxx"},"jsonrpc":"2.0","id":7}"#), seven);
    assert_eq!(id(r#"{"result":{"#, r#"xxx"},"id":7,"jsonrpc":"2.0"}"#), seven);
    assert_eq!(id(r#"{"result":{"#, r#""id":7}}"#), None, "an id inside of the result is not the message's");
    assert_eq!(id(r#"{"jsonrpc":"2.0","id":7,"method":"roots/list","#, ""), None, "a request waits for us");
    assert_eq!(id(r#"{"jsonrpc":"2.0","method":"x","params":"#, r#","id":7}"#), None);
    assert_eq!(id("", ""), None);
}

#[test]
fn every_kind_of_line_has_a_meaning() {
    let read = |text: &str| read_line(whole(text));
    for (text, messages, replies, skipped) in [
        ("", 0, 0, false),
        ("  \r", 0, 0, false),
        ("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", 1, 0, false),
        ("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/unheard\",\"params\":{}}", 1, 0, false),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"broken\"}", 1, 0, true),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{}}", 1, 0, true),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"elicitation/create\",\"params\":5}", 0, 1, true),
        ("{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{}}", 0, 0, true),
        ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}},{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}},7]", 2, 0, true),
        ("running 1 test", 0, 0, true),
        ("\u{1b}[32mready\u{1b}[0m", 0, 0, true),
        ("null", 0, 0, true),
        ("{", 0, 0, true),
    ] {
        let meaning = read(text);
        let found = (meaning.messages.len(), meaning.replies.len(), meaning.skipped.is_some());
        assert_eq!(found, (messages, replies, skipped), "{text}: {meaning:?}");
    }
    let deep = read(&"[".repeat(100_000));
    assert!(deep.messages.is_empty() && deep.skipped.is_some());
    let ServerJsonRpcMessage::Error(error) = &read("{\"id\":1,\"error\":\"broken\"}").messages[0] else { panic!() };
    assert_eq!((error.id.clone(), &*error.error.message), (Some(RequestId::Number(1)), "broken"));
}

#[test]
fn a_large_line_passes_and_one_that_would_eat_memory_does_not() {
    let text = ",[{\\\"".repeat(2_000_000);
    let result = json!({"content": [{"type": "text", "text": text}]});
    let line = json!({"jsonrpc": "2.0", "id": 3, "result": result}).to_string();
    assert!(line.len() > 10 * 1024 * 1024);
    let meaning = read_line(whole(&line));
    assert_eq!((meaning.messages.len(), meaning.skipped), (1, None), "a string is one value");
    let bushy = format!("{{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":[{}0]}}", "0,".repeat(4_000_000));
    let meaning = read_line(whole(&bushy));
    assert!(meaning.skipped.is_some());
    let [ServerJsonRpcMessage::Error(error)] = &meaning.messages[..] else { panic!("{meaning:?}") };
    assert_eq!(error.id, Some(RequestId::Number(3)), "and the call that waits for it ends");
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), head in ".*", tail in ".*") {
        read_line(Line::Whole(bytes));
        read_line(Line::TooLong { head: head.into_bytes(), tail: tail.into_bytes() });
    }

    #[test]
    fn no_json_makes_it_panic(
        id in "(1|\"a\"|null|-5|1.5|\\{\\}|)", method in "(tools/list|ping|elicitation/create|notifications/progress|x)",
        params in "(\\{\\}|\\[\\]|null|\\{\"a\":1\\}|7)",
    ) {
        read_line(whole(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}")));
        read_line(whole(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{params}}}")));
    }
}
