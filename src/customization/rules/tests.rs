//! Which rules count for whom and for which files.

use super::*;
use crate::customization::Customization;
use crate::customization::tests::{EVERYBODY, World};

fn variables() -> Variables {
    Variables::default().with_text("osName", "Linux").with_flag("isSubagent", false)
}

fn told(loaded: &Customization, agent: &str, model: &str) -> Vec<String> {
    let rules = loaded.rules.static_for(&Audience { agent, model }, &variables());
    rules.into_iter().map(|rule| format!("{}={}", rule.id, rule.text)).collect()
}

fn ids(rules: Vec<&Rule>) -> Vec<&str> {
    rules.into_iter().map(|rule| rule.id.as_str()).collect()
}

#[test]
fn static_rules_are_told_by_agent_and_model() {
    let world = World::new();
    world.write("eca/rules/all.txt", "everybody");
    world.write("eca/rules/deep/er/one.md", "---\nagent: plan\n---\nplanners");
    world.write("repo/.eca/rules/two.md", "---\nagent: [code, plan]\nmodel: [\"gpt-5\", ^anthropic/]\n---\nsome");
    world.write("repo/.eca/rules/all.md", "again");
    world.write("repo/.eca/rules/empty.md", "---\nagent: code\n---\n\n");
    world.write("repo/.eca/rules/.hidden.md", "hidden");
    world.write("repo/.eca/rules/backup.md~", "backup");
    let (loaded, problems) = world.load();
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(told(&loaded, "code", "openai/gpt-5"), ["all=everybody", "all-2=again", "two=some"]);
    assert_eq!(told(&loaded, "code", "ollama/x"), ["all=everybody", "all-2=again"]);
    assert_eq!(
        told(&loaded, "plan", "anthropic/x"),
        ["all=everybody", "deep/er/one=planners", "all-2=again", "two=some"]
    );
}

#[test]
fn templates_choose_and_may_leave_nothing() {
    let world = World::new();
    world.write("eca/rules/a.md", "{% if isSubagent %}only there{% endif %}");
    world.write("eca/rules/b.md", "on {{ osName }}{% if toolEnabled_eca__git %} with git{% endif %}");
    world.write("eca/rules/c.md", "---\nagent: code\n---\n\n{{ osName }}\n{% for x in osName %}{% endfor %}");
    world.write("eca/rules/d.md", "about ${{ github.ref }}");
    let (loaded, problems) = world.load();
    assert_eq!(told(&loaded, "code", "m"), ["b=on Linux", "d=about ${{ github.ref }}"]);
    assert_eq!(problems, ["/home/.config/eca/rules/c.md:6: `for` cannot be used in a template; the rule is ignored"]);
}

#[test]
fn scoped_rules_are_listed_and_fetched() {
    let world = World::new();
    let text =
        "---\ndescription: Rust\npaths: [\"src/**/*.rs\", build.rs]\nenforce: [read, modify]\n---\nUse {{ osName }}.";
    world.write("repo/.eca/rules/rust.md", text);
    world.write("eca/rules/docs.md", "---\npaths: \"**/*.{md,txt}\"\nagent: code\nmodel: gpt\n---\nBe brief.");
    world.write("eca/rules/free.md", "---\npaths: ./docs/**\nenforce: read\n---\nRead me.");
    let (loaded, problems) = world.load();
    assert_eq!(problems, Vec::<String>::new());
    let rules = &loaded.rules;
    assert!(rules.static_for(&EVERYBODY, &variables()).is_empty());
    assert_eq!(ids(rules.scoped_for(&EVERYBODY)), ["docs", "free", "rust"]);
    assert_eq!(ids(rules.scoped_for(&Audience { agent: "plan", model: "m" })), ["free", "rust"]);
    let at = |path: &str| world.path(path);
    let enforced = |path: &str, access| ids(rules.enforced(&EVERYBODY, &world.path(path), access));
    for (path, all, read, write) in [
        ("repo/src/a.rs", vec!["rust"], vec!["rust"], vec!["rust"]),
        ("repo/src/deep/a.rs", vec!["rust"], vec!["rust"], vec!["rust"]),
        ("repo/build.rs", vec!["rust"], vec!["rust"], vec!["rust"]),
        ("repo/sub/build.rs", vec![], vec![], vec![]),
        ("repo/README.md", vec!["docs"], vec![], vec!["docs"]),
        ("repo/docs/x.txt", vec!["docs", "free"], vec!["free"], vec!["docs"]),
        ("repo/docs/../src/./a.rs", vec!["rust"], vec!["rust"], vec!["rust"]),
        ("home/a.md", vec![], vec![], vec![]),
    ] {
        assert_eq!(ids(rules.matching(&EVERYBODY, &at(path))), all, "{path}");
        assert_eq!(enforced(path, Access::Read), read, "{path}");
        assert_eq!(enforced(path, Access::Write), write, "{path}");
    }
    let fetch = |id: &str, path: &Path| rules.fetch(&EVERYBODY, id, path, &variables());
    assert_eq!(fetch("rust", &at("repo/src/a.rs")).map(|rule| rule.text), Ok("Use Linux.".to_owned()));
    let refused = fetch("rust", &at("repo/a.py")).unwrap_err();
    assert!(refused.contains("src/**/*.rs, build.rs"), "{refused}");
    assert!(fetch("rust", Path::new("src/a.rs")).unwrap_err().contains("absolute"));
    assert_eq!(
        fetch("rusty", &at("repo/src/a.rs")).unwrap_err(),
        "There is no rule \"rusty\". The rules are: docs, free, rust."
    );
}

#[test]
fn the_rules_of_a_folder_are_for_that_folder() {
    let mut world = World::new();
    world.roots.push(world.path("other"));
    world.write("other/x.rs", "");
    world.write("repo/.eca/rules/r.md", "---\npaths: '*.rs'\n---\nx");
    world.write("eca/rules/g.md", "---\npaths: '*.rs'\n---\nx");
    let (loaded, _) = world.load();
    let of = |path: &str| ids(loaded.rules.matching(&EVERYBODY, &world.path(path)));
    assert_eq!(of("repo/x.rs"), ["g", "r"]);
    assert_eq!(of("other/x.rs"), ["g"]);
}

#[cfg(unix)]
#[test]
fn a_folder_is_known_by_all_its_names() {
    let mut world = World::new();
    let real = world.path("repo");
    world.link("alias", &real);
    world.roots = vec![world.path("alias")];
    world.write("repo/.eca/rules/r.md", "---\npaths: '*.rs'\n---\nx");
    let (loaded, problems) = world.load();
    assert_eq!(problems, Vec::<String>::new());
    for path in ["repo/x.rs", "alias/x.rs"] {
        assert_eq!(ids(loaded.rules.matching(&EVERYBODY, &world.path(path))), ["r"], "{path}");
    }
}

#[test]
fn what_cannot_be_meant_is_reported_and_left_out() {
    let world = World::new();
    for (name, text, word) in [
        ("1", "---\npaths: {a: b}\n---\nx", "`paths` must be"),
        ("2", "---\npaths: \"[z\"\n---\nx", "no pattern for paths"),
        ("3", "---\nmodel: \"(\"\n---\nx", "`model`: the pattern"),
        ("4", "---\npaths: a\nenforce: always\n---\nx", "read, modify or both"),
        ("5", "---\nbroken\n---\nx", "expected `name: value`"),
        ("6", "---\nagent: [[x]]\n---\nx", "`agent` must be"),
    ] {
        world.write(&format!("repo/.eca/rules/{name}.md"), text);
        let (loaded, problems) = world.load();
        assert_eq!(loaded.rules.iter().count(), 0, "{text}");
        let found = problems.iter().find(|problem| problem.contains(&format!("/{name}.md")));
        assert!(found.is_some_and(|problem| problem.contains(word) && problem.ends_with("ignored")), "{problems:?}");
    }
}

#[test]
fn rules_of_another_editor() {
    let mut world = World::new();
    world.write(
        "repo/.cursor/rules/always.mdc",
        "---\nalwaysApply: true\nglobs:\n---\nAlways {{ osName }} ${env:SECRET}",
    );
    world.write(
        "repo/.cursor/rules/ts.mdc",
        "---\ndescription: T\nglobs: *.ts,*.{tsx,jsx}, src/*.js\nalwaysApply: false\n---\nTS",
    );
    world.write("repo/.cursor/rules/asked.mdc", "---\ndescription: When testing\nalwaysApply: false\n---\nTest");
    world.write("repo/.cursor/rules/manual.mdc", "---\nalwaysApply: false\n---\nManual");
    world.write("repo/.cursor/rules/other.md", "not a rule");
    let (loaded, problems) = world.load();
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(told(&loaded, "code", "m"), ["always=Always {{ osName }} ${env:SECRET}"], "as it is written");
    assert_eq!(ids(loaded.rules.scoped_for(&EVERYBODY)), ["asked", "ts"]);
    let matches = |path: &str| !loaded.rules.matching(&EVERYBODY, &world.path(path)).is_empty();
    assert!(matches("repo/a.ts") && matches("repo/deep/a.jsx") && matches("repo/src/a.js"));
    assert!(!matches("repo/src/deep/a.js") && !matches("repo/a.rs"));
    let asked = loaded.rules.fetch(&EVERYBODY, "asked", &world.path("repo/x"), &variables());
    assert_eq!(asked.unwrap().text, "Test");
    world.write("repo/AGENTS.md", "our own");
    assert_eq!(world.load().0.rules.iter().count(), 0);
    std::fs::remove_file(world.path("repo/AGENTS.md")).unwrap();
    world.settings.compat_rules = false;
    assert_eq!(world.load().0.rules.iter().count(), 0);
}

#[test]
fn commas_inside_of_braces_do_not_separate() {
    assert_eq!(split_outside_braces("a, b{c,d},,e"), ["a", "b{c,d}", "e"]);
    assert_eq!(split_outside_braces("}a,b"), ["}a", "b"]);
    assert_eq!((anywhere("*.ts"), anywhere("a/*.ts")), ("**/*.ts".to_owned(), "a/*.ts".to_owned()));
}
