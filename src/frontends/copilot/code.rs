//! From what a model writes to a module that the application accepts: the code is taken out of its
//! fences while it arrives, and what the application forbids is made harmless on the way.

mod components;
mod fences;
mod safety;

pub(super) use components::{component_count, declares, has_default_export, opening_remark};
pub(super) use fences::CodeReader;
pub(super) use safety::{Guard, escape_forbidden};

/// Code that is being received: what comes out, piece by piece, is the code of the result.
#[derive(Debug, Default)]
pub(super) struct Intake {
    reader: CodeReader,
    guard: Guard,
    code: String,
}

impl Intake {
    /// Takes what the model says; returns what of it is code that can be passed on.
    pub(super) fn push(&mut self, said: &str) -> String {
        let code = self.reader.push(said);
        let safe = self.guard.push(&code);
        self.code.push_str(&safe);
        safe
    }

    /// The model goes on after an interruption, perhaps with another fence. Returns code as
    /// [`push`](Self::push) does.
    pub(super) fn go_on(&mut self) -> String {
        let code = self.reader.go_on();
        let safe = self.guard.push(&code);
        self.code.push_str(&safe);
        safe
    }

    /// The answer is complete. Returns the rest, with the default export that the application needs.
    pub(super) fn finish(&mut self) -> String {
        let code = self.reader.finish();
        let mut rest = self.guard.push(&code) + &self.guard.finish();
        self.code.push_str(&rest);
        if let Some(export) = missing_export(&self.code) {
            let ended = self.code.is_empty() || self.code.ends_with('\n');
            let export = if ended { export } else { format!("\n{export}") };
            self.code.push_str(&export);
            rest.push_str(&export);
        }
        rest
    }

    /// Whether there is any code.
    pub(super) fn is_empty(&self) -> bool {
        self.code.trim().is_empty()
    }

    pub(super) fn code(&self) -> &str {
        &self.code
    }

    /// What was made harmless, by its name.
    pub(super) fn replaced(&self) -> Vec<&'static str> {
        self.guard.replaced()
    }
}

/// The line that makes `App`, or else the last component, the default export.
fn missing_export(code: &str) -> Option<String> {
    if code.trim().is_empty() || has_default_export(code) {
        return None;
    }
    let names = declares(code);
    let name = names.iter().find(|name| **name == "App").or(names.last())?;
    Some(format!("\nexport default {name};\n"))
}

#[cfg(test)]
mod tests;
