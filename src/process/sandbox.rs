//! What a program may touch, enforced by the kernel: it reads everything, writes only where it may,
//! and has no network.
//!
//! Linux only, with Landlock for files and seccomp for sockets. The guard starts this executable
//! once more, as `eca __confine OPTIONS -- program args…`, which confines itself and becomes the
//! program; so the guard stays free to kill, to look around and to clean up. `docs/config.md` says
//! what the sandbox does not cover.

#[cfg(target_os = "linux")]
mod confine;
#[cfg(target_os = "linux")]
mod filter;

#[cfg(target_os = "linux")]
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::sync::OnceCell;

use super::guard;

#[cfg(target_os = "linux")]
pub(super) use confine::run;

/// The hidden command that confines itself and becomes a program.
pub(super) const COMMAND: &str = "__confine";

/// The option of [`COMMAND`] that confines itself and says how far that goes.
const PROBE: &str = "--probe";

/// A probe does almost nothing; this is for a machine that is stuck.
const PROBE_PATIENCE: Duration = Duration::from_secs(10);

/// Where a confined program may write, besides its private temporary folder and harmless devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confinement {
    ReadOnly,
    /// Below these folders; those that do not exist are left out.
    WriteBelow(Vec<PathBuf>),
}

/// How much of a sandbox this system can enforce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SandboxSupport {
    /// The version of Landlock; 0 where there is none.
    pub landlock: u32,
    pub network: NetworkBlock,
}

/// How much of the network can be cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkBlock {
    All,
    TcpOnly,
    Nothing,
}

/// What this system can do. Found out once, by another process: a probe confines itself for good.
pub async fn support() -> SandboxSupport {
    static FOUND: OnceCell<SandboxSupport> = OnceCell::const_new();
    match FOUND.get_or_try_init(probe).await {
        Ok(found) => *found,
        Err(error) => {
            tracing::warn!(%error, "it could not be found out whether programs can be sandboxed");
            SandboxSupport::NONE
        }
    }
}

async fn probe() -> io::Result<SandboxSupport> {
    if !cfg!(target_os = "linux") {
        return Ok(SandboxSupport::NONE);
    }
    let mut command = tokio::process::Command::new(guard::executable()?);
    command.args([COMMAND, PROBE]).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PROBE_PATIENCE, command.output())
        .await
        .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    let text = String::from_utf8_lossy(&output.stdout);
    SandboxSupport::parse(text.trim()).ok_or_else(|| io::Error::other("the probe said nothing"))
}

impl SandboxSupport {
    pub const NONE: Self = Self { landlock: 0, network: NetworkBlock::Nothing };

    /// The first version of Landlock that can keep a program from emptying a file.
    const LANDLOCK_TRUNCATION: u32 = 3;

    /// Whether a sandbox here would deserve the name.
    pub fn is_usable(&self) -> bool {
        self.landlock > 0 && self.network != NetworkBlock::Nothing
    }

    /// One line for people.
    pub fn describe(&self) -> String {
        if self.landlock == 0 {
            return "not available: the kernel has no Landlock".to_owned();
        }
        let files = if self.landlock < Self::LANDLOCK_TRUNCATION { ", except for emptying files" } else { "" };
        let network = match self.network {
            NetworkBlock::All => "network off",
            NetworkBlock::TcpOnly => "of the network, TCP only off",
            NetworkBlock::Nothing => return "not available: the network cannot be cut off".to_owned(),
        };
        format!("Landlock {}: writing limited{files}; {network}", self.landlock)
    }

    #[cfg(target_os = "linux")]
    fn render(&self) -> String {
        let network = match self.network {
            NetworkBlock::All => "all",
            NetworkBlock::TcpOnly => "tcp",
            NetworkBlock::Nothing => "nothing",
        };
        format!("{} {network}", self.landlock)
    }

    fn parse(text: &str) -> Option<Self> {
        let (landlock, network) = text.split_once(' ')?;
        let network = match network {
            "all" => NetworkBlock::All,
            "tcp" => NetworkBlock::TcpOnly,
            "nothing" => NetworkBlock::Nothing,
            _ => return None,
        };
        Some(Self { landlock: landlock.parse().ok()?, network })
    }
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
    pub(super) fn options(&self) -> Vec<OsString> {
        let folders = match self {
            Self::ReadOnly => &[][..],
            Self::WriteBelow(folders) => folders,
        };
        let folders = folders.iter().flat_map(|folder| [Self::FOLDER.into(), folder.clone().into_os_string()]);
        [Self::OPTION.into(), self.word().into()].into_iter().chain(folders).collect()
    }

    /// Takes one option and its value into `confinement`; `false` if it is none of ours.
    #[cfg(target_os = "linux")]
    pub(super) fn read(confinement: &mut Option<Self>, option: &OsString, value: &OsString) -> bool {
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

    #[test]
    fn support_survives_the_pipe_and_reads_well() {
        for (landlock, network, usable, described) in [
            (0, NetworkBlock::All, false, "not available: the kernel has no Landlock"),
            (7, NetworkBlock::All, true, "Landlock 7: writing limited; network off"),
            (2, NetworkBlock::All, true, "Landlock 2: writing limited, except for emptying files; network off"),
            (4, NetworkBlock::TcpOnly, true, "Landlock 4: writing limited; of the network, TCP only off"),
            (3, NetworkBlock::Nothing, false, "not available: the network cannot be cut off"),
        ] {
            let support = SandboxSupport { landlock, network };
            assert_eq!(SandboxSupport::parse(&support.render()), Some(support));
            assert_eq!(support.is_usable(), usable);
            assert_eq!(support.describe(), described);
        }
        for bad in ["", "7", "x all", "7 some"] {
            assert_eq!(SandboxSupport::parse(bad), None, "{bad}");
        }
    }
}
