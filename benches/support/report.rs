//! One Markdown table: the figure, what was measured, the goal, and whether it was reached.

use std::io::Write;

#[derive(Debug)]
pub(crate) struct Row {
    figure: String,
    measured: String,
    goal: String,
    reached: Option<bool>,
}

impl Row {
    /// A figure that should stay at or below `most`.
    pub(crate) fn at_most(figure: &str, value: f64, most: f64, unit: &str, measured: String) -> Self {
        let goal = format!("≤ {most} {unit}").trim_end().to_owned();
        Self { figure: figure.to_owned(), measured, goal, reached: Some(value <= most) }
    }

    /// Something that either holds or the benchmark has already failed.
    pub(crate) fn holds(figure: &str, measured: String, goal: &str) -> Self {
        Self { figure: figure.to_owned(), measured, goal: goal.to_owned(), reached: Some(true) }
    }

    /// A figure without a goal, for scale.
    pub(crate) fn note(figure: &str, measured: String) -> Self {
        Self { figure: figure.to_owned(), measured, goal: String::new(), reached: None }
    }
}

/// Prints the table to standard output.
pub(crate) fn print(rows: &[Row]) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "| figure | measured | goal | |\n|---|---|---|---|")?;
    for row in rows {
        let verdict = match row.reached {
            Some(true) => "pass",
            Some(false) => "MISS",
            None => "",
        };
        writeln!(out, "| {} | {} | {} | {verdict} |", row.figure, row.measured, row.goal)?;
    }
    out.flush()
}

/// Says on standard error what is going on; the table alone goes to standard output.
pub(crate) fn say(text: &str) {
    // Nobody listening is no reason to stop measuring.
    let _ = writeln!(std::io::stderr(), "{text}");
}
