//! Background jobs with real programs: their lives, their output, and their ends.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use eca::config::Sandbox;
use eca::tool::ToolContext;
use eca::tools::jobs::{BgJob, JobStatus, Jobs};
use eca::tools::shell::ShellCommand;
use serde_json::json;

use super::support::{call, context, sandboxed};
use super::{HANG_GUARD, escape_artists, is_alive, pids_in, wait_until};

struct Setting {
    jobs: Jobs,
    shell: ShellCommand,
    bg_job: BgJob,
    context: ToolContext,
    directory: tempfile::TempDir,
}

impl Setting {
    fn new() -> Self {
        let (jobs, directory) = (Jobs::default(), tempfile::tempdir().unwrap());
        let (shell, bg_job) = (ShellCommand::new(jobs.clone()), BgJob::new(jobs.clone()));
        Self { jobs, shell, bg_job, context: context(Some(directory.path())), directory }
    }

    async fn start(&self, command: &str) -> (bool, String) {
        call(&self.shell, json!({"command": command, "background": "server"}), &self.context).await
    }

    async fn ask(&self, action: &str, job: &str) -> (bool, String) {
        call(&self.bg_job, json!({"action": action, "job_id": job}), &self.context).await
    }

    async fn until_status(&self, status: JobStatus) {
        let mut changes = self.jobs.changes();
        let reached = async {
            while !self.jobs.list().iter().any(|job| job.status == status) {
                changes.changed().await.unwrap();
            }
        };
        tokio::time::timeout(HANG_GUARD, reached).await.expect("the status comes");
    }

    /// A fifo through which a job is told to go on.
    fn gate(&self) -> String {
        let path = self.directory.path().join("gate");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path.display().to_string()
    }
}

#[tokio::test]
async fn a_job_lives_and_is_read_and_killed() {
    let setting = Setting::new();
    let gate = setting.gate();
    let (error, output) = setting.start(&format!("echo ready; echo warn >&2; cat {gate}; echo more; sleep 600")).await;
    assert!(!error && output.contains("as job-1") && output.contains("bg_job"), "{output}");
    assert!(output.contains("ready") && output.contains("[stderr] warn"), "{output}");
    let listed = &setting.jobs.list()[0];
    assert_eq!((listed.status, listed.label.as_str(), listed.exit_code), (JobStatus::Running, "server", None));
    assert_eq!((listed.call.as_str(), listed.chat.as_str()), ("call", "chat"));
    assert!(setting.ask("read_output", "job-1").await.1.contains("no new output"));

    let open = gate.clone();
    tokio::task::spawn_blocking(move || std::fs::write(open, "from the gate\n").unwrap()).await.unwrap();
    wait_until("the job goes on", || setting.jobs.peek(listed.id).unwrap().lines.len() == 4).await;
    let (_, output) = setting.ask("read_output", "job-1").await;
    assert_eq!(output, "job-1 [running]\nfrom the gate\nmore");

    let mut other = setting.context.clone();
    other.chat = "other".into();
    let (_, output) = call(&setting.bg_job, json!({"action": "read_output", "job_id": "job-1"}), &other).await;
    assert!(output.contains("ready") && output.contains("more"), "{output}");
    assert!(call(&setting.bg_job, json!({"action": "list"}), &other).await.1.contains("of another chat"));

    let (error, output) = setting.ask("kill", "job-1").await;
    assert!(!error && output.contains("killed"), "{output}");
    setting.until_status(JobStatus::Killed).await;
    assert!(setting.ask("kill", "job-1").await.0);
    assert!(setting.jobs.take_notices(&"chat".into()).is_empty(), "the model killed it itself");
}

#[tokio::test]
async fn early_ends_are_told_at_once() {
    let setting = Setting::new();
    let (error, output) = setting.start("echo oops >&2; exit 7").await;
    assert!(error && output.contains("exit code 7") && output.contains("[stderr] oops"), "{output}");
    let (error, output) = setting.start("echo done").await;
    assert!(!error && output.contains("exit code 0") && output.contains("done"), "{output}");
    assert!(setting.jobs.list().is_empty());
    assert!(setting.jobs.take_notices(&"chat".into()).is_empty());
    assert!(setting.ask("read_output", "job-1").await.0);
    assert_eq!(
        call(&setting.bg_job, json!({"action": "list"}), &setting.context).await.1,
        "There are no background jobs."
    );
}

#[tokio::test]
async fn the_end_is_a_notice_for_the_chat() {
    let setting = Setting::new();
    let gate = setting.gate();
    setting.start(&format!("echo ready; cat {gate}; seq 30; exit 2")).await;
    assert!(setting.jobs.take_notices(&"chat".into()).is_empty());
    tokio::task::spawn_blocking(move || std::fs::write(gate, "").unwrap()).await.unwrap();
    setting.until_status(JobStatus::Failed).await;
    let notices = setting.jobs.take_notices(&"chat".into());
    assert!(notices.len() == 1 && notices[0].contains("exit code 2") && notices[0].contains("\n30"), "{notices:?}");
    assert!(!notices[0].contains("\nready") && notices[0].contains("read_output"), "{notices:?}");
    let (_, output) = setting.ask("read_output", "job-1").await;
    assert!(output.starts_with("job-1 [failed, exit code 2]\n1\n2\n"), "{output}");
}

#[tokio::test]
async fn a_kill_takes_the_tree_and_tells_the_model() {
    let setting = Setting::new();
    let pids_file = setting.directory.path().join("pids");
    setting.start(&escape_artists(&pids_file)).await;
    let pids = pids_in(&pids_file, 3).await;
    let id = setting.jobs.list()[0].id;
    assert!(setting.jobs.kill(id) && !setting.jobs.kill(id));
    wait_until("all are gone", || !pids.iter().any(|pid| is_alive(*pid))).await;
    let mut notices = Vec::new();
    wait_until("the notice comes", || {
        notices.extend(setting.jobs.take_notices(&"chat".into()));
        !notices.is_empty()
    })
    .await;
    assert!(notices[0].contains("killed by the user"), "{notices:?}");
}

#[tokio::test]
async fn there_are_only_so_many_and_shutdown_ends_them_all() {
    let setting = Setting::new();
    let pids_file = setting.directory.path().join("pids");
    let command = format!("echo $$ >> {}; echo up; exec sleep 600", pids_file.display());
    let started = futures_util::future::join_all((0..10).map(|_| setting.start(&command))).await;
    assert!(started.iter().all(|(error, _)| !error), "{started:?}");
    let (error, output) = setting.start("echo one more").await;
    assert!(error && output.contains("10 background jobs"), "{output}");
    let pids = pids_in(&pids_file, 10).await;
    setting.jobs.shutdown().await;
    wait_until("all are gone", || !pids.iter().any(|pid| is_alive(*pid))).await;
    let (error, output) = setting.start("echo late").await;
    assert!(error && output.contains("about to end"), "{output}");
}

#[tokio::test]
async fn a_flood_stays_bounded() {
    let setting = Setting::new();
    let (error, _) = setting.start("yes; exit 1").await;
    assert!(!error);
    let id = setting.jobs.list()[0].id;
    let before = setting.jobs.peek(id).unwrap().dropped;
    wait_until("lines are dropped", || setting.jobs.peek(id).unwrap().dropped > before + 10_000).await;
    let reading = setting.jobs.read_output(id).unwrap();
    assert!(reading.lines.len() <= 2_001 && reading.dropped > 0, "{} {}", reading.lines.len(), reading.dropped);
    assert!(setting.jobs.kill(id));
}

#[tokio::test]
async fn a_call_that_is_stopped_takes_its_job_along() {
    let setting = Setting::new();
    let pids_file = setting.directory.path().join("pids");
    let command = format!("echo $$ > {}; exec sleep 600", pids_file.display());
    let stop = setting.context.stop.clone();
    let stopped = async {
        let pids = pids_in(&pids_file, 1).await;
        stop.cancel();
        pids
    };
    let ((error, output), pids) = tokio::join!(setting.start(&command), stopped);
    assert!(error && output.contains("stopped"), "{output}");
    wait_until("it is gone", || !is_alive(pids[0])).await;
    assert!(setting.jobs.take_notices(&"chat".into()).is_empty());
}

#[tokio::test]
async fn jobs_use_the_configured_shell() {
    let mut setting = Setting::new();
    let mut settings = (*setting.context.settings).clone();
    settings.shell.path = Some("env".to_owned());
    settings.shell.args = ["GREETING=hello", "sh", "-c"].map(str::to_owned).into();
    setting.context.settings = Arc::new(settings);
    assert!(setting.start("echo $GREETING").await.1.contains("hello"));
}

/// The other half of the next test: a job in a sandbox, held by a program that is then killed.
#[test]
fn holder_of_a_job() {
    let Some(pids_file) = std::env::var_os("ECA_TEST_HOLD_JOB") else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut setting = Setting::new();
        setting.context = sandboxed(Path::new(&pids_file).parent().unwrap(), Sandbox::WorkspaceWrite);
        setting.start(&escape_artists(Path::new(&pids_file))).await;
        std::future::pending::<()>().await;
    });
}

#[tokio::test]
async fn nothing_of_a_job_outlives_a_server_that_is_killed() {
    let (directory, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let pids_file = directory.path().join("pids");
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "jobs::holder_of_a_job", "--nocapture"])
        .env("ECA_TEST_HOLD_JOB", &pids_file)
        .env("TMPDIR", temporary.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let private_folders = || {
        let names = std::fs::read_dir(temporary.path()).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with("eca-")).count()
    };
    let pids = pids_in(&pids_file, 3).await;
    assert_eq!(private_folders(), 1);
    holder.kill().unwrap();
    holder.wait().unwrap();
    wait_until("all are gone", || !pids.iter().any(|pid| is_alive(*pid))).await;
    wait_until("the folder is gone", || private_folders() == 0).await;
}
