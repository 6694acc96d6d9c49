//! A tree of names, and which of them are shown when there is not room for all. Pure.

use std::collections::VecDeque;

/// When not all can be shown, no folder shows more than this.
const MOST_IN_ONE: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
    /// With what it leads to.
    Link(String),
}

/// How much may be shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) entries: usize,
    pub(super) bytes: usize,
}

#[derive(Debug)]
struct Node {
    /// As it is shown.
    line: String,
    depth: usize,
    parent: usize,
    children: Vec<usize>,
    is_folder: bool,
    /// How many entries lie below, those included that are not kept.
    below: usize,
}

/// Grows from the top, a folder before what is in it.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    folders: usize,
    files: usize,
}

impl Default for Tree {
    fn default() -> Self {
        let root = Node { line: String::new(), depth: 0, parent: 0, children: Vec::new(), is_folder: true, below: 0 };
        Self { nodes: vec![root], folders: 0, files: 0 }
    }
}

impl Tree {
    pub(super) const ROOT: usize = 0;

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Folders and files.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.folders, self.files)
    }

    /// Adds an entry to a folder; without a name it is only counted. Returns the node that its own
    /// entries belong to.
    pub(super) fn add(&mut self, folder: usize, name: Option<impl AsRef<str>>, kind: Kind) -> usize {
        match kind {
            Kind::Folder => self.folders += 1,
            Kind::File | Kind::Link(_) => self.files += 1,
        }
        let mut above = folder;
        loop {
            self.nodes[above].below += 1;
            if above == Self::ROOT {
                break;
            }
            above = self.nodes[above].parent;
        }
        let Some(name) = name else { return folder };
        let line = match &kind {
            Kind::File => printable(name.as_ref()),
            Kind::Folder => format!("{}/", printable(name.as_ref())),
            Kind::Link(to) => format!("{} -> {}", printable(name.as_ref()), printable(to)),
        };
        let depth = self.nodes[folder].depth + 1;
        let node = self.nodes.len();
        let is_folder = kind == Kind::Folder;
        self.nodes.push(Node { line, depth, parent: folder, children: Vec::new(), is_folder, below: 0 });
        self.nodes[folder].children.push(node);
        node
    }

    /// The entries as lines, one blank per level, and whether they are all.
    pub(super) fn render(&self, room: Room) -> (String, bool) {
        let shown = self.choose(room);
        let mut text = String::new();
        let mut all = true;
        // Lines still to be written, the next one last.
        let mut pending: Vec<Line> = self.lines_in(Self::ROOT, &shown, &mut all);
        while let Some(line) = pending.pop() {
            match line {
                Line::Node(node) => {
                    let entry = &self.nodes[node];
                    text.extend(std::iter::repeat_n(' ', entry.depth));
                    text.push_str(&entry.line);
                    if entry.below > 0 && shown[node] == 0 {
                        all = false;
                        text.push_str(&format!(" ({} entries)", entry.below));
                    }
                    text.push('\n');
                    if shown[node] > 0 {
                        pending.extend(self.lines_in(node, &shown, &mut all));
                    }
                }
                Line::More { depth, count } => {
                    text.extend(std::iter::repeat_n(' ', depth));
                    text.push_str(&format!("… {count} more\n"));
                }
            }
        }
        (text, all)
    }

    /// What stands directly below a folder, in reverse.
    fn lines_in(&self, folder: usize, shown: &[usize], all: &mut bool) -> Vec<Line> {
        let entry = &self.nodes[folder];
        let children = &entry.children[..shown[folder].min(entry.children.len())];
        let mut lines: Vec<Line> = Vec::with_capacity(children.len() + 1);
        // Entries may be counted here without being kept.
        let inside: usize = children.iter().map(|child| 1 + self.nodes[*child].below).sum();
        if inside < entry.below {
            *all = false;
            lines.push(Line::More { depth: entry.depth + 1, count: entry.below - inside });
        }
        lines.extend(children.iter().rev().map(|child| Line::Node(*child)));
        lines
    }

    /// How many entries of each folder are shown, level by level.
    fn choose(&self, room: Room) -> Vec<usize> {
        let cost = |node: &Node| node.depth + node.line.len() + 1;
        let all_bytes: usize = self.nodes.iter().map(cost).sum();
        let kept_all = self.nodes[Self::ROOT].below == self.nodes.len() - 1;
        if kept_all && self.nodes.len() - 1 <= room.entries && all_bytes <= room.bytes {
            return self.nodes.iter().map(|node| node.children.len()).collect();
        }
        let mut shown = vec![0; self.nodes.len()];
        let (mut entries, mut bytes) = (room.entries, room.bytes);
        let mut folders = VecDeque::from([Self::ROOT]);
        while let Some(folder) = folders.pop_front() {
            let children = &self.nodes[folder].children;
            let most = entries.min(MOST_IN_ONE);
            // The line that tells how many more there are needs room too.
            let most = if children.len() > most { most.saturating_sub(1) } else { children.len() };
            let more = 24 + self.nodes[folder].depth;
            for child in &children[..most] {
                let node = &self.nodes[*child];
                let needs = cost(node) + if node.is_folder { 24 } else { 0 };
                if needs + more > bytes {
                    break;
                }
                bytes -= needs;
                entries -= 1;
                shown[folder] += 1;
                if node.is_folder {
                    folders.push_back(*child);
                }
            }
            if shown[folder] > 0 && shown[folder] < children.len() {
                bytes = bytes.saturating_sub(more);
                entries = entries.saturating_sub(1);
            }
        }
        shown
    }
}

enum Line {
    Node(usize),
    More { depth: usize, count: usize },
}

/// A name in one line.
fn printable(name: &str) -> String {
    if name.contains(char::is_control) { name.escape_debug().to_string() } else { name.to_owned() }
}
