//! Identifiers as distinct types, so that a tool call's id cannot be handed to something that looks up chats.

string_ids! {
    /// Names a chat. Minted by the client or by the server, whichever speaks of the chat first.
    ChatId;
    /// Names a tool call within its chat.
    ToolCallId;
    /// Names a user message (or a flag) within its chat; rollback, fork and flags point at it.
    ContentId;
    /// Names one stretch of reasoning within a turn.
    ReasonId;
    /// Names a rewrite; minted by the client.
    RewriteId;
    /// Names a background job of the server.
    JobId;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::ChatId;

    #[test]
    fn a_number_becomes_text() {
        let read = |json: &str| serde_json::from_str::<ChatId>(json);
        assert_eq!(read("1").unwrap(), ChatId::from("1"));
        assert_eq!(read("-7").unwrap(), ChatId::from("-7"));
        assert_eq!(read("1.0").unwrap(), ChatId::from("1"));
        assert_eq!(read("\"a-b\"").unwrap(), ChatId::from("a-b"));
        assert!(read("true").is_err());
        assert!(read("null").is_err());
        assert_eq!(serde_json::from_str::<Option<ChatId>>("null").unwrap(), None);
    }
}
