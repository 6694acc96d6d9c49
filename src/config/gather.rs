//! One load in progress: source after source, each parsed, judged, interpolated and applied.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Map, Value};

use super::commands::CommandCall;
use super::document::Document;
use super::files::{is_inside, read_text, resolve};
use super::interpolate::{self, Context};
use super::load::{Loaded, Purity, Sources};
use super::trust::{self, Withheld};
use super::{ConfigProblem, decode, keys, legacy};

/// A larger configuration is a mistake.
pub(super) const MAX_CONFIG_BYTES: u64 = 1024 * 1024;
/// More commands than this are a mistake, or a way to start a thousand programs.
const MOST_COMMANDS: usize = 64;
const MOST_EXTRA_FILES: usize = 32;

const OPTIONS_SOURCE: &str = "initializationOptions";
const SERVERS: &str = "mcpServers";
const IGNORED: &str = "this source is ignored";

pub(super) struct Gathering<'a> {
    sources: &'a Sources<'a>,
    home: Option<PathBuf>,
    /// With their links resolved, so that a folder has one name in the list of trusted files.
    roots: Vec<PathBuf>,
    loaded: Loaded,
    /// The files of the last `extraConfigs`.
    extra: Vec<String>,
}

/// Where a text comes from.
struct Origin<'a> {
    source: &'a str,
    directory: &'a Path,
    written: Option<SystemTime>,
}

/// Whose file it is.
#[derive(Clone, Copy)]
enum Owner<'a> {
    User,
    /// Of the workspace folder with this path.
    Workspace(&'a Path),
}

impl<'a> Gathering<'a> {
    pub(super) fn new(sources: &'a Sources<'a>, home: Option<PathBuf>) -> Self {
        let real = |root: &PathBuf| dunce::canonicalize(root).unwrap_or_else(|_| root.clone());
        let roots = sources.workspace_roots.iter().map(real).collect();
        Self { sources, home, roots, loaded: Loaded::default(), extra: Vec::new() }
    }

    /// What the client sent along. Not interpolated: it is no file of the user's.
    pub(super) fn options(&mut self) -> Purity {
        // Clients may send any JSON here; only an object can be configuration.
        let options = self.sources.initialization_options.clone().filter(Value::is_object);
        let Some(options) = options else { return Purity::Mixed };
        let names = ["pureConfig", "pure-config", "pure_config"];
        let is_pure = names.iter().any(|key| options.get(key) == Some(&Value::Bool(true)));
        match Document::from_value(OPTIONS_SOURCE, options) {
            Ok(mut document) => {
                legacy::rename_prompts(&mut document.values, false);
                self.loaded.written.push((OPTIONS_SOURCE.to_owned(), document.values.clone()));
                decode::apply(&mut self.loaded.config, &document, true, &mut self.loaded.problems);
                self.note_servers(&document.values);
            }
            Err(problem) => self.report(problem, IGNORED),
        }
        if is_pure { Purity::Pure } else { Purity::Mixed }
    }

    pub(super) fn text(&mut self, source: &str, text: &str, directory: &Path) {
        match Document::parse(source, text.to_owned()) {
            Ok(mut document) => {
                legacy::rename_prompts(&mut document.values, true);
                self.apply(document, &Origin { source, directory, written: None });
            }
            Err(problem) => self.report(problem, IGNORED),
        }
    }

    /// The user's file, which need not be there.
    pub(super) fn own_file(&mut self, file: &Path) {
        self.file(file, Owner::User);
    }

    /// A file that somebody named, so that it must be there.
    pub(super) fn named_file(&mut self, file: &Path) {
        self.file(file, Owner::User);
        self.report_missing(file);
    }

    pub(super) fn workspace_files(&mut self) {
        for root in self.roots.clone() {
            self.file(&root.join(".eca").join("config.json"), Owner::Workspace(&root));
        }
    }

    /// A file that lies in the workspace is the workspace's, whoever names it: the user's own
    /// configuration may name a relative path, which then leads into a stranger's repository.
    pub(super) fn extra_files(&mut self) {
        let roots = self.roots.clone();
        let start = roots.first().unwrap_or(&self.sources.dirs.config).clone();
        for name in std::mem::take(&mut self.extra) {
            let Ok(file) = resolve(Path::new(&name), &start, self.home.as_deref()) else { continue };
            let owner = roots.iter().find(|root| is_inside(&file, root));
            self.file(&file, owner.map_or(Owner::User, |root| Owner::Workspace(root)));
            self.report_missing(&file);
        }
    }

    pub(super) fn finish(mut self) -> Loaded {
        self.loaded.config.network.complete(
            &|name| (self.sources.env)(name),
            &self.sources.dirs.config,
            self.home.as_deref(),
            &mut self.loaded.problems,
        );
        let source = "configuration";
        let problem = |message| ConfigProblem { source: source.to_owned(), line: None, message };
        self.loaded.problems.extend(self.loaded.config.agent_problems().into_iter().map(problem));
        self.loaded.commands.sort();
        self.loaded.commands.dedup();
        self.loaded.files.sort();
        self.loaded.files.dedup();
        self.loaded
    }

    fn file(&mut self, file: &Path, owner: Owner<'_>) {
        self.loaded.files.push(file.to_owned());
        if !exists(file) {
            return;
        }
        let source = file.display().to_string();
        let problem = |message| ConfigProblem { source: source.clone(), line: None, message };
        let parsed = read_text(file, MAX_CONFIG_BYTES)
            .map_err(problem)
            .and_then(|text| Ok((Document::parse(&source, text.clone())?, text)));
        let (mut document, text) = match parsed {
            Ok(parsed) => parsed,
            Err(problem) => {
                // Somebody is in the middle of editing it; what it said before still holds.
                let last = self.sources.memory.texts.get(file);
                let Some((document, text)) =
                    last.and_then(|text| Some((Document::parse(&source, text.clone()).ok()?, text.clone())))
                else {
                    return self.report(problem, IGNORED);
                };
                self.report(problem, "what it said before stays in use");
                (document, text)
            }
        };
        legacy::rename_prompts(&mut document.values, true);
        self.loaded.texts.insert(file.to_owned(), text.clone());
        let directory = file.parent().unwrap_or(Path::new(""));
        let written = std::fs::metadata(file).and_then(|metadata| metadata.modified()).ok();
        let origin = Origin { source: &source, directory, written };
        match owner {
            Owner::User => self.apply(document, &origin),
            Owner::Workspace(root) => self.apply_of_workspace(file, root, &text, document, &origin),
        }
    }

    fn apply_of_workspace(
        &mut self,
        file: &Path,
        root: &Path,
        text: &str,
        mut document: Document,
        origin: &Origin<'_>,
    ) {
        let home = self.home.as_deref();
        let hash = trust::content_hash(text, &document.values, origin.directory, root, home);
        if hash.is_some() && self.sources.trusted.get(file) == hash.as_ref() {
            let included = interpolate::named_files(&Value::Object(document.values.clone()), origin.directory, home);
            self.loaded.files.extend(included);
            return self.apply(document, origin);
        }
        let keys = trust::withhold(&mut document.values);
        self.loaded.written.push((format!("{} (not trusted)", origin.source), document.values.clone()));
        if !keys.is_empty() {
            self.loaded.withheld.push(Withheld { file: file.to_owned(), hash, keys });
        }
        decode::apply(&mut self.loaded.config, &document, false, &mut self.loaded.problems);
    }

    /// Applies a document that is the user's own or trusted.
    fn apply(&mut self, mut document: Document, origin: &Origin<'_>) {
        self.loaded.written.push((origin.source.to_owned(), document.values.clone()));
        keys::report_unknown(&document, &mut self.loaded.problems);
        let netrc_file =
            document.values.get("netrcFile").and_then(Value::as_str).filter(|name| !name.trim().is_empty());
        let netrc_file =
            netrc_file.and_then(|name| resolve(Path::new(name), origin.directory, self.home.as_deref()).ok());
        let call = |text: &str| CommandCall {
            text: text.to_owned(),
            directory: origin.directory.to_owned(),
            written: origin.written,
        };
        let written = document.values.get(SERVERS).cloned();
        let memory = self.sources.memory;
        let findings = interpolate::expand_values(
            &mut document.values,
            &Context {
                env: self.sources.env,
                directory: origin.directory,
                home: self.home.as_deref(),
                netrc_file: netrc_file.as_deref(),
                command: &|text| memory.outputs.get(&call(text)).cloned(),
            },
        );
        let failures = findings.failures.iter().map(|(path, message)| document.problem(path, message));
        self.loaded.problems.extend(failures);
        self.loaded.files.extend(findings.files);
        self.note_commands(findings.commands.iter().map(|text| call(text)).collect(), origin);
        self.note_extra_files(&document);
        decode::apply(&mut self.loaded.config, &document, false, &mut self.loaded.problems);
        self.note_servers(&written.map(|servers| (SERVERS.to_owned(), servers)).into_iter().collect());
    }

    /// Keeps how the MCP servers of a document are written; what is inserted may be secret.
    fn note_servers(&mut self, written: &Map<String, Value>) {
        if let Some(servers) = written.get(SERVERS).and_then(Value::as_object) {
            decode::mcp::note_written(&mut self.loaded.config, servers);
        }
    }

    fn note_commands(&mut self, mut calls: Vec<CommandCall>, origin: &Origin<'_>) {
        let room = MOST_COMMANDS.saturating_sub(self.loaded.commands.len());
        if calls.len() > room {
            calls.truncate(room);
            let message = format!("more than {MOST_COMMANDS} commands; the rest is not run");
            self.loaded.problems.push(ConfigProblem { source: origin.source.to_owned(), line: None, message });
        }
        self.loaded.commands.extend(calls);
    }

    fn note_extra_files(&mut self, document: &Document) {
        let path = ["extraConfigs".to_owned()];
        let files = match document.values.get(&path[0]) {
            None => return,
            Some(Value::Null) => Vec::new(),
            Some(Value::String(file)) => vec![file.clone()],
            Some(Value::Array(files)) if files.iter().all(Value::is_string) && files.len() <= MOST_EXTRA_FILES => {
                files.iter().filter_map(|file| file.as_str().map(str::to_owned)).collect()
            }
            Some(_) => {
                let message = format!("expected a list of at most {MOST_EXTRA_FILES} strings; the value is ignored");
                return self.loaded.problems.push(document.problem(&path, &message));
            }
        };
        self.extra = files;
    }

    fn report(&mut self, mut problem: ConfigProblem, consequence: &str) {
        problem.message = format!("{}; {consequence}", problem.message);
        self.loaded.problems.push(problem);
    }

    fn report_missing(&mut self, file: &Path) {
        if !exists(file) {
            let source = file.display().to_string();
            let message = "the configuration file does not exist".to_owned();
            self.loaded.problems.push(ConfigProblem { source, line: None, message });
        }
    }
}

/// A file that may not be looked at exists, as far as the user is concerned.
fn exists(file: &Path) -> bool {
    !matches!(std::fs::metadata(file), Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory))
}
