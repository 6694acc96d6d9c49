//! Methods of the protocol that this version does not carry out. A request says so.
//! `docs/protocol.md` marks them, and a test keeps the two in step.

use custom_methods::methods::*;
use lsp_types::request::Request;
use tower_lsp::jsonrpc::{Error, ErrorCode, Result};

use super::super::service::{Answer, EcaServer};

macro_rules! planned {
    (requests { $($request:ident,)* }) => {
        /// The wire names of what is planned.
        pub const PLANNED: &[&str] = &[
            $( <$request as Request>::METHOD, )*
        ];

        $(impl Answer<$request> for EcaServer {
            async fn answer(&self, _: <$request as Request>::Params) -> Result<<$request as Request>::Result> {
                Err(not_available(<$request as Request>::METHOD))
            }
        })*
    };
}

planned! {
    requests {
        CompletionInline,
        RewritePrompt,
    }
}

fn not_available(method: &str) -> Error {
    Error {
        code: ErrorCode::MethodNotFound,
        message: format!("{method} is not available in eca {}", env!("CARGO_PKG_VERSION")).into(),
        data: None,
    }
}
