//! What the built-in agents may run.

use super::*;
use crate::config::Config;

static RULES: LazyLock<BTreeMap<&str, Rules>> = LazyLock::new(|| {
    let rules = |agent: &str| Rules::new(&Config::default().tool_call_of(agent));
    ["code", "plan", "explorer", "general"].into_iter().map(|agent| (agent, rules(agent))).collect()
});

fn ruling(agent: &str, call: &Call) -> Ruling {
    call.verdict_by(&RULES[agent]).ruling
}

#[test]
fn reading_is_allowed_and_the_rest_is_asked() {
    let config = Config::default();
    for (name, code, plan) in [
        ("read_file", Allow, Allow),
        ("directory_tree", Allow, Allow),
        ("grep", Allow, Allow),
        ("editor_diagnostics", Allow, Allow),
        ("skill", Allow, Allow),
        ("fetch_rule", Allow, Allow),
        ("compact_chat", Allow, Allow),
        ("task", Allow, Allow),
        ("spawn_agent", Allow, Allow),
        ("ask_user", Allow, Allow),
        ("write_file", Ask, Ask),
        ("edit_file", Ask, Ask),
        ("preview_file_change", Ask, Allow),
        ("git", Ask, Ask),
        ("my_tool", Ask, Ask),
    ] {
        let call = Call::new(native(name)).touching("/w/root/a.rs");
        assert_eq!((ruling("code", &call), ruling("plan", &call)), (code, plan), "{name}");
        assert_eq!((ruling("general", &call), ruling("explorer", &call)), (code, plan), "{name}");
        let outside = Call::new(native(name)).touching("/elsewhere/a.rs");
        assert_eq!(ruling("code", &outside), Ask, "{name}");
        let keys = Call::new(native(name)).touching("/w/root/.env");
        assert_eq!(ruling("code", &keys), Ask, "{name}");
    }
    for (action, expected) in [("list", Allow), ("read_output", Allow), ("kill", Ask)] {
        let call = Call { arguments: json!({"action": action}), ..Call::new(native("bg_job")) };
        assert_eq!(ruling("code", &call), expected, "{action}");
    }
    let server = Call::new(mcp("grep", "run"));
    assert_eq!(ruling("code", &server), Ask, "a server that is called like a native tool is not that tool");
    let offered = |agent: &str, name: &str| !is_disabled(&native(name), &config.disabled_tools_of(agent));
    for (agent, name, expected) in [
        ("code", "edit_file", true),
        ("code", "preview_file_change", false),
        ("plan", "edit_file", false),
        ("plan", "write_file", false),
        ("plan", "move_file", false),
        ("plan", "git", false),
        ("plan", "preview_file_change", true),
        ("plan", "shell_command", true),
        ("explorer", "preview_file_change", false),
        ("explorer", "write_file", false),
        ("general", "edit_file", true),
    ] {
        assert_eq!(offered(agent, name), expected, "{agent} {name}");
    }
}

const READ_ONLY: &[(&str, Ruling)] = &[
    ("pwd", Allow),
    ("ls", Allow),
    ("ls -la src", Allow),
    ("find . -name '*.rs'", Allow),
    ("git status", Allow),
    ("git diff HEAD~1", Allow),
    ("git log --oneline -n 5", Allow),
    ("git show --stat HEAD", Allow),
    ("git log --grep='a > b'", Allow),
    ("git diff > /dev/null 2>&1", Allow),
    ("ls && pwd", Allow),
    ("git diff --output=x", Ask),
    ("git diff \"--output=x\"", Ask),
    ("git diff --outp x", Ask),
    ("git log --ext-diff", Ask),
    ("git -c core.pager=x log", Ask),
    ("cat x", Ask),
    ("wc -l x", Ask),
    ("git branch", Ask),
    ("cargo test", Ask),
    ("ls $x", Ask),
    ("find . -exec cat {} \\;", Ask),
    ("ls > x", Deny),
    ("ls >> x", Deny),
    ("ls &> x", Deny),
    ("ls 2> x", Deny),
    ("ls > /tmp/x", Ask),
    ("ls > /tmp/../x", Deny),
    ("> x", Deny),
    ("{ ls; } > x", Deny),
    ("bash -c 'ls > x'", Deny),
    ("bash -c \"ls > $x\"", Deny),
    ("ls | tee x", Deny),
    ("ls | xargs rm", Deny),
    ("find . -delete", Deny),
    ("find . -fprint x", Deny),
    ("find . -exec rm {} +", Deny),
    ("rm -rf x", Deny),
    ("/bin/rm x", Deny),
    ("\\rm x", Deny),
    ("sudo rm x", Deny),
    ("ls; mv a b", Deny),
    ("cp a b", Deny),
    ("touch a", Deny),
    ("mkdir a", Deny),
    ("echo $(touch a)", Deny),
    ("sed -i s/a/b/ x", Deny),
    ("sed -Ei s/a/b/ x", Deny),
    ("sed --in-place=.bak s/a/b/ x", Deny),
    ("sed -n 1p x", Ask),
    ("sed --silent 1p x", Ask),
    ("perl -pi -e s/a/b/ x", Deny),
    ("gawk -i inplace 1 x", Deny),
    ("git add .", Deny),
    ("git commit -m x", Deny),
    ("git -C sub push", Deny),
    ("git --no-pager reset --hard", Deny),
    ("git checkout x", Deny),
    ("git log add", Allow),
    ("npm install", Deny),
    ("npm i x", Deny),
    ("npm test", Ask),
    ("pip install x", Deny),
    ("cargo add x", Deny),
    ("apt-get install x", Deny),
    ("python3 -c 'open(\"x\", \"w\").write(1)'", Deny),
    ("python3 -c 'print(1)'", Ask),
    ("node -e 'require(\"fs\").writeFileSync(1)'", Deny),
    ("dd if=a of=b", Deny),
    ("chmod +x a", Deny),
    ("cat <<E > x\na\nE", Deny),
    ("(ls > x", Deny),
    ("if true; then touch x; fi", Deny),
    ("git log; $(touch x)", Deny),
];

#[test]
fn read_only_agents_run_nothing_that_writes() {
    for &(command, expected) in READ_ONLY {
        let call = Call::shell(command);
        for agent in ["plan", "explorer"] {
            let verdict = call.verdict_by(&RULES[agent]);
            assert_eq!(verdict.ruling, expected, "{agent}: {command}: {}", verdict.why);
        }
        assert_eq!(ruling("code", &call), Ask, "{command}");
        let trusted = Call { trust: true, ..Call::shell(command) };
        assert_eq!(ruling("plan", &trusted) == Deny, expected == Deny, "{command}");
    }
}
