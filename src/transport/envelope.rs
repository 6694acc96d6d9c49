//! The JSON-RPC envelope, read by hand: the id is found even when the parameters cannot be parsed,
//! so that the peer learns which of its requests failed.
//!
//! Members are first taken as raw text. That pass is iterative inside serde_json, so no nesting
//! depth overflows the stack; the parameters are parsed afterwards, within serde_json's depth limit.

use std::fmt;

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

pub const PARSE_ERROR: i64 = -32700;
pub const INVALID_REQUEST: i64 = -32600;
pub const METHOD_NOT_FOUND: i64 = -32601;
pub const INVALID_PARAMS: i64 = -32602;
pub const INTERNAL_ERROR: i64 = -32603;

/// One message of the peer.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    Request { id: Id, method: String, params: Option<Value> },
    Notification { method: String, params: Option<Value> },
    Response { id: Id, outcome: Outcome },
}

/// What a request came to.
pub type Outcome = Result<Value, ResponseError>;

/// The id of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum Id {
    Number(i64),
    String(String),
    Null,
}

/// The error of a response. Peers leave members out or give them other types, so reading it never fails.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseError {
    pub code: i64,
    pub message: String,
    pub data: Option<Value>,
}

/// Why a frame is no message, ready to be answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EnvelopeError {
    pub code: i64,
    pub message: String,
    /// The request that failed; `None` when it is unknown or when the frame is no request, because
    /// an error under the id of a peer's *response* would answer another request of the peer.
    pub id: Option<Id>,
}

/// What a contract demands of an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    pub version: Version,
    /// Whether `null` is an id that a request may have.
    pub null_ids: bool,
    /// The code for params that are neither an object nor an array.
    pub scalar_params: i64,
}

/// Whether a message says which JSON-RPC it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    Required,
    /// It may be left out; where it stands it must be right.
    Optional,
}

impl Rules {
    /// As JSON-RPC 2.0 has it.
    pub const JSON_RPC: Self = Self { version: Version::Required, null_ids: true, scalar_params: INVALID_REQUEST };
}

/// A message, and whether it named its version.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    pub message: Message,
    pub versioned: bool,
}

/// Reads one frame as JSON-RPC 2.0 has it.
pub fn parse(frame: &[u8]) -> Result<Message, EnvelopeError> {
    parse_by(frame, &Rules::JSON_RPC).map(|parsed| parsed.message)
}

/// Reads one frame.
pub fn parse_by(frame: &[u8], rules: &Rules) -> Result<Parsed, EnvelopeError> {
    let text = std::str::from_utf8(frame)
        .map_err(|error| parse_error(format!("the message is not valid UTF-8 at byte {}", error.valid_up_to())))?;
    let members = read_members(text)?;
    let method = members.method.filter(|raw| raw.get() != "null");
    let answers = method.is_none() && (members.result.is_some() || members.error.is_some());
    let id = members.id.map(|raw| read_id(raw.get()));
    let refuse = |code: i64, message: String| EnvelopeError {
        code,
        message,
        id: if answers { None } else { id.clone().flatten() },
    };

    if let Some(name) = members.repeated {
        let mut error = refuse(INVALID_REQUEST, format!("the member {name} appears twice"));
        error.id = error.id.filter(|_| name != "id");
        return Err(error);
    }
    match members.jsonrpc.map(RawValue::get) {
        Some("\"2.0\"") => {}
        None if rules.version == Version::Optional => {}
        Some(_) => return Err(refuse(INVALID_REQUEST, "the member jsonrpc must be \"2.0\"".into())),
        None => return Err(refuse(INVALID_REQUEST, "the member jsonrpc is missing; it must be \"2.0\"".into())),
    }
    if let Some(None) = id {
        return Err(refuse(INVALID_REQUEST, "the id must be a string, a whole number or null".into()));
    }
    let versioned = members.jsonrpc.is_some();
    if answers {
        let id = id.flatten().ok_or_else(|| invalid_request("a response needs an id"))?;
        return Ok(Parsed { message: Message::Response { id, outcome: read_outcome(&members) }, versioned });
    }
    if !rules.null_ids && id == Some(Some(Id::Null)) {
        return Err(refuse(INVALID_REQUEST, "the id must be a whole number or a string".into()));
    }
    let Some(method) = method else {
        return Err(refuse(INVALID_REQUEST, "the message has no method, no result and no error".into()));
    };
    let method: String = serde_json::from_str(method.get())
        .map_err(|_| refuse(INVALID_REQUEST, "the method must be a string".into()))?;
    if method.is_empty() {
        return Err(refuse(INVALID_REQUEST, "the method is empty".into()));
    }
    let params = match members.params {
        Some(raw) => read_params(raw.get(), rules).map_err(|(code, message)| refuse(code, message))?,
        None => None,
    };
    let message = match id.flatten() {
        Some(id) => Message::Request { id, method, params },
        None => Message::Notification { method, params },
    };
    Ok(Parsed { message, versioned })
}

impl Id {
    /// An id that lies inside parameters, as in `$/cancelRequest`.
    pub fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Null => Some(Self::Null),
            Value::String(text) => Some(Self::String(text.clone())),
            Value::Number(number) => number.as_i64().map(Self::Number),
            _ => None,
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::String(text) => write!(f, "{text:?}"),
            Self::Null => f.write_str("null"),
        }
    }
}

impl ResponseError {
    fn from_value(value: Value) -> Self {
        let Value::Object(mut members) = value else {
            let message = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            return Self { code: INTERNAL_ERROR, message, data: None };
        };
        let code = match members.get("code") {
            None | Some(Value::Null) => INTERNAL_ERROR,
            Some(code) => code.as_i64().unwrap_or(0),
        };
        let message = match members.remove("message") {
            Some(Value::String(message)) => message,
            None | Some(Value::Null) => "the peer gave no reason".to_owned(),
            Some(other) => other.to_string(),
        };
        Self { code, message, data: members.remove("data").filter(|data| !data.is_null()) }
    }
}

#[derive(Default)]
struct Members<'a> {
    jsonrpc: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    repeated: Option<&'static str>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Name {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    #[serde(other)]
    Unknown,
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = Members::default();
        while let Some(name) = map.next_key::<Name>()? {
            // Unknown members are read as raw text too: skipping them would not check their syntax less.
            let raw: &'de RawValue = map.next_value()?;
            let (place, name) = match name {
                Name::Jsonrpc => (&mut members.jsonrpc, "jsonrpc"),
                Name::Id => (&mut members.id, "id"),
                Name::Method => (&mut members.method, "method"),
                Name::Params => (&mut members.params, "params"),
                Name::Result => (&mut members.result, "result"),
                Name::Error => (&mut members.error, "error"),
                Name::Unknown => continue,
            };
            if place.replace(raw).is_some() {
                members.repeated = Some(name);
            }
        }
        Ok(members)
    }
}

fn read_members(text: &str) -> Result<Members<'_>, EnvelopeError> {
    let malformed = |error: serde_json::Error| parse_error(format!("the message is not valid JSON: {error}"));
    if !text.trim_start().starts_with('{') {
        let raw: &RawValue = serde_json::from_str(text).map_err(malformed)?;
        return Err(invalid_request(match raw.get().as_bytes().first() {
            Some(b'[') => "batches are not supported; send one message per frame",
            _ => "the message must be a JSON object",
        }));
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let members = deserializer.deserialize_map(MembersVisitor).map_err(malformed)?;
    deserializer.end().map_err(malformed)?;
    Ok(members)
}

fn read_id(raw: &str) -> Option<Id> {
    match raw.as_bytes().first()? {
        b'n' => Some(Id::Null),
        b'"' => serde_json::from_str(raw).ok().map(Id::String),
        _ => serde_json::from_str(raw).ok().map(Id::Number),
    }
}

fn read_params(raw: &str, rules: &Rules) -> Result<Option<Value>, (i64, String)> {
    match raw.as_bytes().first() {
        Some(b'n') => Ok(None),
        Some(b'{' | b'[') => match serde_json::from_str(raw) {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err((PARSE_ERROR, format!("the params could not be read: {error}"))),
        },
        _ => Err((rules.scalar_params, "params must be an object or an array".to_owned())),
    }
}

/// An answer that cannot be parsed is still the answer, so it fails the call that waits for it.
fn read_outcome(members: &Members<'_>) -> Outcome {
    let read = |raw: &RawValue| {
        serde_json::from_str::<Value>(raw.get()).map_err(|error| ResponseError {
            code: PARSE_ERROR,
            message: format!("the response could not be read: {error}"),
            data: None,
        })
    };
    if let Some(error) = members.error.filter(|raw| raw.get() != "null") {
        return Err(read(error).map_or_else(|unreadable| unreadable, ResponseError::from_value));
    }
    members.result.map_or(Ok(Value::Null), read)
}

fn parse_error(message: String) -> EnvelopeError {
    EnvelopeError { code: PARSE_ERROR, message, id: None }
}

fn invalid_request(message: &str) -> EnvelopeError {
    EnvelopeError { code: INVALID_REQUEST, message: message.to_owned(), id: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn message(text: &str) -> Message {
        parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error:?}"))
    }

    fn refused(text: &str) -> (i64, Option<Id>, String) {
        let error = parse(text.as_bytes()).expect_err(text);
        (error.code, error.id, error.message)
    }

    #[test]
    fn requests_and_notifications_are_told_apart_by_the_id() {
        let request = |id| Message::Request { id, method: "a/b".into(), params: Some(json!({"x": [1]})) };
        let text = |id: &str| format!(r#"{{"jsonrpc":"2.0",{id}"method":"a/b","params":{{"x":[1]}},"extra":[{{}}]}}"#);
        assert_eq!(message(&text(r#""id":7,"#)), request(Id::Number(7)));
        assert_eq!(message(&text(r#""id":-7,"#)), request(Id::Number(-7)));
        assert_eq!(message(&text(r#""id":"s\n","#)), request(Id::String("s\n".into())));
        assert_eq!(message(&text(r#""id":null,"#)), request(Id::Null));
        let notification = Message::Notification { method: "a/b".into(), params: Some(json!({"x": [1]})) };
        assert_eq!(message(&text("")), notification);
    }

    #[test]
    fn white_space_around_a_message_and_escaped_names_are_fine() {
        let notification = Message::Notification { method: "m".into(), params: None };
        assert_eq!(message(" \n{\"jsonrpc\":\"2.0\" , \"m\\u0065thod\":\"m\"}\r\n"), notification);
    }

    #[test]
    fn null_params_are_no_params_and_scalars_are_refused() {
        let text = |params: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}"#);
        let request = |params| Message::Request { id: Id::Number(1), method: "m".into(), params };
        assert_eq!(message(&text("null")), request(None));
        assert_eq!(message(&text("[]")), request(Some(json!([]))));
        for scalar in ["\"text\"", "5", "-5", "true", "false"] {
            let (code, id, text) = refused(&text(scalar));
            assert_eq!((code, id), (INVALID_REQUEST, Some(Id::Number(1))));
            assert_eq!(text, "params must be an object or an array");
        }
    }

    #[test]
    fn deep_params_are_refused_under_the_id_without_overflowing_the_stack() {
        for depth in [200, 100_000] {
            for member in ["params", "other\":1,\"params"] {
                let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
                let text = format!(r#"{{"jsonrpc":"2.0","{member}":{deep},"id":"x","method":"m"}}"#);
                let (code, id, _) = refused(&text);
                assert_eq!((code, id), (PARSE_ERROR, Some(Id::String("x".into()))));
            }
        }
        let deep = format!("{}1{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
        let ignored = format!(r#"{{"jsonrpc":"2.0","method":"m","unknown":{deep}}}"#);
        assert_eq!(message(&ignored), Message::Notification { method: "m".into(), params: None });
        let Message::Response { id, outcome } = message(&format!(r#"{{"jsonrpc":"2.0","id":4,"result":{deep}}}"#))
        else {
            panic!("a response is expected");
        };
        assert_eq!((id, outcome.unwrap_err().code), (Id::Number(4), PARSE_ERROR));
    }

    #[test]
    fn malformed_json_is_a_parse_error_without_an_id() {
        for text in [
            "",
            "{",
            "{]",
            "nonsense",
            r#"{"jsonrpc":"2.0","id":1,"method":"m""#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","other":tru}"#,
            r#"[1,"#,
        ] {
            let (code, id, _) = refused(text);
            assert_eq!((code, id), (PARSE_ERROR, None), "{text}");
        }
        let error = parse(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}").unwrap_err();
        assert_eq!((error.code, error.id), (PARSE_ERROR, None));
    }

    #[test]
    fn params_that_only_break_on_close_reading_are_refused_under_the_id() {
        let text = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":["\ud800"]}"#;
        assert_eq!(refused(text).0, PARSE_ERROR);
        assert_eq!(refused(text).1, Some(Id::Number(1)));
    }

    #[test]
    fn what_is_json_but_no_message_is_an_invalid_request() {
        for text in ["[]", r#"[{"jsonrpc":"2.0","method":"m"}]"#, "5", "null", "\"text\""] {
            let (code, id, _) = refused(text);
            assert_eq!((code, id), (INVALID_REQUEST, None), "{text}");
        }
        assert!(refused("[]").2.contains("batches"));
    }

    #[test]
    fn a_missing_or_wrong_version_is_named_and_answered_under_the_id() {
        for version in ["", r#""jsonrpc":"1.0","#, r#""jsonrpc":2.0,"#, r#""jsonrpc":null,"#] {
            let (code, id, text) = refused(&format!(r#"{{{version}"id":3,"method":"m"}}"#));
            assert_eq!((code, id), (INVALID_REQUEST, Some(Id::Number(3))));
            assert!(text.contains("jsonrpc"), "{text}");
        }
        // The id of a response belongs to our own requests, so it must not be echoed.
        assert_eq!(refused(r#"{"id":3,"result":1}"#).1, None);
    }

    #[test]
    fn a_contract_may_ask_for_more_or_less() {
        let bare = Rules { version: Version::Optional, ..Rules::JSON_RPC };
        let said = |text: &str| parse_by(text.as_bytes(), &bare).map(|parsed| parsed.versioned);
        assert_eq!(said(r#"{"id":0,"method":"m"}"#), Ok(false));
        assert_eq!(said(r#"{"id":0,"result":null}"#), Ok(false));
        assert_eq!(said(r#"{"jsonrpc":"2.0","id":0,"method":"m"}"#), Ok(true));
        assert_eq!(said(r#"{"jsonrpc":"1.0","id":0,"method":"m"}"#).unwrap_err().code, INVALID_REQUEST);

        let strict = Rules { null_ids: false, scalar_params: INVALID_PARAMS, ..Rules::JSON_RPC };
        let refused = |text: &str| parse_by(text.as_bytes(), &strict).map_err(|error| (error.code, error.id));
        let null = refused(r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#).unwrap_err();
        assert_eq!(null, (INVALID_REQUEST, Some(Id::Null)));
        let scalar = refused(r#"{"jsonrpc":"2.0","id":3,"method":"m","params":"x"}"#).unwrap_err();
        assert_eq!(scalar, (INVALID_PARAMS, Some(Id::Number(3))));
        assert!(refused(r#"{"jsonrpc":"2.0","id":null,"error":{"message":"x"}}"#).is_ok());
    }

    #[test]
    fn ids_that_are_no_ids_are_refused() {
        for id in ["1.5", "9223372036854775808", "{}", "[]", "true", "1e2"] {
            let (code, id, _) = refused(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#));
            assert_eq!((code, id), (INVALID_REQUEST, None));
        }
    }

    #[test]
    fn a_message_needs_a_method_or_an_outcome() {
        let (code, id, _) = refused(r#"{"jsonrpc":"2.0","id":3}"#);
        assert_eq!((code, id), (INVALID_REQUEST, Some(Id::Number(3))));
        for method in ["\"\"", "5", "[]"] {
            let (code, id, _) = refused(&format!(r#"{{"jsonrpc":"2.0","id":3,"method":{method}}}"#));
            assert_eq!((code, id), (INVALID_REQUEST, Some(Id::Number(3))), "{method}");
        }
        assert_eq!(refused(r#"{"jsonrpc":"2.0","result":3}"#).0, INVALID_REQUEST);
    }

    #[test]
    fn repeated_members_are_refused() {
        let (code, id, text) = refused(r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#);
        assert_eq!((code, id), (INVALID_REQUEST, Some(Id::Number(1))));
        assert!(text.contains("method"));
        let (code, id, _) = refused(r#"{"jsonrpc":"2.0","id":1,"method":"a","id":2}"#);
        assert_eq!((code, id), (INVALID_REQUEST, None));
    }

    #[test]
    fn a_method_makes_it_a_request_whatever_else_is_there() {
        let text = r#"{"jsonrpc":"2.0","id":1,"method":"m","result":5}"#;
        assert_eq!(message(text), Message::Request { id: Id::Number(1), method: "m".into(), params: None });
    }

    #[test]
    fn responses_are_read_leniently() {
        let outcome = |members: &str| match message(&format!(r#"{{"jsonrpc":"2.0","id":"1",{members}}}"#)) {
            Message::Response { id: Id::String(id), outcome } if id == "1" => outcome,
            other => panic!("{other:?}"),
        };
        let error = |code, message: &str, data| Err(ResponseError { code, message: message.into(), data });
        assert_eq!(outcome(r#""result":{"a":1}"#), Ok(json!({"a": 1})));
        assert_eq!(outcome(r#""result":null"#), Ok(Value::Null));
        assert_eq!(outcome(r#""result":null,"error":null,"method":null"#), Ok(Value::Null));
        assert_eq!(outcome(r#""error":null"#), Ok(Value::Null));
        assert_eq!(outcome(r#""error":{"code":-1,"message":"m","data":[1],"x":2}"#), error(-1, "m", Some(json!([1]))));
        assert_eq!(outcome(r#""result":1,"error":{"message":"m"}"#), error(INTERNAL_ERROR, "m", None));
        assert_eq!(outcome(r#""error":{"code":1.5,"message":"m"}"#), error(0, "m", None));
        assert_eq!(outcome(r#""error":{"code":"x","message":7}"#), error(0, "7", None));
        assert_eq!(outcome(r#""error":"broken""#), error(INTERNAL_ERROR, "broken", None));
        assert!(!outcome(r#""error":{}"#).unwrap_err().message.is_empty());
        let null_id = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#;
        assert!(matches!(message(null_id), Message::Response { id: Id::Null, outcome: Err(_) }));
    }

    #[test]
    fn ids_are_written_as_they_came() {
        for (id, text) in [(Id::Number(-3), "-3"), (Id::String("a\"".into()), r#""a\"""#), (Id::Null, "null")] {
            assert_eq!(serde_json::to_string(&id).unwrap(), text);
            assert_eq!(Id::from_value(&serde_json::from_str(text).unwrap()), Some(id));
        }
        assert_eq!(Id::from_value(&json!(1.5)), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn any_json_like_text_is_survived(text in r#"[\{\}\[\]",:0-9a-z\\]{0,80}"#) {
            let _ = parse(text.as_bytes());
            let _ = parse(format!(r#"{{"jsonrpc":"2.0","method":"m",{text}}}"#).as_bytes());
        }
    }
}
