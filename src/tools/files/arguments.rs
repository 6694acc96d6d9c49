//! Reads arguments the way models write them: numbers and truth values may come as text.

use serde_json::Value;

use crate::tool::Arguments;

/// A text that must be there; it may be empty.
pub(super) fn text<'a>(arguments: &'a Arguments, name: &str) -> Result<&'a str, String> {
    match arguments.get(name) {
        Some(Value::String(text)) => Ok(text),
        None | Some(Value::Null) => Err(format!("`{name}` is missing.")),
        Some(_) => Err(format!("`{name}` must be a string.")),
    }
}

/// A text that may be missing; an empty one counts as missing.
pub(super) fn optional_text<'a>(arguments: &'a Arguments, name: &str) -> Result<Option<&'a str>, String> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(_) => Err(format!("`{name}` must be a string.")),
    }
}

/// A whole number from 0 on that may be missing.
pub(super) fn count(arguments: &Arguments, name: &str) -> Result<Option<usize>, String> {
    let number = match arguments.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) if text.trim().is_empty() => return Ok(None),
        Some(Value::String(text)) => text.trim().parse::<f64>().ok(),
        Some(Value::Number(number)) => number.as_f64(),
        Some(_) => None,
    };
    match number {
        Some(number) if number >= 0.0 && number.fract() == 0.0 && number <= 1e15 => Ok(Some(number as usize)),
        _ => Err(format!("`{name}` must be a whole number, 0 or more.")),
    }
}

/// A truth value; false when missing.
pub(super) fn flag(arguments: &Arguments, name: &str) -> Result<bool, String> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(value)) => Ok(*value),
        Some(Value::String(text)) => match text.trim().to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" | "" => Ok(false),
            _ => Err(format!("`{name}` must be true or false.")),
        },
        Some(_) => Err(format!("`{name}` must be true or false.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_and_flags_may_be_text() {
        for (value, expected) in [
            (json!(null), Ok(None)),
            (json!(7), Ok(Some(7))),
            (json!(7.0), Ok(Some(7))),
            (json!(" 7 "), Ok(Some(7))),
            (json!(""), Ok(None)),
            (json!(-1), Err(())),
            (json!(1.5), Err(())),
            (json!(1e300), Err(())),
            (json!("NaN"), Err(())),
            (json!("seven"), Err(())),
            (json!([7]), Err(())),
        ] {
            let arguments = Arguments::from_iter([("n".to_owned(), value.clone())]);
            assert_eq!(count(&arguments, "n").map_err(drop), expected, "{value}");
        }
        for (value, expected) in [
            (json!(true), Ok(true)),
            (json!("True"), Ok(true)),
            (json!("false"), Ok(false)),
            (json!(null), Ok(false)),
            (json!(1), Err(())),
            (json!("yes"), Err(())),
        ] {
            let arguments = Arguments::from_iter([("n".to_owned(), value.clone())]);
            assert_eq!(flag(&arguments, "n").map_err(drop), expected, "{value}");
        }
        let none = Arguments::new();
        assert_eq!((count(&none, "n"), flag(&none, "n"), optional_text(&none, "n")), (Ok(None), Ok(false), Ok(None)));
        assert_eq!(text(&none, "path"), Err("`path` is missing.".to_owned()));
        let wrong = Arguments::from_iter([("path".to_owned(), json!(3))]);
        assert_eq!(text(&wrong, "path"), Err("`path` must be a string.".to_owned()));
        assert!(optional_text(&wrong, "path").is_err());
    }
}
