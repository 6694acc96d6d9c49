//! What users point at: the files of a workspace to choose from, and what is chosen as parts of a
//! message.

pub mod index;
