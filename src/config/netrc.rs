//! Passwords from a netrc file, as `${netrc:[login@]machine[:port]}` asks for them.
//!
//! The format is old and has no standard; this reads what curl, git and Emacs write: words divided
//! by white space, double quotes around words with spaces, `#` comments, `macdef` blocks, and a
//! `default` entry that fits every machine.

use std::path::{Path, PathBuf};

use super::files::read_text;

/// A larger file holds something else.
const MAX_BYTES: u64 = 1024 * 1024;

/// What a form asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted<'a> {
    login: Option<&'a str>,
    machine: &'a str,
    port: Option<&'a str>,
}

/// What a netrc file gave.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) password: Result<String, String>,
    /// Where it was looked for; a change there changes the answer.
    pub(super) file: Option<PathBuf>,
    /// Something to tell although it worked.
    pub(super) warning: Option<String>,
}

impl<'a> Wanted<'a> {
    /// `None` when no machine is named.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (login, rest) = match text.rsplit_once('@') {
            Some((login, rest)) => (Some(login).filter(|login| !login.is_empty()), rest),
            None => (None, text),
        };
        let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let (machine, port) = match rest.rsplit_once(':') {
            Some((machine, port)) if is_port(port) => (machine, Some(port)),
            _ => (rest, None),
        };
        (!machine.is_empty()).then_some(Self { login, machine, port })
    }
}

/// Looks in the named file, or else in the user's own.
pub(super) fn look_up(wanted: &Wanted<'_>, named: Option<&Path>, home: Option<&Path>) -> Found {
    let own = || home.map(|home| [home.join(".netrc"), home.join("_netrc")]);
    let file = match named {
        Some(file) => Some(file.to_owned()),
        None => own().and_then(|files| files.into_iter().find(|file| file.exists())),
    };
    let Some(file) = file else {
        let password = Err("there is no netrc file".to_owned());
        return Found { password, file: own().map(|[first, _]| first), warning: None };
    };
    let warning = others_can_read(&file).then(|| format!("{} can be read by other users", file.display()));
    let password = match read_text(&file, MAX_BYTES) {
        Ok(text) => password(&text, wanted).ok_or_else(|| "the netrc file has no such entry".to_owned()),
        Err(why) => Err(format!("the netrc file: {why}")),
    };
    Found { password, file: Some(file), warning }
}

#[derive(Default)]
struct Entry {
    /// `None` for the `default` entry.
    machine: Option<String>,
    login: Option<String>,
    port: Option<String>,
    password: Option<String>,
}

impl Entry {
    fn fits(&self, wanted: &Wanted<'_>) -> bool {
        self.machine.as_deref().is_none_or(|machine| machine.eq_ignore_ascii_case(wanted.machine))
            && wanted.login.is_none_or(|login| self.login.as_deref() == Some(login))
            && wanted.port.is_none_or(|port| self.port.as_deref() == Some(port))
    }
}

/// The password of the first entry that fits and has one.
fn password(text: &str, wanted: &Wanted<'_>) -> Option<String> {
    let mut words = Words { rest: text };
    let mut entry: Option<Entry> = None;
    loop {
        let word = words.next();
        let ends = matches!(word.as_deref(), None | Some("machine" | "default"));
        if ends
            && let Some(done) = entry.take()
            && done.fits(wanted)
            && let Some(password) = done.password
        {
            return Some(password);
        }
        match word?.as_str() {
            "machine" => entry = Some(Entry { machine: Some(words.next()?), ..Entry::default() }),
            "default" => entry = Some(Entry::default()),
            "macdef" => words.skip_macro(),
            field => {
                let value = words.next();
                match (&mut entry, field) {
                    (Some(entry), "login") => entry.login = value,
                    (Some(entry), "port") => entry.port = value,
                    (Some(entry), "password") => entry.password = value,
                    // `account`, and whatever else there may be, has one value too.
                    _ => {}
                }
            }
        }
    }
}

struct Words<'a> {
    rest: &'a str,
}

impl Words<'_> {
    /// A macro goes on to the next empty line.
    fn skip_macro(&mut self) {
        let end = ["\n\n", "\r\n\r\n"].iter().filter_map(|gap| self.rest.find(gap)).min();
        self.rest = end.map_or("", |end| &self.rest[end..]);
    }
}

impl Iterator for Words<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        self.rest = self.rest.trim_start();
        while self.rest.starts_with('#') {
            self.rest = self.rest.split_once('\n').map_or("", |(_, after)| after).trim_start();
        }
        if self.rest.is_empty() {
            return None;
        }
        let quoted = self.rest.starts_with('"');
        let mut word = String::new();
        let mut escaped = false;
        for (at, c) in self.rest.char_indices().skip(usize::from(quoted)) {
            let ends = if quoted { c == '"' } else { c.is_whitespace() };
            if escaped {
                word.push(c);
                escaped = false;
            } else if quoted && c == '\\' {
                escaped = true;
            } else if ends {
                self.rest = &self.rest[at + c.len_utf8()..];
                return Some(word);
            } else {
                word.push(c);
            }
        }
        self.rest = "";
        Some(word)
    }
}

#[cfg(unix)]
fn others_can_read(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(file).is_ok_and(|metadata| metadata.permissions().mode() & 0o044 != 0)
}

#[cfg(not(unix))]
fn others_can_read(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# mine\nmachine a.org login me password one\n\
        machine a.org\n  login you\n  port 993\n  password \"two \\\"words\\\"\"\n\
        macdef init\nmachine trap password never\n\nmachine b.org account x password p#3\n\
        machine nopass login x\nmachine nopass login y password late\ndefault login anonymous password any\n";

    #[test]
    fn entries() {
        for (form, expected) in [
            ("a.org", Some("one")),
            ("A.ORG", Some("one")),
            ("me@a.org", Some("one")),
            ("you@a.org", Some("two \"words\"")),
            ("you@a.org:993", Some("two \"words\"")),
            ("a.org:993", Some("two \"words\"")),
            ("b.org", Some("p#3")),
            ("nopass", Some("late")),
            ("trap", Some("any")),
            ("elsewhere", Some("any")),
            ("somebody@elsewhere", None),
            ("elsewhere:1", None),
            ("me@x@a.org", None),
        ] {
            let wanted = Wanted::parse(form).unwrap();
            assert_eq!(password(FILE, &wanted).as_deref(), expected, "{form}");
        }
        assert_eq!(Wanted::parse(""), None);
        assert_eq!(Wanted::parse("me@"), None);
        assert_eq!(Wanted::parse("a:b"), Some(Wanted { login: None, machine: "a:b", port: None }));
        for broken in ["machine", "machine a password", "machine a password \"x", "macdef", "login x password y"] {
            let found = password(broken, &Wanted::parse("a").unwrap());
            assert!(found.is_none_or(|found| found == "x"), "{broken}");
        }
    }

    #[test]
    fn files() {
        let home = tempfile::tempdir().unwrap();
        let wanted = Wanted::parse("m").unwrap();
        assert!(look_up(&wanted, None, Some(home.path())).password.is_err());
        assert!(look_up(&wanted, None, None).password.is_err());
        std::fs::write(home.path().join("_netrc"), "machine m password second").unwrap();
        assert_eq!(look_up(&wanted, None, Some(home.path())).password.unwrap(), "second");
        let file = home.path().join(".netrc");
        std::fs::write(&file, "machine m password first").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            for (mode, warns) in [(0o600, false), (0o640, true), (0o604, true)] {
                std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
                let found = look_up(&wanted, None, Some(home.path()));
                assert_eq!((found.password.unwrap().as_str(), found.warning.is_some()), ("first", warns), "{mode:o}");
            }
        }
        assert!(look_up(&wanted, Some(&home.path().join("missing")), Some(home.path())).password.is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[a-z\"\\\\#\\n é]{0,60}", form in ".{0,20}") {
            if let Some(wanted) = Wanted::parse(&form) {
                let _ = password(&text, &wanted);
            }
            let _ = password(&format!("machine {text} macdef {text}"), &Wanted::parse("m").unwrap());
        }
    }
}
