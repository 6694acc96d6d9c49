//! Changes single servers in a configuration file and leaves the rest of it as its author wrote it,
//! comments and layout included.
//!
//! The changed text is read back before it is written: if it would mean anything but the old
//! content with this one change, nothing is written.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use jsonc_parser::cst::{CstInputValue, CstObject, CstObjectProp, CstRootNode};
use serde_json::{Map, Value};

use super::document::{Document, parse_options};
use super::files::read_text;
use super::gather::MAX_CONFIG_BYTES;
use super::trust;

const SERVERS: &str = "mcpServers";
/// How often somebody else may change the file while we do.
const TRIES: usize = 3;

/// A file in which servers can stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFile {
    pub path: PathBuf,
    /// The workspace folder that it belongs to; the user's own file belongs to none.
    pub root: Option<PathBuf>,
}

/// What becomes of a server's entry.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerChange {
    /// These keys are set, `null` takes one away; the entry is made if it is not there.
    Set(Map<String, Value>),
    Remove,
}

/// A change that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// What has to be trusted now, so that a file that counted before still does; `None` for the
    /// user's own, and for a content that cannot be trusted.
    pub hash: Option<String>,
}

/// Why a file was not changed. It says nothing about the file's values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("{file}: {reason}")]
    File { file: String, reason: String },
    #[error("no server {0:?} is in a configuration file that can be changed")]
    NotThere(String),
}

/// The files of a workspace and of the user, in the order in which a server is looked for.
pub fn candidates(roots: &[PathBuf], own: PathBuf) -> Vec<ConfigFile> {
    let real = |root: &PathBuf| dunce::canonicalize(root).unwrap_or_else(|_| root.clone());
    let of_root = |root: PathBuf| ConfigFile { path: root.join(".eca").join("config.json"), root: Some(root) };
    let mut files: Vec<ConfigFile> = roots.iter().map(real).map(of_root).collect();
    files.push(ConfigFile { path: own, root: None });
    files
}

/// Whether what a file says counts: it is the user's own, it is trusted, or there is nothing in it
/// that needs trust. A file that cannot be read does not count.
pub fn counts(file: &ConfigFile, trusted: &BTreeMap<PathBuf, String>, home: Option<&Path>) -> bool {
    let Some(root) = &file.root else { return true };
    let Ok((text, document)) = read(&file.path) else { return false };
    let hash = hash(&text, &document.values, &file.path, root, home);
    let is_trusted = hash.is_some() && trusted.get(&file.path) == hash.as_ref();
    is_trusted || trust::withhold(&mut document.values.clone()).is_empty()
}

fn hash(text: &str, values: &Map<String, Value>, file: &Path, root: &Path, home: Option<&Path>) -> Option<String> {
    trust::content_hash(text, values, file.parent().unwrap_or(Path::new("")), root, home)
}

/// The entry of a server in one file, if it has one.
pub fn server_in(file: &Path, name: &str) -> Result<Option<Map<String, Value>>, EditError> {
    let (_, document) = read(file)?;
    let entry = document.values.get(SERVERS).and_then(|servers| servers.get(name)).and_then(Value::as_object);
    Ok(entry.cloned())
}

/// Changes one server in one file.
pub fn change_server(
    file: &ConfigFile,
    name: &str,
    change: &ServerChange,
    home: Option<&Path>,
) -> Result<Edited, EditError> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let failed = |reason: String| EditError::File { file: file.path.display().to_string(), reason };
    for _ in 0..TRIES {
        let (text, document) = read(&file.path)?;
        let new = changed_text(&text, &document.values, name, change).map_err(failed)?;
        let meaning = Document::parse("", new.clone()).map_err(|problem| failed(problem.message))?;
        let hash = file.root.as_ref().and_then(|root| hash(&new, &meaning.values, &file.path, root, home));
        // Somebody may be saving it in this moment; their change must not be lost.
        if read(&file.path)?.0 != text {
            continue;
        }
        replace(&file.path, &new).map_err(|error| failed(format!("cannot be written ({})", error.kind())))?;
        return Ok(Edited { hash });
    }
    Err(failed("it changes all the time".to_owned()))
}

/// The text of a file that need not be there, with what it means.
fn read(file: &Path) -> Result<(String, Document), EditError> {
    let failed = |reason: String| EditError::File { file: file.display().to_string(), reason };
    let text = match std::fs::symlink_metadata(file) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => String::new(),
        _ => read_text(file, MAX_CONFIG_BYTES).map_err(failed)?,
    };
    let document = Document::parse("", text.clone()).map_err(|problem| {
        failed(problem.line.map_or(problem.message.clone(), |line| format!("line {line}: {}", problem.message)))
    })?;
    Ok((text, document))
}

/// The new text; an error when the change cannot be made without touching anything else.
fn changed_text(text: &str, values: &Map<String, Value>, name: &str, change: &ServerChange) -> Result<String, String> {
    let (mark, body) = text.strip_prefix('\u{feff}').map_or(("", text), |body| ("\u{feff}", body));
    let root = CstRootNode::parse(body, &parse_options()).map_err(|error| error.to_string())?;
    let top = root.object_value_or_create().ok_or("it is not an object")?;
    let mut wanted = values.clone();
    match change {
        ServerChange::Set(keys) => {
            let servers = child(&top, SERVERS)?;
            let entry = child(&servers, name)?;
            keys.iter().for_each(|(key, value)| set(&entry, key, value));
            let known = entry_of(entry_of(&mut wanted, SERVERS)?, name)?;
            for (key, value) in keys {
                if value.is_null() {
                    known.remove(key);
                } else {
                    known.insert(key.clone(), value.clone());
                }
            }
        }
        ServerChange::Remove => {
            let servers = last(&top, SERVERS).and_then(|servers| servers.object_value());
            let entries = servers.map(|servers| all(&servers, name)).unwrap_or_default();
            entries.into_iter().for_each(CstObjectProp::remove);
            if let Some(known) = wanted.get_mut(SERVERS).and_then(Value::as_object_mut) {
                known.remove(name);
            }
        }
    }
    let mut new = root.to_string();
    if !new.ends_with('\n') {
        new.push('\n');
    }
    let means = Document::parse("", new.clone()).map_err(|problem| problem.message)?.values;
    if means != wanted {
        return Err("it is written in a way that cannot be changed safely".to_owned());
    }
    Ok(format!("{mark}{new}"))
}

/// The object under `name` in the values, made if there is none.
fn entry_of<'a>(values: &'a mut Map<String, Value>, name: &str) -> Result<&'a mut Map<String, Value>, String> {
    let value = values.entry(name).or_insert(Value::Null);
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().ok_or_else(|| format!("{name} is not an object"))
}

/// The object under `name` in the text, made if there is none.
fn child(object: &CstObject, name: &str) -> Result<CstObject, String> {
    match last(object, name) {
        Some(property) if property.value().is_some_and(|value| value.as_null_keyword().is_some()) => {
            Ok(property.object_value_or_set())
        }
        Some(property) => property.object_value().ok_or_else(|| format!("{name} is not an object")),
        None => Ok(object.append(name, CstInputValue::Object(Vec::new())).object_value_or_set()),
    }
}

fn set(object: &CstObject, key: &str, value: &Value) {
    match (last(object, key), value) {
        (None, Value::Null) => {}
        (Some(_), Value::Null) => all(object, key).into_iter().for_each(CstObjectProp::remove),
        (Some(property), value) => property.set_value(input(value)),
        (None, value) => drop(object.append(key, input(value))),
    }
}

/// The last of several equal keys is the one whose value counts.
fn last(object: &CstObject, name: &str) -> Option<CstObjectProp> {
    all(object, name).pop()
}

fn all(object: &CstObject, name: &str) -> Vec<CstObjectProp> {
    object.properties().into_iter().filter(|property| property.decoded_name().as_deref() == Some(name)).collect()
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(entries) => {
            CstInputValue::Object(entries.iter().map(|(key, value)| (key.clone(), input(value))).collect())
        }
    }
}

/// Puts `text` into the place of the file, in one step. A link stays a link, and who may read the
/// file stays as it was.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let target = dunce::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let directory = target.parent().ok_or_else(|| io::Error::other("no directory"))?;
    std::fs::create_dir_all(directory)?;
    let temporary = target.with_extension(format!("{}.new", uuid::Uuid::new_v4()));
    let written = std::fs::OpenOptions::new().write(true).create_new(true).open(&temporary).and_then(|mut new| {
        if let Ok(metadata) = std::fs::metadata(&target) {
            new.set_permissions(metadata.permissions())?;
        }
        new.write_all(text.as_bytes())?;
        new.sync_all()
    });
    written.and_then(|()| std::fs::rename(&temporary, &target)).inspect_err(|_| {
        let _ = std::fs::remove_file(&temporary);
    })
}

#[cfg(test)]
mod tests;
