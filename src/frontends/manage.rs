//! `eca config` and `eca trust`: a person looks at the configuration, and says what of a workspace's
//! files may count.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use super::Surroundings;
use super::assemble::Wishes;
use crate::base::text::one_line;
use crate::cli::{ConfigArgs, ConfigCommand, TrustArgs};
use crate::config::commands::Memory;
use crate::config::load::{Loaded, ProcessEnvironment};
use crate::config::schema::schema;
use crate::config::show::show;
use crate::config::trust::Withheld;

const OK: i32 = 0;
const FAILED: i32 = 1;

/// A trusted file may name further ones, and no more than so many in a row.
const MOST_ROUNDS: usize = 32;

/// Runs `eca config`; returns the exit code.
pub fn config(args: ConfigArgs, environment: ProcessEnvironment, folder: Option<PathBuf>) -> i32 {
    let written = match args.command {
        ConfigCommand::Schema => {
            let text = serde_json::to_string_pretty(&schema()).unwrap_or_default();
            writeln!(io::stdout(), "{text}")
        }
        ConfigCommand::Show { config_file } => {
            let surroundings = Surroundings { environment, config_file };
            let loaded = read(&surroundings, folder.as_deref());
            for problem in &loaded.problems {
                let _ = writeln!(io::stderr(), "problem: {problem}");
            }
            for withheld in &loaded.withheld {
                let _ = writeln!(io::stderr(), "{}", described(withheld));
            }
            writeln!(io::stdout(), "{}", show(&loaded))
        }
    };
    if written.is_ok() { OK } else { FAILED }
}

/// Runs `eca trust`; returns the exit code.
pub fn trust(args: TrustArgs, environment: ProcessEnvironment, folder: Option<PathBuf>) -> i32 {
    let surroundings = Surroundings { environment, config_file: None };
    let can_ask = io::stdin().is_terminal();
    let mut ask = |question: &str| {
        let _ = write!(io::stdout(), "{question} [y/N] ").and_then(|()| io::stdout().flush());
        let mut answer = String::new();
        let read = io::stdin().lock().read_line(&mut answer);
        read.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
    };
    let ask: Option<&mut dyn FnMut(&str) -> bool> = if can_ask { Some(&mut ask) } else { None };
    match decide(&args, &surroundings, folder.as_deref(), ask, &mut io::stdout()) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            FAILED
        }
    }
}

fn decide(
    args: &TrustArgs,
    surroundings: &Surroundings,
    folder: Option<&Path>,
    mut ask: Option<&mut dyn FnMut(&str) -> bool>,
    out: &mut dyn Write,
) -> io::Result<i32> {
    let trust = surroundings.trust();
    if args.list {
        for file in trust.trusted().keys() {
            writeln!(out, "{}", file.display())?;
        }
        return Ok(OK);
    }
    let root = workspace_of(args.path.as_deref(), folder)?;
    if args.revoke {
        let mut files: Vec<PathBuf> = trust.trusted().into_keys().collect();
        files.retain(|file| file.starts_with(&root));
        for file in &files {
            trust.remove(file)?;
            writeln!(out, "No longer trusted: {}", file.display())?;
        }
        if files.is_empty() {
            writeln!(out, "Nothing in {} was trusted.", root.display())?;
        }
        return Ok(OK);
    }
    // What a file names counts only once it is trusted itself, so one answer may lead to another.
    for round in 0..MOST_ROUNDS {
        let loaded = read(surroundings, Some(&root));
        for problem in &loaded.problems {
            writeln!(out, "problem: {problem}")?;
        }
        let texts = surroundings.withheld_texts(&root, &loaded);
        let Some(withheld) = loaded.withheld.iter().chain(&texts).next() else {
            let text = if round == 0 { "Nothing to trust" } else { "Everything is trusted" };
            writeln!(out, "{text} in {}.", root.display())?;
            return Ok(OK);
        };
        writeln!(out, "{}", described(withheld))?;
        let Some(hash) = &withheld.hash else { return Ok(FAILED) };
        let agreed = args.yes || ask.as_mut().is_some_and(|ask| ask("Trust this content, until it changes?"));
        if !agreed {
            writeln!(out, "Not trusted. Read the file first; then `eca trust --yes` trusts it without asking.")?;
            return Ok(FAILED);
        }
        trust.set(&withheld.file, hash)?;
        writeln!(out, "Trusted: {}", withheld.file.display())?;
    }
    Ok(FAILED)
}

/// The folder whose files are meant: the one that is named, or the one that a named file belongs to.
fn workspace_of(path: Option<&Path>, folder: Option<&Path>) -> io::Result<PathBuf> {
    let named = match (path, folder) {
        (Some(path), Some(folder)) => folder.join(path),
        (Some(path), None) => path.to_owned(),
        (None, Some(folder)) => folder.to_owned(),
        (None, None) => return Err(io::Error::other("there is no current folder; name one")),
    };
    let found = |path: &Path| {
        dunce::canonicalize(path).map_err(|error| io::Error::other(format!("{}: {error}", path.display())))
    };
    if !named.is_file() {
        return found(&named);
    }
    // The links of the file itself are not followed: it is trusted where it lies.
    let directory = named.parent().unwrap_or(Path::new("/"));
    let is_own = |above: &&Path| above.file_name().is_some_and(|name| name == ".eca" || name == ".agents");
    let own = directory.ancestors().find(is_own).and_then(Path::parent);
    found(own.unwrap_or(directory))
}

fn read(surroundings: &Surroundings, folder: Option<&Path>) -> Loaded {
    let workspace_roots = folder.map(Path::to_owned).into_iter().collect();
    surroundings.configuration(Wishes { options: None, workspace_roots }, &Memory::default())
}

fn described(withheld: &Withheld) -> String {
    let mut lines = vec![format!("Not trusted: {}", one_line(&withheld.file.display().to_string(), 4096))];
    lines.extend(withheld.keys.iter().map(|key| format!("  {} could {}", key.key, key.could)));
    if withheld.hash.is_none() {
        lines.push("  It includes too many files to be trusted.".to_owned());
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Dirs;

    struct Setup {
        folder: tempfile::TempDir,
        surroundings: Surroundings,
    }

    impl Setup {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let at = |name: &str| folder.path().join(name);
            let dirs = Dirs { config: at("config"), data: at("data"), cache: at("cache") };
            let environment = ProcessEnvironment { dirs, vars: Default::default(), eca_config: None };
            std::fs::create_dir_all(at("repo/.eca")).unwrap();
            Self { surroundings: Surroundings { environment, config_file: None }, folder }
        }

        fn root(&self) -> PathBuf {
            dunce::canonicalize(self.folder.path().join("repo")).unwrap()
        }

        fn run(&self, args: &TrustArgs, ask: Option<&mut dyn FnMut(&str) -> bool>) -> (i32, String) {
            let mut out = Vec::new();
            let code = decide(args, &self.surroundings, Some(&self.root()), ask, &mut out).unwrap();
            (code, String::from_utf8(out).unwrap())
        }
    }

    #[test]
    fn a_person_decides_and_can_change_their_mind() {
        let setup = Setup::new();
        let file = setup.root().join(".eca/config.json");
        let plain = TrustArgs::default();
        assert_eq!(setup.run(&plain, None).0, OK, "nothing to trust");
        std::fs::write(&file, r#"{"welcomeMessage": "hi", "hooks": {}, "extraConfigs": ["more.json"]}"#).unwrap();
        std::fs::write(setup.root().join("more.json"), r#"{"defaultModel": "a/b", "rules": []}"#).unwrap();

        let (code, text) = setup.run(&plain, None);
        assert_eq!(code, FAILED, "nobody can be asked: {text}");
        assert!(text.contains("hooks could run programs"), "{text}");
        assert_eq!(setup.run(&plain, Some(&mut |_| false)).0, FAILED);
        assert!(setup.surroundings.trust().trusted().is_empty());

        let mut questions = 0;
        let mut yes = |_: &str| {
            questions += 1;
            true
        };
        let (code, text) = setup.run(&plain, Some(&mut yes));
        assert_eq!((code, questions), (OK, 2), "each file is asked about: {text}");
        let listed = setup.run(&TrustArgs { list: true, ..plain.clone() }, None).1;
        assert_eq!(listed.lines().count(), 2, "{listed}");
        assert!(read(&setup.surroundings, Some(&setup.root())).withheld.is_empty());

        std::fs::write(&file, r#"{"hooks": {"other": {}}}"#).unwrap();
        assert_eq!(setup.run(&plain, None).0, FAILED, "changed content is not trusted");
        assert_eq!(setup.run(&TrustArgs { yes: true, ..plain.clone() }, None).0, OK);
        assert_eq!(setup.run(&TrustArgs { revoke: true, ..plain.clone() }, None).0, OK);
        assert!(setup.surroundings.trust().trusted().is_empty());
    }

    #[test]
    fn texts_of_the_workspace_are_asked_about_too() {
        let setup = Setup::new();
        let rule = setup.root().join(".eca/rules/made.md");
        std::fs::create_dir_all(rule.parent().unwrap()).unwrap();
        std::fs::write(setup.root().join(".eca/rules/plain.md"), "Be good.").unwrap();
        std::fs::write(&rule, "Today is ${cmd:date}.").unwrap();
        let plain = TrustArgs::default();
        let (code, text) = setup.run(&plain, None);
        assert_eq!(code, FAILED);
        assert!(
            text.contains("made.md") && text.contains("could run programs") && !text.contains("plain.md"),
            "{text}"
        );
        let (code, text) = setup.run(&TrustArgs { yes: true, ..plain.clone() }, None);
        assert_eq!(code, OK, "{text}");
        assert!(setup.surroundings.trust().trusted().contains_key(&rule));
        assert_eq!(setup.run(&plain, None).0, OK, "nothing is left");
        std::fs::write(&rule, "Today is ${cmd:rm -rf ~}.").unwrap();
        assert_eq!(setup.run(&plain, None).0, FAILED, "another content is not trusted");
    }

    #[test]
    fn a_file_stands_for_its_workspace() {
        let setup = Setup::new();
        std::fs::write(setup.root().join(".eca/config.json"), "{}").unwrap();
        std::fs::write(setup.root().join("team.json"), "{}").unwrap();
        std::fs::create_dir_all(setup.root().join(".agents/skills/a")).unwrap();
        std::fs::write(setup.root().join(".agents/skills/a/SKILL.md"), "").unwrap();
        for path in [".eca/config.json", "team.json", ".", "", ".agents/skills/a/SKILL.md"] {
            assert_eq!(workspace_of(Some(Path::new(path)), Some(&setup.root())).unwrap(), setup.root(), "{path}");
        }
        assert!(workspace_of(Some(Path::new("missing")), Some(&setup.root())).is_err());
        assert!(workspace_of(None, None).is_err());
    }
}
