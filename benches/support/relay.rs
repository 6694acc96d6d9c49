//! The least that can stand between a model and a client: one read, one frame, one `write` per
//! chunk, no parsing of JSON. The benchmark runs itself in this role, so that the latency of the
//! server is compared with what this machine costs at this moment.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};

use super::Outcome;
use super::client::Frames;
use super::mock::{Mock, Plan};

/// The argument that puts the benchmark into this role.
pub(crate) const FLAG: &str = "--as-null-relay";

/// A running relay.
pub(crate) struct Relay {
    child: Child,
    pub(crate) frames: Frames<ChildStdout>,
}

impl Relay {
    pub(crate) fn start(mock: &Mock, plan: Plan) -> Outcome<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([FLAG, &mock.address().to_string(), &plan.prompt()])
            .stdout(Stdio::piped())
            .spawn()?;
        let output = child.stdout.take().ok_or("no pipe from the relay")?;
        Ok(Self { child, frames: Frames::new(output) })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The relay itself: asks for the plan and passes on what comes, until the answer is over. It then
/// waits to be ended, so that its CPU time can be read.
pub(crate) fn run(address: &str, prompt: &str) -> Outcome<()> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    write!(socket, "POST / HTTP/1.1\r\ncontent-length: {}\r\n\r\n{prompt}", prompt.len())?;
    let mut out = eca::transport::standard_streams::raw_stdout()?;
    let mut buffer = Vec::new();
    let mut chunk = vec![0; 64 * 1024];
    let mut frame = Vec::new();
    loop {
        let count = socket.read(&mut chunk)?;
        buffer.extend_from_slice(chunk.get(..count).unwrap_or_default());
        let mut done = 0;
        while let Some((event, used)) = next_event(buffer.get(done..).unwrap_or_default()) {
            if event == b"[DONE]" {
                std::thread::park();
                return Ok(());
            }
            frame.clear();
            write!(frame, "Content-Length: {}\r\n\r\n", event.len())?;
            frame.extend_from_slice(event);
            out.write_all(&frame)?;
            done += used;
        }
        buffer.drain(..done);
        if count == 0 {
            return Err("the answer was cut".into());
        }
    }
}

/// The data of the first whole event, and how far it reaches.
fn next_event(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let end = bytes.windows(2).position(|window| window == b"\n\n")?;
    let event = bytes.get(..end)?;
    let start = event.windows(6).position(|window| window == b"data: ")? + 6;
    Some((event.get(start..)?, end + 2))
}
