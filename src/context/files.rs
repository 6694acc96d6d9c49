//! Files that a user points at: read once, bounded, and never waited for.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Lines deep in a file are looked for so far.
const MAX_SCAN: u64 = 64 * 1024 * 1024;
const MAX_IMAGE: u64 = 5 * 1024 * 1024;

/// What was read of a text file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextFile {
    pub(super) text: String,
    /// Why the text is not exactly what is in the file.
    pub(super) remark: Option<String>,
    /// The file itself and its whole content, if that is what was read.
    pub(super) seen: Option<(PathBuf, Arc<str>)>,
}

/// The type of an image, by the end of its name.
pub(super) fn is_image(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    ["png", "jpg", "jpeg", "gif", "webp"].iter().any(|known| extension.eq_ignore_ascii_case(known))
}

/// The type of an image, by what is in it.
pub(super) fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

pub(super) fn read_image(path: &Path) -> Result<(Vec<u8>, &'static str), String> {
    let mut bytes = Vec::new();
    open(path)?.take(MAX_IMAGE + 1).read_to_end(&mut bytes).map_err(|error| reason(&error))?;
    if bytes.len() as u64 > MAX_IMAGE {
        return Err(format!("is larger than {} MiB", MAX_IMAGE / 1024 / 1024));
    }
    let media_type = image_type(&bytes).ok_or("is no image that can be shown")?;
    Ok((bytes, media_type))
}

/// Reads at most `max` bytes of a file, or of these of its lines, counted from 1, last included.
pub(super) fn read_text(path: &Path, lines: Option<(u64, u64)>, max: usize) -> Result<TextFile, String> {
    let file = open(path)?;
    let (bytes, is_cut) = match lines {
        Some((first, last)) => read_lines(file, first.max(1), last.max(first.max(1)), max)?,
        None => {
            let mut bytes = Vec::new();
            file.take(max as u64 + 1).read_to_end(&mut bytes).map_err(|error| reason(&error))?;
            let is_cut = bytes.len() > max;
            bytes.truncate(max);
            (bytes, is_cut)
        }
    };
    let cut = is_cut.then(|| format!("only the first {max} bytes are shown"));
    if let Some((encoding, _)) =
        encoding_rs::Encoding::for_bom(&bytes).filter(|(found, _)| *found != encoding_rs::UTF_8)
    {
        let text = encoding.decode(&bytes).0.into_owned();
        let converted = format!("converted from {}", encoding.name());
        return Ok(TextFile { text, remark: Some(joined(converted, cut)), seen: None });
    }
    if bytes.contains(&0) {
        return Err("is a binary file".to_owned());
    }
    match String::from_utf8(bytes) {
        Ok(text) => {
            let is_whole = !is_cut && lines.is_none();
            let real = is_whole.then(|| dunce::canonicalize(path).ok()).flatten();
            let seen = real.map(|real| (real, Arc::from(text.as_str())));
            Ok(TextFile { text, remark: cut, seen })
        }
        // A cut may go through a character; anything else was no UTF-8 before.
        Err(error) if is_cut && error.utf8_error().error_len().is_none() => {
            let end = error.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(&error.as_bytes()[..end]).into_owned();
            Ok(TextFile { text, remark: cut, seen: None })
        }
        Err(error) => {
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            let lossy = "not UTF-8; what could not be read is shown as \u{fffd}".to_owned();
            Ok(TextFile { text, remark: Some(joined(lossy, cut)), seen: None })
        }
    }
}

/// Opens a regular file, and nothing that would make a reader wait.
fn open(path: &Path) -> Result<std::fs::File, String> {
    #[cfg(unix)]
    let file = {
        use rustix::fs::{Mode, OFlags};
        // Opening a named pipe would wait for its writer, possibly for ever.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        std::fs::File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(|error| reason(&error.into()))?)
    };
    #[cfg(not(unix))]
    let file = std::fs::File::open(path).map_err(|error| reason(&error))?;
    let metadata = file.metadata().map_err(|error| reason(&error))?;
    match (metadata.is_file(), metadata.is_dir()) {
        (true, _) => Ok(file),
        (_, true) => Err("is a directory".to_owned()),
        _ => Err("is no regular file".to_owned()),
    }
}

/// The reason in words that do not depend on the system.
pub(super) fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "does not exist".to_owned(),
        io::ErrorKind::PermissionDenied => "may not be read".to_owned(),
        kind => format!("cannot be read ({kind})"),
    }
}

/// The lines without what ends the last one, and whether there was more of them.
fn read_lines(file: std::fs::File, first: u64, last: u64, max: usize) -> Result<(Vec<u8>, bool), String> {
    let mut reader = BufReader::with_capacity(64 * 1024, file.take(MAX_SCAN));
    let (mut line, mut bytes, mut is_cut) = (1, Vec::new(), false);
    // Whether anything of the current line was seen.
    let mut has_begun = false;
    while line <= last {
        let buffer = reader.fill_buf().map_err(|error| reason(&error))?;
        if buffer.is_empty() {
            break;
        }
        let end = buffer.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let piece = &buffer[..end.unwrap_or(buffer.len())];
        if line >= first {
            let room = max.saturating_sub(bytes.len());
            is_cut |= piece.len() > room;
            bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        }
        has_begun = end.is_none();
        line += u64::from(end.is_some());
        let length = piece.len();
        reader.consume(length);
    }
    let count = line - u64::from(!has_begun);
    if count < first {
        return Err(format!("has only {count} lines"));
    }
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    Ok((bytes, is_cut))
}

fn joined(first: String, second: Option<String>) -> String {
    match second {
        Some(second) => format!("{first}; {second}"),
        None => first,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 1_000;

    fn file(content: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        file
    }

    fn text(content: &[u8], lines: Option<(u64, u64)>) -> Result<String, String> {
        read_text(file(content).path(), lines, MAX).map(|read| read.text)
    }

    #[test]
    fn lines_are_counted_from_one_and_the_last_is_included() {
        for (content, lines, expected) in [
            (&b"a\nb\nc\nd\n"[..], (2, 3), Ok("b\nc")),
            (b"a\nb\nc\nd\n", (0, 1), Ok("a")),
            (b"a\nb\nc\nd\n", (4, 99), Ok("d")),
            (b"a\nb\nc\nd", (4, 4), Ok("d")),
            (b"a\nb\nc\nd", (3, 1), Ok("c")),
            (b"a\r\nb\r\n", (2, 2), Ok("b\r")),
            (b"a\n\nb", (2, 2), Ok("")),
            (b"a\nb\n", (3, 3), Err("has only 2 lines")),
            (b"", (1, 1), Err("has only 0 lines")),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(text(content, Some(lines)), expected, "{content:?} {lines:?}");
        }
        let deep = format!("{}\nfound\nx", "y\n".repeat(200_000).trim_end());
        assert_eq!(text(deep.as_bytes(), Some((200_001, 200_001))).as_deref(), Ok("found"));
    }

    #[test]
    fn only_a_whole_file_was_seen() {
        let whole = file("é\n".as_bytes());
        let read = read_text(whole.path(), None, MAX).unwrap();
        assert_eq!(read.seen, Some((dunce::canonicalize(whole.path()).unwrap(), "é\n".into())));
        assert_eq!(read_text(whole.path(), Some((1, 1)), MAX).unwrap().seen, None);
        let cut = read_text(whole.path(), None, 1).unwrap();
        assert_eq!((cut.text.as_str(), cut.seen), ("", None), "cut within a character");
        assert_eq!(cut.remark.as_deref(), Some("only the first 1 bytes are shown"));
        let lines = read_text(file(b"abcdef\n").path(), Some((1, 1)), 3).unwrap();
        assert_eq!((lines.text.as_str(), lines.remark.is_some()), ("abc", true));
    }

    #[test]
    fn odd_contents_are_named() {
        assert_eq!(text(b"a\0b", None), Err("is a binary file".to_owned()));
        let latin = read_text(file(b"caf\xe9 x").path(), None, MAX).unwrap();
        assert_eq!((latin.text.as_str(), latin.seen), ("caf\u{fffd} x", None));
        assert!(latin.remark.unwrap().starts_with("not UTF-8"));
        let wide = read_text(file(b"\xff\xfeh\0i\0").path(), None, MAX).unwrap();
        assert_eq!((wide.text.as_str(), wide.remark.as_deref()), ("hi", Some("converted from UTF-16LE")));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn nothing_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        std::os::unix::fs::symlink("loop", folder.path().join("loop")).unwrap();
        for (path, expected) in [
            (pipe, "is no regular file"),
            (folder.path().join("missing"), "does not exist"),
            (folder.path().to_owned(), "is a directory"),
            ("/dev/zero".into(), "is no regular file"),
        ] {
            assert_eq!(read_text(&path, None, MAX).unwrap_err(), expected, "{}", path.display());
        }
        assert!(read_text(&folder.path().join("loop"), None, MAX).is_err());
    }

    #[test]
    fn images_are_known_by_name_and_content() {
        assert!(is_image(Path::new("a/b.PNG")) && is_image(Path::new("x.jpeg")) && !is_image(Path::new("png")));
        let png = file(b"\x89PNG\r\n\x1a\n");
        assert_eq!(read_image(png.path()).unwrap().1, "image/png");
        assert_eq!(read_image(file(b"text").path()).unwrap_err(), "is no image that can be shown");
        let huge = file(&vec![0; usize::try_from(MAX_IMAGE).unwrap() + 1]);
        assert_eq!(read_image(huge.path()).unwrap_err(), "is larger than 5 MiB");
        for (bytes, expected) in [
            (&b"\xff\xd8\xff\xe0"[..], Some("image/jpeg")),
            (b"GIF89a", Some("image/gif")),
            (b"RIFF\0\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"RIFF\0\0\0\0WAVE", None),
            (b"", None),
        ] {
            assert_eq!(image_type(bytes), expected);
        }
    }
}
