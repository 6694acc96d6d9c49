//! Programs of tool calls in terminals of the client, where the user sees them run.

use agent_client_protocol_schema::v1::{
    CreateTerminalRequest, CreateTerminalResponse, EnvVariable, KillTerminalRequest, ReleaseTerminalRequest, SessionId,
    TerminalId, TerminalOutputRequest, TerminalOutputResponse, WaitForTerminalExitRequest, WaitForTerminalExitResponse,
};
use serde_json::Value;

use super::client::{Client, PATIENCE};
use super::methods::{TERMINAL_CREATE, TERMINAL_KILL, TERMINAL_OUTPUT, TERMINAL_RELEASE, TERMINAL_WAIT_FOR_EXIT};
use super::voice::Voice;
use crate::base::task;
use crate::host::{HostError, TerminalCommand, TerminalEnd, TerminalRun};

/// Runs a program to its end, or to that of its time. Only [`HostError::Unsupported`] says that
/// nothing was started.
pub(super) async fn run(voice: &Voice, command: TerminalCommand) -> Result<TerminalRun, HostError> {
    let (client, session) = (voice.client.clone(), voice.id.clone());
    let env = command.variables.into_iter().map(|(name, value)| EnvVariable::new(name, value)).collect();
    let request = CreateTerminalRequest::new(session.clone(), command.program)
        .args(command.args)
        .env(env)
        .cwd(command.directory)
        .output_byte_limit(command.most_bytes);
    let created: CreateTerminalResponse = client.call(TERMINAL_CREATE, &request, PATIENCE).await?;
    let terminal = Terminal { client, session, id: created.terminal_id, released: false };
    voice.attach_terminal(&command.call, terminal.id.clone());
    let wait = WaitForTerminalExitRequest::new(terminal.session.clone(), terminal.id.clone());
    // Bounded by the patience below.
    let ended = terminal.client.call::<WaitForTerminalExitResponse>(
        TERMINAL_WAIT_FOR_EXIT,
        &wait,
        command.patience.saturating_add(PATIENCE),
    );
    let end = tokio::select! {
        biased;
        () = command.stop.cancelled() => TerminalEnd::Stopped,
        ended = ended => match ended?.exit_status {
            status if status.signal.is_some() => TerminalEnd::Signal(status.signal.unwrap_or_default()),
            status => TerminalEnd::Code(status.exit_code.map_or(-1, |code| i32::try_from(code).unwrap_or(i32::MAX))),
        },
        () = tokio::time::sleep(command.patience) => TerminalEnd::TimedOut,
    };
    if matches!(end, TerminalEnd::Stopped | TerminalEnd::TimedOut) {
        terminal.kill().await;
    }
    let output = terminal.output().await?;
    terminal.release().await;
    Ok(TerminalRun { end, output: output.output, truncated: output.truncated })
}

/// A terminal of ours. It is given back whatever happens; that also kills what runs in it.
struct Terminal {
    client: Client,
    session: SessionId,
    id: TerminalId,
    released: bool,
}

impl Terminal {
    async fn kill(&self) {
        let request = KillTerminalRequest::new(self.session.clone(), self.id.clone());
        if let Err(error) = self.client.call::<Value>(TERMINAL_KILL, &request, PATIENCE).await {
            tracing::warn!(%error, "a program in a terminal was not killed");
        }
    }

    async fn output(&self) -> Result<TerminalOutputResponse, HostError> {
        let request = TerminalOutputRequest::new(self.session.clone(), self.id.clone());
        self.client.call(TERMINAL_OUTPUT, &request, PATIENCE).await
    }

    async fn release(mut self) {
        self.released = true;
        give_back(&self.client, &self.session, &self.id).await;
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if !self.released {
            let (client, session, id) = (self.client.clone(), self.session.clone(), self.id.clone());
            task::spawn(async move { give_back(&client, &session, &id).await });
        }
    }
}

async fn give_back(client: &Client, session: &SessionId, id: &TerminalId) {
    let request = ReleaseTerminalRequest::new(session.clone(), id.clone());
    if let Err(error) = client.call::<Value>(TERMINAL_RELEASE, &request, PATIENCE).await {
        tracing::debug!(%error, "a terminal was not released");
    }
}
