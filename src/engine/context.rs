//! What the user points at, as parts of the user's message.
//!
//! Files are read when the prompt is accepted, bounded in size; what cannot be read is named to
//! the model and to the user, never dropped in silence.

use std::io::Read;
use std::path::Path;

use super::prompt::Context;
use crate::base::text;
use crate::llm::{Image, Part};

/// One file contributes at most so much.
const MAX_FILE_BYTES: u64 = 256 * 1024;

/// The parts, and one note per context that could not be used.
pub(super) struct Rendered {
    pub(super) parts: Vec<Part>,
    pub(super) problems: Vec<String>,
}

/// Reads files, so call it where blocking is allowed.
pub(super) fn render(contexts: &[Context]) -> Rendered {
    let mut rendered = Rendered { parts: Vec::new(), problems: Vec::new() };
    for context in contexts {
        match context {
            Context::Text { label, content } => rendered.parts.push(block("context", label, content)),
            Context::File { path, lines } => match read_file(Path::new(path), *lines) {
                Ok(content) => rendered.parts.push(block("file", path, &content)),
                Err(problem) => rendered.problems.push(format!("{path}: {problem}")),
            },
            Context::Cursor { path, start, end } => {
                let place = format!("{path} from {}:{} to {}:{}", start.0, start.1, end.0, end.1);
                rendered.parts.push(block("cursor", &place, ""));
            }
            Context::Image { media_type, base64 } => {
                rendered.parts.push(Part::Image(Image { media_type: media_type.clone(), base64: base64.clone() }));
            }
            Context::Unsupported { kind } => {
                rendered.problems.push(format!("contexts of type {kind:?} are not read by this version"));
            }
        }
    }
    rendered
}

fn block(kind: &str, name: &str, content: &str) -> Part {
    let name = name.replace('"', "'");
    Part::Text(if content.is_empty() {
        format!("<{kind} name=\"{name}\"/>")
    } else {
        format!("<{kind} name=\"{name}\">\n{content}\n</{kind}>")
    })
}

fn read_file(path: &Path, lines: Option<(u64, u64)>) -> Result<String, String> {
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("is not a file".into());
    }
    let mut bytes = Vec::new();
    // A range may lie deep in a large file, so the cut comes after the range.
    let limit = if lines.is_some() { 64 * MAX_FILE_BYTES } else { MAX_FILE_BYTES + 1 };
    file.take(limit).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.contains(&0) {
        return Err("is a binary file".into());
    }
    let content = String::from_utf8_lossy(&bytes);
    let chosen = match lines {
        Some((first, last)) => content
            .lines()
            .skip(usize::try_from(first.saturating_sub(1)).unwrap_or(usize::MAX))
            .take(usize::try_from(last.saturating_sub(first.max(1)).saturating_add(1)).unwrap_or(usize::MAX))
            .collect::<Vec<_>>()
            .join("\n"),
        None => content.into_owned(),
    };
    let max = usize::try_from(MAX_FILE_BYTES).unwrap_or(usize::MAX);
    if chosen.len() > max {
        return Ok(format!(
            "{}\n[cut here: the file is larger than {MAX_FILE_BYTES} bytes]",
            text::prefix(&chosen, max)
        ));
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(content: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        file
    }

    fn render_file(content: &[u8], lines: Option<(u64, u64)>) -> Rendered {
        let file = file(content);
        render(&[Context::File { path: file.path().display().to_string(), lines }])
    }

    #[test]
    fn lines_are_one_based_and_inclusive() {
        let rendered = render_file(b"a\nb\nc\nd\n", Some((2, 3)));
        let [Part::Text(text)] = &rendered.parts[..] else { panic!("{:?}", rendered.parts) };
        assert!(text.contains(">\nb\nc\n</file>"), "{text}");
    }

    #[test]
    fn large_files_are_cut_with_a_note() {
        let rendered = render_file(&vec![b'x'; 300 * 1024], None);
        let [Part::Text(text)] = &rendered.parts[..] else { panic!("one part") };
        assert!(text.len() < 260 * 1024 && text.contains("[cut here"));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        assert_eq!(render_file(b"\0\x01", None).problems.len(), 1);
        let missing = render(&[Context::File { path: "/nowhere/at/all".into(), lines: None }]);
        assert!(missing.problems[0].starts_with("/nowhere/at/all: "), "{:?}", missing.problems);
        let web = render(&[Context::Unsupported { kind: "web".into() }]);
        assert!(web.problems[0].contains("\"web\""));
    }
}
