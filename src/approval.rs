//! Who may run what: one pure decision for every call of a tool.
//!
//! [`examine`] looks at what a call touches: it follows paths and takes a command line apart.
//! [`judge`] decides from that, from the rules of the agent and from what the user allowed already.
//! The order is fixed, and the first that says something counts; whatever cannot be judged is asked
//! about.

pub mod key_files;
pub mod paths;
pub mod remembered;
pub mod rules;
pub mod shell;

use std::path::Path;

use rules::{Hit, Subject};

use crate::config::Ruling;
use crate::tool::{Arguments, Preview, ShellUnit, ToolOrigin, ToolSpec};

pub use key_files::is_key_file;
pub use paths::{Place, Roots};
pub use remembered::Remembered;
pub use rules::{Rules, is_disabled};
pub use shell::{Parsed, Unit};

/// The tools that only a chat with a user has.
const NOT_FOR_SUBAGENTS: [&str; 4] = ["spawn_agent", "task", "git", "ask_user"];
/// How many bytes of a reason or a path are shown.
const SHOWN: usize = 200;

/// A call that somebody has to decide about.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    pub spec: &'a ToolSpec,
    pub arguments: &'a Arguments,
    pub preview: &'a Preview,
    pub rules: &'a Rules,
    pub remembered: &'a Remembered,
    pub roots: &'a Roots,
    /// Whether the user trusts the chat: then nothing is asked.
    pub trust: bool,
}

/// What was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub ruling: Ruling,
    /// By what; completes "because of …", for the log, the user and the model.
    pub why: String,
    /// The commands of a command line, for the details of the call.
    pub units: Vec<ShellUnit>,
}

/// What has to be found out about a call before it can be judged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    pub places: Vec<Place>,
    pub shell: Option<Parsed>,
}

/// Decides about a call. Looks at the file system and may take a while with a strange command line,
/// so it is not for the async runtime; there, [`examine`] runs elsewhere and [`judge`] follows.
pub fn rule(request: &Request<'_>) -> Verdict {
    judge(request, &examine(request.preview, request.roots, request.rules))
}

/// Finds out where the paths of a call lead, and what its command line runs.
pub fn examine(preview: &Preview, roots: &Roots, rules: &Rules) -> Findings {
    let read = |text: &String| if rules.reads_shell { shell::parse(text) } else { Parsed::of_other_shell(text) };
    Findings {
        places: preview.paths.iter().map(|path| roots.place(path)).collect(),
        shell: preview.shell.as_ref().map(read),
    }
}

/// Decides about a call from what was found out. Pure.
pub fn judge(request: &Request<'_>, findings: &Findings) -> Verdict {
    let (ruling, why) = decide(request, findings);
    let units = findings.shell.as_ref().map(|parsed| request.remembered.units(parsed)).unwrap_or_default();
    match ruling {
        Ruling::Ask if request.trust => {
            Verdict { ruling: Ruling::Allow, why: format!("your trust in this chat, in spite of {why}"), units }
        }
        ruling => Verdict { ruling, why, units },
    }
}

/// Whether subagents have this tool.
pub fn is_for_subagents(spec: &ToolSpec) -> bool {
    spec.origin != ToolOrigin::Native || !NOT_FOR_SUBAGENTS.contains(&spec.name.as_str())
}

fn decide(request: &Request<'_>, findings: &Findings) -> (Ruling, String) {
    let Request { spec, arguments, preview, rules, remembered, .. } = *request;
    let shell = preview.shell.as_deref().zip(findings.shell.as_ref());
    let subject = Subject { spec, arguments, shell };
    let denied = rules.denies(&subject);
    if let Some(Hit::Matches(why)) = denied {
        return (Ruling::Deny, why);
    }
    let is_remembered = match shell {
        Some((_, parsed)) => remembered.covers_commands(parsed),
        None => remembered.covers_tool(spec),
    };
    if is_remembered {
        return (Ruling::Allow, "your consent for this session".to_owned());
    }
    if let Some(why) = own_objection(preview, findings) {
        return (Ruling::Ask, why);
    }
    if let Some(Hit::Matches(why) | Hit::Unreadable(why)) = denied.or_else(|| rules.asks(&subject)) {
        return (Ruling::Ask, why);
    }
    // A rule that would forbid it could be evaded by what is not known.
    if let Some(doubt) = shell.and_then(|(_, parsed)| parsed.doubt)
        && rules.looks_at_commands(spec)
    {
        return (Ruling::Ask, format!("a command line that no rule can be held against: {doubt}"));
    }
    if let Some(why) = rules.allows(&subject) {
        return (Ruling::Allow, why);
    }
    if rules.manual(spec) {
        return (Ruling::Ask, "the setting manualApproval".to_owned());
    }
    match rules.by_default() {
        Some(ruling) => (ruling, "the setting byDefault".to_owned()),
        None => (Ruling::Ask, "no rule that allows it".to_owned()),
    }
}

/// Why the call is asked about because of what it is.
fn own_objection(preview: &Preview, findings: &Findings) -> Option<String> {
    let shown = |path: &Path| crate::base::text::one_line(&path.display().to_string(), SHOWN);
    if let Some(place) = findings.places.iter().find(|place| !place.is_inside) {
        return Some(format!("a path outside of the workspace: {}", shown(&place.path)));
    }
    if let Some(place) = findings.places.iter().find(|place| place.is_key_file) {
        return Some(format!("a file that may hold keys: {}", shown(&place.path)));
    }
    let parsed = findings.shell.iter();
    let named = parsed.flat_map(|parsed| {
        parsed.units.iter().flat_map(|unit| unit.args.iter().chain(&unit.reads)).chain(&parsed.writes)
    });
    if let Some(word) = named.into_iter().find(|word| key_files::is_named_in(word)) {
        return Some(format!("a file that may hold keys: {}", shown(Path::new(word))));
    }
    preview.must_ask.as_ref().map(|why| crate::base::text::one_line(why, SHOWN))
}

#[cfg(test)]
mod tests;
