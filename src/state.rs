//! Small state that must be there before the chat history is opened: the keys a user entered, the
//! logins at providers and MCP servers, and which workspace files the user trusts. JSON files under the data
//! directory, readable by the user alone, replaced whole and atomically.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::private;
use crate::config::Secret;

/// A state file that grew beyond this was not written by us.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Keys entered by a login, by provider id.
#[derive(Debug, Clone)]
pub struct Secrets {
    file: PathBuf,
}

#[derive(Default, Serialize, Deserialize)]
struct SecretsFile {
    #[serde(default)]
    api_keys: BTreeMap<String, String>,
}

impl Secrets {
    pub fn in_directory(data: &Path) -> Self {
        Self { file: data.join("secrets.json") }
    }

    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Every stored key. A file that cannot be read is an error; none at all is not.
    pub fn api_keys(&self) -> io::Result<BTreeMap<String, Secret>> {
        let file: SecretsFile = read(&self.file)?;
        Ok(file.api_keys.into_iter().map(|(id, key)| (id, Secret::new(key))).collect())
    }

    pub fn set_api_key(&self, provider: &str, key: &Secret) -> io::Result<()> {
        let mut file: SecretsFile = read(&self.file)?;
        file.api_keys.insert(provider.to_owned(), key.expose().to_owned());
        write(&self.file, &file)
    }

    /// Whether there was one.
    pub fn remove_api_key(&self, provider: &str) -> io::Result<bool> {
        let mut file: SecretsFile = read(&self.file)?;
        let removed = file.api_keys.remove(provider).is_some();
        if removed {
            write(&self.file, &file)?;
        }
        Ok(removed)
    }
}

/// Logins that consist of tokens. What one looks like is the affair of whoever made it.
#[derive(Debug, Clone)]
pub struct Logins {
    file: PathBuf,
}

#[derive(Default, Serialize, Deserialize)]
struct LoginsFile {
    #[serde(default)]
    logins: BTreeMap<String, Value>,
}

impl Logins {
    /// Those at MCP servers.
    pub fn of_mcp(data: &Path) -> Self {
        Self { file: data.join("mcp-auth.json") }
    }

    /// Those at providers, by provider id.
    pub fn of_providers(data: &Path) -> Self {
        Self { file: data.join("provider-auth.json") }
    }

    pub fn file(&self) -> &Path {
        &self.file
    }

    pub fn all(&self) -> io::Result<BTreeMap<String, Value>> {
        Ok(read::<LoginsFile>(&self.file)?.logins)
    }

    pub fn get(&self, key: &str) -> io::Result<Option<Value>> {
        Ok(self.all()?.remove(key))
    }

    pub fn set(&self, key: &str, login: Value) -> io::Result<()> {
        let _alone = self.lock()?;
        let mut file: LoginsFile = read(&self.file)?;
        file.logins.insert(key.to_owned(), login);
        write(&self.file, &file)
    }

    /// Whether there was one.
    pub fn remove(&self, key: &str) -> io::Result<bool> {
        if !self.file.exists() {
            return Ok(false);
        }
        let _alone = self.lock()?;
        let mut file: LoginsFile = read(&self.file)?;
        let removed = file.logins.remove(key).is_some();
        if removed {
            write(&self.file, &file)?;
        }
        Ok(removed)
    }

    /// Waits until no other server writes this file; a refreshed login must not be lost. Blocks.
    fn lock(&self) -> io::Result<std::fs::File> {
        lock(&self.file, "lock")
    }

    /// Waits until no other server refreshes a login: a refresh token works once. Blocks.
    pub fn lock_refresh(&self) -> io::Result<std::fs::File> {
        lock(&self.file, "refresh")
    }
}

/// A file beside `file` that is locked until it is dropped.
fn lock(file: &Path, extension: &str) -> io::Result<std::fs::File> {
    let directory = file.parent().ok_or_else(|| io::Error::other("no directory"))?;
    private::create_folder(directory)?;
    let lock = private::open_file(
        &file.with_extension(extension),
        std::fs::OpenOptions::new().write(true).create(true).truncate(false),
    )?;
    lock.lock()?;
    Ok(lock)
}

/// Which content of which files the user trusts, by the hash of the content.
#[derive(Debug, Clone)]
pub struct Trust {
    file: PathBuf,
}

#[derive(Default, Serialize, Deserialize)]
struct TrustFile {
    #[serde(default)]
    trusted: BTreeMap<String, String>,
}

impl Trust {
    pub fn in_directory(data: &Path) -> Self {
        Self { file: data.join("trust.json") }
    }

    /// Where the list is kept.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The hash that is trusted for a file, by its path. What cannot be read is trusted by nobody.
    pub fn trusted(&self) -> BTreeMap<PathBuf, String> {
        match read::<TrustFile>(&self.file) {
            Ok(file) => file.trusted.into_iter().map(|(path, hash)| (PathBuf::from(path), hash)).collect(),
            Err(error) => {
                tracing::warn!(%error, "the list of trusted files cannot be read");
                BTreeMap::new()
            }
        }
    }

    pub fn set(&self, path: &Path, hash: &str) -> io::Result<()> {
        let mut file: TrustFile = read(&self.file)?;
        file.trusted.insert(path.display().to_string(), hash.to_owned());
        write(&self.file, &file)
    }

    pub fn remove(&self, path: &Path) -> io::Result<()> {
        let mut file: TrustFile = read(&self.file)?;
        file.trusted.remove(&path.display().to_string());
        write(&self.file, &file)
    }
}

fn read<T: DeserializeOwned + Default>(path: &Path) -> io::Result<T> {
    let size = match std::fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(T::default()),
        Err(error) => return Err(error),
    };
    if size > MAX_BYTES {
        return Err(io::Error::other("the file is too large"));
    }
    // The error of the parser could quote a key.
    serde_json::from_slice(&std::fs::read(path)?)
        .map_err(|error| io::Error::other(format!("not valid JSON at line {}", error.line())))
}

fn write(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let directory = path.parent().ok_or_else(|| io::Error::other("no directory"))?;
    private::create_folder(directory)?;
    let temporary = path.with_extension(format!("{}.new", uuid::Uuid::new_v4()));
    let written = private::create_file(&temporary).and_then(|mut file| {
        serde_json::to_writer_pretty(&mut file, value).map_err(io::Error::other)?;
        file.write_all(b"\n")?;
        file.sync_all()
    });
    written.and_then(|()| std::fs::rename(&temporary, path)).inspect_err(|_| {
        let _ = std::fs::remove_file(&temporary);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back_and_only_the_user_can_read_them() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("deep/data");
        let secrets = Secrets::in_directory(&data);
        assert!(secrets.api_keys().unwrap().is_empty());
        secrets.set_api_key("openai", &Secret::new("sk-1")).unwrap();
        secrets.set_api_key("mistral", &Secret::new("sk-2")).unwrap();
        assert!(secrets.remove_api_key("openai").unwrap());
        assert!(!secrets.remove_api_key("openai").unwrap());
        let keys = secrets.api_keys().unwrap();
        assert_eq!(
            keys.into_iter().map(|(id, key)| (id, key.expose().to_owned())).collect::<Vec<_>>(),
            [("mistral".to_owned(), "sk-2".to_owned())]
        );
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&data.join("secrets.json")), 0o600);
            assert_eq!(mode(&data), 0o700);
        }
        assert_eq!(std::fs::read_dir(&data).unwrap().count(), 1);
    }

    #[test]
    fn a_broken_file_is_an_error_that_shows_no_key() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("secrets.json"), "{\"api_keys\": {\"a\": \"sk-1\"").unwrap();
        let secrets = Secrets::in_directory(directory.path());
        let error = secrets.api_keys().unwrap_err().to_string();
        assert!(error.contains("line 1") && !error.contains("sk-1"), "{error}");
        assert!(secrets.set_api_key("b", &Secret::new("x")).is_err(), "what is there is not overwritten");
    }

    #[test]
    fn logins_come_back_private_and_one_by_one() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        let logins = Logins::of_mcp(&data);
        assert!(logins.get("a").unwrap().is_none() && !logins.remove("a").unwrap());
        let threads: Vec<_> = (0..8)
            .map(|n| {
                let logins = logins.clone();
                std::thread::spawn(move || logins.set(&n.to_string(), serde_json::json!({"token": n})).unwrap())
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        for n in 0..8 {
            assert_eq!(logins.get(&n.to_string()).unwrap(), Some(serde_json::json!({"token": n})), "none is lost");
        }
        assert!(logins.remove("3").unwrap() && logins.get("3").unwrap().is_none());
        #[cfg(unix)]
        for entry in std::fs::read_dir(&data).unwrap() {
            use std::os::unix::fs::PermissionsExt;
            let entry = entry.unwrap();
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.file_name());
        }
    }

    #[test]
    fn trust_is_by_content() {
        let directory = tempfile::tempdir().unwrap();
        let trust = Trust::in_directory(directory.path());
        let file = Path::new("/w/.eca/config.json");
        trust.set(file, "abc").unwrap();
        assert_eq!(trust.trusted().get(file).map(String::as_str), Some("abc"));
        trust.remove(file).unwrap();
        assert!(trust.trusted().is_empty());
    }
}
