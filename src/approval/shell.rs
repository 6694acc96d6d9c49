//! A command line taken apart: which commands it runs, where their output goes, and whether that is
//! all of it.
//!
//! Two readers look at every text. [`tree`] finds commands wherever they stand; rules that forbid
//! are held against its findings. [`plain`] reads only what is beyond doubt; only where it succeeds
//! and both agree may something run without a question. Commands that run others are looked
//! through, and texts that a shell would read again are read again, within limits.

mod environment;
mod keys;
mod plain;
mod rough;
mod tree;
mod words;
mod wrappers;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use plain::Simple;
use words::Word;
use wrappers::{Carried, Inner, carried};

/// A longer text is not read.
const MAX_TEXT: usize = 64 * 1024;
const MAX_TIME: Duration = Duration::from_secs(1);
const MOST_UNITS: usize = 128;
/// Texts inside of texts, all together and one in the other.
const MOST_SCRIPTS: usize = 32;
const MAX_DEPTH: usize = 8;
/// The grammar's library recurses in a few places. Even if it did so once for each byte of the
/// longest text, this would be enough; it is address space, not memory.
const STACK: usize = 64 * 1024 * 1024;

const TOO_LONG: &str = "it is too long to be taken apart";
const TOO_MUCH: &str = "it is too much to be taken apart";
const NOT_UNDERSTOOD: &str = "a part of it could not be understood";
const GLOB: &str = "a pattern for file names in it could come to an option";
const EVALUATED: &str = "the shell runs commands that stand inside of a name";
const OTHER_SHELL: &str = "it is for a shell that this server cannot read";

/// Programs whose options neither write nor run anything, so that a file with a name like an option
/// does no harm.
const ONLY_READ: [&str; 16] = [
    "basename",
    "cat",
    "cksum",
    "dirname",
    "du",
    "echo",
    "file",
    "grep",
    "head",
    "ls",
    "md5sum",
    "printf",
    "sha256sum",
    "stat",
    "tail",
    "wc",
];

/// Parts of the shell that are given names of variables, or calculate.
const TAKES_NAMES: [&str; 15] = [
    "[",
    "declare",
    "export",
    "getopts",
    "let",
    "local",
    "mapfile",
    "printf",
    "read",
    "readarray",
    "readonly",
    "test",
    "typeset",
    "unset",
    "wait",
];

/// A command line taken apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parsed {
    pub units: Vec<Unit>,
    /// The files that output goes to, without those that keep nothing.
    pub writes: Vec<String>,
    /// Why these may not be all commands, or not what they will be; `None` when they are.
    pub doubt: Option<&'static str>,
    /// Pieces of what could not be parsed, only good for finding what is forbidden.
    rough: Vec<String>,
}

/// One command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unit {
    /// As written, from its name on, with the files that its input comes from; `<<` if that is a text
    /// in the line.
    pub text: String,
    /// The same without quotes and escapes.
    pub flat: String,
    pub command: String,
    pub args: Vec<String>,
    /// The files that its input comes from.
    pub reads: Vec<String>,
    /// Under which name a consent to it is remembered.
    pub key: Option<String>,
    /// Whether it does nothing but run others, which are units of their own.
    pub is_transparent: bool,
}

impl Parsed {
    /// A text for a shell that is read in another way.
    pub fn of_other_shell(text: &str) -> Self {
        Self::unread(text, OTHER_SHELL)
    }

    /// Everything that a rule may be held against which forbids or asks.
    pub(super) fn texts(&self) -> impl Iterator<Item = String> + '_ {
        let units = self.units.iter().flat_map(|unit| {
            // Neither a path nor what it is given to read makes a command another one.
            let name = unit.command.rsplit('/').next().unwrap_or_default();
            let args: String = unit.args.iter().map(|arg| format!(" {arg}")).collect();
            let by_name = format!("{name}{args}");
            [unit.text.clone(), unit.flat.clone(), format!("{}{args}", unit.command), by_name]
        });
        units.chain(self.write_texts()).chain(self.rough.iter().cloned())
    }

    /// Each file that output goes to, in the form that rules see.
    pub(super) fn write_texts(&self) -> impl Iterator<Item = String> + '_ {
        self.writes.iter().map(|target| format!("> {target}"))
    }

    fn unread(text: &str, why: &'static str) -> Self {
        let shown = crate::base::text::prefix(text, MAX_TEXT).to_owned();
        let unit = Unit { flat: shown.clone(), command: shown.clone(), text: shown.clone(), ..Unit::default() };
        Self { units: vec![unit], writes: Vec::new(), doubt: Some(why), rough: rough::pieces(&shown) }
    }
}

/// Takes a command line for bash or a shell like it apart. Never panics, and bounded in time and
/// memory, but not fast enough for the async runtime.
pub fn parse(text: &str) -> Parsed {
    if text.len() > MAX_TEXT {
        return Parsed::unread(text, TOO_LONG);
    }
    // No shell can be given this.
    if text.contains('\0') {
        return Parsed::unread(text, words::ODD_CHARACTERS);
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("shell-parser".to_owned()).stack_size(STACK);
        let parsing = thread.spawn_scoped(scope, || Parsing::new().run(text));
        parsing.ok().and_then(|parsing| parsing.join().ok()).unwrap_or_else(|| Parsed::unread(text, TOO_MUCH))
    })
}

/// One text in progress, with the texts inside of it.
struct Parsing {
    parsed: Parsed,
    scripts: VecDeque<(String, usize)>,
    deadline: Instant,
}

impl Parsing {
    fn new() -> Self {
        Self { parsed: Parsed::default(), scripts: VecDeque::new(), deadline: Instant::now() + MAX_TIME }
    }

    fn run(mut self, text: &str) -> Parsed {
        self.scripts.push_back((text.to_owned(), 0));
        for _ in 0..MOST_SCRIPTS {
            let Some((text, depth)) = self.scripts.pop_front() else { break };
            self.script(&text, depth);
        }
        if !self.scripts.is_empty() || self.parsed.units.len() > MOST_UNITS {
            self.doubt(TOO_MUCH);
            self.parsed.units.truncate(MOST_UNITS);
        }
        self.withdraw_keys();
        self.parsed
    }

    fn doubt(&mut self, why: &'static str) {
        self.parsed.doubt.get_or_insert(why);
    }

    fn script(&mut self, text: &str, depth: usize) {
        let strict = plain::read(text);
        let Some(found) = tree::find(text, MOST_UNITS, self.deadline) else {
            self.doubt(TOO_MUCH);
            self.parsed.rough.extend(rough::pieces(text));
            return;
        };
        match strict {
            Ok(commands) if !found.is_broken && agree(&commands, &found) => {
                for command in commands {
                    self.parsed.writes.extend(command.writes.iter().cloned());
                    self.command(text, command, depth);
                }
            }
            strict => {
                let why = strict.err().unwrap_or(NOT_UNDERSTOOD);
                self.doubt(why);
                // Here the grammar is known to overlook something.
                let is_odd = text.contains(['`', '\r']) || text.contains("$'") || why == plain::HERE_DOCUMENT;
                if found.is_broken || is_odd {
                    self.parsed.rough.extend(rough::pieces(text));
                }
                self.parsed.writes.extend(found.writes);
                for command in found.commands {
                    self.command(text, command, depth);
                }
            }
        }
    }

    /// A command and the commands in its words.
    fn command(&mut self, text: &str, command: Simple, depth: usize) {
        let mut open = vec![(command, depth)];
        while let Some((command, depth)) = open.pop() {
            if command.words.is_empty() {
                continue;
            }
            if depth > MAX_DEPTH || self.parsed.units.len() > MOST_UNITS {
                self.doubt(TOO_MUCH);
                return;
            }
            let Carried { inner, is_transparent, doubt } = carried(&command.words);
            let word_doubt = command.words.iter().find_map(|word| word.doubt);
            let glob_doubt = could_be_option(&command.words).then_some(GLOB);
            let hidden_doubt = evaluates(&command.words).then_some(EVALUATED);
            if let Some(why) = doubt.or(word_doubt).or(glob_doubt).or(hidden_doubt) {
                self.doubt(why);
            }
            self.parsed.units.push(unit(text, &command, is_transparent));
            for inner in inner.into_iter().rev() {
                match inner {
                    Inner::Words(words) => open.push((Simple { words, ..Simple::default() }, depth + 1)),
                    Inner::Script { text, is_fixed } => {
                        if !is_fixed {
                            self.doubt(words::VALUE);
                        }
                        if depth < MAX_DEPTH && text.len() <= MAX_TEXT {
                            self.scripts.push_back((text, depth + 1));
                        } else {
                            self.doubt(TOO_MUCH);
                        }
                    }
                }
            }
        }
    }

    /// Nothing is remembered of what is uncertain; and a program that is named by a relative path is
    /// another one after a change of the directory.
    fn withdraw_keys(&mut self) {
        let moves = self.parsed.units.iter().any(|unit| matches!(unit.command.as_str(), "cd" | "pushd" | "popd"));
        let is_uncertain = self.parsed.doubt.is_some();
        for unit in &mut self.parsed.units {
            let is_relative = unit.command.contains('/') && !unit.command.starts_with('/');
            if is_uncertain || moves && is_relative {
                unit.key = None;
            }
        }
    }
}

/// Whether both readers found the same.
fn agree(strict: &[Simple], found: &tree::Found) -> bool {
    let words = |command: &Simple| command.words.iter().map(|word| word.text.clone()).collect::<Vec<_>>();
    let strict_words = strict.iter().map(words).filter(|words| !words.is_empty());
    let strict_writes = strict.iter().flat_map(|command| &command.writes);
    strict_words.eq(found.commands.iter().map(words)) && strict_writes.eq(&found.writes)
}

fn unit(text: &str, command: &Simple, is_transparent: bool) -> Unit {
    let words = &command.words;
    let (start, end) = (words.first().map_or(0, |word| word.start), words.last().map_or(0, |word| word.end));
    let mut written = text.get(start..end).unwrap_or_default().to_owned();
    let mut flat = words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
    let mut input: String = command.reads.iter().map(|file| format!(" < {file}")).collect();
    if command.has_text {
        input.push_str(" <<");
    }
    written.push_str(&input);
    flat.push_str(&input);
    let mut texts = words.iter().map(|word| word.text.clone());
    let key = command.writes.is_empty().then(|| keys::key_of(words)).flatten();
    // Where input goes through it, what it carries is not all.
    let is_transparent = is_transparent && input.is_empty();
    let (command, reads) = (texts.next().unwrap_or_default(), command.reads.clone());
    Unit { text: written, flat, command, args: texts.collect(), reads, key, is_transparent }
}

/// Whether a file name could take the place of an option. After `--` there are none.
fn could_be_option(words: &[Word]) -> bool {
    let reads = words.first().is_some_and(|command| ONLY_READ.contains(&command.text.as_str()));
    !reads && words.iter().skip(1).take_while(|word| word.text != "--").any(|word| word.begins_with_glob)
}

/// Whether the shell itself would look for commands in a fixed text: in `printf -v 'a[$(id)]'` it runs
/// `id` to find out which element is meant.
fn evaluates(words: &[Word]) -> bool {
    let takes_names = words.first().is_some_and(|command| TAKES_NAMES.contains(&command.text.as_str()));
    takes_names
        && words.iter().any(|word| word.text.contains("$(") || word.text.contains(['`', '[']) && word.text != "[")
}

#[cfg(test)]
mod tests;
