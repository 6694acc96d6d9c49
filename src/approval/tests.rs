//! Decisions: the order of what counts, command lines against rules, and what no rule may let through.

mod agents;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::config::{ApprovalConfig, ApprovalRule, ManualApproval, ToolCallConfig};
use crate::tool::{Access, Details, ShellDetails, TouchedPath};
use crate::workspace::Workspace;

use Ruling::{Allow, Ask, Deny};

fn native(name: &str) -> ToolSpec {
    ToolSpec::native(name, "", json!({"type": "object"}))
}

fn mcp(server: &str, name: &str) -> ToolSpec {
    ToolSpec { server: server.to_owned(), origin: ToolOrigin::Mcp, ..native(name) }
}

fn map(rules: &[(&str, ApprovalRule)]) -> BTreeMap<String, ApprovalRule> {
    rules.iter().map(|(selector, rule)| ((*selector).to_owned(), rule.clone())).collect()
}

fn all() -> ApprovalRule {
    ApprovalRule::default()
}

fn commands(patterns: &[&str]) -> ApprovalRule {
    ApprovalRule::matching("command", patterns)
}

fn settings(approval: ApprovalConfig) -> ToolCallConfig {
    ToolCallConfig { approval, ..ToolCallConfig::default() }
}

/// A call with everything that may count.
struct Call {
    spec: ToolSpec,
    arguments: Value,
    preview: Preview,
    approval: ApprovalConfig,
    remembered: Remembered,
    roots: Roots,
    trust: bool,
}

impl Call {
    fn new(spec: ToolSpec) -> Self {
        let (workspace, _) = Workspace::from_folders(&[("/w/root".to_owned(), None)]);
        Self {
            spec,
            arguments: json!({}),
            preview: Preview::default(),
            approval: ApprovalConfig::default(),
            remembered: Remembered::default(),
            roots: Roots::of(&workspace, None),
            trust: false,
        }
    }

    fn shell(command: &str) -> Self {
        let mut call = Self::new(native("shell_command"));
        call.arguments = json!({"command": command});
        call.preview.shell = Some(command.to_owned());
        call
    }

    fn touching(mut self, path: &str) -> Self {
        self.preview.paths.push(TouchedPath { path: PathBuf::from(path), access: Access::Read });
        self
    }

    fn verdict(&self) -> Verdict {
        self.verdict_under(&settings(self.approval.clone()))
    }

    fn verdict_under(&self, settings: &ToolCallConfig) -> Verdict {
        self.verdict_by(&Rules::new(settings))
    }

    fn verdict_by(&self, rules: &Rules) -> Verdict {
        rule(&Request {
            spec: &self.spec,
            arguments: self.arguments.as_object().unwrap(),
            preview: &self.preview,
            rules,
            remembered: &self.remembered,
            roots: &self.roots,
            trust: self.trust,
        })
    }

    fn ruling(&self) -> Ruling {
        self.verdict().ruling
    }

    /// As the engine does when the user says "and do not ask again".
    fn remember(&mut self) {
        let units = self.verdict().units;
        let shell = Details::ShellCommand(ShellDetails { commands: units, background: false });
        self.remembered.remember(&self.spec, self.preview.shell.is_some().then_some(&shell));
    }
}

/// What each step says in the table of precedence; `None` keeps out of it.
#[derive(Debug, Clone, Copy, Default)]
struct Steps {
    deny: bool,
    remembered: bool,
    outside: bool,
    must_ask: bool,
    ask: bool,
    allow: bool,
    manual: bool,
    by_default: Option<Ruling>,
}

fn with_steps(steps: Steps) -> Call {
    let mut call = Call::new(native("tool"));
    let rule = |is_there: bool| if is_there { map(&[("tool", all())]) } else { BTreeMap::new() };
    call.approval = ApprovalConfig {
        deny: rule(steps.deny),
        ask: rule(steps.ask),
        allow: rule(steps.allow),
        manual: steps.manual.then_some(ManualApproval::All(true)),
        by_default: steps.by_default,
        ..ApprovalConfig::default()
    };
    if steps.remembered {
        call.remembered.remember(&call.spec, None);
    }
    if steps.outside {
        call = call.touching("/elsewhere/file");
    }
    call.preview.must_ask = steps.must_ask.then(|| "it costs money".to_owned());
    call
}

#[test]
fn the_first_that_says_something_counts() {
    let every = Steps {
        deny: true,
        remembered: true,
        outside: true,
        must_ask: true,
        ask: true,
        allow: true,
        manual: true,
        by_default: Some(Allow),
    };
    let table = [
        (every, Deny, "the deny rule for tool"),
        (Steps { deny: false, ..every }, Allow, "your consent for this session"),
        (Steps { deny: false, remembered: false, ..every }, Ask, "a path outside of the workspace: /elsewhere/file"),
        (Steps { outside: false, remembered: false, deny: false, ..every }, Ask, "it costs money"),
        (Steps { ask: true, allow: true, ..Steps::default() }, Ask, "the ask rule for tool"),
        (
            Steps { allow: true, manual: true, by_default: Some(Deny), ..Steps::default() },
            Allow,
            "the allow rule for tool",
        ),
        (Steps { must_ask: true, allow: true, by_default: Some(Allow), ..Steps::default() }, Ask, "it costs money"),
        (Steps { manual: true, by_default: Some(Allow), ..Steps::default() }, Ask, "the setting manualApproval"),
        (Steps { by_default: Some(Allow), ..Steps::default() }, Allow, "the setting byDefault"),
        (Steps { by_default: Some(Deny), ..Steps::default() }, Deny, "the setting byDefault"),
        (Steps { by_default: Some(Ask), ..Steps::default() }, Ask, "the setting byDefault"),
        (Steps::default(), Ask, "no rule that allows it"),
    ];
    for (steps, ruling, why) in table {
        let mut call = with_steps(steps);
        let verdict = call.verdict();
        assert_eq!((verdict.ruling, verdict.why.as_str()), (ruling, why), "{steps:?}");
        call.trust = true;
        let trusted = call.verdict();
        assert_eq!(trusted.ruling == Deny, ruling == Deny, "trust never lifts a denial: {steps:?}");
        assert_ne!(trusted.ruling, Ask, "{steps:?}");
    }
}

#[test]
fn selectors_are_full_names_short_native_names_and_servers() {
    for (selector, spec, selected) in [
        ("eca__read_file", native("read_file"), true),
        ("read_file", native("read_file"), true),
        ("eca", native("read_file"), true),
        ("read_file", mcp("files", "read_file"), false),
        ("files__read_file", mcp("files", "read_file"), true),
        ("files", mcp("files", "read_file"), true),
        ("file", mcp("files", "read_file"), false),
        ("eca", mcp("files", "read_file"), false),
        ("read", native("read_file"), false),
        ("READ_FILE", native("read_file"), false),
        ("read.*", native("read_file"), false),
        ("", native("read_file"), false),
    ] {
        let mut call = Call::new(spec.clone());
        call.approval.allow = map(&[(selector, all())]);
        assert_eq!(call.ruling() == Allow, selected, "{selector} {}", spec.full_name());
        call.approval = ApprovalConfig {
            manual: Some(ManualApproval::Tools(vec![selector.to_owned()])),
            by_default: Some(Allow),
            ..ApprovalConfig::default()
        };
        assert_eq!(call.ruling() == Ask, selected, "{selector} {}", spec.full_name());
    }
    let mut call = Call::new(native("x"));
    call.approval = ApprovalConfig {
        manual: Some(ManualApproval::All(false)),
        by_default: Some(Deny),
        ..ApprovalConfig::default()
    };
    assert_eq!(call.ruling(), Deny, "an old setting that asks for nothing does not allow anything");
}

#[test]
fn patterns_see_whole_arguments_as_text() {
    let mut call = Call::new(mcp("db", "query"));
    call.arguments =
        json!({"sql": "SELECT 1", "limit": 5, "flags": ["a", 1], "dry": true, "none": null, "text": "a\nb"});
    for (argument, pattern, matches) in [
        ("sql", "SELECT.*", true),
        ("sql", "SELECT", false),
        ("sql", "select.*", false),
        ("sql", "(?i)select.*", true),
        ("limit", "5", true),
        ("flags", r#"\["a",1\]"#, true),
        ("dry", "true", true),
        ("none", ".*", false),
        ("missing", ".*", false),
        ("sql", "(?!.*DROP).*", true),
        ("text", "a.b", false),
        ("command", ".*", false),
    ] {
        call.approval = ApprovalConfig {
            allow: map(&[("db", ApprovalRule::matching(argument, &[pattern]))]),
            ..ApprovalConfig::default()
        };
        assert_eq!(call.ruling() == Allow, matches, "{argument} {pattern}");
    }
    // A line break does not hide anything from those who forbid.
    call.approval =
        ApprovalConfig { deny: map(&[("db", ApprovalRule::matching("text", &["a.b"]))]), ..ApprovalConfig::default() };
    assert_eq!(call.ruling(), Deny);
    let mut rule = ApprovalRule::matching("sql", &["no"]);
    rule.widen(&ApprovalRule::matching("limit", &["5"]));
    call.approval = ApprovalConfig { allow: map(&[("db", rule)]), ..ApprovalConfig::default() };
    assert_eq!(call.ruling(), Allow, "any argument is enough");
}

#[test]
fn a_pattern_that_cannot_be_followed_asks() {
    let mut call = Call::shell("ls");
    let endless = "(?=a)(a|a)*b";
    for broken in ["(", crate::config::UNREADABLE_PATTERN, "a)|(b"] {
        call.approval = ApprovalConfig { allow: map(&[("eca", commands(&[broken]))]), ..ApprovalConfig::default() };
        assert_eq!(call.ruling(), Ask, "it allows nothing");
        for is_deny in [true, false] {
            let rules = map(&[("eca", commands(&[broken]))]);
            let (deny, ask) = if is_deny { (rules, BTreeMap::new()) } else { (BTreeMap::new(), rules) };
            call.approval = ApprovalConfig { deny, ask, allow: map(&[("eca", all())]), ..ApprovalConfig::default() };
            let verdict = call.verdict();
            assert_eq!(verdict.ruling, Ask, "what it should forbid is asked about");
            assert!(verdict.why.contains("cannot be read"), "{}", verdict.why);
        }
        call.approval.deny = map(&[("eca", commands(&[broken, "ls"]))]);
        assert_eq!(call.ruling(), Deny, "the other patterns still count");
    }
    // One that is given up may match, so it forbids and does not allow.
    let mut call = Call::shell(&format!("echo {}", "a".repeat(5000)));
    let endless = format!("echo {endless}");
    call.approval = ApprovalConfig { allow: map(&[("eca", commands(&[&endless]))]), ..ApprovalConfig::default() };
    assert_eq!(call.ruling(), Ask);
    call.approval = ApprovalConfig {
        deny: map(&[("eca", commands(&[&endless]))]),
        by_default: Some(Allow),
        ..ApprovalConfig::default()
    };
    assert_eq!(call.ruling(), Deny);
}

/// The rules that most users write.
fn everyday() -> ApprovalConfig {
    ApprovalConfig {
        deny: map(&[("shell_command", commands(&["rm .*", "git push.*", "sudo .*", "> /etc/.*"]))]),
        ask: map(&[("shell_command", commands(&["git commit.*"]))]),
        allow: map(&[
            (
                "shell_command",
                commands(&[
                    "git status.*",
                    "git log.*",
                    "cargo (build|test)( .*)?",
                    "ls.*",
                    "cat .*",
                    "echo .*",
                    "> /tmp/.*",
                ]),
            ),
            ("eca__shell_command", commands(&["pwd", "find(?!.* -delete).*", r#"grep "a b" .*"#])),
        ]),
        ..ApprovalConfig::default()
    }
}

/// Compiled once: that is slow without optimisations.
static EVERYDAY: LazyLock<Rules> = LazyLock::new(|| Rules::new(&settings(everyday())));

const JUDGED: &[(&str, Ruling)] = &[
    ("git status", Allow),
    ("git status -s", Allow),
    ("  git   status  ", Allow),
    ("git status; rm -rf ~", Deny),
    ("git status && curl evil", Ask),
    ("git status | tee x", Ask),
    ("git status; git log | cat -", Allow),
    ("git status & pwd", Allow),
    ("git status\npwd", Allow),
    ("git status\nrm x", Deny),
    ("git status # rm x", Allow),
    ("git status $(rm x)", Deny),
    ("git status $(pwd)", Ask),
    ("git status `rm x`", Deny),
    ("git status \"$(rm x)\"", Deny),
    ("git status '$(rm x)'", Allow),
    ("git status $x", Ask),
    ("git status > out", Ask),
    ("git status > /tmp/out", Allow),
    ("git status > /etc/passwd", Deny),
    ("git status 2>&1", Allow),
    ("git status > /dev/null", Allow),
    ("git status <(rm x)", Deny),
    ("git status; $(echo rm) x", Ask),
    ("(git status; pwd)", Allow),
    ("{ git status; rm x; }", Deny),
    ("if git status; then rm x; fi", Deny),
    ("for i in 1 2; do rm x; done", Deny),
    ("for i in 1 2; do cargo test; done", Allow),
    ("f() { rm x; }; f", Deny),
    ("case a in a) rm x;; esac", Deny),
    ("bash -c 'git status'", Allow),
    ("bash -c 'git status; rm x'", Deny),
    ("bash -c \"git status; $x\"", Ask),
    ("bash -c \"rm $x\"", Deny),
    ("sh -c 'sh -c \"rm x\"'", Deny),
    ("eval 'git status'", Allow),
    ("eval 'rm x'", Deny),
    ("sudo git status", Deny),
    ("timeout 5 git status", Allow),
    ("timeout 5 rm x", Deny),
    ("env LANG=C git status", Allow),
    ("env PATH=/evil git status", Ask),
    ("PATH=/evil git status", Ask),
    ("LD_PRELOAD=x git status", Ask),
    ("LC_ALL=C git status", Allow),
    ("xargs rm", Deny),
    ("ls | xargs cat", Ask),
    ("find . -name x", Allow),
    ("find . -delete", Ask),
    ("find . \"-delete\"", Ask),
    ("find . '-dele'te", Ask),
    ("find . -del\\ete", Ask),
    ("find . -exec rm {} \\;", Deny),
    ("find . -exec cat {} \\;", Allow),
    ("find . -exec curl {} \\;", Ask),
    ("\\rm x", Deny),
    ("r''m x", Deny),
    ("'rm' x", Deny),
    ("$'rm' x", Deny),
    ("$'\\x72\\x6d' x", Deny),
    ("/bin/rm x", Deny),
    ("../../bin/rm x", Deny),
    ("command rm x", Deny),
    ("git commit -m x", Ask),
    ("git status; git commit -m x", Ask),
    ("git  push", Deny),
    ("git 'push'", Deny),
    ("git -C x push", Ask),
    ("./git status", Ask),
    ("/tmp/git status", Ask),
    ("gitstatus", Ask),
    ("git statusx", Allow),
    ("\"git status\"", Ask),
    ("git \"status\"", Ask),
    ("git\tstatus", Allow),
    ("cargo test", Allow),
    ("cargo testx", Ask),
    ("cargo test \\\n --all", Allow),
    ("cargo test -- 'a\nb'", Allow),
    ("cargo test; cargo publish", Ask),
    ("grep \"a b\" x", Allow),
    ("grep 'a b' x", Ask),
    ("echo 'a; rm x'", Allow),
    ("echo \"a && rm x\"", Allow),
    ("echo a \\; rm x", Allow),
    ("echo hi > .env", Ask),
    ("cat .env", Ask),
    ("cat ~/.ssh/id_rsa", Ask),
    ("cat < ~/.netrc", Ask),
    ("pwd < /dev/null", Allow),
    ("pwd < x", Ask),
    ("pwd <<< x", Ask),
    ("{ pwd; } < x", Ask),
    ("nohup pwd < x", Ask),
    ("echo x | python3", Ask),
    ("cat <<E\nhello\nE", Allow),
    ("cat x <<E\nhello\nE", Allow),
    ("cat x <<E\n$(rm x)\nE", Deny),
    ("cat x <<E\n`rm x`\nE", Deny),
    ("cat x <<'E'\n$(rm x)\nE", Allow),
    ("cat x <<E\nrm x\nE\nrm x", Deny),
    ("cat *.md", Allow),
    ("cat x < y", Allow),
    ("git status \\\r\nrm x", Deny),
    ("git status\r\nrm x", Deny),
    ("ls\u{a0}x", Ask),
    ("git status;", Allow),
    ("git status &&", Ask),
    ("git status '", Ask),
    ("", Ask),
    ("#", Ask),
    ("x=1", Ask),
    ("> /tmp/x", Ask),
    ("{rm,-rf,x}", Deny),
    ("(rm x", Deny),
    ("time rm x", Deny),
    ("trap 'rm x' EXIT", Deny),
    ("alias ls=rm; ls", Ask),
    ("export PATH=/x; ls", Ask),
    ("exec rm x", Deny),
    ("source x", Ask),
    ("ls; . ./x", Ask),
    ("curl x | sh", Ask),
    ("ssh host rm x", Deny),
    ("watch rm x", Deny),
    ("printf -v 'a[$(rm x)]' y", Ask),
];

#[test]
fn command_lines_are_judged_command_by_command() {
    for &(command, ruling) in JUDGED {
        let mut call = Call::shell(command);
        let verdict = call.verdict_by(&EVERYDAY);
        assert_eq!(verdict.ruling, ruling, "{command:?}: {}", verdict.why);
        call.trust = true;
        assert_eq!(call.verdict_by(&EVERYDAY).ruling, if ruling == Deny { Deny } else { Allow }, "{command:?}");
    }
}

#[test]
fn what_cannot_be_read_is_asked_even_if_everything_else_is_allowed() {
    for (command, by_default, for_all) in [("$x y", Ask, Ask), ("ls", Allow, Allow), ("rm x", Deny, Deny)] {
        let mut call = Call::shell(command);
        call.approval = ApprovalConfig { by_default: Some(Allow), ..everyday() };
        assert_eq!(call.ruling(), by_default, "{command}");
        call.approval.allow = map(&[("eca", all())]);
        assert_eq!(call.ruling(), for_all, "{command}");
        // Without anything that looks at commands, the user meant what they said.
        call.approval = ApprovalConfig { allow: map(&[("eca", all())]), ..ApprovalConfig::default() };
        assert_eq!(call.ruling(), Allow, "{command}");
        call.approval = ApprovalConfig { allow: map(&[("eca", commands(&[".*"]))]), ..ApprovalConfig::default() };
        assert_eq!(call.ruling(), if command == "$x y" { Ask } else { Allow }, "{command}");
    }
    let long = Call { approval: everyday(), ..Call::shell(&format!("echo {}", "a".repeat(70_000))) };
    assert_eq!(long.ruling(), Ask);
}

#[test]
fn another_shell_is_never_allowed_by_pattern() {
    let call = Call::shell("ls; rm x");
    for (path, allowed) in [
        (None, true),
        (Some("/bin/zsh"), true),
        (Some("pwsh"), false),
        (Some("C:\\x\\cmd.exe"), false),
        (Some("fish"), false),
    ] {
        let mut settings =
            settings(ApprovalConfig { allow: map(&[("eca", commands(&[".*"]))]), ..ApprovalConfig::default() });
        settings.shell.path = path.map(str::to_owned);
        let expected = if allowed && !cfg!(windows) { Allow } else { Ask };
        assert_eq!(call.verdict_under(&settings).ruling, expected, "{path:?}");
        settings.approval.deny = map(&[("eca", commands(&["rm .*"]))]);
        assert_eq!(call.verdict_under(&settings).ruling, Deny, "{path:?}");
    }
}

#[test]
fn a_tool_with_its_own_arguments_that_runs_a_shell_is_judged_by_both() {
    let mut call = Call::new(native("lint"));
    call.arguments = json!({"file": "a.rs"});
    call.preview.shell = Some("linter a.rs".to_owned());
    for (rule, ruling) in [
        (ApprovalRule::matching("file", &[".*\\.rs"]), Allow),
        (ApprovalRule::matching("file", &["b"]), Ask),
        (commands(&["linter .*"]), Allow),
        (commands(&["other .*"]), Ask),
    ] {
        call.approval = ApprovalConfig { allow: map(&[("lint", rule)]), ..ApprovalConfig::default() };
        assert_eq!(call.ruling(), ruling);
    }
    call.approval = ApprovalConfig {
        deny: map(&[("lint", commands(&["linter .*"]))]),
        by_default: Some(Allow),
        ..ApprovalConfig::default()
    };
    assert_eq!(call.ruling(), Deny);
}

#[test]
fn consents_are_for_tools_and_for_commands() {
    let mut call = Call::new(mcp("s", "t"));
    call.remember();
    assert_eq!(call.ruling(), Allow);
    for other in [mcp("s", "u"), mcp("r", "t"), native("t")] {
        assert_eq!(Call { remembered: call.remembered.clone(), ..Call::new(other) }.ruling(), Ask);
    }
    let mut shell = Call::shell("git status && cargo test > /dev/null");
    assert_eq!(shell.ruling(), Ask);
    assert!(shell.verdict().units.iter().all(|unit| unit.approval_key.is_some() && !unit.remembered));
    shell.remember();
    let verdict = shell.verdict();
    assert_eq!((verdict.ruling, verdict.units.iter().all(|unit| unit.remembered)), (Allow, true));
    for (command, ruling) in [
        ("git status -s", Allow),
        ("cargo test --lib; git status", Allow),
        ("timeout 5 cargo test", Allow),
        ("git log", Ask),
        ("git status; ls", Ask),
        ("git status > x", Ask),
        ("{ git status; } > x", Ask),
        ("git status $x", Ask),
        ("sudo git status", Ask),
        ("git -c core.pager=x status", Ask),
        ("git status .env", Ask),
        ("PATH=x git status", Ask),
        ("", Ask),
        ("x=1", Ask),
    ] {
        let again = Call { remembered: shell.remembered.clone(), ..Call::shell(command) };
        assert_eq!(again.ruling(), ruling, "{command}");
    }
    let git = Call { spec: native("git"), remembered: shell.remembered.clone(), ..Call::shell("git status") };
    assert_eq!(git.ruling(), Allow, "a command is a command, whichever tool runs it");
    let mut denied = Call { remembered: shell.remembered.clone(), ..Call::shell("git status") };
    denied.approval.deny = map(&[("eca", commands(&["git.*"]))]);
    assert_eq!(denied.ruling(), Deny);
    // Nothing is remembered of what has no key, and not the tool either.
    for command in ["rm x", "sudo ls", "$x", "bash y", "ls > z"] {
        let mut call = Call::shell(command);
        call.remember();
        let remembered = std::mem::take(&mut call.remembered);
        assert_eq!(Call { remembered, ..Call::shell("pwd") }.ruling(), Ask, "{command}");
    }
    let mut tool = Call::shell("pwd");
    tool.remembered.remember(&tool.spec, None);
    assert_eq!(tool.ruling(), Ask, "the whole of a shell is never remembered");
}

#[test]
fn tools_are_hidden_disabled_or_not_for_subagents() {
    let approval = ApprovalConfig {
        deny: map(&[("a", all()), ("b", commands(&[".*"])), ("srv", all())]),
        ..ApprovalConfig::default()
    };
    let rules = Rules::new(&settings(approval));
    let hidden = |spec: &ToolSpec| rules.hides(spec);
    assert!(hidden(&native("a")) && hidden(&mcp("srv", "x")));
    assert!(!hidden(&native("b")) && !hidden(&mcp("a2", "a")));
    for (entry, spec, disabled) in [
        ("read_file", native("read_file"), true),
        ("read_.*", native("read_file"), true),
        ("read", native("read_file"), false),
        ("eca", native("read_file"), true),
        ("eca__read_file", native("read_file"), true),
        ("eca__.*_file", native("read_file"), true),
        ("read_.*", mcp("srv", "read_file"), false),
        ("srv", mcp("srv", "x"), true),
        ("sr.", mcp("srv", "x"), false),
        ("srv__x", mcp("srv", "x"), true),
        ("srv__.*", mcp("srv", "x"), true),
        ("(?!eca).*", mcp("srv", "x"), true),
        ("(?!eca).*", native("x"), true),
        ("(?!eca__).*__.*", native("x"), false),
        ("x(", native("x("), true),
        ("x(", native("x"), false),
        ("", native("x"), false),
    ] {
        assert_eq!(is_disabled(&spec, &[entry.to_owned()]), disabled, "{entry} {}", spec.full_name());
    }
    assert!(!is_disabled(&native("x"), &[]));
    for name in ["spawn_agent", "task", "git", "ask_user"] {
        assert!(!is_for_subagents(&native(name)) && is_for_subagents(&mcp("srv", name)));
    }
    assert!(is_for_subagents(&native("read_file")));
}

proptest! {
    /// Whatever is put beside an allowed command, it is allowed only if it is allowed by itself.
    #[test]
    fn company_allows_nothing(
        unit in "(rm|curl|git push|dd if=x|tee|zz|python -c 1|[a-f]{1,4})( [a-z./*?~=-]{1,6}){0,3}",
        joint in prop::sample::select(vec!["; ", " && ", " || ", " | ", " & ", "\n", " |& ", "; (", "; { ", "; if ", " $(", " `", "; eval ", "; timeout 5 "]),
        is_first in any::<bool>(),
    ) {
        prop_assume!(Call::shell(&unit).verdict_by(&EVERYDAY).ruling != Allow);
        let end = match joint.trim_start_matches([' ', ';']) {
            "(" | "$(" => ")",
            "{ " => "; }",
            "if " => "; then pwd; fi",
            "`" => "`",
            _ => "",
        };
        let text = if is_first && end.is_empty() { format!("{unit}{joint}git status") } else { format!("git status{joint}{unit}{end}") };
        prop_assert_ne!(Call::shell(&text).verdict_by(&EVERYDAY).ruling, Allow, "{}", text);
    }

    /// Rules that forbid only ever take away.
    #[test]
    fn forbidding_more_never_allows_more(command in "([a-c]|ls|rm|;|&&|\\||>|\\$x|'|\"| ){0,12}", pattern in "(ls|rm|[a-c])( .\\*)?") {
        let mut call = Call::shell(&command);
        call.approval = ApprovalConfig { allow: map(&[("eca", commands(&["ls.*", "[a-c].*"]))]), ..ApprovalConfig::default() };
        let before = call.ruling();
        call.approval.deny = map(&[("eca", commands(&[&pattern]))]);
        let after = call.ruling();
        prop_assert!(after != Allow || before == Allow);
        call.trust = true;
        prop_assert_eq!(call.ruling() == Deny, after == Deny);
    }
}
