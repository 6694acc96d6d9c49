//! Frames and envelopes as the strictest clients want them.

use serde_json::Value;

/// A body with its header.
pub fn frame(body: &str) -> Vec<u8> {
    format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Cuts output into frames and accepts nothing else: one header, spelled exactly, no other bytes.
#[derive(Debug, Default)]
pub struct FrameParser {
    buffer: Vec<u8>,
    start: usize,
}

impl FrameParser {
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    pub fn is_empty(&self) -> bool {
        self.start == self.buffer.len()
    }

    pub fn next_frame(&mut self) -> Result<Option<Vec<u8>>, String> {
        const NAME: &[u8] = b"Content-Length: ";
        let unread = &self.buffer[self.start..];
        let known = unread.len().min(NAME.len());
        if unread[..known] != NAME[..known] {
            let shown = String::from_utf8_lossy(&unread[..unread.len().min(200)]).into_owned();
            return Err(format!("the output is no frame here: {shown:?}"));
        }
        let Some(end) = unread.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
        let number = std::str::from_utf8(&unread[NAME.len()..end]).unwrap_or_default();
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(format!("the header has more than a length: {number:?}"));
        }
        let length: usize = number.parse().map_err(|error| format!("{error}"))?;
        let body = end + 4..end + 4 + length;
        if unread.len() < body.end {
            return Ok(None);
        }
        let frame = unread[body.clone()].to_vec();
        self.start += body.end;
        Ok(Some(frame))
    }
}

/// Cuts output into lines and accepts nothing else: no blank ones, and no carriage returns.
#[derive(Debug, Default)]
pub struct LineParser {
    buffer: Vec<u8>,
    start: usize,
    searched: usize,
}

impl LineParser {
    fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    fn next_line(&mut self) -> Result<Option<Vec<u8>>, String> {
        let unread = &self.buffer[self.start..];
        let Some(length) = unread[self.searched..].iter().position(|byte| *byte == b'\n') else {
            self.searched = unread.len();
            return Ok(None);
        };
        let line = unread[..self.searched + length].to_vec();
        self.start += line.len() + 1;
        self.searched = 0;
        if line.is_empty() || line.contains(&b'\r') {
            return Err(format!("the output is no message here: {:?}", String::from_utf8_lossy(&line)));
        }
        Ok(Some(line))
    }
}

/// How a peer's messages are told apart.
#[derive(Debug)]
pub enum Cutter {
    Frames(FrameParser),
    Lines(LineParser),
    /// Lines that name no version.
    BareLines(LineParser),
}

impl Cutter {
    pub fn push(&mut self, bytes: &[u8]) {
        match self {
            Self::Frames(frames) => frames.push(bytes),
            Self::Lines(lines) | Self::BareLines(lines) => lines.push(bytes),
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Self::Frames(frames) => frames.is_empty(),
            Self::Lines(lines) | Self::BareLines(lines) => lines.start == lines.buffer.len(),
        }
    }

    pub fn next(&mut self) -> Result<Option<Vec<u8>>, String> {
        match self {
            Self::Frames(frames) => frames.next_frame(),
            Self::Lines(lines) | Self::BareLines(lines) => lines.next_line(),
        }
    }

    /// The message, if it is one that every client of this framing accepts.
    pub fn checked(&self, body: &[u8]) -> Result<Value, String> {
        match self {
            Self::Frames(_) | Self::Lines(_) => checked_message(body),
            Self::BareLines(_) => bare_message(body),
        }
    }
}

/// A message as the first draft of the Agent Client Protocol has it: requests and responses, and not
/// one member more.
fn bare_message(body: &[u8]) -> Result<Value, String> {
    let mut message: Value = serde_json::from_slice(body).map_err(|error| format!("not JSON ({error})"))?;
    let names = |value: &Value| -> Vec<String> {
        value.as_object().map(|members| members.keys().cloned().collect()).unwrap_or_default()
    };
    let mut found = names(&message);
    found.sort_unstable();
    let is_right = match found.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["id", "method", "params"] => message["id"].is_i64(),
        ["id", "result"] => true,
        ["error", "id"] => names(&message["error"]) == ["code", "message"],
        _ => false,
    };
    if !is_right {
        return Err(format!("not as the draft has it: {message}"));
    }
    message["jsonrpc"] = Value::from("2.0");
    let checked = checked_message(message.to_string().as_bytes());
    checked.map(|mut message| {
        message.as_object_mut().and_then(|members| members.remove("jsonrpc"));
        message
    })
}

/// The message of a frame, if it is one that every client accepts.
pub fn checked_message(body: &[u8]) -> Result<Value, String> {
    let message: Value = serde_json::from_slice(body)
        .map_err(|error| format!("not JSON ({error}): {}", String::from_utf8_lossy(body)))?;
    let problem = if message["jsonrpc"] != "2.0" {
        "jsonrpc is not 2.0"
    } else if message.get("method").is_some() {
        match message.get("id") {
            Some(Value::Null) => "a notification has an id",
            _ if message.get("result").is_some() || message.get("error").is_some() => "neither request nor response",
            _ => return Ok(message),
        }
    } else {
        match (message.get("id"), message.get("result"), message.get("error")) {
            (None, ..) => "a response without an id",
            (_, Some(_), Some(_)) => "a response with a result and an error",
            (_, None, None) => "a response with neither result nor error",
            (_, None, Some(error)) if !error["code"].is_i64() => "an error whose code is no whole number",
            (_, None, Some(error)) if error["message"].as_str().is_none_or(|text| text.contains('\n')) => {
                "an error whose message is not one line"
            }
            _ => return Ok(message),
        }
    };
    Err(format!("{problem}: {message}"))
}
