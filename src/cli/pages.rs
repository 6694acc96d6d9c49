//! What the command line says about itself to other programs: scripts for shells, pages for `man`.
//!
//! Both are made from the definition that is parsed with, so they cannot tell anything else.

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::{CliExit, CompletionsArgs, EXAMPLES, ManArgs, Root};

const DESCRIPTION: &str = "An editor starts eca as a child process and speaks JSON-RPC with it on stdin and stdout. \
                           In a terminal, eca chat talks to the same models. \
                           Without any configuration it uses every vendor whose key is in the environment and the \
                           model servers that run on this machine.";

const EXIT_STATUS: [(&str, &str); 4] = [
    ("0", "Answered, or ended as it was asked to."),
    ("1", "Failed, or the command is unknown."),
    ("2", "An option or a value that a person typed is wrong."),
    ("130", "Stopped by an interrupt."),
];

const ENVIRONMENT: [(&str, &str); 5] = [
    ("NAME_API_KEY", "The key of the provider called name, such as OPENAI_API_KEY."),
    ("ECA_CONFIG", "Configuration, as JSON."),
    ("XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_CACHE_HOME", "Where the files below are looked for and kept."),
    ("HTTPS_PROXY, HTTP_PROXY, NO_PROXY", "Proxies; addresses on this machine never go through one."),
    ("SSL_CERT_FILE", "Certificates to be trusted beside those of the system."),
];

const FILES: [(&str, &str); 5] = [
    ("~/.config/eca/config.json", "Your configuration."),
    (".eca/config.json", "The configuration of a workspace; it counts once it is trusted."),
    ("~/.local/share/eca/chats.db", "Your chats."),
    ("~/.local/share/eca/chats.db-contents/", "What large files were before tools changed them."),
    ("~/.local/share/eca/trust.json", "What you trust."),
];

/// What `eca completions` prints.
pub fn completions(args: &CompletionsArgs) -> CliExit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Root::command(), "eca", &mut script);
    printed(script)
}

/// What `eca man` prints: the page of one command, or a complaint.
pub fn manual(args: &ManArgs) -> CliExit {
    let mut root = Root::command();
    root.build();
    let mut command = &root;
    for (depth, word) in args.command.iter().enumerate() {
        match command.find_subcommand(word) {
            Some(found) => command = found,
            None => {
                let text = format!("eca: there is no command '{}'\n", args.command[..=depth].join(" "));
                return CliExit { code: 2, text, to_stdout: false };
            }
        }
    }
    let mut page = Vec::new();
    let rendered =
        if args.command.is_empty() { program_page(&mut page) } else { Man::new(command.clone()).render(&mut page) };
    match rendered {
        Ok(()) => printed(page),
        Err(error) => CliExit { code: 1, text: format!("eca: {error}\n"), to_stdout: false },
    }
}

fn printed(text: Vec<u8>) -> CliExit {
    CliExit { code: 0, text: String::from_utf8_lossy(&text).into_owned(), to_stdout: true }
}

/// The page of the program as a whole, with what its own help has no place for.
fn program_page(page: &mut Vec<u8>) -> std::io::Result<()> {
    let command: Command = Root::command().long_about(DESCRIPTION);
    let man = Man::new(command).manual("User Commands");
    man.render_title(page)?;
    man.render_name_section(page)?;
    man.render_synopsis_section(page)?;
    man.render_description_section(page)?;
    man.render_options_section(page)?;
    man.render_subcommands_section(page)?;
    let mut rest = Roff::new();
    rest.control("SH", ["EXAMPLES"]).control("nf", []);
    for line in EXAMPLES.lines().skip(1) {
        rest.text([roman(line.trim_start())]);
    }
    rest.control("fi", []);
    for (title, rows) in [("EXIT STATUS", &EXIT_STATUS[..]), ("ENVIRONMENT", &ENVIRONMENT), ("FILES", &FILES)] {
        rest.control("SH", [title]);
        for (name, meaning) in rows {
            rest.control("TP", []).text([bold(*name)]).text([roman(*meaning)]);
        }
    }
    rest.to_writer(page)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;
    use clap_complete::Shell;

    use super::*;

    fn every_command() -> Vec<Vec<String>> {
        fn below(command: &Command, path: &[String], all: &mut Vec<Vec<String>>) {
            all.push(path.to_vec());
            for inner in command.get_subcommands() {
                below(inner, &[path, &[inner.get_name().to_owned()]].concat(), all);
            }
        }
        let mut all = Vec::new();
        below(&Root::command(), &[], &mut all);
        all
    }

    #[test]
    fn every_shell_gets_every_command() {
        for shell in Shell::value_variants() {
            let script = completions(&CompletionsArgs { shell: *shell });
            assert_eq!((script.code, script.to_stdout), (0, true));
            for word in ["server", "chats", "completions", "--log-level", "search"] {
                // Some shells write an option without its dashes.
                assert!(script.text.contains(word.trim_start_matches('-')), "{shell}: {word}");
            }
        }
    }

    #[test]
    fn every_command_has_a_page_that_names_its_options() {
        let all = every_command();
        assert!(all.len() > 12, "{all:?}");
        for command in all {
            let page = manual(&ManArgs { command: command.clone() });
            assert_eq!((page.code, page.to_stdout), (0, true), "{command:?}");
            let name = [&["eca".to_owned()][..], &command].concat().join("-");
            assert!(page.text.contains(&format!(".TH {name} 1")), "{}", page.text);
            assert!(page.text.contains(".SH NAME") && page.text.contains(".SH SYNOPSIS"), "{}", page.text);
        }
        let chat = manual(&ManArgs { command: vec!["chat".to_owned()] }).text;
        assert!(chat.contains(r"\-\-config\-file"), "{chat}");
    }

    #[test]
    fn the_programs_page_has_its_examples_and_files() {
        let page = manual(&ManArgs::default()).text;
        for part in ["eca\\-chat(1)", "SH EXAMPLES", "SH \"EXIT STATUS\"", "SH ENVIRONMENT", "config.json", "eca trust"]
        {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn an_unknown_command_is_named() {
        let complaint = manual(&ManArgs { command: vec!["chats".to_owned(), "lsit".to_owned()] });
        assert_eq!((complaint.code, complaint.to_stdout), (2, false));
        assert!(complaint.text.contains("'chats lsit'"), "{}", complaint.text);
    }
}
