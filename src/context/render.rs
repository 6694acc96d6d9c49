//! What a user points at, as parts of the user's message.
//!
//! Everything goes into the message itself, so it reaches the model whenever it is attached. What
//! cannot be read is named, and so is what there was no room for: nothing is dropped in silence.

mod directory;
mod fit;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use futures_util::{StreamExt, stream};

use super::index::{Index, Kind};
use super::mention::mentions;
use super::paths::Places;
pub use super::share::Budget;
use super::{files, repo_map, web};
use crate::base::task;
use crate::config::IndexConfig;
use crate::http::Client;
use crate::llm::{Image, Part};
use fit::{Block, Item};

/// More than these are named and left out.
const MOST_CONTEXTS: usize = 256;
const MOST_IMAGES: usize = 20;
const MAX_IMAGE_TEXT: usize = 7 * 1024 * 1024;
/// How many contexts are fetched at once.
const AT_ONCE: usize = 8;
/// One context may bring so much, before all of them share the room there is.
const MAX_BYTES: usize = 1024 * 1024;
const MAX_ALL_BYTES: usize = 16 * 1024 * 1024;
const LEAST_BYTES: usize = 64 * 1024;
/// A disk or server that does not answer is not waited for longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Something the user points at beside the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Context {
    /// A file, or lines of it, counted from 1, last included.
    File {
        path: String,
        lines: Option<(u64, u64)>,
    },
    /// Every file below a directory.
    Directory {
        path: String,
    },
    /// Where the user's cursor is or what is selected; lines and columns counted from 1.
    Cursor {
        path: String,
        start: (u64, u64),
        end: (u64, u64),
    },
    Text {
        label: String,
        content: String,
    },
    /// A piece of code without a file.
    Code {
        language: String,
        description: Option<String>,
        content: String,
    },
    Image {
        media_type: String,
        base64: String,
    },
    Web {
        url: String,
    },
    RepoMap,
    McpResource {
        server: String,
        uri: String,
        name: String,
    },
    /// A kind that nobody knows; named to the user.
    Unsupported {
        kind: String,
    },
}

/// Who knows the resources of MCP servers.
pub trait Resources: Send + Sync {
    /// The text of a resource. The error is a reason in a few words.
    fn read<'a>(&'a self, server: &'a str, uri: &'a str) -> BoxFuture<'a, Result<String, String>>;
}

/// For when there are no MCP servers.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoResources;

impl Resources for NoResources {
    fn read<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(std::future::ready(Err("there is no such MCP server".to_owned())))
    }
}

/// Makes an image of a file's bytes and their type, small enough for models.
pub type PrepareImage = fn(&[u8], &str) -> Result<Image, String>;

/// An image as it is.
pub fn plain_image(bytes: &[u8], media_type: &str) -> Result<Image, String> {
    Ok(Image { media_type: media_type.to_owned(), base64: STANDARD.encode(bytes) })
}

/// Where contexts come from.
#[derive(Clone)]
pub struct Sources {
    pub places: Places,
    /// For the overview of the workspace.
    pub index: Option<Arc<Index>>,
    pub config: IndexConfig,
    pub http: Client,
    pub resources: Arc<dyn Resources>,
    pub prepare_image: PrepareImage,
    /// Whether the model can look at images.
    pub sees_images: bool,
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources").field("places", &self.places).field("config", &self.config).finish_non_exhaustive()
    }
}

/// What becomes of contexts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rendered {
    /// Parts of the user's message, to stand before what the user wrote.
    pub parts: Vec<Part>,
    /// For the user: what could not be used, and what was cut.
    pub problems: Vec<String>,
    /// The files that the model sees whole.
    pub seen: Vec<SeenFile>,
}

/// A file as the model sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenFile {
    /// With links resolved.
    pub path: PathBuf,
    pub content: Arc<str>,
}

/// Reads everything that is attached to `message` or mentioned in it. Bounded in time and size.
pub async fn render(message: &str, contexts: &[Context], sources: &Sources, budget: Budget) -> Rendered {
    let mut rendered = Rendered::default();
    let mut all: Vec<Context> = Vec::new();
    for context in contexts.iter().cloned().chain(mentioned(message, &sources.places).await) {
        if !all.contains(&context) {
            all.push(context);
        }
    }
    if all.len() > MOST_CONTEXTS {
        rendered.problems.push(format!(
            "{} of {} contexts: too many for one message",
            all.len() - MOST_CONTEXTS,
            all.len()
        ));
        all.truncate(MOST_CONTEXTS);
    }
    let share = (MAX_ALL_BYTES / all.len().max(1)).clamp(LEAST_BYTES, MAX_BYTES).min(budget.bytes);
    let reads = stream::iter(all).map(|context| gather(context, sources, share)).buffered(AT_ONCE);
    let mut items = Vec::new();
    let mut images = 0;
    for (name, gathered) in reads.collect::<Vec<_>>().await {
        match gathered {
            Ok(Item { image: Some(_), .. }) if images >= MOST_IMAGES => {
                rendered.problems.push(format!("{name}: more than {MOST_IMAGES} images"));
            }
            Ok(item) => {
                images += usize::from(item.image.is_some());
                items.push(item);
            }
            Err(problem) => rendered.problems.push(format!("{name}: {problem}")),
        }
    }
    fit::fit(items, budget, &mut rendered);
    rendered
}

async fn mentioned(message: &str, places: &Places) -> Vec<Context> {
    if !message.contains('@') {
        return Vec::new();
    }
    let (message, places) = (message.to_owned(), places.clone());
    let found = task::blocking(move || mentions(&message, &places));
    let Ok(Ok(found)) = tokio::time::timeout(PATIENCE, found).await else { return Vec::new() };
    let context = |mention: super::mention::Mention| {
        let path = mention.path.to_string_lossy().into_owned();
        match mention.kind {
            Kind::File => Context::File { path, lines: mention.lines },
            Kind::Directory => Context::Directory { path },
        }
    };
    found.into_iter().map(context).collect()
}

/// How the user knows it, and what it brings.
async fn gather(context: Context, sources: &Sources, max: usize) -> (String, Result<Item, String>) {
    match context {
        Context::File { path, lines } => {
            let meant = sources.places.meant_by(&path);
            let (prepare, sees) = (sources.prepare_image, sources.sees_images);
            let read = on_disk(move || file(&meant, lines, max, prepare, sees)).await;
            (path, read)
        }
        Context::Directory { path } => {
            let (meant, ignores) = (sources.places.meant_by(&path), sources.config.ignores);
            let read = on_disk(move || {
                let directory = meant.iter().find(|path| path.is_dir()).or(meant.first()).ok_or("is no path")?;
                directory::read(directory, ignores, max)
            });
            let read = read.await;
            (path, read)
        }
        Context::Cursor { path, start, end } => {
            let at = |(line, column): (u64, u64)| format!("{line}:{column}");
            let place = if start == end { at(start) } else { format!("{} to {}", at(start), at(end)) };
            let block = Block::new("cursor", String::new()).named("path", &path).named("position", &place);
            (path.clone(), Ok(Item::one(path, block)))
        }
        Context::Text { label, content } => {
            let block = Block::new("context", content).named("name", &label);
            (label.clone(), Ok(Item::one(label, block)))
        }
        Context::Code { language, description, content } => {
            let name = description.as_ref().unwrap_or(&language).clone();
            let block = Block::new("code", content).named("language", &language);
            let block = match &description {
                Some(description) => block.named("description", description),
                None => block,
            };
            (name.clone(), Ok(Item::one(name, block)))
        }
        Context::Image { media_type, base64 } => {
            (format!("an image of type {media_type}"), attached_image(&media_type, &base64, sources))
        }
        Context::Web { url } => {
            let read = web::read(&sources.http, &url).await.map(|page| {
                let block = Block::new("web", page.text).named("url", &page.url);
                let block = page.title.iter().fold(block, |block, title| block.named("title", title));
                Item::one(url.clone(), block.remarked(page.is_cut.then(|| "only the beginning is shown".to_owned())))
            });
            (url, read)
        }
        Context::RepoMap => ("the repository map".to_owned(), overview(sources).await),
        Context::McpResource { server, uri, name } => {
            let shown = if name.is_empty() { uri.clone() } else { name };
            let read = tokio::time::timeout(PATIENCE, sources.resources.read(&server, &uri)).await;
            let read = read.unwrap_or_else(|_| Err("the MCP server did not answer in time".to_owned()));
            let block = |text| Block::new("resource", text).named("server", &server).named("uri", &uri);
            let item = read.map(|text| Item::one(shown.clone(), block(text)));
            (shown, item)
        }
        Context::Unsupported { kind } => {
            (format!("contexts of type {kind:?}"), Err("not known to this version".to_owned()))
        }
    }
}

async fn on_disk(read: impl FnOnce() -> Result<Item, String> + Send + 'static) -> Result<Item, String> {
    match tokio::time::timeout(PATIENCE, task::blocking(read)).await {
        Ok(Ok(item)) => item,
        Ok(Err(_)) => Err("could not be read".to_owned()),
        Err(_) => Err("the disk did not answer in time".to_owned()),
    }
}

async fn overview(sources: &Sources) -> Result<Item, String> {
    let map = match &sources.index {
        Some(index) => repo_map::repo_map(index, sources.config.repo_map).await,
        None => None,
    };
    let map = map.ok_or("there is no workspace folder")?;
    Ok(Item::one("the repository map".to_owned(), Block::new("repository-map", map)))
}

/// The first of the paths that can be read; else the reason why the first cannot.
fn file(
    meant: &[PathBuf],
    lines: Option<(u64, u64)>,
    max: usize,
    prepare: PrepareImage,
    sees_images: bool,
) -> Result<Item, String> {
    let path = meant.iter().find(|path| path.exists()).or(meant.first()).ok_or("is no path")?;
    let name = path.display().to_string();
    if files::is_image(path) && lines.is_none() {
        if !sees_images {
            return Err("the model cannot look at images".to_owned());
        }
        let (bytes, media_type) = files::read_image(path)?;
        let image = prepare(&bytes, media_type)?;
        return Ok(Item::image(name.clone(), Block::new("image", String::new()).named("name", &name), image));
    }
    Ok(Item::one(name, file_block(path, lines, max)?))
}

fn file_block(path: &Path, lines: Option<(u64, u64)>, max: usize) -> Result<Block, String> {
    let read = files::read_text(path, lines, max)?;
    let mut block = Block::new("file", read.text).named("name", &path.display().to_string()).remarked(read.remark);
    if lines.is_none() {
        let size = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        block = block.of(usize::try_from(size).unwrap_or(usize::MAX));
    }
    if let Some((first, last)) = lines {
        block = block.named("lines", &format!("{first}-{last}"));
    }
    block.seen = read.seen.map(|(path, content)| SeenFile { path, content });
    Ok(block)
}

fn attached_image(media_type: &str, text: &str, sources: &Sources) -> Result<Item, String> {
    if !sources.sees_images {
        return Err("the model cannot look at images".to_owned());
    }
    // Some clients send the whole address.
    let text = text.strip_prefix("data:").and_then(|text| text.split_once(',')).map_or(text, |(_, data)| data);
    if text.len() > MAX_IMAGE_TEXT {
        return Err("is larger than 5 MiB".to_owned());
    }
    let bytes = STANDARD.decode(text.trim()).map_err(|_| "is not written in base64")?;
    let media_type = files::image_type(&bytes).unwrap_or(media_type);
    let image = (sources.prepare_image)(&bytes, media_type)?;
    Ok(Item { image: Some(image), ..Item::default() })
}

#[cfg(test)]
mod tests;
