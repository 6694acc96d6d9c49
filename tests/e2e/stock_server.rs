//! The same service under the framework's own loop: requests and responses are the same, so that
//! nothing but the transport is ours.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::mock_llm::MockLlm;
use crate::peer::{FrameParser, HANG_GUARD, frame};
use crate::server::{Handshake, TestDirs, TestServer, presets};

/// Method and params, in order; the framework wants the handshake first.
fn requests(dirs: &TestDirs) -> Vec<(&'static str, Value)> {
    vec![
        ("chat/list", json!({})),
        ("initialize", presets::emacs(dirs).initialize),
        ("initialize", json!({"capabilities": {}})),
        ("jobs/list", Value::Null),
        ("providers/list", json!({})),
        ("chat/list", json!({"limit": 3, "sort-by": "updatedAt"})),
        ("chat/queryContext", json!({"chatId": 7, "query": "x", "contexts": {}})),
        ("chat/prompt", json!({"chatId": "bad id", "message": "hi"})),
        ("chat/prompt", json!({"chatId": "c"})),
        ("chat/open", json!({"chatId": "c"})),
        ("no/such", json!({})),
        ("$/no/such", json!({})),
        ("shutdown", json!({})),
        ("jobs/list", json!({})),
    ]
}

fn message(id: usize, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

struct Stock {
    stream: DuplexStream,
    parser: FrameParser,
}

impl Stock {
    async fn request(&mut self, message: &Value) -> Value {
        self.stream.write_all(&frame(&message.to_string())).await.unwrap();
        let mut chunk = vec![0; 16 * 1024];
        loop {
            if let Some(body) = self.parser.next_frame().unwrap() {
                return serde_json::from_slice(&body).unwrap();
            }
            let read = tokio::time::timeout(HANG_GUARD, self.stream.read(&mut chunk)).await.expect("an answer");
            let length = read.unwrap();
            assert!(length > 0, "the stock server ended");
            self.parser.push(&chunk[..length]);
        }
    }
}

#[tokio::test]
async fn requests_are_answered_the_same_under_the_frameworks_own_server() {
    let model = MockLlm::start().await;
    let builder = TestServer::with(&model).handshake(Handshake::None);
    let (service, socket) = eca::frontends::eca::service(std::io::sink(), builder.surroundings()).unwrap();
    let (stream, far_end) = tokio::io::duplex(64 * 1024);
    let (input, output) = tokio::io::split(far_end);
    let stock_server = tokio::spawn(tower_lsp::Server::new(input, output, socket).serve(service));
    let mut stock = Stock { stream, parser: FrameParser::default() };
    let mut own = builder.start().await;
    let dirs = Arc::clone(&own.dirs);
    for (number, (method, params)) in requests(&dirs).into_iter().enumerate() {
        // Distinct from the numbers of the test's own client.
        let request = message(1000 + number, method, &params);
        own.send(&request);
        let ours = own.response_raw(1000 + number).await;
        let theirs = stock.request(&request).await;
        assert_eq!(ours, theirs, "{method} {params}");
    }
    drop(stock);
    tokio::time::timeout(HANG_GUARD, stock_server).await.expect("the stock server ends").unwrap();
    own.notify_raw("exit", None);
    own.wait_for_end().await;
}
