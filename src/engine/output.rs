//! What a tool gave, cut to what a model should read: the rest goes to a file the model can look
//! into.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::tool_call::Outcome;
use crate::base::text;
use crate::base::{private, task};
use crate::config::ToolCallConfig;
use crate::tool::{Content, Details, ToolOutput};

/// Larger texts are not taken for JSON to be laid out.
const MAX_JSON_BYTES: usize = 64 * 1024;

pub(super) struct Limited {
    pub(super) outcome: Outcome,
    /// The output laid out for reading, when it is JSON.
    pub(super) json: Option<Details>,
}

/// Joins the texts, cuts them, and leaves out the images that the model could not see.
pub(super) async fn limit(
    output: ToolOutput,
    settings: &ToolCallConfig,
    directory: Option<&Path>,
    sees_images: bool,
) -> Limited {
    let mut texts = Vec::new();
    let mut images = Vec::new();
    for content in output.contents {
        match content {
            Content::Text(text) => texts.push(text),
            Content::Image(image) => {
                let unseen = if sees_images { "" } else { ", which this model cannot see" };
                texts.push(format!("[Image: {}{unseen}]", image.media_type));
                if sees_images {
                    images.push(image);
                }
            }
        }
    }
    let full = texts.join("\n");
    let json = laid_out(&full);
    let text = match cut(&full, settings) {
        None => full,
        Some(kept) => {
            let kept = kept.to_owned();
            let saved = save(full, directory).await;
            notice(&kept, output.error, saved)
        }
    };
    Limited { outcome: Outcome { error: output.error, text, images, took: std::time::Duration::ZERO }, json }
}

/// The beginning that is kept, when the text is too long.
fn cut<'a>(full: &'a str, settings: &ToolCallConfig) -> Option<&'a str> {
    let lines_end = full.match_indices('\n').nth(settings.max_output_lines.max(1) - 1).map(|(at, _)| at);
    let by_lines = lines_end.filter(|at| at + 1 < full.len()).map_or(full, |at| &full[..at]);
    let kept = text::prefix(by_lines, settings.max_output_bytes.max(1));
    (kept.len() < full.len() && full.trim_end().len() > kept.len()).then_some(kept)
}

/// The name is ours: a provider's id may hold anything.
async fn save(full: String, directory: Option<&Path>) -> Result<PathBuf, String> {
    let Some(directory) = directory.map(Path::to_owned) else { return Err("there is no place for it".to_owned()) };
    let written = task::blocking(move || {
        private::create_folder(&directory)?;
        let path = directory.join(format!("{}.txt", uuid::Uuid::new_v4()));
        std::fs::write(&path, full)?;
        Ok::<PathBuf, std::io::Error>(path)
    });
    written.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

fn notice(kept: &str, error: bool, saved: Result<PathBuf, String>) -> String {
    let how = if error { "failed" } else { "succeeded" };
    let rest = match saved {
        Ok(path) => format!(
            "The whole output is in {}; look into it with grep, or with read_file and line_offset.",
            path.display()
        ),
        Err(problem) => format!("The whole output could not be kept: {problem}."),
    };
    format!("{kept}\n[OUTPUT TRUNCATED] The call {how}. {rest}")
}

fn laid_out(full: &str) -> Option<Details> {
    let trimmed = full.trim_start();
    if full.len() > MAX_JSON_BYTES || !trimmed.starts_with(['{', '[']) {
        return None;
    }
    let value: Value = serde_json::from_str(full).ok()?;
    serde_json::to_string_pretty(&value).ok().map(|text| Details::JsonOutputs(vec![text]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::Image;

    fn settings(lines: usize, bytes: usize) -> ToolCallConfig {
        ToolCallConfig { max_output_lines: lines, max_output_bytes: bytes, ..ToolCallConfig::default() }
    }

    #[tokio::test]
    async fn long_output_goes_to_a_file_of_our_own_naming() {
        let directory = tempfile::tempdir().unwrap();
        let full: String = (0..100).map(|line| format!("line {line}\n")).collect();
        let limited =
            limit(ToolOutput::text(full.clone()), &settings(10, 1_000_000), Some(&directory.path().join("o")), true)
                .await;
        let text = &limited.outcome.text;
        assert!(
            text.starts_with("line 0\n") && text.contains("line 9\n[OUTPUT TRUNCATED] The call succeeded."),
            "{text}"
        );
        let saved = std::fs::read_dir(directory.path().join("o")).unwrap().next().unwrap().unwrap().path();
        assert!(text.contains(&saved.display().to_string()));
        assert_eq!(std::fs::read_to_string(saved).unwrap(), full);
    }

    #[test]
    fn cuts_are_at_lines_and_characters() {
        assert_eq!(cut("a\nb\nc\n", &settings(3, 100)), None, "a final newline is no line");
        assert_eq!(cut("a\nb\nc", &settings(2, 100)), Some("a\nb"));
        assert_eq!(cut("ééé", &settings(9, 3)), Some("é"));
        assert_eq!(cut("", &settings(1, 1)), None);
        assert_eq!(cut("x", &settings(0, 0)), None);
    }

    #[tokio::test]
    async fn images_are_named_and_json_is_laid_out() {
        let image = Image { media_type: "image/png".into(), base64: "AA".into() };
        let output = ToolOutput { contents: vec![Content::Image(image.clone())], ..ToolOutput::default() };
        let seen = limit(output.clone(), &settings(10, 100), None, true).await.outcome;
        assert_eq!((seen.text.as_str(), seen.images), ("[Image: image/png]", vec![image]));
        assert!(limit(output, &settings(10, 100), None, false).await.outcome.images.is_empty());
        let json = limit(ToolOutput::text("{\"a\":[1]}"), &settings(10, 100), None, true).await.json;
        assert_eq!(json, Some(Details::JsonOutputs(vec!["{\n  \"a\": [\n    1\n  ]\n}".into()])));
        assert_eq!(limit(ToolOutput::text("[not json"), &settings(10, 100), None, true).await.json, None);
    }
}
