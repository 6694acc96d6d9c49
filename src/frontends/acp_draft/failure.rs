//! Why a request failed: a code and a short sentence, which is all that this contract has room for.

use crate::base::ChatId;
use crate::base::text::one_line;
use crate::transport::ResponseError;
use crate::transport::envelope::{INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND};

const LONGEST_MESSAGE: usize = 500;

fn failure(code: i64, message: &str) -> ResponseError {
    ResponseError { code, message: one_line(message, LONGEST_MESSAGE), data: None }
}

/// Params that cannot be used; the text names the field.
pub(super) fn bad_params(message: impl AsRef<str>) -> ResponseError {
    failure(INVALID_PARAMS, message.as_ref())
}

/// It was understood and could not be done.
pub(super) fn failed(message: impl AsRef<str>) -> ResponseError {
    failure(INTERNAL_ERROR, message.as_ref())
}

/// In the words of the document.
pub(super) fn unknown_method(method: &str) -> ResponseError {
    failure(METHOD_NOT_FOUND, &format!("Method not found - '{}'", one_line(method, 100)))
}

pub(super) fn unknown_thread(thread: &ChatId) -> ResponseError {
    bad_params(format!("there is no thread \"{}\"", one_line(thread.as_str(), 300)))
}
