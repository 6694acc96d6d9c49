//! What a contract's table says about one of its methods; `docs/contracts.md` is compared with it.

/// One method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    pub name: &'static str,
    /// `request`, `notification` or `either`.
    pub kind: &'static str,
    /// `to server` or `to client`.
    pub direction: &'static str,
}

pub(super) const fn method(name: &'static str, kind: &'static str, direction: &'static str) -> Method {
    Method { name, kind, direction }
}
