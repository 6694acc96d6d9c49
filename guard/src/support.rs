//! How much of a sandbox a system can enforce: said by a probe, heard by the server.

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
    pub(crate) fn render(&self) -> String {
        let network = match self.network {
            NetworkBlock::All => "all",
            NetworkBlock::TcpOnly => "tcp",
            NetworkBlock::Nothing => "nothing",
        };
        format!("{} {network}", self.landlock)
    }

    /// Reads what a probe said.
    pub fn parse(text: &str) -> Option<Self> {
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

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

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
