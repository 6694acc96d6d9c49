//! Hooks as real programs: what they read, what their answers do, and that none outlives its time.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use eca::config::{HookAction, HookConfig, HookProgram, HookType, Ruling};
use eca::customization::hooks::{ChatFacts, HookEvent, HookReport, HookRunner, HookedCall, Setting, Verdict};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::{HANG_GUARD, is_alive, pids_in, use_the_built_guard, wait_until};

struct World {
    folder: tempfile::TempDir,
    hooks: BTreeMap<String, HookConfig>,
    reports: Mutex<Vec<HookReport>>,
    stop: CancellationToken,
}

impl World {
    fn new() -> Self {
        use_the_built_guard();
        let folder = tempfile::tempdir().unwrap();
        for name in ["repo", "config"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder, hooks: BTreeMap::new(), reports: Mutex::default(), stop: CancellationToken::new() }
    }

    fn hook(mut self, name: &str, kind: HookType, program: HookProgram) -> Self {
        let actions = vec![HookAction { program, timeout: HANG_GUARD }];
        let hook = HookConfig { kind, matcher: None, actions, visible: true, description: None, run_on_error: false };
        self.hooks.insert(name.to_owned(), hook);
        self
    }

    fn shell(self, name: &str, kind: HookType, line: &str) -> Self {
        self.hook(name, kind, HookProgram::Shell(line.to_owned()))
    }

    fn change(mut self, name: &str, change: impl FnOnce(&mut HookConfig)) -> Self {
        change(self.hooks.get_mut(name).unwrap());
        self
    }

    fn repo(&self) -> std::path::PathBuf {
        self.folder.path().join("repo")
    }

    async fn run(&self, event: HookEvent) -> Verdict {
        let (runner, problems) = HookRunner::new(&self.hooks);
        assert_eq!(problems, []);
        let setting = Setting {
            workspaces: vec![self.repo()],
            eca_executable: "/path/to/eca".into(),
            config_dir: self.folder.path().join("config"),
            ..Setting::default()
        };
        let chat = ChatFacts { chat: "chat".into(), agent: "code".into(), model: Some("p/m".into()), variant: None };
        let observer = |report| self.reports.lock().unwrap().push(report);
        let run = runner.run(event, &setting, Some(&chat), &observer, &self.stop);
        tokio::time::timeout(HANG_GUARD, run).await.expect("hooks end")
    }

    /// What the hooks showed when they ended: name, status, output, error.
    fn shown(&self) -> Vec<(String, i32, Option<String>, Option<String>)> {
        let ends = self.reports.lock().unwrap().clone().into_iter().filter_map(|report| match report {
            HookReport::Finished { name, status, output, error, .. } => Some((name, status, output, error)),
            HookReport::Started { .. } => None,
        });
        ends.collect()
    }
}

fn call(input: Value) -> HookEvent {
    let input: Map<String, Value> = input.as_object().cloned().unwrap();
    let call = HookedCall { call: "c1".into(), server: "eca".into(), tool: "shell_command".into(), input };
    HookEvent::PreToolCall { call, approval: Ruling::Allow }
}

fn after_call(response: &str, error: bool) -> HookEvent {
    let HookEvent::PreToolCall { call, .. } = call(json!({})) else { unreachable!() };
    HookEvent::PostToolCall { call, response: response.to_owned(), error }
}

#[tokio::test]
async fn a_hook_reads_the_event_in_the_first_folder_and_answers() {
    let world = World::new().shell(
        "reads",
        HookType::PreToolCall,
        r#"cat > input.json; echo "$ECA_EXECUTABLE" > executable; echo '{"updatedInput": {"b": 2}, "systemMessage": "seen"}'"#,
    );
    let verdict = world.run(call(json!({"a": 1}))).await;
    assert_eq!(Value::Object(verdict.updated_input.clone()), json!({"b": 2}));
    assert_eq!(verdict.messages[0].text, "seen");
    let read: Value = serde_json::from_slice(&std::fs::read(world.repo().join("input.json")).unwrap()).unwrap();
    assert_eq!(read["tool_input"], json!({"a": 1}));
    assert_eq!((&read["hook_name"], &read["chat_id"]), (&json!("reads"), &json!("chat")));
    assert_eq!(read["cwd"], json!(world.repo()));
    assert_eq!(std::fs::read_to_string(world.repo().join("executable")).unwrap(), "/path/to/eca\n");
    let reports = world.reports.lock().unwrap();
    let [HookReport::Started { id, tool_call, .. }, HookReport::Finished { id: ended, output, status, .. }] =
        &reports[..]
    else {
        panic!("{reports:?}")
    };
    assert_eq!((id, *status, tool_call.as_ref().map(|call| call.as_str())), (ended, 0, Some("c1")));
    assert_eq!(output.as_deref(), Some(r#"updatedInput: {"b":2}"#));
}

#[tokio::test]
async fn hooks_run_by_name_and_see_each_other_s_changes() {
    let rewrite = |mark: &str| format!(r#"sed 's/.*"prompt":"\([^"]*\)".*/{{"replacedPrompt":"\1{mark}"}}/'"#);
    let world = World::new()
        .shell("b", HookType::PreRequest, &rewrite("b"))
        .shell("a", HookType::PreRequest, &rewrite("a"))
        .shell("other", HookType::PostRequest, "touch ran; exit 2");
    let verdict = world.run(HookEvent::PreRequest { prompt: "x".into(), replaceable: true }).await;
    assert_eq!(verdict.replaced_prompt.as_deref(), Some("xab"));
    assert!(!world.repo().join("ran").exists(), "another event's hook");
    let names: Vec<_> = world.shown().into_iter().map(|shown| shown.0).collect();
    assert_eq!(names, ["a", "b"]);
}

#[tokio::test]
async fn the_first_that_has_had_enough_is_the_last() {
    let stop = r#"echo '{"continue": false, "stopReason": "enough"}'"#;
    let world = World::new()
        .shell("a", HookType::PreToolCall, "echo no >&2; exit 2")
        .shell("b", HookType::PreToolCall, stop)
        .shell("c", HookType::PreToolCall, "touch ran");
    let verdict = world.run(call(json!({}))).await;
    assert_eq!(verdict.stopped.unwrap().reason.as_deref(), Some("enough"));
    assert_eq!((verdict.approval, verdict.rejections), (Some(Ruling::Deny), vec!["no".to_owned()]));
    assert!(!world.repo().join("ran").exists());
}

#[tokio::test]
async fn failures_are_shown_and_change_nothing() {
    let world = World::new()
        .shell("a", HookType::PreToolCall, "echo out; echo err >&2; exit 3")
        .shell("b", HookType::PreToolCall, "no-such-program-at-all")
        .hook("c", HookType::PreToolCall, HookProgram::File("no-such-file.sh".into()))
        .shell("d", HookType::PreToolCall, "kill -9 $$");
    let verdict = world.run(call(json!({}))).await;
    assert_eq!(verdict.approval, Some(Ruling::Ask), "the one that could not be started was to judge");
    assert_eq!(verdict.errors.len(), 4);
    let shown = world.shown();
    assert_eq!(shown[0].1, 3);
    assert_eq!(shown[0].2.as_deref(), Some("out"));
    assert!(shown[0].3.as_deref().is_some_and(|error| error.ends_with("exit code 3: err")), "{shown:?}");
    assert_eq!((shown[1].1, shown[2].1, shown[3].1), (127, 127, 137));
    assert!(shown[2].3.as_deref().is_some_and(|error| error.contains("no-such-file.sh")), "{shown:?}");
}

#[tokio::test]
async fn a_hook_that_takes_too_long_is_killed() {
    let world = World::new().shell("slow", HookType::PreToolCall, "echo $$ > pid; sleep 600");
    let world = world.change("slow", |hook| hook.actions[0].timeout = Duration::from_millis(300));
    let verdict = world.run(call(json!({}))).await;
    assert_eq!(verdict.approval, Some(Ruling::Ask));
    assert_eq!(world.shown()[0].1, 124);
    let pids = pids_in(&world.repo().join("pid"), 1).await;
    wait_until("it is gone", || !pids.iter().any(|pid| is_alive(*pid))).await;
}

#[tokio::test]
async fn a_stopped_turn_stops_its_hooks() {
    let world = World::new().shell("a", HookType::PreRequest, "echo $$ > pid; sleep 600").shell(
        "b",
        HookType::PreRequest,
        "touch ran",
    );
    let pid = world.repo().join("pid");
    let (verdict, pids) =
        tokio::join!(world.run(HookEvent::PreRequest { prompt: "x".into(), replaceable: true }), async {
            let pids = pids_in(&pid, 1).await;
            world.stop.cancel();
            pids
        });
    assert_eq!(verdict, Verdict::default());
    assert_eq!(world.shown()[0].1, 130, "it is shown as ended");
    wait_until("it is gone", || !pids.iter().any(|pid| is_alive(*pid))).await;
    assert!(!world.repo().join("ran").exists());
}

#[tokio::test]
async fn large_inputs_and_outputs_neither_block_nor_fill_memory() {
    let large = "x".repeat(3 * 1024 * 1024);
    let world = World::new()
        .shell("a", HookType::PostToolCall, "true")
        .shell("b", HookType::PostToolCall, "yes | head -c 5000000; cat > /dev/null")
        .shell("c", HookType::PostToolCall, "wc -c >&2; exit 2");
    let verdict = world.run(after_call(&large, false)).await;
    let counted: usize = verdict.replaced_output.unwrap().trim().parse().unwrap();
    assert!(counted > large.len(), "all of it was read: {counted}");
    let shown = world.shown();
    assert!(shown[1].2.as_ref().is_some_and(|output| output.len() <= 32 * 1024));
}

#[tokio::test]
async fn only_the_willing_hear_of_failed_calls_and_the_invisible_are_silent() {
    let world = World::new()
        .shell("a", HookType::PostToolCall, "echo nothing")
        .shell("b", HookType::PostToolCall, r#"echo '{"additionalContext": "b"}'"#)
        .shell("c", HookType::PostToolCall, r#"echo '{"additionalContext": "c", "suppressOutput": true}'; echo x >&2"#)
        .change("b", |hook| (hook.run_on_error, hook.visible) = (true, false))
        .change("c", |hook| hook.run_on_error = true);
    let verdict = world.run(after_call("failed", true)).await;
    let added: Vec<_> = verdict.additional_context.into_iter().map(|said| said.text).collect();
    assert_eq!(added, ["b", "c"]);
    assert_eq!(world.shown(), [("c".to_owned(), 0, None, None)]);
}

#[tokio::test]
async fn scripts_run_by_themselves_or_in_the_shell() {
    use std::os::unix::fs::PermissionsExt;
    let write = |path: &Path, text: &str, mode: u32| {
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    let world = World::new().hook("a", HookType::ChatStart, HookProgram::File("plain.sh".into())).hook(
        "b",
        HookType::ChatStart,
        HookProgram::File("own.awk".into()),
    );
    let config = world.folder.path().join("config");
    write(&config.join("plain.sh"), "[[ $PWD == */repo ]] && echo '{\"additionalContext\": \"plain\"}'", 0o644);
    write(&world.repo().join("plain.sh"), "echo '{\"additionalContext\": \"of a stranger\"}'", 0o755);
    write(
        &world.repo().join("own.awk"),
        "#!/usr/bin/awk -f\nEND { print \"{\\\"additionalContext\\\": \\\"awk\\\"}\" }",
        0o755,
    );
    let verdict = world.run(HookEvent::ChatStart { resumed: false }).await;
    let added: Vec<_> = verdict.additional_context.iter().map(|said| said.text.as_str()).collect();
    assert_eq!(added, ["plain", "awk"], "{verdict:?}");
}

#[tokio::test]
async fn commands_in_the_user_s_files_run_and_those_of_a_workspace_do_not() {
    use eca::config::commands::Memory;
    use eca::customization::{Audience, Customization, Sources, template::Variables};
    let world = World::new();
    let (config, repo) = (world.folder.path().join("config"), world.repo());
    for (path, text) in [
        (config.join("rules/mine.md"), "mine ${cmd:echo ran; echo x >> ../count}"),
        (config.join("skills/s/SKILL.md"), "---\nname: s\ndescription: d\n---\nskill ${cmd:echo ran}"),
        (repo.join(".eca/rules/theirs.md"), "theirs ${cmd:touch hacked}"),
    ] {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let sources = std::sync::Arc::new(Sources {
        config_dir: config.clone(),
        roots: vec![repo.clone()],
        settings: eca::config::CustomizationConfig::default(),
        trusted: BTreeMap::new(),
        env: std::sync::Arc::new(|_| None),
        isolated: false,
    });
    let mut memory = Memory::default();
    let mut loaded = None;
    for _ in 0..2 {
        let (customization, problems) = Customization::load_complete(sources.clone(), &mut memory).await;
        assert_eq!(problems, []);
        loaded = Some(customization);
    }
    let loaded = loaded.unwrap();
    let rules = loaded.rules.static_for(&Audience { agent: "code", model: "m" }, &Variables::default());
    let texts: Vec<&str> = rules.iter().map(|rule| rule.text.as_str()).collect();
    assert_eq!(texts, ["mine ran", "theirs ${cmd:touch hacked}"]);
    assert_eq!(std::fs::read_to_string(config.join("count")).unwrap(), "x\n", "once for both loads");
    assert_eq!(loaded.skills.load_skill("s").await.unwrap().text, "skill ran");
    assert!(!repo.join(".eca/rules/hacked").exists() && !repo.join("hacked").exists());
}
