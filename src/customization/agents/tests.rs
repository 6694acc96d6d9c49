//! Agents in files: what they say, what of it a stranger may say, and who wins.

use super::*;
use crate::customization::Customization;
use crate::customization::tests::World;

fn find<'a>(loaded: &'a Customization, name: &str) -> &'a MarkdownAgent {
    loaded.agents.iter().find(|agent| agent.name == name).unwrap_or_else(|| panic!("{name}: {:?}", loaded.agents))
}

fn rule(patterns: &[&str]) -> ApprovalRule {
    let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
    let args_matchers =
        if patterns.is_empty() { BTreeMap::new() } else { BTreeMap::from([("command".to_owned(), patterns)]) };
    ApprovalRule { args_matchers }
}

#[test]
fn everything_that_an_agent_can_say() {
    let world = World::new();
    world.write(
        "eca/agents/Reviewer.agent.md",
        "---\nmode: [primary, subagent]\ndescription: Reviews\nmodel: openai/gpt-5\nvariant: high\nsteps: 12\n\
         inherit: plan\nspawnableBy: code\ndisabledTools: [eca__git, \"mcp.*\"]\ntools:\n  byDefault: ask\n  allow:\n    \
         - eca__read_file\n    - eca__shell_command(git (log|diff).*)\n    - eca__shell_command(ls)\n  ask: eca__grep\n  \
         deny:\n    - my_mcp__drop\n---\n\nYou review.\n",
    );
    world.write("eca/agents/flat.md", "---\nname: Flat One\nmode: subagent\nmaxSteps: 3\ntools: [a, b(x)]\n---\n");
    world.write("eca/agents/bare.md", "only words");
    let (loaded, problems) = world.load();
    let reviewer = find(&loaded, "reviewer");
    let config = &reviewer.config;
    assert_eq!(
        *config,
        AgentConfig {
            default_model: Some("openai/gpt-5".into()),
            variant: Some("high".into()),
            primary: Some(true),
            subagent: Some(true),
            description: Some("Reviews".into()),
            system_prompt: Some("You review.".into()),
            max_steps: Some(12),
            disabled_tools: Some(vec!["eca__git".into(), "mcp.*".into()]),
            approval: ApprovalOverride {
                allow: Some(BTreeMap::from([
                    ("eca__read_file".into(), rule(&[])),
                    ("eca__shell_command".into(), rule(&["git (log|diff).*", "ls"])),
                ])),
                ask: Some(BTreeMap::from([("eca__grep".into(), rule(&[]))])),
                deny: Some(BTreeMap::from([("my_mcp__drop".into(), rule(&[]))])),
                by_default: Some(Ruling::Ask),
            },
            auto_compact_percentage: None,
            inherit: Some("plan".into()),
            spawnable_by: Some(vec!["code".into()]),
            prompts: Default::default(),
        }
    );
    let flat = &find(&loaded, "Flat One").config;
    assert_eq!((flat.primary, flat.subagent, flat.max_steps), (Some(false), Some(true), Some(3)));
    assert_eq!(flat.approval.allow, Some(BTreeMap::from([("a".into(), rule(&[]))])));
    assert_eq!(flat.approval.by_default, Some(Ruling::Ask));
    let bare = &find(&loaded, "bare").config;
    assert_eq!((bare.primary, bare.system_prompt.as_deref()), (None, Some("only words")));
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("only eca__shell_command can be followed"));
}

#[test]
fn what_cannot_be_understood_never_loosens() {
    let world = World::new();
    let text =
        "---\ntools:\n  byDefault: maybe\n  allow: [x(y), shell_command(ls), shell_command]\n  deny: [x(y), z(]\n---\n";
    world.write("eca/agents/a.md", text);
    world.write(
        "eca/agents/b.md",
        "---\nmode: both\nsteps: -1\ndescription: [x]\ntools: {allow: {a: b}}\nspawnableBy: {}\n---\n",
    );
    let (loaded, problems) = world.load();
    let approval = &find(&loaded, "a").config.approval;
    assert_eq!(approval.allow, Some(BTreeMap::from([("shell_command".into(), rule(&[]))])));
    assert_eq!(approval.deny, Some(BTreeMap::from([("x".into(), rule(&[])), ("z".into(), rule(&[]))])));
    assert_eq!(approval.by_default, None);
    assert_eq!(find(&loaded, "b").config, AgentConfig::default());
    assert_eq!(problems.len(), 4 + 5, "{problems:#?}");
}

#[test]
fn a_stranger_s_agent_gives_no_consents_and_takes_no_names() {
    let mut world = World::new();
    world.write("eca/agents/mine.md", "mine");
    world.write("repo/.eca/agents/mine.md", "not mine");
    world.write("repo/.eca/agents/plan.md", "not a plan");
    let file = world.write("repo/.eca/agents/theirs.md", "---\ninherit: mine\ntools:\n  deny: [x]\n---\ntheirs");
    world.write("repo/.eca/agents/plain.md", "---\ndescription: d\nmodel: a/b\n---\nplain");
    let (loaded, problems) = world.load();
    assert_eq!(problems, Vec::<String>::new());
    let names: Vec<_> = loaded.agents.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["mine", "plain", "theirs"]);
    assert_eq!(find(&loaded, "mine").config.system_prompt.as_deref(), Some("mine"));
    let theirs = find(&loaded, "theirs");
    assert_eq!((&theirs.config.approval, &theirs.config.inherit), (&ApprovalOverride::default(), &None));
    let withheld: Vec<(String, &str)> = loaded
        .withheld()
        .iter()
        .map(|withheld| {
            (withheld.file.file_name().unwrap().to_string_lossy().into_owned(), withheld.keys[0].key.as_str())
        })
        .collect();
    assert_eq!(
        withheld,
        [("mine.md".to_owned(), "name"), ("plan.md".to_owned(), "name"), ("theirs.md".to_owned(), "tools")]
    );
    let hash = loaded.withheld()[2].hash.clone().unwrap();
    world.trusted.insert(file, hash);
    let (loaded, _) = world.load();
    let theirs = find(&loaded, "theirs");
    assert!(theirs.config.approval.deny.is_some() && theirs.config.inherit.is_some());
}

#[test]
fn the_configuration_wins_whole_agent_by_whole_agent() {
    let of_model = |model: &str| AgentConfig { default_model: Some(model.into()), ..AgentConfig::default() };
    let agent = |name: &str, config: AgentConfig| MarkdownAgent {
        name: name.to_owned(),
        config,
        file: name.into(),
        origin: Origin::Global,
    };
    let defined = BTreeMap::from([("both".to_owned(), of_model("json/m"))]);
    let described = AgentConfig { description: Some("d".into()), ..of_model("file/m") };
    let merged = merge(&defined, &[agent("both", described.clone()), agent("new", described.clone())]);
    assert_eq!(merged, BTreeMap::from([("both".to_owned(), of_model("json/m")), ("new".to_owned(), described)]));
}
