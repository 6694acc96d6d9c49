//! One module per contract. Each turns its wire (or a person's typing) into engine calls, and
//! engine events into its own messages; none of them holds logic that another would need.

pub mod chats;
pub mod eca;
pub mod manage;
pub mod terminal;

mod assemble;

pub use assemble::Surroundings;
