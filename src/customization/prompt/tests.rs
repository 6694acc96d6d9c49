//! The texts as they are sent, byte by byte.

use super::*;
use crate::customization::tests::{EVERYBODY, World};

fn machine() -> Environment {
    Environment { os: "Linux".into(), shell: "/bin/bash".into(), user: "ada".into(), home: "/home/ada".into() }
}

fn nothing(environment: &Environment) -> Parts<'_> {
    Parts {
        agent_prompt: "Be good.\n",
        rules: &[],
        listed_rules: &[],
        skills: &[],
        environment,
        roots: &[],
        files: &[],
        contexts: &[],
        max_steps: None,
    }
}

#[test]
fn a_prompt_without_anything_is_the_agent_s() {
    let empty = Environment::default();
    let prompt = system_prompt(&nothing(&empty));
    assert_eq!(prompt.text(), "Be good.");
    assert_eq!(prompt.sections, [Section { title: "Instructions", text: "Be good.".into() }]);
}

#[test]
fn all_parts_in_their_order() {
    let world = World::new();
    world.write("eca/rules/style.md", "Use tabs.");
    world.write("repo/.eca/rules/rust.md", "---\npaths: [\"**/*.rs\"]\ndescription: Rust\n---\nx");
    world.write("repo/.eca/rules/read.md", "---\npaths: secret/**\nenforce: read\n---\nx");
    world.write("repo/.eca/rules/local.md", "\nBe kind.\n");
    world.write("repo/.eca/skills/lint/SKILL.md", "---\nname: lint\ndescription: Fix warnings.\n---\n");
    let (loaded, _) = world.load();
    let environment = machine();
    let rules = loaded.rules.static_for(&EVERYBODY, &Variables::default());
    let skills: Vec<&Skill> = loaded.skills.iter().collect();
    let files = [ContextFile {
        path: "/repo/a \"b\"/AGENTS.md".into(),
        origin: Origin::Workspace,
        text: "Build with make.".into(),
    }];
    let prompt = system_prompt(&Parts {
        rules: &rules,
        listed_rules: &loaded.rules.scoped_for(&EVERYBODY),
        skills: &skills,
        roots: &["/repo".into(), "/other".into()],
        files: &files,
        contexts: &[("repoMap".into(), "src/\n  a.rs\n".into())],
        max_steps: Some(7),
        ..nothing(&environment)
    });
    let expected = "\
Be good.

You have at most 7 turns with tools; keep one for your report.

## Rules

Follow these. Where two disagree, the later one counts; the user's words count most.

<rule id=\"style\" from=\"user\">
Use tabs.
</rule>

<rule id=\"local\" from=\"workspace\">
Be kind.
</rule>

More rules, for some files. Before you work on such a file, call `eca__fetch_rule` with the rule's id and the file's absolute path.
- `read` for `secret/**`, required before reading
- `rust` for `**/*.rs`, required before changes: Rust

## Skills

Instructions for certain tasks. When one fits, load it with `eca__skill` first.
- `lint`: Fix warnings.

## Environment

- System: Linux
- Shell: /bin/bash
- User: ada
- Home: /home/ada

## Workspace

- /repo
- /other

A relative path is meant from the first of these. Give tools absolute paths.

## Context

<file path=\"/repo/a 'b'/AGENTS.md\">
Build with make.
</file>

<context name=\"repoMap\">
src/
  a.rs
</context>";
    assert_eq!(prompt.text(), expected);
    let titles: Vec<&str> = prompt.sections.iter().map(|section| section.title).collect();
    assert_eq!(titles, ["Instructions", "Rules", "Skills", "Environment", "Workspace", "Context"]);
}

#[test]
fn agents_speak_for_themselves_then_the_user_then_we() {
    let variables = Variables::default().with_text("osName", "Linux");
    let own = AgentConfig { system_prompt: Some("own on {{ osName }}".into()), ..AgentConfig::default() };
    let user = PromptsConfig { chat: Some("general {% broken {{ osName }}".into()), ..PromptsConfig::default() };
    let silent = AgentConfig::default();
    assert_eq!(agent_prompt("plan", Some(&own), &user, &variables), "own on Linux");
    assert_eq!(
        agent_prompt("plan", Some(&silent), &user, &variables),
        "general {% broken {{ osName }}",
        "kept as it is"
    );
    assert_eq!(agent_prompt("plan", None, &PromptsConfig::default(), &variables), PLAN.trim());
    assert_eq!(agent_prompt("mine", None, &PromptsConfig::default(), &variables), CODE.trim());
}

#[test]
fn built_in_prompts_are_short_and_plain() {
    for (name, text, most) in
        [("code", CODE, 1200), ("plan", PLAN, 700), ("explorer", EXPLORER, 500), ("general", GENERAL, 500)]
    {
        assert_eq!(built_in(name), text.trim_end());
        assert!(text.chars().count() <= most, "{name}: {}", text.chars().count());
        assert!(!text.contains("{{") && text.is_ascii(), "{name}");
    }
    assert!(COMPACT.contains("`eca__compact_chat`") && INIT.contains("`AGENTS.md`"));
}

#[test]
fn other_prompts_take_their_words_in() {
    let ours = PromptsConfig::default();
    let plain = Variables::default();
    let compact_text = compact(&ours, " keep the names {{ x }} ", &plain);
    assert!(compact_text.ends_with("\n\nThe user adds: keep the names {{ x }}"), "{compact_text}");
    let silent = compact(&ours, "", &plain);
    assert!(silent.ends_with("overtaken by events.") && !silent.contains("{%"), "{silent}");
    let skill = skill_create(&ours, "/s/SKILL.md", "lint", "fix\nthings", &plain);
    assert!(skill.contains("`/s/SKILL.md`") && skill.contains("name: lint") && skill.ends_with("fix\nthings"));
    assert_eq!(init(&ours, &plain), INIT.trim());
    assert_eq!(title(&ours), TITLE.trim());
    let own = PromptsConfig {
        compact: Some("Sum up. {{ additionalUserInput }}".into()),
        chat_title: Some("T".into()),
        ..ours
    };
    assert_eq!((compact(&own, "x", &plain), title(&own)), ("Sum up. x".to_owned(), "T".to_owned()));
}

#[test]
fn the_machine_is_known_by_its_variables() {
    let set = |name: &str| match name {
        "SHELL" => Some("/bin/zsh".to_owned()),
        "USER" => Some(" ".to_owned()),
        "LOGNAME" => Some("ada".to_owned()),
        _ => None,
    };
    let environment = Environment::from_variables(&set);
    assert_eq!(
        (environment.shell.as_str(), environment.user.as_str(), environment.home.as_str()),
        ("/bin/zsh", "ada", "")
    );
    assert!(!environment.os.is_empty());
    let variables = Variables::of_chat(&environment, ["/a", "/b"], true, ["eca__grep"]);
    let text = "{{ workspaceRoots }} {{ shell }} {{ userName }}{{ homeDir }}{% if isSubagent and toolEnabled_eca__grep and not toolEnabled_eca__git %}!{% endif %}";
    assert_eq!(template::render(text, &variables).unwrap(), "/a, /b /bin/zsh ada!");
}

#[test]
fn what_hooks_add_is_marked() {
    assert_eq!(
        additional_context(["a", "b\n"]),
        "<additionalContext>\na\n</additionalContext>\n<additionalContext>\nb\n</additionalContext>"
    );
}
