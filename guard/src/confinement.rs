//! What a confined program may do, and how that is said on a command line.

#[cfg(target_os = "linux")]
use std::ffi::OsString;
use std::path::PathBuf;

/// Where a confined program may write, besides its private temporary folder and harmless devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confinement {
    ReadOnly,
    /// Below these folders; those that do not exist are left out.
    WriteBelow(Vec<PathBuf>),
}

impl Confinement {
    #[cfg(target_os = "linux")]
    const OPTION: &str = "--confine";
    #[cfg(target_os = "linux")]
    const FOLDER: &str = "--below";
    const READ_ONLY: &str = "read-only";
    const WRITE_BELOW: &str = "workspace-write";

    /// How it is called in the configuration, and in the environment of the program.
    pub fn word(&self) -> &'static str {
        match self {
            Self::ReadOnly => Self::READ_ONLY,
            Self::WriteBelow(_) => Self::WRITE_BELOW,
        }
    }

    /// As options of a command line, which [`Confinement::read`] understands.
    #[cfg(target_os = "linux")]
    pub(crate) fn options(&self) -> Vec<OsString> {
        let folders = match self {
            Self::ReadOnly => &[][..],
            Self::WriteBelow(folders) => folders,
        };
        let folders = folders.iter().flat_map(|folder| [Self::FOLDER.into(), folder.clone().into_os_string()]);
        [Self::OPTION.into(), self.word().into()].into_iter().chain(folders).collect()
    }

    /// Takes one option and its value into `confinement`; `false` if it is none of ours.
    #[cfg(target_os = "linux")]
    pub(crate) fn read(confinement: &mut Option<Self>, option: &OsString, value: &OsString) -> bool {
        match (option.to_str(), confinement.as_mut()) {
            (Some(Self::OPTION), None) => {
                *confinement = match value.to_str() {
                    Some(Self::READ_ONLY) => Some(Self::ReadOnly),
                    Some(Self::WRITE_BELOW) => Some(Self::WriteBelow(Vec::new())),
                    _ => return false,
                };
                true
            }
            (Some(Self::FOLDER), Some(Self::WriteBelow(folders))) => {
                folders.push(value.into());
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn confinements_survive_a_command_line() {
        use std::os::unix::ffi::OsStringExt;
        let odd = PathBuf::from(OsString::from_vec(b"/a b/\xff--confine".to_vec()));
        for confinement in [
            Confinement::ReadOnly,
            Confinement::WriteBelow(Vec::new()),
            Confinement::WriteBelow(vec!["/w".into(), "--below".into(), odd]),
        ] {
            let mut read = None;
            for pair in confinement.options().chunks(2) {
                assert!(Confinement::read(&mut read, &pair[0], &pair[1]), "{pair:?}");
            }
            assert_eq!(read, Some(confinement));
        }
    }

    #[test]
    fn what_is_no_confinement_is_refused() {
        let read = |start: Option<Confinement>, option: &str, value: &str| {
            Confinement::read(&mut start.clone(), &option.into(), &value.into())
        };
        assert!(!read(None, "--confine", "writing"));
        assert!(!read(None, "--below", "/w"));
        assert!(!read(Some(Confinement::ReadOnly), "--below", "/w"));
        assert!(!read(Some(Confinement::ReadOnly), "--confine", "read-only"));
        assert!(!read(None, "--else", "read-only"));
    }
}
