//! The order to a guard: what to start, under which limits, and when to end it.

use std::ffi::OsString;
use std::process::Command;

use crate::private_folder::PrivateFolder;
use crate::{CONFINE, Confinement};

/// As a command line. `control` is the number of the read end of a pipe whose other end only the
/// server holds: its end of file is the order to kill, and the kernel sends it even when the server
/// is killed with -9.
#[derive(Debug)]
pub struct Order {
    pub(crate) control: u32,
    /// Limits on open files; `None` is no limit.
    pub(crate) soft: Option<u64>,
    pub(crate) hard: Option<u64>,
    pub(crate) confinement: Option<Confinement>,
    pub(crate) program: OsString,
}

impl Order {
    /// As options that [`Order::read`] understands, up to the program.
    pub fn options(
        control: i32,
        soft: Option<u64>,
        hard: Option<u64>,
        confinement: Option<&Confinement>,
    ) -> Vec<OsString> {
        let mut options = vec!["--control".into(), control.to_string().into()];
        for (name, limit) in [("--soft", soft), ("--hard", hard)] {
            options.extend(limit.into_iter().flat_map(|limit| [name.into(), limit.to_string().into()]));
        }
        options.extend(confinement.into_iter().flat_map(Confinement::options));
        options.push("--".into());
        options
    }

    pub(crate) fn read(args: &mut impl Iterator<Item = OsString>) -> Option<Self> {
        let (mut control, mut soft, mut hard, mut confinement) = (None, None, None, None);
        loop {
            let option = args.next()?;
            if option == "--" {
                let control = u32::try_from(control?).ok()?;
                return Some(Self { control, soft, hard, confinement, program: args.next()? });
            }
            let value = args.next()?;
            let number = match option.to_str() {
                Some("--control") => &mut control,
                Some("--soft") => &mut soft,
                Some("--hard") => &mut hard,
                _ if Confinement::read(&mut confinement, &option, &value) => continue,
                _ => return None,
            };
            *number = Some(value.to_str()?.parse::<u64>().ok()?);
        }
    }

    /// Starts the program, or the step that confines itself and becomes it.
    pub(crate) fn command(&self, folder: Option<&PrivateFolder>) -> Command {
        let (Some(confinement), Some(folder)) = (&self.confinement, folder) else {
            return Command::new(&self.program);
        };
        // Not by its name, which by now may be that of another version.
        let mut command = Command::new("/proc/self/exe");
        command.arg(CONFINE).args(confinement.options()).arg("--temporary").arg(folder.path());
        for name in ["TMPDIR", "TMP", "TEMP"] {
            command.env(name, folder.path());
        }
        command.env("ECA_SANDBOX", confinement.word()).arg("--").arg(&self.program);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_survive_a_command_line() {
        let confinement = Confinement::WriteBelow(vec!["/a b".into()]);
        let options = Order::options(7, Some(1024), None, Some(&confinement));
        let mut args = options.into_iter().chain(["sh", "-c", "x"].map(OsString::from));
        let order = Order::read(&mut args).unwrap();
        assert_eq!((order.control, order.soft, order.hard), (7, Some(1024), None));
        assert_eq!((order.confinement, order.program), (Some(confinement), "sh".into()));
        assert_eq!(args.collect::<Vec<_>>(), ["-c", "x"]);
    }

    #[test]
    fn orders_are_read_whole_or_not_at_all() {
        let read = |text: &str| Order::read(&mut text.split(' ').map(OsString::from));
        assert!(read("--control 7 -- --control").is_some());
        for bad in [
            "-- sh",
            "--control x -- sh",
            "--control 99999999999 -- sh",
            "--control 7 --",
            "--control 7 sh",
            "--control 7 --soft -1 -- sh",
            "--control 7 --below /w -- sh",
            "--control 7 --confine most -- sh",
            "--control",
            "",
        ] {
            assert!(read(bad).is_none(), "{bad}");
        }
    }
}
