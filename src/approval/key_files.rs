//! Files that hold keys: reading one is asked about, wherever it lies.

use std::path::Path;

const NAMES: &[&str] = &[
    ".dockercfg",
    ".env",
    ".envrc",
    ".git-credentials",
    ".htpasswd",
    ".my.cnf",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".s3cfg",
    ".terraformrc",
    ".vault-token",
    "_netrc",
    "application_default_credentials.json",
    "credentials.tfrc.json",
    "pgpass.conf",
    "secring.gpg",
    "terraform.rc",
];

const ENDINGS: &[&str] =
    &["jks", "kdbx", "key", "keychain", "keychain-db", "keystore", "p12", "p8", "pem", "pfx", "pkcs12", "ppk"];

/// Files by the folder that they lie in.
const IN_FOLDERS: &[(&str, &[&str])] = &[
    (".aws", &["credentials"]),
    (".azure", &["accessTokens.json", "msal_token_cache.json", "azureProfile.json"]),
    (".cargo", &["credentials", "credentials.toml"]),
    (".config/gh", &["hosts.yml"]),
    ("gh", &["hosts.yml"]),
    ("gcloud", &["credentials.db", "access_tokens.db"]),
    (".docker", &["config.json"]),
    (".kube", &["config"]),
    (".gem", &["credentials"]),
];

/// Endings of patterns that only show what a real file would look like.
const EXAMPLES: &[&str] = &["example", "sample", "template", "dist", "defaults", "tmpl"];

const SSH_KEYS: &[&str] = &["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_xmss"];

/// Whether this looks like a file with keys, by its name and the folder it lies in.
pub fn is_key_file(path: &Path) -> bool {
    let part =
        |part: Option<&std::ffi::OsStr>| part.map(|part| part.to_string_lossy().to_lowercase()).unwrap_or_default();
    let folder = part(path.parent().and_then(Path::file_name));
    let folders: Vec<String> = path.parent().into_iter().flat_map(Path::iter).map(|name| part(Some(name))).collect();
    let name = part(path.file_name());
    // Windows ignores dots and blanks at the end, and a colon begins the name of a stream.
    let name = name.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
    is_key_name(name)
        || IN_FOLDERS
            .iter()
            .any(|(parent, names)| folder == *parent && names.iter().any(|known| known.to_lowercase() == name))
        || folders.iter().any(|folder| folder == ".gnupg") && !name.ends_with(".conf")
        || folders.iter().any(|folder| folder == ".ssh") && is_secret_of_ssh(name)
}

/// Whether an argument of a command names such a file, also as `@file`, `--option=file` or `host:file`.
pub(super) fn is_named_in(argument: &str) -> bool {
    argument.split(['=', '@', ',', ':']).chain([argument]).any(|part| is_key_file(Path::new(part)))
}

fn is_key_name(name: &str) -> bool {
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    let is_environment = name.strip_prefix(".env.").is_some_and(|_| !EXAMPLES.contains(&ending));
    let is_ssh_key = SSH_KEYS.iter().any(|key| name.starts_with(key)) && ending != "pub"
        // Others are called so too; a name with an ending is more likely somebody's source code.
        || name.starts_with("id_") && ending.is_empty();
    NAMES.contains(&name) || is_environment || is_ssh_key || ENDINGS.contains(&ending) && !stem.is_empty()
}

fn is_secret_of_ssh(name: &str) -> bool {
    let is_public = name.ends_with(".pub") || name.starts_with("known_hosts");
    !is_public && !matches!(name, "config" | "authorized_keys" | "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_keys_are_known_by_name_and_place() {
        for path in [
            ".env",
            "/w/.env",
            "/w/.ENV",
            ".env.local",
            ".env.production",
            "/w/.env.example.local",
            ".envrc",
            "server.pem",
            "a/b.KEY",
            "x.p12",
            "id_rsa",
            "id_ed25519",
            "/home/u/.ssh/id_work",
            "id_rsa.bak",
            "id_ed25519_sk",
            "id_work",
            "/home/u/.ssh/deploy",
            ".netrc",
            "_netrc",
            ".npmrc",
            ".pgpass",
            "/h/.aws/credentials",
            "/h/.kube/config",
            "/h/.docker/config.json",
            "/h/.cargo/credentials.toml",
            "/h/.gnupg/private-keys-v1.d/x.key",
            ".git-credentials",
            ".env.",
            ".env ",
            ".env::$DATA",
            "C:.env",
            "store.jks",
            "/h/.config/gh/hosts.yml",
        ] {
            // The last part of a Windows path with a drive is not split off elsewhere.
            let known = is_key_file(Path::new(path)) || is_named_in(path);
            assert!(known, "{path}");
        }
        for path in [
            ".env.example",
            ".env.sample",
            ".env.template",
            "env",
            "environment.ts",
            "id_rsa.pub",
            "id_map.rs",
            "id_generator.py",
            "key",
            ".key",
            "keys.rs",
            "pem",
            "/h/.ssh/known_hosts",
            "/h/.ssh/config",
            "/h/.ssh/id_x.pub",
            "credentials",
            "config.json",
            "/w/credentials.md",
            ".env.d/readme.dist",
            "monkey",
            "",
            "/",
            "..",
            "/h/.ssh",
            "/h/.aws/config",
            ".environment",
            "x.pem.md",
        ] {
            assert!(!is_key_file(Path::new(path)), "{path}");
        }
        for argument in ["--env-file=.env", "@.env", "file=@/x/.netrc", "host:/home/u/.ssh/id_rsa", "a,b.pem"] {
            assert!(is_named_in(argument), "{argument}");
        }
        assert!(!is_named_in("--format=%H:%s"));
    }
}
