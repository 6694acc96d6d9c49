//! Which contract a client speaks, from its first message. Nothing is taken away from what it sent,
//! except lines that are answered here because they belong to no contract.

use std::io::{self, Chain, Cursor, ErrorKind, Read, Write};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::transport::envelope::{self, EnvelopeError, Id, Message, Rules, Version};

const CHUNK: usize = 64 * 1024;
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const HEADER: &[u8] = b"content-length:";
/// So much of something that is neither a header nor JSON, and the front end that finds its way
/// through anything has it.
const MOST_NOISE: usize = 64 * 1024;
/// A first message that is longer is nobody's.
const LONGEST_LINE: usize = 64 * 1024 * 1024;

/// The contracts that are spoken on stdin and stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contract {
    /// ECA and LSP, in `Content-Length` frames.
    Eca,
    /// API specifications to interfaces, in lines.
    Copilot,
    /// The Agent Client Protocol as published, in lines.
    AcpV1,
    /// Its first draft: lines that name no version.
    AcpDraft,
}

/// A client whose contract is known, with everything it sent.
pub(super) struct Detected<R, W> {
    pub(super) contract: Contract,
    pub(super) input: Chain<Cursor<Vec<u8>>, R>,
    pub(super) output: W,
}

/// Reads until the contract is known; `None` when the input ends before that.
pub(super) fn detect<R: Read, W: Write>(mut input: R, mut output: W) -> io::Result<Option<Detected<R, W>>> {
    let mut detector = Detector::default();
    let mut chunk = vec![0; CHUNK];
    let mut pause = Duration::from_millis(1);
    loop {
        let ended = match input.read(&mut chunk) {
            Ok(length) => {
                detector.seen.extend_from_slice(chunk.get(..length).unwrap_or_default());
                length == 0
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // Some editors hand over a pipe in non-blocking mode; an empty one is no error.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
                continue;
            }
            Err(error) => return Err(error),
        };
        loop {
            match detector.look(ended) {
                Look::NeedMore if ended => return Ok(None),
                Look::NeedMore => break,
                Look::Found(contract) => {
                    let input = Cursor::new(detector.seen).chain(input);
                    return Ok(Some(Detected { contract, input, output }));
                }
                Look::Broken(error) => {
                    output.write_all(&refusal(&error))?;
                    output.flush()?;
                }
            }
        }
    }
}

/// The bytes so far, and how far they are understood.
#[derive(Debug, Default)]
struct Detector {
    seen: Vec<u8>,
    /// Where the line begins that is being looked at.
    at: usize,
    /// This many bytes of it hold no line break.
    searched: usize,
}

#[derive(Debug, PartialEq)]
enum Look {
    NeedMore,
    Found(Contract),
    /// A line of JSON that is no message. It is taken out, and is to be answered.
    Broken(EnvelopeError),
}

impl Detector {
    fn look(&mut self, ended: bool) -> Look {
        loop {
            self.skip_blank();
            let rest = self.seen.get(self.at..).unwrap_or_default();
            let Some(first) = rest.first() else { return Look::NeedMore };
            let is_json = matches!(first, b'{' | b'[');
            let end = rest[self.searched..].iter().position(|byte| *byte == b'\n').map(|at| self.searched + at);
            let Some(length) = end.or_else(|| ended.then_some(rest.len())) else {
                self.searched = rest.len();
                return match is_json {
                    true if rest.len() > LONGEST_LINE => Look::Found(Contract::Copilot),
                    false if has_header(rest) || self.seen.len() > MOST_NOISE => Look::Found(Contract::Eca),
                    _ => Look::NeedMore,
                };
            };
            let line = &rest[..length];
            if !is_json {
                if has_header(line) || starts_with(line, b"content-type:") {
                    return Look::Found(Contract::Eca);
                }
            } else {
                let rules = Rules { version: Version::Optional, ..Rules::JSON_RPC };
                match envelope::parse_by(line.trim_ascii(), &rules) {
                    Ok(parsed) => match parsed.message {
                        Message::Request { method, params, .. } | Message::Notification { method, params } => {
                            return Look::Found(contract_of(&method, params.as_ref(), parsed.versioned));
                        }
                        // An answer to nothing; the front end will say so.
                        Message::Response { .. } => {}
                    },
                    Err(error) => {
                        let end = (self.at + length + 1).min(self.seen.len());
                        self.seen.drain(self.at..end);
                        self.searched = 0;
                        return Look::Broken(error);
                    }
                }
            }
            self.at = (self.at + length + 1).min(self.seen.len());
            self.searched = 0;
        }
    }

    fn skip_blank(&mut self) {
        if self.searched > 0 {
            return;
        }
        loop {
            let rest = self.seen.get(self.at..).unwrap_or_default();
            let blank = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let mark = if rest.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
            if blank + mark == 0 {
                return;
            }
            self.at += blank.max(mark);
        }
    }
}

fn contract_of(method: &str, params: Option<&Value>, versioned: bool) -> Contract {
    let says = |name: &str| params.and_then(|params| params.get(name)).is_some();
    match method {
        "initialize" if says("protocolVersion") => Contract::AcpV1,
        "initialize" if says("clientName") => Contract::Copilot,
        "chat" | "generate" | "customize" | "clarify" => Contract::Copilot,
        "getThreads" | "createThread" | "openThread" | "getThreadEntries" | "sendMessage" | "streamMessageChunk"
        | "readTextFile" | "readBinaryFile" | "stat" | "globSearch" => Contract::AcpDraft,
        "authenticate" | "logout" => Contract::AcpV1,
        method if method.starts_with("session/") => Contract::AcpV1,
        _ if !versioned => Contract::AcpDraft,
        // Its methods may come in any order, so anything else may be one of its unknown ones.
        _ => Contract::Copilot,
    }
}

fn has_header(bytes: &[u8]) -> bool {
    bytes.windows(HEADER.len()).any(|window| window.eq_ignore_ascii_case(HEADER))
}

fn starts_with(bytes: &[u8], beginning: &[u8]) -> bool {
    bytes.get(..beginning.len()).is_some_and(|start| start.eq_ignore_ascii_case(beginning))
}

fn refusal(error: &EnvelopeError) -> Vec<u8> {
    let id = error.id.clone().unwrap_or(Id::Null);
    let answer = json!({"jsonrpc": "2.0", "id": id, "error": {"code": error.code, "message": error.message}});
    format!("{answer}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What is found in these pieces, what is left to be read, and what was answered.
    fn found(pieces: &[&[u8]]) -> (Option<Contract>, Vec<u8>, String) {
        struct Pieces(std::collections::VecDeque<Vec<u8>>);
        impl Read for Pieces {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let Some(mut piece) = self.0.pop_front() else { return Ok(0) };
                let length = piece.len().min(buffer.len());
                buffer[..length].copy_from_slice(&piece[..length]);
                if piece.len() > length {
                    self.0.push_front(piece.split_off(length));
                }
                Ok(length)
            }
        }
        let input = Pieces(pieces.iter().filter(|piece| !piece.is_empty()).map(|piece| piece.to_vec()).collect());
        let mut answered = Vec::new();
        let found = detect(input, &mut answered).unwrap().map(|detected| {
            let mut rest = Vec::new();
            let mut input = detected.input;
            input.read_to_end(&mut rest).unwrap();
            (detected.contract, rest)
        });
        let answered = String::from_utf8(answered).unwrap();
        match found {
            Some((contract, rest)) => (Some(contract), rest, answered),
            None => (None, Vec::new(), answered),
        }
    }

    const FIRSTS: [(&str, Contract); 22] = [
        ("Content-Length: 2\r\n\r\n{}", Contract::Eca),
        ("content-length:2\r\n\r\n{}", Contract::Eca),
        ("Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", Contract::Eca),
        ("\r\n\r\nContent-Length: 2\r\n\r\n{}", Contract::Eca),
        ("Welcome to host\nContent-Length: 2\r\n\r\n{}", Contract::Eca),
        ("noiseContent-Length: 2\r\n\r\n{}", Contract::Eca),
        (r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#, Contract::AcpV1),
        (r#"{"jsonrpc":"2.0","id":0,"method":"session/new","params":{}}"#, Contract::AcpV1),
        (r#"{"jsonrpc":"2.0","id":0,"method":"authenticate"}"#, Contract::AcpV1),
        (r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientName":"x"}}"#, Contract::Copilot),
        (r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#, Contract::Copilot),
        (r#"{"jsonrpc":"2.0","id":1,"method":"chat","params":{"message":"hi"}}"#, Contract::Copilot),
        (r#"{"jsonrpc":"2.0","id":1,"method":"generate"}"#, Contract::Copilot),
        (r#"{"jsonrpc":"2.0","id":1,"method":"customize"}"#, Contract::Copilot),
        (r#"{"id":1,"method":"chat"}"#, Contract::Copilot),
        (r#"{"jsonrpc":"2.0","method":"exit"}"#, Contract::Copilot),
        (r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#, Contract::Copilot),
        (r#"{"id":0,"method":"getThreads","params":null}"#, Contract::AcpDraft),
        (r#"{"jsonrpc":"2.0","id":0,"method":"createThread"}"#, Contract::AcpDraft),
        (r#"{"id":0,"method":"no/such"}"#, Contract::AcpDraft),
        ("\u{feff} \n{\"id\":0,\"method\":\"stat\"}", Contract::AcpDraft),
        ("{\"id\":0,\"result\":1}\n{\"id\":0,\"method\":\"stat\"}", Contract::AcpDraft),
    ];

    #[test]
    fn the_first_message_tells_and_stays_to_be_read() {
        for (first, contract) in FIRSTS {
            for end in ["", "\n", "\r\nand more\n"] {
                let input = format!("{first}{end}");
                let whole = found(&[input.as_bytes()]);
                assert_eq!(whole, (Some(contract), input.clone().into_bytes(), String::new()), "{input:?}");
            }
            let bytes: Vec<&[u8]> = first.as_bytes().chunks(1).collect();
            assert_eq!(found(&bytes).0, Some(contract), "byte by byte: {first}");
        }
    }

    #[test]
    fn nothing_is_decided_before_it_is_known() {
        let mut detector = Detector::default();
        for piece in ["\n", "Cont", "ent-Len"] {
            detector.seen.extend_from_slice(piece.as_bytes());
            assert_eq!(detector.look(false), Look::NeedMore);
        }
        detector.seen.extend_from_slice(b"gth:");
        assert_eq!(detector.look(false), Look::Found(Contract::Eca), "the number may still be on its way");
        assert_eq!(found(&[]).0, None);
        assert_eq!(found(&[b" \n", b"\n"]).0, None);
        assert_eq!(found(&[b"noise\nmore noise"]).0, None);
    }

    #[test]
    fn json_that_is_no_message_is_answered_and_the_next_line_counts() {
        let chat = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"chat\"}\n";
        for (line, answer) in [
            ("{broken", r#""id":null,"error":{"code":-32700"#),
            ("[]", r#""id":null,"error":{"code":-32600"#),
            (r#"{"id":7}"#, r#""id":7,"error":{"code":-32600"#),
        ] {
            let (contract, rest, answered) = found(&[format!("{line}\n{chat}").as_bytes()]);
            assert_eq!((contract, rest.as_slice()), (Some(Contract::Copilot), chat.as_bytes()), "{line}");
            assert!(answered.contains(answer) && answered.lines().count() == 1, "{answered}");
        }
    }

    #[test]
    fn what_never_makes_sense_is_bounded() {
        let noise = "x".repeat(MOST_NOISE + 1);
        assert_eq!(found(&[noise.as_bytes()]).0, Some(Contract::Eca));
        let long = [b"{".to_vec(), vec![b' '; LONGEST_LINE + 1]].concat();
        let detected = detect(Cursor::new(long), Vec::new()).unwrap().unwrap();
        assert_eq!(detected.contract, Contract::Copilot);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0..200_usize) {
            let at = at.min(bytes.len());
            let (first, second) = bytes.split_at(at);
            prop_assert_eq!(found(&[first, second]).0, found(&[&bytes]).0);
        }
    }
}
