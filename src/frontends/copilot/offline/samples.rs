//! Values that fit a type, so that an interface has something to show.

use serde_json::{Map, Value, json};

use crate::frontends::copilot::spec::{Field, Shape, Spec};

const DEEPEST: usize = 3;
const MOST_FIELDS: usize = 12;
const ROWS: i64 = 3;

/// A sample; lists have a few rows.
pub(super) fn sample(spec: &Spec, shape: &Shape) -> Value {
    match spec.resolved(shape) {
        Shape::List(element) => (1..=ROWS).map(|row| value(spec, element, "", row, 1)).collect(),
        shape => value(spec, shape, "", 1, 0),
    }
}

fn value(spec: &Spec, shape: &Shape, name: &str, row: i64, depth: usize) -> Value {
    if depth > DEEPEST {
        return Value::Null;
    }
    match spec.resolved(shape) {
        Shape::Any => Value::Null,
        Shape::Text { format } => text(format.as_deref(), name, row),
        Shape::Integer => json!(row),
        Shape::Number => json!(row as f64 + 0.5),
        Shape::Boolean => json!(row % 2 == 1),
        Shape::Enum(values) => {
            let index = usize::try_from(row - 1).unwrap_or_default() % values.len().max(1);
            values.get(index).map_or(Value::Null, |value| json!(value))
        }
        Shape::List(element) => json!([value(spec, element, name, row, depth + 1)]),
        Shape::Map(element) => json!({"key": value(spec, element, name, row, depth + 1)}),
        Shape::Object(_) if depth >= DEEPEST => Value::Null,
        Shape::Object(fields) => {
            let entry = |field: &Field| (field.name.clone(), of_field(spec, field, row, depth));
            Value::Object(fields.iter().take(MOST_FIELDS).map(entry).collect::<Map<_, _>>())
        }
        Shape::Union(options) => {
            options.first().map_or(Value::Null, |option| value(spec, option, name, row, depth + 1))
        }
        Shape::Model(_) => Value::Null,
    }
}

fn of_field(spec: &Spec, field: &Field, row: i64, depth: usize) -> Value {
    match (&field.example, spec.resolved(&field.shape)) {
        (Some(example), Shape::Text { .. }) if row == 1 => json!(example),
        _ => value(spec, &field.shape, &field.name, row, depth + 1),
    }
}

fn text(format: Option<&str>, name: &str, row: i64) -> Value {
    let lower = name.to_lowercase();
    json!(match format {
        Some("date-time" | "DateTime") => format!("2025-01-0{row}T12:00:00Z"),
        Some("date" | "Date") => format!("2025-01-0{row}"),
        Some("email") => format!("person{row}@example.com"),
        Some("uri" | "url") => format!("https://example.com/{row}"),
        Some("uuid") => format!("00000000-0000-4000-8000-00000000000{row}"),
        Some("id" | "ID") => row.to_string(),
        _ if lower.ends_with("id") => row.to_string(),
        _ if lower.is_empty() => format!("text {row}"),
        _ => format!("{name} {row}"),
    })
}
