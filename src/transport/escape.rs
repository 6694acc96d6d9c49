//! JSON string escaping without the surrounding quotes, so that a streamed text can be escaped once
//! and then be joined with its neighbours as plain bytes.

/// Appends `text` to `out` as the inside of a JSON string, byte for byte as serde_json writes it.
pub fn escape_json_into(text: &str, out: &mut String) {
    out.reserve(text.len());
    let mut plain_from = 0;
    for (index, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        // Every byte that needs an escape is ASCII, so both cuts are character boundaries.
        out.push_str(&text[plain_from..index]);
        plain_from = index + 1;
        push_escape(byte, out);
    }
    out.push_str(&text[plain_from..]);
}

fn push_escape(byte: u8, out: &mut String) {
    match byte {
        b'"' => out.push_str("\\\""),
        b'\\' => out.push_str("\\\\"),
        b'\n' => out.push_str("\\n"),
        b'\r' => out.push_str("\\r"),
        b'\t' => out.push_str("\\t"),
        0x08 => out.push_str("\\b"),
        0x0c => out.push_str("\\f"),
        control => {
            const HEX: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
            out.push_str("\\u00");
            out.push(HEX[usize::from(control >> 4)]);
            out.push(HEX[usize::from(control & 0x0f)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn assert_same_as_serde(text: &str) {
        let mut out = String::from("\"");
        escape_json_into(text, &mut out);
        out.push('"');
        assert_eq!(out, serde_json::to_string(text).unwrap());
    }

    #[test]
    fn every_character_below_two_hundred_is_written_as_serde_json_writes_it() {
        for code in 0..200u32 {
            let character = char::from_u32(code).unwrap();
            assert_same_as_serde(&format!("a{character}b{character}"));
        }
    }

    #[test]
    fn what_is_already_there_is_kept() {
        let mut out = String::from("head ");
        escape_json_into("\u{1b}[0m \"é\"", &mut out);
        assert_eq!(out, "head \\u001b[0m \\\"é\\\"");
    }

    proptest! {
        #[test]
        fn any_text_is_written_as_serde_json_writes_it(text in any::<String>()) {
            assert_same_as_serde(&text);
        }
    }
}
