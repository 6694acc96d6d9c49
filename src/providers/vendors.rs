//! The vendors known by name, as data. A row is a set of defaults for `providers.<id>`: whatever
//! the configuration says about the same id wins, field by field. A vendor that speaks an existing
//! dialect joins by one row in [`VENDORS`].
//!
//! No row borrows another product's identity: a vendor that only accepts logins made in the name
//! of somebody else's program is listed with the reason why it cannot be used.

mod table;

pub use table::VENDORS;

/// One vendor and what is needed to reach it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Vendor {
    /// The id in front of the slash.
    pub id: &'static str,
    /// Its name for people.
    pub label: &'static str,
    /// The dialects it speaks, the preferred one first.
    pub endpoints: &'static [Endpoint],
    /// Variables that hold its key beside `<ID>_API_KEY`, which is always looked at first.
    pub key_variables: &'static [&'static str],
    /// How the key travels.
    pub auth: Auth,
    /// Its models are of no use without a key and are not listed then.
    pub needs_key: bool,
    pub place: Place,
    /// Models that exist even when its list cannot be had.
    pub models: &'static [&'static str],
    /// How the names of models begin for which it searches the web itself.
    pub searching_models: &'static [&'static str],
    /// The one to begin with.
    pub default_model: Option<&'static str>,
    /// Its id in the models.dev catalogue, where that differs.
    pub catalogue: Option<&'static str>,
    /// Why there is no way to log in.
    pub no_login: Option<&'static str>,
    /// What of it that others sell cannot be used here, and why.
    pub no_subscription: Option<&'static str>,
}

/// A dialect at a vendor, and what that dialect needs to be told there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Endpoint {
    pub api: &'static str,
    /// `None` when every customer has an address of their own.
    pub url: Option<&'static str>,
    /// The path of completions, where it is not the dialect's own.
    pub path: Option<&'static str>,
    /// Tags around reasoning in the answer's text.
    pub think_tags: Option<(&'static str, &'static str)>,
    /// A JSON object that is merged into every body, below what the user adds.
    pub payload: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// As the dialect does it.
    Dialect,
    /// In a header of this name.
    Header(&'static str),
}

/// Where a vendor's models run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At the vendor.
    Remote,
    /// On this machine, on a port of its own, so that it can be looked for.
    Discovered,
    /// On this machine or another one of the user's, on a port that many programs use.
    Configured,
}

/// The row of a provider id.
pub fn find(id: &str) -> Option<&'static Vendor> {
    VENDORS.iter().find(|vendor| vendor.id == id)
}

impl Vendor {
    /// The endpoint for `wanted`, or the first one whose dialect is `available`.
    pub fn endpoint(&self, wanted: Option<&str>, available: &[&str]) -> Option<&'static Endpoint> {
        match wanted {
            Some(api) => self.endpoints.iter().find(|endpoint| endpoint.api == api),
            None => self.endpoints.iter().find(|endpoint| available.contains(&endpoint.api)),
        }
    }

    /// The variables that may hold the key, in the order in which they count.
    pub fn all_key_variables(&self) -> impl Iterator<Item = String> {
        std::iter::once(key_variable(self.id)).chain(self.key_variables.iter().map(|name| (*name).to_owned()))
    }
}

/// `<ID>_API_KEY`.
pub fn key_variable(id: &str) -> String {
    format!("{}_API_KEY", screaming_snake(id))
}

/// `<ID>_API_URL`.
pub fn url_variable(id: &str) -> String {
    format!("{}_API_URL", screaming_snake(id))
}

/// `github-copilot` and `githubCopilot` become `GITHUB_COPILOT`.
fn screaming_snake(id: &str) -> String {
    let mut out = String::with_capacity(id.len() + 4);
    let mut after_lower = false;
    for c in id.chars() {
        if c.is_uppercase() && after_lower {
            out.push('_');
        }
        after_lower = c.is_lowercase() || c.is_numeric();
        if c.is_alphanumeric() {
            out.extend(c.to_uppercase());
        } else {
            out.push('_');
        }
    }
    out
}

#[cfg(test)]
mod tests;
