//! Makes contexts fit into a message, and says what did not.

use super::{Rendered, SeenFile};
use crate::base::text::prefix;
use crate::context::share::{Budget, shares};
use crate::llm::{Image, Part};

/// What an image takes of the room for text.
const IMAGE_BYTES: usize = 6_000;
/// What the marks around a text and the note about a cut take.
const FRAME_BYTES: usize = 200;
/// A text of which less would be left is left out.
const LEAST_BYTES: usize = 200;
/// Why a file of a directory is not shown.
pub(super) const NO_ROOM: &str = "no room";
/// So many names of files that are not shown are listed.
const MOST_NAMES: usize = 200;

/// What one context brings.
#[derive(Debug, Default)]
pub(super) struct Item {
    /// How the user knows it.
    pub(super) name: String,
    pub(super) blocks: Vec<Block>,
    pub(super) image: Option<Image>,
    /// Files that belong to it and are not among the blocks, with the reason.
    pub(super) others: Vec<(String, String)>,
    /// Whether there are files that belong to it and were not even counted.
    pub(super) has_more: bool,
}

impl Item {
    pub(super) fn one(name: String, block: Block) -> Self {
        Self { name, blocks: vec![block], ..Self::default() }
    }

    pub(super) fn image(name: String, block: Block, image: Image) -> Self {
        Self { image: Some(image), ..Self::one(name, block) }
    }

    fn need(&self) -> usize {
        let names: usize = self.others.iter().take(MOST_NAMES).map(|(name, _)| name.len() + 16).sum();
        self.blocks.iter().map(Block::need).sum::<usize>() + names
    }
}

/// A text with marks around it that say what it is.
#[derive(Debug, Default)]
pub(super) struct Block {
    tag: &'static str,
    attributes: Vec<(&'static str, String)>,
    content: String,
    /// What is special about it, for the user too.
    remark: Option<String>,
    /// How large that is of which the content may be the beginning only.
    whole: usize,
    /// The file, if the content is all of it.
    pub(super) seen: Option<SeenFile>,
}

impl Block {
    pub(super) fn new(tag: &'static str, content: String) -> Self {
        Self { tag, content, ..Self::default() }
    }

    pub(super) fn named(mut self, attribute: &'static str, value: &str) -> Self {
        let value = value.replace('"', "'").replace(char::is_control, " ");
        self.attributes.push((attribute, prefix(&value, 1_024).to_owned()));
        self
    }

    /// Says what is special about it.
    pub(super) fn remarked(self, remark: Option<String>) -> Self {
        let block = remark.iter().fold(self, |block, remark| block.named("note", remark));
        Self { remark, ..block }
    }

    pub(super) fn of(self, whole: usize) -> Self {
        Self { whole, ..self }
    }

    pub(super) fn length(&self) -> usize {
        self.content.len()
    }

    fn need(&self) -> usize {
        self.content.len() + FRAME_BYTES
    }

    fn part(&self, content: &str) -> Part {
        let attributes: String = self.attributes.iter().map(|(name, value)| format!(" {name}=\"{value}\"")).collect();
        Part::Text(if content.is_empty() {
            format!("<{}{attributes}/>", self.tag)
        } else {
            format!("<{tag}{attributes}>\n{content}\n</{tag}>", tag = self.tag)
        })
    }
}

/// Puts the items into parts, each in its share of the room.
pub(super) fn fit(items: Vec<Item>, budget: Budget, rendered: &mut Rendered) {
    let images = items.iter().filter(|item| item.image.is_some()).count();
    let room = budget.bytes.saturating_sub(images * IMAGE_BYTES);
    let needs: Vec<usize> = items.iter().map(Item::need).collect();
    for (item, share) in items.into_iter().zip(shares(&needs, room)) {
        put(item, share, rendered);
    }
}

fn put(item: Item, share: usize, rendered: &mut Rendered) {
    let mut left = share;
    let total = item.blocks.len();
    let mut others = item.others;
    let mut shown = 0;
    for block in item.blocks {
        if block.need() <= left {
            left -= block.need();
            shown += 1;
            let remark = block.remark.as_ref().filter(|_| total == 1);
            rendered.problems.extend(remark.map(|remark| format!("{}: {remark}", item.name)));
            rendered.parts.push(block.part(&block.content));
            rendered.seen.extend(block.seen);
            continue;
        }
        let room = left.saturating_sub(FRAME_BYTES);
        if total == 1 && room >= LEAST_BYTES {
            let kept = prefix(&block.content, room);
            let note = format!("{} of {} bytes are shown", kept.len(), block.content.len().max(block.whole));
            rendered.parts.push(block.part(&format!("{kept}\n[cut here: {note}]")));
            rendered.problems.push(format!("{}: {note}, to leave room for the rest of the chat", item.name));
            left = 0;
            shown += 1;
        } else if total == 1 {
            rendered.problems.push(format!("{}: there was no room for it", item.name));
            rendered.parts.push(block.part("[left out: there was no room for it]"));
        } else {
            // A part of a file that nobody asked for by name is worth less than the next file.
            others.push((block.attributes.first().map_or(String::new(), |(_, name)| name.clone()), NO_ROOM.to_owned()));
        }
    }
    if let Some(image) = item.image {
        rendered.parts.push(Part::Image(image));
    }
    if !others.is_empty() || item.has_more {
        let mut text = format!("[{}, not shown:", item.name);
        for (name, reason) in others.iter().take(MOST_NAMES) {
            text.push_str(&format!("\n {name}: {reason}"));
        }
        if item.has_more || others.len() > MOST_NAMES {
            text.push_str("\n … and more");
        }
        text.push(']');
        rendered.parts.push(Part::Text(text));
        let all = format!("{}{}", if item.has_more { "more than " } else { "" }, shown + others.len());
        rendered.problems.push(format!("{}: {shown} of {all} files were sent", item.name));
    }
}
