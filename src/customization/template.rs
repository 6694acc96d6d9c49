//! Templates in prompts, rules and commands: `{{ name }}` and `{% if name %}…{% endif %}`.
//!
//! Some of them come with a stranger's repository, so they may only choose and insert. Everything
//! by which a small template can grow without bound is refused before it runs: loops, new
//! variables, arithmetic, lists. What it may cost is bounded besides.

use std::collections::BTreeMap;
use std::io::{self, Write};

use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, Value, filters};

/// A text that becomes longer than this is a mistake.
const MAX_OUTPUT_BYTES: usize = 1024 * 1024;
/// Steps of the interpreter; an insertion takes two.
const FUEL: u64 = 100_000;
const RECURSION: usize = 50;

const STATEMENTS: [&str; 4] = ["if", "elif", "else", "endif"];

/// Whether a tool is offered is asked by this and the tool's full name.
const TOOL_ENABLED: &str = "toolEnabled_";

/// What templates may ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variables(BTreeMap<String, Variable>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Variable {
    Text(String),
    Flag(bool),
}

impl Variables {
    /// What every prompt and rule may ask for.
    pub fn of_chat<'a>(
        environment: &super::prompt::Environment,
        roots: impl IntoIterator<Item = &'a str>,
        is_subagent: bool,
        tools: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let roots: Vec<&str> = roots.into_iter().collect();
        let mut variables = Self::default()
            .with_text("workspaceRoots", roots.join(", "))
            .with_flag("isSubagent", is_subagent)
            .with_text("osName", environment.os.as_str())
            .with_text("shell", environment.shell.as_str())
            .with_text("userName", environment.user.as_str())
            .with_text("homeDir", environment.home.as_str());
        for tool in tools {
            variables = variables.with_flag(&format!("{TOOL_ENABLED}{tool}"), true);
        }
        variables
    }

    #[must_use]
    pub fn with_text(mut self, name: &str, text: impl Into<String>) -> Self {
        self.0.insert(name.to_owned(), Variable::Text(text.into()));
        self
    }

    #[must_use]
    pub fn with_flag(mut self, name: &str, flag: bool) -> Self {
        self.0.insert(name.to_owned(), Variable::Flag(flag));
        self
    }

    fn knows(&self, name: &str) -> bool {
        name.starts_with(TOOL_ENABLED) || self.0.contains_key(name)
    }

    fn values(&self) -> Value {
        let value = |variable: &Variable| match variable {
            Variable::Text(text) => Value::from(text.as_str()),
            Variable::Flag(flag) => Value::from(*flag),
        };
        let values: BTreeMap<&str, Value> =
            self.0.iter().map(|(name, variable)| (name.as_str(), value(variable))).collect();
        Value::from(values)
    }
}

/// Why a template was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("{what} cannot be used in a template")]
    Refused { line: usize, what: String },
    #[error("the template is not valid: {reason}")]
    Failed { line: Option<usize>, reason: String },
}

impl TemplateError {
    /// In the text, from 1 on.
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::Refused { line, .. } => Some(*line),
            Self::Failed { line, .. } => *line,
        }
    }
}

/// The text with its variables in place. A text that names none of them is no template of ours and
/// stays as it is: it may be about templates of another kind.
pub fn render(text: &str, variables: &Variables) -> Result<String, TemplateError> {
    if !text.contains("{{") && !text.contains("{%") {
        return Ok(text.to_owned());
    }
    if !is_allowed(text, variables)? {
        return Ok(text.to_owned());
    }
    let environment = environment();
    let template = environment.template_from_str(text).map_err(failed)?;
    let mut output = Bounded { bytes: Vec::new() };
    template.render_captured_to(variables.values(), &mut output).map_err(failed)?;
    String::from_utf8(output.bytes)
        .map_err(|_| TemplateError::Failed { line: None, reason: "it made no text".to_owned() })
}

/// The same, for texts that had better be sent as they are than not at all.
pub fn render_or_keep(text: &str, variables: &Variables) -> String {
    render(text, variables).unwrap_or_else(|error| {
        tracing::warn!(%error, "a prompt is used without carrying out its template");
        text.to_owned()
    })
}

/// The names in `{{ name }}`, in the order of their first appearance.
pub(super) fn placeholders(text: &str) -> Vec<String> {
    let tokens: Vec<Token<'_>> =
        tokenize(text, false, SyntaxConfig::default()).map_while(Result::ok).map(|(token, _)| token).collect();
    let mut names: Vec<String> = Vec::new();
    for window in tokens.windows(3) {
        if let [Token::VariableStart, Token::Ident(name), Token::VariableEnd | Token::Pipe] = window
            && !names.iter().any(|known| known == name)
        {
            names.push((*name).to_owned());
        }
    }
    names
}

/// Whether the text is one of our templates; an error when it wants what is not allowed.
fn is_allowed(text: &str, variables: &Variables) -> Result<bool, TemplateError> {
    let mut is_ours = false;
    let mut refused = None;
    let mut opens_statement = false;
    for token in tokenize(text, false, SyntaxConfig::default()) {
        // What cannot even be taken apart may still be a text about something else.
        let Ok((token, span)) = token else { break };
        let allowed = match &token {
            Token::Ident(name) if opens_statement => STATEMENTS.contains(name),
            Token::Ident(name) => {
                is_ours |= variables.knows(name);
                true
            }
            token => is_harmless(token),
        };
        if !allowed && refused.is_none() {
            let what = match &token {
                Token::Ident(name) => format!("`{name}`"),
                token => token.to_string(),
            };
            refused = Some(TemplateError::Refused { line: usize::from(span.start_line), what });
        }
        opens_statement = matches!(token, Token::BlockStart);
    }
    match refused {
        Some(error) if is_ours => Err(error),
        _ => Ok(is_ours),
    }
}

fn is_harmless(token: &Token<'_>) -> bool {
    matches!(
        token,
        Token::TemplateData(_)
            | Token::VariableStart
            | Token::VariableEnd
            | Token::BlockStart
            | Token::BlockEnd
            | Token::Str(_)
            | Token::String(_)
            | Token::Int(_)
            | Token::Float(_)
            | Token::Pipe
            | Token::Eq
            | Token::Ne
            | Token::ParenOpen
            | Token::ParenClose
    )
}

fn environment<'a>() -> Environment<'a> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(RECURSION);
    environment.add_filter("default", filters::default);
    environment.add_filter("lower", filters::lower);
    environment.add_filter("trim", filters::trim);
    environment.add_filter("upper", filters::upper);
    environment
}

fn failed(error: minijinja::Error) -> TemplateError {
    let reason =
        error.detail().map_or_else(|| error.kind().to_string(), |detail| format!("{}: {detail}", error.kind()));
    TemplateError::Failed { line: error.line(), reason }
}

/// Takes so much and no more.
struct Bounded {
    bytes: Vec<u8>,
}

impl Write for Bounded {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + piece.len() > MAX_OUTPUT_BYTES {
            return Err(io::Error::other("the text became too long"));
        }
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn variables() -> Variables {
        Variables::default()
            .with_text("osName", "Linux")
            .with_text("trick", "{{ osName }} ${cmd:x} <b>")
            .with_flag("isSubagent", false)
            .with_flag("toolEnabled_eca__grep", true)
    }

    #[test]
    fn choosing_and_inserting() {
        for (text, expected) in [
            ("plain", "plain"),
            ("on {{ osName }}!", "on Linux!"),
            ("{{osName|upper}} {{ unset | default('x') }}", "LINUX x"),
            ("{{ osName }}{{ unset }}.", "Linux."),
            ("{% if isSubagent %}sub{% else %}main{% endif %}", "main"),
            ("{%- if toolEnabled_eca__grep -%} grep {%- endif %}", "grep"),
            ("{% if toolEnabled_eca__nope %}x{% endif %}y", "y"),
            ("{% if not isSubagent and osName == 'Linux' %}a{% elif isSubagent %}b{% endif %}", "a"),
            ("{{ trick }}", "{{ osName }} ${cmd:x} <b>"),
            ("{# gone #}{{ osName }}", "Linux"),
            ("{% raw %}{{ osName }}{% endraw %} {{ osName }}", "{{ osName }} Linux"),
        ] {
            assert_eq!(render(text, &variables()).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn templates_of_others_stay_as_they_are() {
        for text in [
            "uses: ${{ github.ref }}",
            "<p>{{ user.name | upper }}</p>",
            "{% for item in items %}{{ item }}{% endfor %}",
            "{{",
            "{% if",
            "{{ \"never closed",
            "{%",
            "a {{}} b",
        ] {
            assert_eq!(render(text, &variables()).as_deref(), Ok(text), "{text}");
        }
    }

    #[test]
    fn whatever_could_grow_is_refused() {
        let doubling = format!("{{{{ osName }}}}{}", "{% set a = a ~ a %}".repeat(60));
        for (text, line) in [
            (doubling.as_str(), Some(1)),
            ("{% for a in osName %}{{ a }}{% endfor %}", Some(1)),
            ("x\n{% with a = osName %}{% endwith %}", Some(2)),
            ("{{ osName * 100000000 }}", Some(1)),
            ("{{ osName ~ osName }}", Some(1)),
            ("{{ [osName, osName] }}", Some(1)),
            ("{{ (osName, osName) }}", Some(1)),
            ("{{ osName + osName }}", Some(1)),
            ("{{ osName.x }}", Some(1)),
            ("{% filter upper %}{{ osName }}{% endfilter %}", Some(1)),
            ("{{ osName }}{% include 'x' %}", Some(1)),
            ("{{ osName | replace('L') }}", Some(1)),
            ("{{ osName }}\n{% if %}", Some(2)),
            ("{{ osName() }}", Some(1)),
        ] {
            let error = render(text, &variables()).unwrap_err();
            assert_eq!(error.line(), line, "{text}: {error}");
            assert_eq!(render_or_keep(text, &variables()), text);
        }
        let many = "{{ osName }}".repeat(60_000);
        assert!(render(&many, &variables()).is_err(), "more steps than allowed");
        let long = Variables::default().with_text("a", "x".repeat(100_000));
        assert!(render(&"{{ a }}".repeat(11), &long).is_err(), "a longer text than allowed");
        let nested = format!("{{{{ {}osName{} }}}}", "(".repeat(10_000), ")".repeat(10_000));
        assert!(render(&nested, &variables()).is_err());
        let ifs = format!("{}{{{{ osName }}}}{}", "{% if osName %}".repeat(5_000), "{% endif %}".repeat(5_000));
        assert!(render(&ifs, &variables()).is_err());
    }

    #[test]
    fn placeholders_come_in_order_and_once() {
        let text = "{{ city }} {{units}} {{ city|upper }} {% if x %}{{ a.b }}{% endif %} {{ 'q' }}";
        assert_eq!(placeholders(text), ["city", "units"]);
        assert_eq!(placeholders("{{"), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn nothing_breaks_it(text in "(\\{\\{|\\}\\}|\\{%|%\\}|osName|if|endif|\\||\\(|\\)|'|\"| |\\PC){0,40}") {
            let _ = render(&text, &variables());
            let _ = placeholders(&text);
        }
    }
}
