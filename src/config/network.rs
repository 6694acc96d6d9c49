//! The certificates that the configuration names: their fall-backs in the environment, and whether
//! they can be used at all, said when the configuration is read and not at the first request.

use std::path::{Path, PathBuf};

use super::files::{read_text, resolve};
use super::{ConfigProblem, NetworkConfig, Secret};

const MAX_PEM_BYTES: u64 = 4 * 1024 * 1024;

impl NetworkConfig {
    /// Fills in what the environment says, makes paths absolute, and takes out what cannot be used.
    pub(super) fn complete(
        &mut self,
        env: &dyn Fn(&str) -> Option<String>,
        directory: &Path,
        home: Option<&Path>,
        problems: &mut Vec<ConfigProblem>,
    ) {
        let named = |name: &str| env(name).filter(|value| !value.trim().is_empty());
        let file = |file: &mut Option<PathBuf>, names: &[&str]| {
            let found = file.take().or_else(|| names.iter().find_map(|name| named(name)).map(PathBuf::from));
            *file = found.and_then(|path| resolve(&path, directory, home).ok());
        };
        file(&mut self.ca_cert_file, &["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"]);
        file(&mut self.client_cert, &["ECA_CLIENT_CERT"]);
        file(&mut self.client_key, &["ECA_CLIENT_KEY"]);
        if self.client_key_passphrase.is_none() {
            self.client_key_passphrase = named("ECA_CLIENT_KEY_PASSPHRASE").map(Secret::new);
        }
        let mut report = |key: &str, message: String| {
            let message = format!("network.{key}: {message}");
            problems.push(ConfigProblem { source: "configuration".to_owned(), line: None, message });
        };
        for (key, file, mark) in [
            ("caCertFile", &mut self.ca_cert_file, "BEGIN CERTIFICATE"),
            ("clientCert", &mut self.client_cert, "BEGIN CERTIFICATE"),
            ("clientKey", &mut self.client_key, "PRIVATE KEY"),
        ] {
            if let Some(problem) = file.as_deref().and_then(|file| unusable(file, mark).err()) {
                report(key, problem);
                *file = None;
            }
        }
        if self.client_cert.is_some() != self.client_key.is_some() {
            let missing = if self.client_key.is_some() { "clientCert" } else { "clientKey" };
            report(missing, "needed together with the other half; no certificate is shown to servers".to_owned());
            (self.client_cert, self.client_key) = (None, None);
        }
    }
}

fn unusable(file: &Path, mark: &str) -> Result<(), String> {
    let text = read_text(file, MAX_PEM_BYTES).map_err(|why| format!("{}: {why}; it is not used", file.display()))?;
    if !text.contains(mark) {
        return Err(format!("{} is not in PEM format; it is not used", file.display()));
    }
    // Only a key can be; a bundle of certificates is long to look through.
    let is_key = mark.ends_with("KEY");
    if is_key && (text.contains("BEGIN ENCRYPTED PRIVATE KEY") || text.contains("Proc-Type: 4,ENCRYPTED")) {
        return Err(format!(
            "{} is encrypted, which is not supported; write the key without a passphrase \
             (openssl pkey -in encrypted.pem -out plain.pem) into a file that only you can read",
            file.display()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_from_the_configuration_or_the_environment_and_must_be_usable() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write("ca.pem", "-----BEGIN CERTIFICATE-----");
        write("key.pem", "-----BEGIN PRIVATE KEY-----");
        write("old.pem", "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED");
        write("locked.pem", "-----BEGIN ENCRYPTED PRIVATE KEY-----");
        write("der", "\u{0}");
        let complete = |ca: Option<&str>, cert: Option<&str>, key: Option<&str>, env: &[(&str, &str)]| {
            let path = |name: Option<&str>| name.map(PathBuf::from);
            let mut network = NetworkConfig {
                ca_cert_file: path(ca),
                client_cert: path(cert),
                client_key: path(key),
                ..Default::default()
            };
            let mut problems = Vec::new();
            let env = |name: &str| env.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
            network.complete(&env, dir.path(), Some(dir.path()), &mut problems);
            (network, problems.into_iter().map(|problem| problem.message).collect::<Vec<_>>())
        };
        let at = |name: &str| Some(dir.path().join(name));
        let (network, problems) =
            complete(Some("ca.pem"), Some("~/ca.pem"), Some("key.pem"), &[("SSL_CERT_FILE", "x")]);
        assert_eq!((network.ca_cert_file, network.client_cert), (at("ca.pem"), at("ca.pem")));
        assert_eq!((network.client_key, problems.len()), (at("key.pem"), 0));
        let ca = at("ca.pem").unwrap().display().to_string();
        for names in
            [&[("SSL_CERT_FILE", ca.as_str()), ("NODE_EXTRA_CA_CERTS", "x")][..], &[("NODE_EXTRA_CA_CERTS", &ca)]]
        {
            assert_eq!(complete(None, None, None, names).0.ca_cert_file, at("ca.pem"));
        }
        for (cert, key, count) in [
            (None, Some("key.pem"), 1),
            (Some("ca.pem"), Some("old.pem"), 2),
            (Some("ca.pem"), Some("locked.pem"), 2),
            (Some("der"), Some("missing"), 2),
        ] {
            let (network, problems) = complete(None, cert, key, &[]);
            assert_eq!((network, problems.len()), (NetworkConfig::default(), count), "{cert:?} {key:?}: {problems:?}");
        }
    }
}
