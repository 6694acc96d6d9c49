//! The tools that need the engine itself: what they work on belongs to a chat.

pub(super) mod ask_user;
pub(super) mod fetch_rule;
pub(super) mod skill;
pub(super) mod spawn_agent;
pub(super) mod task;
