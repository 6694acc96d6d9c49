//! Who gives an order: which version, and the executable to turn to if that is not ours.
//!
//! It stands first and never changes its form, because every version has to understand it. A client
//! may replace `eca` without the guard beside it, and both while a server runs.

use std::ffi::OsString;
#[cfg(any(target_os = "linux", test))]
use std::iter::Peekable;
use std::path::{Path, PathBuf};

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    version: OsString,
    pub(crate) executable: PathBuf,
}

impl Origin {
    const VERSION: &str = "--version";
    const EXECUTABLE: &str = "--executable";
    const OURS: &str = env!("CARGO_PKG_VERSION");

    /// This version; `executable` can be a guard and understands our orders.
    pub fn ours(executable: &Path) -> Self {
        Self { version: Self::OURS.into(), executable: executable.to_owned() }
    }

    /// As the first options of a command line, which [`Origin::read`] understands.
    pub fn options(self) -> [OsString; 4] {
        [Self::VERSION.into(), self.version, Self::EXECUTABLE.into(), self.executable.into_os_string()]
    }

    /// Takes the options off the front; `None` when there are none, an error when they are cut off.
    #[cfg(any(target_os = "linux", test))]
    pub(crate) fn read(args: &mut Peekable<impl Iterator<Item = OsString>>) -> Result<Option<Self>, ()> {
        if args.next_if(|option| option == Self::VERSION).is_none() {
            return Ok(None);
        }
        let version = args.next().ok_or(())?;
        args.next_if(|option| option == Self::EXECUTABLE).ok_or(())?;
        let executable = args.next().ok_or(())?.into();
        Ok(Some(Self { version, executable }))
    }

    #[cfg(any(target_os = "linux", test))]
    pub(crate) fn is_another_version(&self) -> bool {
        self.version != Self::OURS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_survive_a_command_line() {
        let origin = Origin::ours(Path::new("/a b/--version"));
        assert!(!origin.is_another_version());
        let mut args = origin.clone().options().into_iter().chain(["--control".into()]).peekable();
        assert_eq!(Origin::read(&mut args), Ok(Some(origin)));
        assert_eq!(args.collect::<Vec<_>>(), ["--control"]);
    }

    #[test]
    fn origins_are_read_whole_or_not_at_all() {
        let read = |text: &str| Origin::read(&mut text.split_whitespace().map(OsString::from).peekable());
        assert_eq!(read(""), Ok(None));
        assert_eq!(read("--control 7 --version 1 --executable e"), Ok(None));
        for bad in ["--version", "--version 1", "--version 1 --control 7", "--version 1 --executable"] {
            assert_eq!(read(bad), Err(()), "{bad}");
        }
        let other = read("--version 0.0.0 --executable e rest").unwrap().unwrap();
        assert!(other.is_another_version());
        assert_eq!(other.executable, Path::new("e"));
    }
}
