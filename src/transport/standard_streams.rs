//! Standard input and output without the buffers of the standard library.
//!
//! `std::io::Stdout` is line buffered: it would hand the header lines of a frame to the system first
//! and the body later, and clients that read one chunk as one message break on that.

use std::fs::File;
use std::io;

/// Standard output as a plain file, for [`Outbox::spawn_writer`](super::Outbox::spawn_writer).
#[cfg(unix)]
pub fn raw_stdout() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

/// Standard input as a plain file, for [`spawn_reader`](super::spawn_reader).
#[cfg(unix)]
pub fn raw_stdin() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// Standard output as a plain file, for [`Outbox::spawn_writer`](super::Outbox::spawn_writer).
#[cfg(windows)]
pub fn raw_stdout() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(File::from(io::stdout().as_handle().try_clone_to_owned()?))
}

/// Standard input as a plain file, for [`spawn_reader`](super::spawn_reader).
#[cfg(windows)]
pub fn raw_stdin() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(File::from(io::stdin().as_handle().try_clone_to_owned()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn both_streams_can_be_opened_and_closing_the_copy_leaves_the_original_open() {
        drop(raw_stdin().unwrap());
        for _ in 0..2 {
            raw_stdout().unwrap().write_all(b"").unwrap();
        }
    }
}
