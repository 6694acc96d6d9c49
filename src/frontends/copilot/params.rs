//! The params of the contract, read by hand: what is missing or of another type is named.

use serde_json::{Map, Value};

use super::failure::Failure;
use super::methods::{CHAT, CLARIFY, CUSTOMIZE, GENERATE, Work};
use super::spec::Format;

/// A model sees so many of the messages before; the newest ones.
const MOST_HISTORY: usize = 20;

/// A request that needs a model, or at least work.
#[derive(Debug, PartialEq)]
pub(super) enum Call {
    Generate(Generate),
    Customize(Customize),
    Chat(Chat),
}

#[derive(Debug, PartialEq)]
pub(super) struct Generate {
    pub(super) spec: Value,
    pub(super) wishes: Wishes,
}

/// What the interface shall be like.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Wishes {
    pub(super) dark: bool,
    pub(super) layout: Option<String>,
    pub(super) include_auth: bool,
    pub(super) pagination: bool,
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct Customize {
    pub(super) code: String,
    pub(super) prompt: String,
    /// The user's answer to an earlier question.
    pub(super) answer: Option<String>,
    pub(super) spec: Option<Value>,
    pub(super) history: Vec<Said>,
    pub(super) stream: bool,
}

/// A message of an earlier conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) by: By,
    pub(super) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    User,
    Assistant,
    System,
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct Chat {
    pub(super) message: String,
    pub(super) tab: Option<String>,
    pub(super) has_spec: bool,
    pub(super) has_interface: bool,
    pub(super) stream: bool,
}

/// What a client says about itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Initialize {
    pub(super) client: String,
    pub(super) streaming: bool,
    /// Those that both sides know.
    pub(super) formats: Vec<Format>,
}

impl Call {
    pub(super) fn work(&self) -> Work {
        match self {
            Self::Generate(_) => Work::Generate,
            Self::Customize(_) => Work::Customize,
            Self::Chat(_) => Work::Chat,
        }
    }

    /// Reads the params of a method that is one of these; `None` for another one.
    pub(super) fn read(method: &str, params: Option<Value>) -> Option<Result<Self, Failure>> {
        let read = match method {
            GENERATE => |fields| read_generate(fields).map(Self::Generate),
            CUSTOMIZE => |fields| read_customize(fields, false).map(Self::Customize),
            CLARIFY => |fields| read_customize(fields, true).map(Self::Customize),
            CHAT => |fields| read_chat(&fields).map(Self::Chat),
            _ => return None,
        };
        Some(Fields::of(params).and_then(read))
    }
}

impl Initialize {
    pub(super) fn read(params: Option<Value>) -> Result<Self, Failure> {
        let fields = Fields::of(params)?;
        let capabilities = fields.object("capabilities")?;
        let formats = match capabilities.0.get("specFormats") {
            None | Some(Value::Null) => Format::ALL.to_vec(),
            Some(Value::Array(named)) => {
                Format::ALL.into_iter().filter(|format| named.iter().any(|name| name == format.word())).collect()
            }
            Some(_) => return Err(expected("capabilities.specFormats", "a list")),
        };
        let streaming = capabilities.optional_flag("streaming")?.unwrap_or(true);
        let client = fields.optional_text("clientName")?.unwrap_or_else(|| "a client without a name".to_owned());
        Ok(Self { client, streaming, formats })
    }
}

/// A request inside of a chat message, which some clients send instead of the request itself. The
/// text is the whole message, and may be anything.
pub(super) fn wrapped(message: &str) -> Option<Result<Call, Failure>> {
    if !message.trim_start().starts_with('{') {
        return None;
    }
    let Ok(Value::Object(mut request)) = serde_json::from_str(message) else { return None };
    let Some(Value::String(method)) = request.remove("method") else { return None };
    if method == CHAT {
        return None;
    }
    let params = match request.remove("params") {
        Some(params) => params,
        // One client puts the fields beside the method.
        None => Value::Object(request),
    };
    Call::read(&method, Some(params))
}

fn read_generate(mut fields: Fields) -> Result<Generate, Failure> {
    let spec = match fields.0.remove("spec") {
        Some(spec @ (Value::Object(_) | Value::String(_))) => spec,
        Some(_) => return Err(expected("spec", "an object or a text")),
        None => return Err(missing("spec")),
    };
    if fields.optional_text("format")?.is_some_and(|format| format != "react") {
        return Err(Failure::params("format: only \"react\" is supported"));
    }
    let dark = match fields.optional_text("theme")?.as_deref() {
        None | Some("light") => false,
        Some("dark") => true,
        Some(_) => return Err(Failure::params("theme: \"light\" or \"dark\" is expected")),
    };
    let options = fields.object("options")?;
    let wishes = Wishes {
        dark,
        layout: options.optional_text("layout")?.filter(|layout| layout != "default"),
        include_auth: options.optional_flag("includeAuth")?.unwrap_or_default(),
        pagination: options.optional_flag("pagination")?.unwrap_or_default(),
    };
    Ok(Generate { spec, wishes })
}

fn read_customize(mut fields: Fields, clarified: bool) -> Result<Customize, Failure> {
    let answer = if clarified { Some(fields.filled_text("answer")?) } else { None };
    let spec = match fields.0.remove("spec") {
        None | Some(Value::Null) => None,
        Some(spec @ (Value::Object(_) | Value::String(_))) => Some(spec),
        Some(_) => return Err(expected("spec", "an object or a text")),
    };
    Ok(Customize {
        code: fields.filled_text("currentCode")?,
        prompt: fields.filled_text("prompt")?,
        answer,
        spec,
        history: read_history(fields.0.remove("history"))?,
        stream: fields.optional_flag("stream")?.unwrap_or_default(),
    })
}

fn read_history(history: Option<Value>) -> Result<Vec<Said>, Failure> {
    let list = match history {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(expected("history", "a list")),
    };
    let mut said = Vec::with_capacity(list.len());
    for (index, message) in list.into_iter().enumerate() {
        let Value::Object(message) = message else { return Err(expected(&format!("history[{index}]"), "an object")) };
        let by = match message.get("role").and_then(Value::as_str) {
            Some("user") => By::User,
            Some("assistant") => By::Assistant,
            Some("system") => By::System,
            _ => return Err(Failure::params(format!("history[{index}].role: user, assistant or system is expected"))),
        };
        let Some(text) = message.get("content").and_then(Value::as_str) else {
            return Err(expected(&format!("history[{index}].content"), "a text"));
        };
        said.push(Said { by, text: text.to_owned() });
    }
    Ok(said.split_off(said.len().saturating_sub(MOST_HISTORY)))
}

fn read_chat(fields: &Fields) -> Result<Chat, Failure> {
    let context = fields.object("context")?;
    Ok(Chat {
        message: fields.filled_text("message")?,
        tab: context.optional_text("tabId")?,
        has_spec: context.optional_flag("hasActiveSpec")?.unwrap_or_default(),
        has_interface: context.optional_flag("hasActiveInterface")?.unwrap_or_default(),
        stream: fields.optional_flag("stream")?.unwrap_or_default(),
    })
}

/// The members of an object; `null` counts as absent.
struct Fields(Map<String, Value>);

impl Fields {
    fn of(params: Option<Value>) -> Result<Self, Failure> {
        match params {
            None | Some(Value::Null) => Ok(Self(Map::new())),
            Some(Value::Object(fields)) => Ok(Self(fields)),
            Some(_) => Err(Failure::params("params must be an object")),
        }
    }

    fn object(&self, name: &str) -> Result<Self, Failure> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(Self(Map::new())),
            Some(Value::Object(fields)) => Ok(Self(fields.clone())),
            Some(_) => Err(expected(name, "an object")),
        }
    }

    fn optional_text(&self, name: &str) -> Result<Option<String>, Failure> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(expected(name, "a text")),
        }
    }

    fn optional_flag(&self, name: &str) -> Result<Option<bool>, Failure> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(expected(name, "true or false")),
        }
    }

    fn filled_text(&self, name: &str) -> Result<String, Failure> {
        match self.optional_text(name)? {
            None => Err(missing(name)),
            Some(text) if text.trim().is_empty() => Err(Failure::params(format!("{name}: must not be empty"))),
            Some(text) => Ok(text),
        }
    }
}

fn expected(name: &str, what: &str) -> Failure {
    Failure::params(format!("{name}: {what} is expected"))
}

fn missing(name: &str) -> Failure {
    Failure::params(format!("{name}: is missing"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(method: &str, params: Value) -> String {
        let failure = Call::read(method, Some(params)).unwrap().unwrap_err();
        assert_eq!(failure.code, -32602);
        failure.message
    }

    fn read(method: &str, params: Value) -> Call {
        Call::read(method, Some(params)).unwrap().unwrap()
    }

    #[test]
    fn what_is_missing_or_of_another_type_is_named() {
        for (method, params, field) in [
            ("generate", json!({}), "spec"),
            ("generate", json!([]), "params"),
            ("generate", json!({"spec": 5}), "spec"),
            ("generate", json!({"spec": null}), "spec"),
            ("generate", json!({"spec": []}), "spec"),
            ("generate", json!({"spec": {}, "format": "vue"}), "format"),
            ("generate", json!({"spec": {}, "format": 1}), "format"),
            ("generate", json!({"spec": {}, "theme": "blue"}), "theme"),
            ("generate", json!({"spec": {}, "options": []}), "options"),
            ("generate", json!({"spec": {}, "options": {"pagination": "yes"}}), "pagination"),
            ("customize", json!({"prompt": "x"}), "currentCode"),
            ("customize", json!({"currentCode": "x"}), "prompt"),
            ("customize", json!({"currentCode": "x", "prompt": " "}), "prompt"),
            ("customize", json!({"currentCode": "x", "prompt": "p", "spec": 1}), "spec"),
            ("customize", json!({"currentCode": "x", "prompt": "p", "history": {}}), "history"),
            ("customize", json!({"currentCode": "x", "prompt": "p", "history": [1]}), "history[0]"),
            ("customize", json!({"currentCode": "x", "prompt": "p", "history": [{"role": "x"}]}), "history[0].role"),
            (
                "customize",
                json!({"currentCode": "x", "prompt": "p", "history": [{"role": "user"}]}),
                "history[0].content",
            ),
            ("clarify", json!({"currentCode": "x", "prompt": "p"}), "answer"),
            ("chat", json!({}), "message"),
            ("chat", json!({"message": ["x"]}), "message"),
            ("chat", json!({"message": "x", "context": 1}), "context"),
            ("chat", json!({"message": "x", "context": {"hasActiveSpec": 1}}), "hasActiveSpec"),
        ] {
            let message = refused(method, params.clone());
            assert!(message.starts_with(field), "{method} {params}: {message}");
        }
        assert!(Call::read("initialize", None).is_none());
        assert!(Call::read("chat", None).unwrap().is_err());
    }

    #[test]
    fn what_is_not_said_has_a_meaning() {
        let Call::Generate(generate) = read("generate", json!({"spec": {}, "theme": null, "options": null})) else {
            panic!("a generate is expected");
        };
        assert_eq!(generate.wishes, Wishes::default());
        let params = json!({"spec": "x", "format": "react", "theme": "dark", "options":
            {"layout": "sidebar", "includeAuth": true, "pagination": true, "more": 1}});
        let Call::Generate(generate) = read("generate", params) else { panic!("a generate is expected") };
        let layout = Some("sidebar".to_owned());
        assert_eq!(generate.wishes, Wishes { dark: true, layout, include_auth: true, pagination: true });
        let history: Vec<Value> = (0..30).map(|n| json!({"role": "user", "content": n.to_string()})).collect();
        let params = json!({"currentCode": "c", "prompt": "p", "answer": "a", "history": history});
        let Call::Customize(customize) = read("clarify", params) else { panic!("a customize is expected") };
        assert_eq!((customize.answer.as_deref(), customize.history.len()), (Some("a"), 20));
        assert_eq!(customize.history[0].text, "10");
    }

    #[test]
    fn a_message_may_be_another_request() {
        let inside = json!({"jsonrpc": "2.0", "method": "generate", "params": {"spec": {}}});
        assert!(matches!(wrapped(&inside.to_string()), Some(Ok(Call::Generate(_)))));
        let flat = json!({"method": "customize", "currentCode": "c", "prompt": "p"});
        assert!(matches!(wrapped(&format!(" {flat}")), Some(Ok(Call::Customize(_)))));
        assert!(matches!(wrapped(r#"{"method":"generate"}"#), Some(Err(_))));
        for text in
            ["hello", "{", r#"{"method":5}"#, r#"{"method":"chat","message":"x"}"#, r#"{"method":"exit"}"#, "{}"]
        {
            assert_eq!(wrapped(text), None, "{text}");
        }
    }

    #[test]
    fn an_introduction_may_say_anything_or_nothing() {
        let all = Format::ALL.to_vec();
        assert_eq!(Initialize::read(None).unwrap().formats, all);
        let said = json!({"clientName": "x", "clientVersion": 1, "capabilities":
            {"streaming": false, "specFormats": ["graphql", "raml", 1]}});
        let read = Initialize::read(Some(said)).unwrap();
        assert_eq!(read, Initialize { client: "x".into(), streaming: false, formats: vec![Format::GraphQl] });
        for wrong in [json!({"capabilities": 1}), json!({"capabilities": {"streaming": "x"}}), json!({"clientName": 1})]
        {
            assert_eq!(Initialize::read(Some(wrong)).unwrap_err().code, -32602);
        }
    }
}
