//! Lines in, lines out: every way in which a peer may cut them, and what each dialect writes.

use std::io::{PipeReader, PipeWriter, Read, Write};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::transport::envelope::{Id, Message, ResponseError};
use crate::transport::reader::Cut;

fn decoder(longest_line: usize) -> Decoder {
    Decoder::new(Dialect { longest_line, ..Dialect::JSON_RPC }, Arc::default())
}

/// What comes out of these pieces; problems as `Err`.
fn cut(pieces: &[&[u8]], longest_line: usize) -> Vec<Result<String, String>> {
    let mut decoder = decoder(longest_line);
    let mut out = Vec::new();
    let text = |line: Vec<u8>| String::from_utf8_lossy(&line).into_owned();
    for piece in pieces {
        decoder.push(piece);
        while let Some(line) = decoder.next_frame() {
            out.push(line.map(text));
        }
    }
    out.extend(decoder.rest().map(|line| line.map(text)));
    out
}

fn lines(input: &[u8]) -> Vec<Result<String, String>> {
    cut(&[input], 20)
}

#[test]
fn a_line_is_a_message_however_it_ends() {
    let text = |text: &str| Ok(text.to_owned());
    assert_eq!(lines(b"one\ntwo\r\nthree"), [text("one"), text("two"), text("three")]);
    assert_eq!(lines(b"\xef\xbb\xbfone\n\n \r\n\t\n  two  \n"), [text("one"), text("two")]);
    assert_eq!(lines(b""), []);
    assert_eq!(lines(b"\n\n"), []);
    assert_eq!(lines("é\u{2028}x\n".as_bytes()), [text("é\u{2028}x")]);
}

#[test]
fn a_line_that_is_too_long_is_reported_once_and_the_next_one_served() {
    let long = "x".repeat(21);
    for input in [format!("{long}\nnext\n"), format!("{}\nnext", "x".repeat(500))] {
        let found = lines(input.as_bytes());
        assert!(matches!(&found[..], [Err(problem), Ok(next)] if problem.contains("20 bytes") && next == "next"));
    }
    assert_eq!(lines(format!("{}\n", "x".repeat(20)).as_bytes()).len(), 1);
    assert!(matches!(&lines("y".repeat(500).as_bytes())[..], [Err(_)]), "an end inside of it adds nothing");
    // What is skipped is not kept.
    let mut decoder = decoder(20);
    for _ in 0..1000 {
        decoder.push(&[b'x'; 1000]);
        while decoder.next_frame().is_some() {}
        assert!(decoder.buffer.len() <= 2000);
    }
}

proptest! {
    #[test]
    fn where_the_input_is_cut_does_not_matter(
        text in r"[a-z \r\n]{0,120}",
        cuts in prop::collection::vec(0..120_usize, 0..8),
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|at| at.min(text.len())).collect();
        cuts.sort_unstable();
        let mut pieces: Vec<&[u8]> = Vec::new();
        let mut from = 0;
        for at in cuts {
            pieces.push(&text.as_bytes()[from..at]);
            from = at;
        }
        pieces.push(&text.as_bytes()[from..]);
        prop_assert_eq!(cut(&pieces, 20), cut(&[text.as_bytes()], 20));
    }
}

struct Ends {
    connection: Connection,
    to_server: PipeWriter,
    from_server: PipeReader,
}

fn open(dialect: Dialect) -> Ends {
    let (input, to_server) = std::io::pipe().unwrap();
    let (from_server, output) = std::io::pipe().unwrap();
    Ends { connection: connect(input, output, dialect).unwrap(), to_server, from_server }
}

impl Ends {
    fn say(&mut self, line: &str) {
        self.to_server.write_all(line.as_bytes()).unwrap();
    }

    async fn hear(&mut self) -> Message {
        match self.connection.incoming.recv().await {
            Some(Incoming::Message { message, .. }) => message,
            other => panic!("a message is expected: {other:?}"),
        }
    }

    /// Everything that was written, once both ends are closed.
    fn written(self) -> String {
        self.connection.peer.close();
        let mut text = String::new();
        let mut from_server = self.from_server;
        drop(self.connection);
        from_server.read_to_string(&mut text).unwrap();
        text
    }
}

#[tokio::test]
async fn every_message_is_one_line_with_the_version() {
    let ends = open(Dialect::JSON_RPC);
    let peer = ends.connection.peer.clone();
    peer.respond(&Id::Number(1), &Ok(json!({"text": "a\nb"}))).await.unwrap();
    peer.respond(&Id::String("x".into()), &Ok(Value::Null)).await.unwrap();
    let error = ResponseError { code: -32000, message: "no".into(), data: Some(json!({"why": 1})) };
    assert!(peer.respond_now(&Id::Null, &Err(error)));
    peer.notify("n", &json!({"a": 1})).await.unwrap();
    drop(peer);
    let lines = ends.written();
    assert_eq!(
        lines.lines().collect::<Vec<_>>(),
        [
            r#"{"jsonrpc":"2.0","id":1,"result":{"text":"a\nb"}}"#,
            r#"{"jsonrpc":"2.0","id":"x","result":null}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no","data":{"why":1}}}"#,
            r#"{"jsonrpc":"2.0","method":"n","params":{"a":1}}"#,
        ]
    );
    assert!(lines.ends_with('\n'));
}

#[tokio::test]
async fn a_peer_that_names_no_version_is_told_none_until_it_does() {
    let mut ends = open(Dialect::UNVERSIONED);
    let peer = ends.connection.peer.clone();
    let error = ResponseError { code: -32601, message: "no".into(), data: Some(json!(1)) };
    ends.say("{\"id\":0,\"method\":\"m\"}\n");
    assert_eq!(ends.hear().await, Message::Request { id: Id::Number(0), method: "m".into(), params: None });
    peer.respond(&Id::Number(0), &Err(error)).await.unwrap();
    ends.say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}\n");
    ends.hear().await;
    peer.respond(&Id::Number(1), &Ok(Value::Null)).await.unwrap();
    drop(peer);
    assert_eq!(
        ends.written(),
        "{\"id\":0,\"error\":{\"code\":-32601,\"message\":\"no\"}}\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}\n"
    );
}

#[tokio::test]
async fn a_question_to_the_peer_is_answered_refused_or_given_up() {
    const LONG: std::time::Duration = std::time::Duration::from_secs(20);
    let mut ends = open(Dialect::UNVERSIONED);
    let peer = ends.connection.peer.clone();
    // The ids of the two directions may be the same.
    for line in ["{\"id\":1,\"method\":\"m\"}\n", "{\"id\":1,\"result\":5}\n", "{\"id\":2,\"error\":{\"code\":7}}\n"] {
        ends.say(line);
    }
    let nothing = json!({});
    let (one, two) = (peer.request("a", &nothing, LONG), peer.request("b", &nothing, LONG));
    let answers = async {
        assert!(matches!(ends.hear().await, Message::Request { .. }));
        for _ in 0..2 {
            let Message::Response { id, outcome } = ends.hear().await else { panic!("a response is expected") };
            assert!(peer.resolve(&id, outcome));
        }
    };
    let (one, two, ()) = tokio::join!(one, two, answers);
    assert_eq!(one, Ok(json!(5)));
    assert!(matches!(two, Err(CallError::Refused(ResponseError { code: 7, .. }))), "{two:?}");
    let late = peer.request("c", &nothing, std::time::Duration::from_millis(1)).await;
    assert_eq!(late, Err(CallError::Timeout));
    assert!(!peer.resolve(&Id::Number(3), Ok(Value::Null)), "nobody waits any more");
    let closed = tokio::join!(peer.request("d", &nothing, LONG), async { peer.close() }).0;
    assert_eq!(closed, Err(CallError::Closed));
}
