//! The transport against a peer that behaves in every way.

use rmcp::model::{ClientNotification, ClientRequest, JsonRpcMessage, RequestId};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, DuplexStream, duplex};

use super::*;

struct Peer {
    transport: PipeTransport,
    closed: CancellationToken,
    output: DuplexStream,
    input: DuplexStream,
}

fn peer(room: usize) -> Peer {
    let (output, ours) = duplex(room);
    let (mine, input) = duplex(room);
    let closed = CancellationToken::new();
    Peer { transport: PipeTransport::new("s", ours, mine, closed.clone()), closed, output, input }
}

fn message(value: Value) -> ClientJsonRpcMessage {
    serde_json::from_value(value).unwrap()
}

fn call(id: i64) -> ClientJsonRpcMessage {
    message(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "t"}}))
}

#[tokio::test]
async fn messages_pass_in_order_and_nonsense_is_skipped() {
    let mut peer = peer(64);
    let text = "hello\n\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\u{1b}[0m\n{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n";
    let mut output = peer.output;
    let writing = tokio::spawn(async move { output.write_all(text.as_bytes()).await.unwrap() });
    for id in [1, 2] {
        let Some(JsonRpcMessage::Response(response)) = peer.transport.receive().await else { panic!() };
        assert_eq!(response.id, RequestId::Number(id));
    }
    writing.await.unwrap();
    assert!(peer.transport.receive().await.is_none());
    assert!(peer.closed.is_cancelled());
}

#[tokio::test]
async fn a_cancellation_never_overtakes_its_call() {
    for _ in 0..50 {
        let mut peer = peer(1 << 20);
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
        let (first, second) = (peer.transport.send(call(7)), peer.transport.send(message(cancel)));
        // Whichever is polled first, the queue decides.
        let (second, first) = tokio::join!(second, first);
        first.and(second).unwrap();
        peer.transport.close().await.unwrap();
        let mut lines = BufReader::new(peer.input).lines();
        let mut next =
            async || serde_json::from_str::<ClientJsonRpcMessage>(&lines.next_line().await.unwrap().unwrap());
        assert!(matches!(next().await, Ok(JsonRpcMessage::Request(request))
            if matches!(request.request, ClientRequest::CallToolRequest(_))));
        assert!(matches!(next().await, Ok(JsonRpcMessage::Notification(notification))
            if matches!(notification.notification, ClientNotification::CancelledNotification(_))));
    }
}

#[tokio::test]
async fn a_closed_transport_ends_the_servers_input() {
    let mut peer = peer(1024);
    peer.transport.send(call(1)).await.unwrap();
    peer.transport.close().await.unwrap();
    let mut rest = String::new();
    peer.input.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest.lines().count(), 1);
    assert!(peer.transport.send(call(2)).await.is_err());
}

#[tokio::test]
async fn a_server_that_does_not_read_is_given_up() {
    let (_output, ours) = duplex(16);
    let (mine, _input) = duplex(16);
    let closed = CancellationToken::new();
    let mut transport = PipeTransport::with_patience("s", ours, mine, closed.clone(), Duration::from_millis(20));
    let mut sends = Vec::new();
    for id in 0..200 {
        sends.push(tokio::spawn(transport.send(call(id))));
    }
    let mut refused = 0;
    for send in sends {
        refused += usize::from(send.await.unwrap().is_err());
    }
    assert_eq!(refused, 200, "some had no room, the others no reader");
    closed.cancelled().await;
}

#[tokio::test]
async fn a_server_that_dies_closes_the_transport() {
    let mut peer = peer(1024);
    drop(peer.input);
    assert!(peer.transport.send(call(1)).await.is_err());
    peer.closed.cancelled().await;
    drop(peer.output);
    assert!(peer.transport.receive().await.is_none());
}

#[tokio::test]
async fn sixteen_mebibytes_pass_and_more_is_answered_for() {
    let mut peer = peer(1 << 20);
    let mut output = peer.output;
    let writing = tokio::spawn(async move {
        let mut say = async |id: i64, size: usize| {
            let text = "x".repeat(size);
            let line = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}\n"
            );
            output.write_all(line.as_bytes()).await.unwrap();
        };
        say(1, 16 * 1024 * 1024).await;
        say(2, 20 * 1024 * 1024).await;
        say(3, 10).await;
    });
    let ids: Vec<bool> = [
        peer.transport.receive().await.unwrap(),
        peer.transport.receive().await.unwrap(),
        peer.transport.receive().await.unwrap(),
    ]
    .iter()
    .map(|message| matches!(message, JsonRpcMessage::Error(error) if error.id == Some(RequestId::Number(2))))
    .collect();
    assert_eq!(ids, [false, true, false]);
    writing.await.unwrap();
}

#[tokio::test]
async fn what_nobody_takes_is_not_read() {
    let mut peer = peer(1024);
    let mut output = peer.output;
    let line =
        format!("{{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{{\"text\":\"{}\"}}}}\n", "x".repeat(1 << 20));
    let (sent, mut count) = tokio::sync::watch::channel(0);
    tokio::spawn(async move {
        for _ in 0..200 {
            if output.write_all(line.as_bytes()).await.is_err() {
                return;
            }
            sent.send_modify(|count| *count += 1);
        }
    });
    // It comes to rest when the room is full.
    let settled = async {
        loop {
            let before = *count.borrow_and_update();
            if tokio::time::timeout(Duration::from_millis(300), count.changed()).await.is_err() {
                return before;
            }
        }
    };
    let taken = settled.await;
    assert!((20..80).contains(&taken), "{taken} MiB");
    assert!(peer.transport.receive().await.is_some());
    count.changed().await.unwrap();
}

#[tokio::test]
async fn requests_that_cannot_be_read_are_refused() {
    let mut peer = peer(1024);
    let line = "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\",\"params\":5}\n";
    peer.output.write_all(line.as_bytes()).await.unwrap();
    let mut lines = BufReader::new(peer.input).lines();
    let reply: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
    assert_eq!((&reply["id"], reply["error"]["code"].as_i64()), (&json!("q"), Some(-32600)));
    drop(peer.transport);
}
