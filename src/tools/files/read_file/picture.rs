//! Images for models: small enough to be sent, decoded with limits.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;

use base64::Engine;
use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits, Rgb, RgbImage};

use crate::llm::Image;

const MAX_FILE_BYTES: u64 = 20 * 1024 * 1024;
/// What is sent, before base64.
const MAX_SENT_BYTES: usize = 1_000_000;
/// Vendors shrink what is larger themselves.
const MAX_SIDE: u32 = 1_568;
const MAX_DECODED_SIDE: u32 = 20_000;
const MAX_DECODED_BYTES: u64 = 256 * 1024 * 1024;

#[derive(Debug)]
pub(super) enum Seen {
    Picture {
        image: Image,
        /// What it is, in words.
        note: String,
    },
    /// The model cannot see images; what this one is.
    Hidden(String),
    /// It is no image.
    Nothing,
}

pub(super) fn has_name_of_one(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    ["png", "jpg", "jpeg", "gif", "webp"].iter().any(|known| extension.eq_ignore_ascii_case(known))
}

pub(super) fn look(file: &File, size: u64, sees_images: bool) -> Result<Seen, String> {
    if size > MAX_FILE_BYTES {
        return Err(format!("images over {} MiB are not read", MAX_FILE_BYTES / 1024 / 1024));
    }
    let mut bytes = Vec::new();
    let read = file.take(MAX_FILE_BYTES).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    show(bytes, sees_images)
}

/// An image small enough for models.
pub(in crate::tools::files) fn prepare(bytes: &[u8]) -> Result<Image, String> {
    match show(bytes.to_vec(), true)? {
        Seen::Picture { image, .. } => Ok(image),
        Seen::Hidden(_) | Seen::Nothing => Err("it is no image".to_owned()),
    }
}

fn show(bytes: Vec<u8>, sees_images: bool) -> Result<Seen, String> {
    let Ok(format) = image::guess_format(&bytes) else { return Ok(Seen::Nothing) };
    let name = match format {
        ImageFormat::Png => "png",
        ImageFormat::Jpeg => "jpeg",
        ImageFormat::Gif => "gif",
        ImageFormat::WebP => "webp",
        _ => return Err("its format is not understood".to_owned()),
    };
    let broken = |_| "it is damaged or too large".to_owned();
    let mut decoder = reader(&bytes, format).into_decoder().map_err(broken)?;
    let (width, height) = decoder.dimensions();
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let what = format!("{name}, {width}×{height}");
    if !sees_images {
        return Ok(Seen::Hidden(what));
    }
    // Decoded also when it is sent as it is: a vendor refuses every later request of a chat that has
    // a damaged image in it.
    let mut picture = DynamicImage::from_decoder(decoder).map_err(broken)?;
    let fits = width.max(height) <= MAX_SIDE && bytes.len() <= MAX_SENT_BYTES;
    if fits && orientation == Orientation::NoTransforms {
        return Ok(Seen::Picture { image: encoded(&bytes, name), note: format!("Image: {what}.") });
    }
    picture.apply_orientation(orientation);
    if picture.width().max(picture.height()) > MAX_SIDE {
        picture = picture.resize(MAX_SIDE, MAX_SIDE, FilterType::CatmullRom);
    }
    let Small { bytes, name, width, height } = shrink(picture, format == ImageFormat::Jpeg)?;
    let note = format!("Image: {what}, shown as {name}, {width}×{height}.");
    Ok(Seen::Picture { image: encoded(&bytes, name), note })
}

fn reader(bytes: &[u8], format: ImageFormat) -> ImageReader<Cursor<&[u8]>> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_DECODED_SIDE);
    limits.max_image_height = Some(MAX_DECODED_SIDE);
    limits.max_alloc = Some(MAX_DECODED_BYTES);
    reader.limits(limits);
    reader
}

struct Small {
    bytes: Vec<u8>,
    name: &'static str,
    width: u32,
    height: u32,
}

/// The first form that is small enough: without loss, with some, smaller.
fn shrink(picture: DynamicImage, is_photo: bool) -> Result<Small, String> {
    let failed = |error: image::ImageError| format!("it could not be converted ({error})");
    let (width, height) = (picture.width(), picture.height());
    if !is_photo {
        let mut bytes = Vec::new();
        // Sixteen bits a channel are more than anybody sees.
        let plain =
            if picture.color().has_alpha() { picture.to_rgba8().into() } else { DynamicImage::from(picture.to_rgb8()) };
        plain.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png).map_err(failed)?;
        if bytes.len() <= MAX_SENT_BYTES {
            return Ok(Small { bytes, name: "png", width, height });
        }
    }
    let mut opaque = on_white(&picture);
    drop(picture);
    loop {
        let (width, height) = opaque.dimensions();
        for quality in [85, 65, 40] {
            let mut bytes = Vec::new();
            JpegEncoder::new_with_quality(&mut bytes, quality).encode_image(&opaque).map_err(failed)?;
            if bytes.len() <= MAX_SENT_BYTES {
                return Ok(Small { bytes, name: "jpeg", width, height });
            }
        }
        if width.max(height) < 64 {
            return Err("it could not be made small enough".to_owned());
        }
        opaque = image::imageops::resize(&opaque, (width / 2).max(1), (height / 2).max(1), FilterType::Triangle);
    }
}

/// JPEG knows no transparency.
fn on_white(picture: &DynamicImage) -> RgbImage {
    if !picture.color().has_alpha() {
        return picture.to_rgb8();
    }
    let pixels = picture.to_rgba8();
    RgbImage::from_fn(pixels.width(), pixels.height(), |x, y| {
        let [red, green, blue, alpha] = pixels.get_pixel(x, y).0.map(u32::from);
        let mix = |colour: u32| ((colour * alpha + 255 * (255 - alpha)) / 255) as u8;
        Rgb([mix(red), mix(green), mix(blue)])
    })
}

fn encoded(bytes: &[u8], name: &str) -> Image {
    Image { media_type: format!("image/{name}"), base64: base64::engine::general_purpose::STANDARD.encode(bytes) }
}
