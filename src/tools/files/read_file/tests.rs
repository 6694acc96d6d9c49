//! Reading: pages, odd encodings, images, and what counts as seen.

use std::io::Cursor;
use std::sync::Arc;

use base64::Engine;
use image::{DynamicImage, ImageFormat, Rgb, RgbImage, Rgba, RgbaImage};
use serde_json::json;

use crate::config::ToolCallConfig;
use crate::llm::Image;
use crate::tool::{Access, Content, ToolOutput};
use crate::tools::files::testing::{Lab, said};

#[tokio::test]
async fn a_whole_file_is_shown_and_seen() {
    let lab = Lab::new();
    let path = lab.put("a.txt", "\u{FEFF}one\r\ntwo\r\n");
    let preview = lab.preview("read_file", json!({"path": path})).await.unwrap();
    assert_eq!(preview.summary.as_deref(), Some("Reading a.txt"));
    assert_eq!((&preview.paths[0].path, preview.paths[0].access), (&path, Access::Read));
    assert_eq!(lab.good("read_file", json!({"path": path})).await, "one\ntwo");
    assert_eq!(lab.context.seen.last(&path).as_deref(), Some("one\r\ntwo\r\n"), "the text, without the mark");
    assert_eq!(lab.good("read_file", json!({"path": "a.txt"})).await, "one\ntwo", "in the workspace");
    lab.put("empty", "");
    assert_eq!(lab.good("read_file", json!({"path": lab.path("empty")})).await, "[EMPTY FILE]");
    assert_eq!(lab.context.seen.last(&lab.path("empty")).as_deref(), Some(""));
}

#[tokio::test]
async fn pages_say_how_to_go_on() {
    let lab = Lab::new();
    let text: String = (1..=10).map(|n| format!("{n}\n")).collect();
    let path = lab.put("a.txt", &text);
    let arguments = json!({"path": path, "line_offset": "3", "limit": 2.0});
    assert_eq!(
        lab.preview("read_file", arguments.clone()).await.unwrap().summary.as_deref(),
        Some("Reading a.txt (3-5)")
    );
    assert_eq!(
        lab.good("read_file", arguments).await,
        "4\n5\n[CONTENT TRUNCATED] Lines 4-5 of 10; go on with line_offset 5."
    );
    assert_eq!(lab.good("read_file", json!({"path": path, "line_offset": 8})).await, "9\n10");
    assert_eq!(lab.context.seen.last(&path), None, "a part is not the whole");
    lab.good("read_file", json!({"path": path, "limit": 4})).await;
    assert_eq!(lab.context.seen.last(&path), None);
    lab.good("read_file", json!({"path": path, "line_offset": 4, "limit": 4})).await;
    assert_eq!(lab.context.seen.last(&path).as_deref(), Some(text.as_str()), "all parts are");
    let beyond = lab.bad("read_file", json!({"path": path, "line_offset": 10})).await;
    assert!(beyond.contains("has 10 lines"), "{beyond}");
    assert!(lab.bad("read_file", json!({"path": path, "limit": -1})).await.contains("`limit` must be"));
    assert_eq!(lab.good("read_file", json!({"path": path, "limit": 0})).await.lines().count(), 10);
}

#[tokio::test]
async fn no_output_is_too_large() {
    let mut lab = Lab::new();
    let path = lab.put("a.txt", "line\n".repeat(5_000));
    let text = lab.good("read_file", json!({"path": path, "limit": 4_000})).await;
    assert_eq!(text.lines().count(), 2_000, "with the note");
    assert!(text.ends_with("Lines 1-1999 of 5000; go on with line_offset 1999."), "{:?}", &text[text.len() - 80..]);
    let exact = lab.put("exact.txt", "line\n".repeat(2_000));
    assert_eq!(lab.good("read_file", json!({"path": exact})).await.lines().count(), 2_000);
    assert!(lab.context.seen.last(&exact).is_some());

    lab.context.settings = Arc::new(ToolCallConfig { read_file_max_lines: 3, ..ToolCallConfig::default() });
    let text = lab.good("read_file", json!({"path": path, "limit": 100})).await;
    assert!(text.starts_with("line\nline\nline\n[CONTENT TRUNCATED] Lines 1-3"), "{text}");

    let lab = Lab::new();
    let wide = lab.put("wide.txt", format!("{}\nshort\n", "é".repeat(30_000)).repeat(2));
    let text = lab.good("read_file", json!({"path": wide})).await;
    assert!(text.len() <= 50 * 1024 && !text.contains('\u{FFFD}'));
    assert!(
        text.ends_with("[CONTENT TRUNCATED] Line 1 of 4 is too long; this is its start; go on with line_offset 1.")
    );
    let text = lab.good("read_file", json!({"path": wide, "line_offset": 1})).await;
    assert_eq!(text, "short\n[CONTENT TRUNCATED] Lines 2-2 of 4; go on with line_offset 2.");
    assert_eq!(lab.context.seen.last(&wide), None);
}

#[tokio::test]
async fn what_cannot_be_read() {
    let lab = Lab::new();
    lab.put("binary", b"text\0more");
    lab.put("utf16", b"\xFE\xFF\0a");
    for (path, expected) in [
        (lab.path("binary"), "is a binary file"),
        (lab.path("utf16"), "is UTF-16 text"),
        (lab.path("missing"), "does not exist"),
        (lab.root.clone(), "is a folder, not a file. Use directory_tree"),
        (lab.path("binary/below"), "not a folder"),
    ] {
        let refused = lab.bad("read_file", json!({"path": path})).await;
        assert!(refused.contains(expected), "{refused}");
    }
    lab.put("latin", b"gr\xFC\xDFe\n");
    let text = lab.good("read_file", json!({"path": lab.path("latin")})).await;
    assert!(text.starts_with("gr\u{FFFD}\u{FFFD}e\n[NOT UTF-8]"), "{text}");
    assert_eq!(lab.context.seen.last(&lab.path("latin")), None);
}

fn png(picture: impl Into<DynamicImage>) -> Vec<u8> {
    let mut bytes = Vec::new();
    picture.into().write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png).unwrap();
    bytes
}

fn noise(width: u32, height: u32) -> RgbImage {
    let mut state = 1_u32;
    RgbImage::from_fn(width, height, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [a, b, c, _] = state.to_be_bytes();
        Rgb([a, b, c])
    })
}

fn image(output: &ToolOutput) -> (&Image, Vec<u8>) {
    let [Content::Text(_), Content::Image(image)] = &output.contents[..] else { panic!("{}", said(output)) };
    (image, base64::engine::general_purpose::STANDARD.decode(&image.base64).unwrap())
}

#[tokio::test]
async fn images_are_shown_to_those_who_see() {
    let mut lab = Lab::new();
    let small = png(RgbaImage::from_pixel(20, 10, Rgba([1, 2, 3, 4])));
    let path = lab.put("small.PNG", &small);
    let output = lab.run("read_file", json!({"path": path})).await;
    let (shown, bytes) = image(&output);
    assert_eq!((shown.media_type.as_str(), &bytes), ("image/png", &small), "as it is");
    assert_eq!(said(&output), "Image: png, 20×10.");

    lab.context.sees_images = false;
    let refused = lab.bad("read_file", json!({"path": path})).await;
    assert!(refused.contains("is an image (png, 20×10) that this model cannot see"), "{refused}");
}

#[tokio::test]
async fn large_images_are_made_smaller() {
    let lab = Lab::new();
    let wide = lab.put("wide.png", png(RgbImage::from_pixel(3_200, 40, Rgb([200, 0, 0]))));
    let output = lab.run("read_file", json!({"path": wide})).await;
    let (shown, bytes) = image(&output);
    let small = image::load_from_memory(&bytes).unwrap();
    assert_eq!((shown.media_type.as_str(), small.width(), small.height()), ("image/png", 1_568, 20));

    let heavy = lab.put("heavy.png", png(noise(900, 700)));
    assert!(std::fs::metadata(&heavy).unwrap().len() > 1_000_000);
    let output = lab.run("read_file", json!({"path": heavy})).await;
    let (shown, bytes) = image(&output);
    assert_eq!(shown.media_type, "image/jpeg");
    assert!(bytes.len() <= 1_000_000);
    assert!(said(&output).starts_with("Image: png, 900×700, shown as jpeg, "), "{}", said(&output));
}

#[tokio::test]
async fn names_of_images_may_lie() {
    let lab = Lab::new();
    let pointer = lab.put("pointer.png", "version https://git-lfs.github.com/spec/v1\n");
    assert!(lab.good("read_file", json!({"path": pointer})).await.starts_with("version"));
    let broken = lab.put("broken.gif", [&b"GIF89a"[..], &[7; 20]].concat());
    assert!(lab.bad("read_file", json!({"path": broken})).await.contains("cannot be shown"));
    let whole = png(noise(40, 40));
    let torn = lab.put("torn.png", &whole[..whole.len() / 2]);
    assert!(lab.bad("read_file", json!({"path": torn})).await.contains("damaged"), "it is not sent to a model");
    let mut bomb = png(RgbImage::new(1, 1));
    bomb[16..24].copy_from_slice(&[0, 0, 0xFF, 0xFF, 0, 0, 0xFF, 0xFF]);
    let bomb = lab.put("bomb.png", bomb);
    assert!(lab.bad("read_file", json!({"path": bomb})).await.contains("damaged or too large"));
    let other = lab.put("really.jpg", png(RgbImage::new(2, 2)));
    let output = lab.run("read_file", json!({"path": other})).await;
    assert_eq!(image(&output).0.media_type, "image/png", "by what it is");
    let huge = lab.path("huge.png");
    std::fs::File::create(&huge).unwrap().set_len(30 << 20).unwrap();
    assert!(lab.bad("read_file", json!({"path": huge})).await.contains("over 20 MiB"));
}
