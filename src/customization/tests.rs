//! Everything together, from files: a small world with a home, a configuration folder and
//! workspace folders, and what becomes of a hostile one.

use super::*;
use crate::tool::Access;

/// A folder with `home`, `home/.config/eca` and a workspace `repo`.
pub(super) struct World {
    folder: tempfile::TempDir,
    pub(super) settings: CustomizationConfig,
    pub(super) roots: Vec<PathBuf>,
    pub(super) trusted: BTreeMap<PathBuf, String>,
}

impl World {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let real = dunce::canonicalize(folder.path()).unwrap();
        let root = real.join("repo");
        std::fs::create_dir_all(real.join("home/.config/eca")).unwrap();
        std::fs::create_dir_all(&root).unwrap();
        let settings = CustomizationConfig::default();
        Self { folder, settings, roots: vec![root], trusted: BTreeMap::new() }
    }

    /// A path below the folder: `repo/…`, `home/…`, or `eca/…` for the configuration folder.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        let real = dunce::canonicalize(self.folder.path()).unwrap();
        match path.strip_prefix("eca/") {
            Some(below) => real.join("home/.config/eca").join(below),
            None => real.join(path),
        }
    }

    pub(super) fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    #[cfg(unix)]
    pub(super) fn link(&self, from: &str, to: &std::path::Path) {
        let from = self.path(from);
        std::fs::create_dir_all(from.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(to, from).unwrap();
    }

    pub(super) fn sources(&self) -> Arc<Sources> {
        let home = self.path("home").display().to_string();
        Arc::new(Sources {
            config_dir: self.path("home/.config/eca"),
            roots: self.roots.clone(),
            settings: self.settings.clone(),
            trusted: self.trusted.clone(),
            env: Arc::new(move |name| match name {
                "HOME" => Some(home.clone()),
                "SECRET" => Some("s3cret".to_owned()),
                _ => None,
            }),
            isolated: false,
        })
    }

    pub(super) fn load(&self) -> (Customization, Vec<String>) {
        let (loaded, problems) = Customization::load(&self.sources(), &Memory::default());
        let base = self.path("").display().to_string();
        let short = |problem: ConfigProblem| problem.to_string().replace(base.trim_end_matches('/'), "");
        (loaded, problems.into_iter().map(short).collect())
    }
}

pub(super) const EVERYBODY: Audience<'static> = Audience { agent: "code", model: "openai/gpt-5" };

#[test]
fn a_world_without_anything_has_no_problems() {
    let (loaded, problems) = World::new().load();
    assert_eq!(problems, Vec::<String>::new());
    assert!(loaded.contexts.is_empty() && loaded.skills.is_empty() && loaded.agents.is_empty());
    assert_eq!((loaded.rules.iter().count(), loaded.commands.iter().count()), (0, 0));
    let nowhere = Sources {
        config_dir: "/nowhere".into(),
        roots: vec!["/nowhere/x".into()],
        ..(*World::new().sources()).clone()
    };
    let (_, problems) = Customization::load(&Arc::new(nowhere), &Memory::default());
    assert_eq!(problems, []);
}

#[test]
fn nothing_of_the_user_counts_in_isolation() {
    let world = World::new();
    for path in
        ["eca/AGENTS.md", "eca/rules/r.md", "eca/commands/c.md", "repo/.eca/rules/own.md", "repo/.eca/agents/a.md"]
    {
        world.write(path, "text");
    }
    world.write("eca/skills/s/SKILL.md", "---\nname: s\ndescription: d\n---\n");
    let isolated = Sources { isolated: true, ..(*world.sources()).clone() };
    let (loaded, _) = Customization::load(&Arc::new(isolated), &Memory::default());
    assert!(loaded.contexts.is_empty() && loaded.skills.is_empty() && loaded.agents.is_empty());
    assert_eq!(loaded.commands.iter().count(), 0);
    assert_eq!(loaded.rules.iter().map(|rule| rule.id.as_str()).collect::<Vec<_>>(), ["own"]);
}

#[test]
fn changes_make_it_stale() {
    let world = World::new();
    world.write("eca/rules/sub/r.md", "text");
    world.write("repo/AGENTS.md", "see @notes.md");
    for (path, content) in [
        ("eca/rules/sub/r.md", "other text"),
        ("eca/rules/sub/new.md", "x"),
        ("repo/notes.md", "now it exists"),
        ("repo/.eca/skills/s/SKILL.md", "---\nname: s\ndescription: d\n---\n"),
        ("eca/AGENTS.md", "x"),
        ("repo/.eca/agents/a.md", "x"),
    ] {
        let (loaded, _) = world.load();
        assert!(!loaded.is_stale(), "{path}");
        world.write(path, content);
        assert!(loaded.is_stale(), "{path}");
    }
    let (loaded, _) = world.load();
    std::fs::remove_file(world.path("repo/AGENTS.md")).unwrap();
    assert!(loaded.is_stale());
}

#[test]
fn texts_of_the_user_are_interpolated_and_those_of_a_workspace_are_not() {
    let mut world = World::new();
    world.write("eca/rules/mine.md", "key ${env:SECRET} {{ osName }}");
    world.write("eca/commands/mine.md", "say ${env:SECRET}");
    world.write("eca/agents/mine.md", "be ${env:SECRET}");
    let rule = world.write("repo/.eca/rules/theirs.md", "key ${env:SECRET} ${cmd:touch /tmp/x} ${file:~/.ssh/id}");
    world.write("repo/.eca/commands/theirs.md", "say ${env:SECRET}");
    world.write("repo/AGENTS.md", "never ${env:SECRET}");
    world.write("eca/AGENTS.md", "nor here ${env:SECRET}");
    let (loaded, problems) = world.load();
    assert_eq!(problems, Vec::<String>::new());
    let rules: Vec<String> = loaded
        .rules
        .static_for(&EVERYBODY, &template::Variables::default().with_text("osName", "X"))
        .into_iter()
        .map(|rule| rule.text)
        .collect();
    assert_eq!(rules, ["key s3cret X", "key ${env:SECRET} ${cmd:touch /tmp/x} ${file:~/.ssh/id}"]);
    assert_eq!(loaded.commands.expand("mine", "").unwrap(), "say s3cret");
    assert_eq!(loaded.commands.expand("theirs", "").unwrap(), "say ${env:SECRET}");
    assert_eq!(loaded.agents[0].config.system_prompt.as_deref(), Some("be s3cret"));
    assert!(loaded.contexts.iter().all(|file| file.text.ends_with("${env:SECRET}")), "AGENTS.md is plain text");
    assert!(loaded.calls().is_empty(), "nothing is even known that could be run");

    let withheld = loaded.withheld();
    assert_eq!(withheld.len(), 2);
    assert_eq!(withheld[0].file, rule);
    let keys: Vec<_> = withheld[0].keys.iter().map(|key| (key.key.as_str(), key.could)).collect();
    assert_eq!(
        keys,
        [("${cmd:…}", "run programs"), ("${env:…}", "read files of yours"), ("${file:…}", "read files of yours")]
    );

    // The user trusts this content, and only this.
    world.trusted.insert(rule.clone(), withheld[0].hash.clone().unwrap());
    let (loaded, _) = world.load();
    assert_eq!(loaded.withheld().len(), 1);
    assert_eq!(loaded.calls().len(), 1);
    assert_eq!(loaded.rules.iter().count(), 1, "the rule waits for its command");
    std::fs::write(&rule, "key ${env:SECRET} ${cmd:true}").unwrap();
    let (loaded, _) = world.load();
    assert_eq!((loaded.withheld().len(), loaded.calls().len()), (2, 0), "a change asks again");
}

#[cfg(unix)]
#[test]
fn the_user_s_own_folder_stays_the_user_s_when_it_is_opened() {
    let mut world = World::new();
    world.roots = vec![world.path("home")];
    let own = world.write("eca/rules/mine.md", "key ${env:SECRET}");
    world.link("home/.eca/rules/link.md", &own);
    world.write("home/.eca/rules/here.md", "here ${env:SECRET}");
    let (loaded, problems) = world.load();
    assert_eq!(problems, Vec::<String>::new());
    let rules = loaded.rules.static_for(&EVERYBODY, &template::Variables::default());
    let texts: Vec<&str> = rules.iter().map(|rule| rule.text.as_str()).collect();
    assert_eq!(texts, ["key s3cret", "here ${env:SECRET}", "key ${env:SECRET}"]);
}

#[test]
fn configured_paths_are_found_or_reported() {
    let mut world = World::new();
    world.settings.rules = vec!["docs/rules".into(), "~/own.md".into(), "nowhere.md".into()];
    world.settings.commands = vec![world.path("home/commands").display().to_string()];
    world.settings.skills = vec!["../outside".into()];
    world.write("repo/docs/rules/a.md", "a");
    world.write("home/own.md", "own ${env:SECRET}");
    world.write("home/commands/deep/er/go.md", "go");
    world.write("outside/s/SKILL.md", "---\nname: s\ndescription: d\n---\n");
    let (loaded, problems) = world.load();
    assert_eq!(problems, ["nowhere.md: `rules` names it, and it does not exist"]);
    let rules: Vec<_> = loaded.rules.iter().map(|rule| (rule.id.as_str(), rule.origin)).collect();
    assert_eq!(rules, [("a", Origin::Workspace), ("own", Origin::Global)]);
    assert_eq!(loaded.commands.expand("go", "").unwrap(), "go");
    assert_eq!(
        loaded.skills.iter().map(|skill| skill.origin).collect::<Vec<_>>(),
        [Origin::Global],
        "the user named it"
    );
}

#[cfg(unix)]
#[test]
fn a_hostile_repository_reads_nothing_of_the_user() {
    let world = World::new();
    let secret = world.write("home/.ssh/id_rsa", "PRIVATE");
    let notes = world.write("home/notes.md", "PRIVATE notes");
    world.write("repo/.env", "KEY=PRIVATE");
    world.write("repo/server.pem", "PRIVATE");
    world.link("repo/AGENTS.md", &notes);
    world.link("repo/.eca/rules/key.md", &secret);
    world.link("repo/.eca/rules/env.md", &world.path("repo/.env"));
    world.link("repo/.eca/commands", &world.path("home"));
    world.link("repo/.eca/skills/up", &world.path("home"));
    world.write("home/SKILL.md", "---\nname: PRIVATE\ndescription: x\n---\n");
    world.link("repo/.eca/agents/loop", &world.path("repo/.eca/agents"));
    world.link("repo/.eca/rules/self", &world.path("repo/.eca/rules"));
    world.link("repo/.eca/rules/dangling.md", std::path::Path::new("/nowhere/at/all"));
    let (loaded, problems) = world.load();
    assert!(!format!("{loaded:?}").contains("PRIVATE"), "{loaded:?}");
    let mut problems: Vec<&str> = problems.iter().map(String::as_str).collect();
    problems.sort_unstable();
    assert_eq!(
        problems,
        [
            "/repo/.eca/commands: leads out of the workspace; it is ignored",
            "/repo/.eca/rules/env.md: looks like a file of keys; it is ignored",
            "/repo/.eca/rules/key.md: leads out of the workspace; it is ignored",
            "/repo/.eca/skills/up: leads out of the workspace; it is ignored",
            "/repo/AGENTS.md: leads out of the workspace; it is ignored",
        ]
    );
}

#[test]
fn a_huge_repository_costs_little() {
    let world = World::new();
    world.write("repo/.eca/rules/large.md", vec![b'x'; 300 * 1024]);
    world.write("repo/.eca/rules/binary.md", [0xff, 0xfe, 0x00]);
    for number in 0..30 {
        world.write(&format!("repo/.eca/rules/many/{number:02}.md"), vec![b'y'; 200 * 1024]);
    }
    let deep: String = (0..30).map(|_| "d/").collect();
    world.write(&format!("repo/.eca/rules/{deep}deep.md"), "too deep");
    for number in 0..600 {
        world.write(&format!("repo/.eca/commands/{number:03}.md"), "x");
    }
    let (loaded, problems) = world.load();
    let has = |text: &str| problems.iter().any(|problem| problem.contains(text));
    assert!(has("large.md: larger than 256 KiB; it is ignored"), "{problems:?}");
    assert!(has("binary.md: not UTF-8 text; it is ignored"));
    assert!(has("all files together are larger than 4 MiB"));
    assert!(has("/repo/.eca/commands: too many files; only some are read"));
    assert!(loaded.rules.iter().all(|rule| rule.id != "deep"));
    assert_eq!(loaded.commands.iter().count(), 500);
    assert!(problems.len() <= 50);
}

#[test]
fn windows_texts_are_texts() {
    let world = World::new();
    world.write("repo/AGENTS.md", "\u{feff}one\r\ntwo\r\n");
    world.write("repo/.eca/rules/r.md", "\u{feff}---\r\nagent: code\r\npaths:\r\n  - '*.rs'\r\n---\r\none\r\ntwo\r\n");
    let (loaded, problems) = world.load();
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(loaded.contexts[0].text, "one\ntwo");
    let found = loaded.rules.enforced(&EVERYBODY, &world.path("repo/x.rs"), Access::Write);
    assert_eq!(found.len(), 1);
}

#[tokio::test]
async fn loading_beside_is_the_same_as_loading() {
    let world = World::new();
    world.write("repo/AGENTS.md", "x");
    let mut memory = Memory::default();
    let (loaded, problems) = Customization::load_complete(world.sources(), &mut memory).await;
    assert_eq!((loaded.contexts.len(), problems.len()), (1, 0));
}
