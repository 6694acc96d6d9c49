//! Files as the public server writes them, and files as it does not.

use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::llm::{Image, Part, Role};
use crate::store::{ChatMeta, Compaction, ListQuery, MessageExtra, MessageKind, NewMessage, StoredChat, TitleSource};

const WORKSPACE: &str = "/home/u/p";
/// The folder of [`WORKSPACE`].
const FOLDER: &str = "p_YK1wb-Uz";
const ID: &str = "3f2a9c1e-7b60-4d55-9a01-5c2e8f1d0a77";

struct Cache {
    folder: tempfile::TempDir,
    store: Store,
}

impl Cache {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), store: Store::in_memory() }
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn write_chat(&self, id: &str, chat: &str) {
        let text = format!(r#"["^ ","~:version",7,"~:chat",["^ ","~:id","{id}",{chat}]]"#);
        self.write(&format!("{FOLDER}/chats/{id}.transit.json"), &text);
    }

    async fn import(&self) -> ImportReport {
        let source = PublicChats {
            places: vec![self.folder.path().to_owned(), "/nowhere/at/all".into()],
            path_keys: vec![WORKSPACE.into()],
            workspace_key: "here".into(),
        };
        self.store.import_public(source).await.unwrap()
    }

    async fn load(&self, id: &str) -> StoredChat {
        self.store.load(&ChatId::new(id)).await.unwrap().unwrap()
    }
}

fn counts(report: &ImportReport) -> (usize, usize, usize) {
    assert_eq!(report.failed, report.problems.len());
    (report.imported, report.skipped, report.failed)
}

/// One of everything.
const FULL: &str = r#""~:title","Fix the parser","~:title-custom?",true,"~:model","anthropic/claude-x","~:agent","plan",
        "~:variant","high","~:trust",true,"~:created-at",1700000000000,"~:updated-at",1700000099000,
        "~:prompt-id","~u531a379e-31bb-4ce1-8690-158dceb64be6","~:messages",[
        ["^ ","~:role","user","~:content",[["^ ","~:type","~:text","~:text","look at ~this"],
            ["^ ","~:type","~:image","~:media-type","image/png","~:base64","QUJD"]],"~:content-id","u1","~:created-at",1700000001000],
        ["^ ","~:role","reason","~:content",["^ ","~:id","r1","~:external-id","sig","~:total-time-ms",12,"~:text","Let me see."]],
        ["^ ","~:role","reason","~:content",["^ ","~:id","r2","~:external-id","redacted"]],
        ["^ ","~:role","assistant","~:content",[["^ ","~:type","~:text","~:text","I will read it."]]],
        ["^ ","~:role","tool_call","~:content",["^ ","~:id","t1","~:full-name","eca__read_file","~:name","read_file",
            "~:server","eca","~:origin","~:native","~:arguments",["^ ","path","/a","~:limit",3],"~:summary","Reading a"]],
        ["^ ","~:role","tool_call","~:content",["^ ","~:id","t2","~:full-name","eca__grep","~:name","grep","~:arguments",null]],
        ["^ ","~:role","tool_call_output","~:content",["^ ","~:id","t1","~:name","read_file","~:server","eca",
            "~:origin","~:native","~:arguments",["^ ","path","/a"],"~:summary","Read a","~:total-time-ms",7,
            "~:details",["^ ","~:type","~:subagent","~:subagent-chat-id","subagent-t1"],
            "~:output",["^ ","~:error",false,"~:contents",[["^ ","~:type","~:text","~:text","line 1"],
                ["^ ","~:type","~:image","~:media-type","image/png","~:base64","REVG"],["^ ","~:type","text","~:text","line 2"]]]]],
        ["^ ","~:role","tool_call_output","~:content",["^ ","~:id","t2","~:name","grep","~:error",true,
            "~:output",["^ ","~:contents",[["^ ","~:type","~:text","~:error",true,"~:text","no match"]]]]],
        ["^ ","~:role","server_tool_use","~:content",["^ ","~:id","s1","~:name","web_search","~:input",["^ ","~:query","rust"]]],
        ["^ ","~:role","server_tool_result","~:content",["^ ","~:tool-use-id","s1","~:raw-content",
            [["^ ","~:type","web_search_result","~:title","Rust","~:url","https://rust-lang.org"]]]],
        ["^ ","~:role","assistant","~:content","Found it."],
        ["^ ","~:role","image_generation_call","~:content",["^ ","~:id","ig","~:base64","R0hJ"]],
        ["^ ","~:role","flag","~:content",["^ ","~:text","remember"],"~:content-id","f1"],
        ["^ ","~:role","compact_marker","~:content",["^ ","~:auto?",true]],
        ["^ ","~:role","user","~:content",[["^ ","~:type","~:text","~:text","The summary."]]],
        ["^ ","~:role","tool_call","~:content",["^ ","~:id","t3","~:name","shell_command","~:full-name","eca__shell_command",
            "~:arguments",["^ ","command","ls"],"~:summary","Listing"]],
        ["^ ","~:role","a_role_of_the_future","~:content",["^ ","~:x",1]]
        ]"#;

#[tokio::test]
async fn a_chat_is_taken_with_all_it_has() {
    let cache = Cache::new();
    cache.write_chat(ID, FULL);
    assert_eq!(counts(&cache.import().await), (1, 0, 0));
    let stored = cache.load(ID).await;
    assert_eq!((stored.title.as_deref(), stored.title_source), (Some("Fix the parser"), Some(TitleSource::User)));
    assert_eq!(stored.model.as_ref().map(|model| model.as_str()), Some("anthropic/claude-x"));
    assert_eq!((stored.agent.as_deref(), stored.variant.as_deref()), (Some("plan"), Some("high")));
    assert_eq!((stored.created_at, stored.updated_at), (1_700_000_000_000, 1_700_000_099_000));
    assert_eq!((stored.workspace_key.as_deref(), stored.trust, stored.parent), (Some("here"), None, None));
    assert!(stored.imported_at.is_some());

    let kinds: Vec<&str> = stored.messages.iter().map(|entry| entry.kind.as_str()).collect();
    assert_eq!(kinds, ["user", "assistant", "tool_result", "assistant", "marker", "user", "assistant"]);
    let parts = |at: usize| &stored.messages[at].message.parts[..];
    let extra = |at: usize| MessageExtra::read(stored.messages[at].extra.as_ref());
    let text = |text: &str| Part::Text(text.to_owned());
    let image = |base64: &str| Image { media_type: "image/png".into(), base64: base64.into() };
    assert_eq!(parts(0), [text("look at ~this"), Part::Image(image("QUJD"))]);
    assert_eq!(stored.messages[0].content_id.as_ref().map(|id| id.as_str()), Some("u1"));
    assert_eq!(stored.messages[0].created_at, 1_700_000_001_000);
    let call = |id: &str, name: &str, arguments: Value| Part::ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.to_string(),
        replay: None,
    };
    let answer = [
        Part::Reasoning { text: "Let me see.".into(), replay: None },
        text("I will read it."),
        call("t1", "eca__read_file", json!({"path": "/a", "limit": 3})),
        call("t2", "eca__grep", json!({})),
    ];
    assert_eq!(parts(1), answer);
    assert_eq!((extra(1).calls.len(), extra(1).reasoning_ms), (0, vec![Some(12)]));
    let results = [
        Part::ToolResult {
            call_id: "t1".into(),
            text: "line 1\nline 2".into(),
            images: vec![image("REVG")],
            error: false,
        },
        Part::ToolResult { call_id: "t2".into(), text: "no match".into(), images: vec![], error: true },
    ];
    assert_eq!(parts(2), results);
    assert_eq!(stored.messages[2].message.role, Role::User);
    let calls = extra(2).calls;
    assert_eq!((calls.len(), calls[0].summary.as_deref(), calls[0].total_time_ms), (2, Some("Read a"), Some(7)));
    assert_eq!((calls[0].server.as_str(), calls[0].origin.as_str()), ("eca", "native"));
    assert_eq!(calls[0].subagent_chat.as_deref(), Some("subagent-t1"));
    assert_eq!(calls[0].details.as_ref().map(|details| &details["type"]), Some(&json!("subagent")));
    assert_eq!(parts(3), [text("Found it."), Part::Image(image("R0hJ"))]);
    let tool = &extra(3).server_tools[0];
    assert_eq!((tool.name.as_str(), tool.output.as_str()), ("web_search", "Rust: https://rust-lang.org"));
    assert_eq!(stored.flags.len(), 1);
    assert_eq!((stored.flags[0].after, stored.flags[0].text.as_str()), (4, "remember"));
    assert_eq!((parts(4), extra(4).compaction), (&[][..], Some(Compaction { auto: true })));
    assert_eq!(extra(6).calls[0].summary.as_deref(), Some("Listing"), "a call that never got a result");
}

#[tokio::test]
async fn codes_are_read_as_the_writer_counted_them() {
    let cache = Cache::new();
    // ^0 version, ^1 chat, ^2 id, ^3 messages, ^4 role, ^5 content, ^6 type, ^7 text
    let text = format!(
        r#"["^ ","~:version",7,"~:chat",["^ ","~:id","{ID}","~:messages",[
            ["^ ","~:role","user","~:content",[["^ ","~:type","~:text","^7","hello"]]],
            ["^ ","^4","assistant","^5",[["^ ","^6","^7","^7","~~ hi ^"]]]]]]"#
    );
    cache.write(&format!("{FOLDER}/chats/{ID}.transit.json"), &text);
    assert_eq!(counts(&cache.import().await), (1, 0, 0));
    let stored = cache.load(ID).await;
    let texts: Vec<&Part> = stored.messages.iter().flat_map(|entry| &entry.message.parts).collect();
    assert_eq!(texts, [&Part::Text("hello".into()), &Part::Text("~ hi ^".into())]);
}

#[tokio::test]
async fn each_chat_is_taken_once_and_not_again_after_it_was_deleted() {
    let cache = Cache::new();
    let other = "aaaaaaaa-0000-4000-8000-000000000000";
    for id in [ID, other] {
        cache.write_chat(id, r#""~:updated-at",5,"~:messages",[["^ ","~:role","user","~:content","hi"]]"#);
    }
    assert_eq!(counts(&cache.import().await), (2, 0, 0));
    assert_eq!(counts(&cache.import().await), (0, 2, 0));
    let message = NewMessage::new(MessageKind::User, cache.load(ID).await.messages[0].message.clone());
    cache.store.append(&ChatId::new(ID), vec![message]).await.unwrap();
    cache.store.delete(&ChatId::new(other)).await.unwrap();
    assert_eq!(counts(&cache.import().await), (0, 2, 0));
    assert_eq!(cache.load(ID).await.messages.len(), 2, "what was added here stays");
    assert_eq!(cache.store.list(ListQuery::default()).await.unwrap().len(), 1);
    // A chat of our own with the same name is not touched either.
    let own = "bbbbbbbb-0000-4000-8000-000000000000";
    cache.store.create_or_touch_chat(ChatMeta::new(ChatId::new(own))).await.unwrap();
    cache.write_chat(own, r#""~:title","theirs""#);
    assert_eq!(counts(&cache.import().await), (0, 3, 0));
    assert_eq!(cache.load(own).await.title, None);
}

#[tokio::test]
async fn a_bad_file_costs_only_itself() {
    let cache = Cache::new();
    cache.write_chat(ID, r#""~:title","good""#);
    let bad = |name: &str, text: &str| cache.write(&format!("{FOLDER}/chats/{name}.transit.json"), text);
    bad("cut-off-file", r#"["^ ","~:version",7,"~:chat",["^ ","~:id","sk-secret"#);
    bad("newer-version", r#"["^ ","~:version",8,"~:chat",["^ ","~:id","sk-secret"]]"#);
    bad("without-chat", r#"["^ ","~:version",7]"#);
    bad("without-version", r#"["^ ","~:chat",["^ "]]"#);
    bad("without-id-in-it", r#"["^ ","~:version",7,"~:chat",["^ ","~:title","x"]]"#);
    bad("with-a-strange-id", r#"["^ ","~:version",7,"~:chat",["^ ","~:id","a b"]]"#);
    bad("no-map-at-all", r#"["^ ","~:version",7,"~:chat",7]"#);
    bad("empty-file", "");
    bad("index", r#"["^ ","~:version",7,"~:chats",["^ "]]"#);
    cache.write(&format!("{FOLDER}/chats/{ID}.transit.json.123.tmp"), "half written");
    std::fs::create_dir(cache.folder.path().join(FOLDER).join("chats/a-folder.transit.json")).unwrap();
    let report = cache.import().await;
    assert_eq!(counts(&report), (1, 0, 9), "{:?}", report.problems);
    for problem in &report.problems {
        let text = problem.to_string();
        assert!(text.contains(FOLDER) && !text.contains("sk-secret"), "{text}");
    }
    assert_eq!(cache.load(ID).await.title.as_deref(), Some("good"));
}

#[tokio::test]
async fn nothing_is_ever_written_there() {
    let cache = Cache::new();
    cache.write_chat(ID, r#""~:title","x""#);
    let snapshot = |folder: &Path| -> Vec<(std::path::PathBuf, Vec<u8>)> {
        let mut files = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    files.push((path.clone(), std::fs::read(path).unwrap()));
                }
            }
        }
        files.sort();
        files
    };
    let before = snapshot(cache.folder.path());
    cache.import().await;
    cache.store.delete(&ChatId::new(ID)).await.unwrap();
    cache.import().await;
    assert_eq!(snapshot(cache.folder.path()), before);
}

#[tokio::test]
async fn helpers_belong_to_their_chat_and_ids_may_be_anything() {
    let cache = Cache::new();
    let helper = r#"["^ ","~:version",7,"~:chat",["^ ","~:id","subagent-call_1","~:subagent",true,
        "~:parent-chat-id","my.Chat","~:messages",[["^ ","~:role","assistant","~:content","done"]]]]"#;
    cache.write(&format!("{FOLDER}/chats/subagent-call_1.transit.json"), helper);
    // Such an id is no file name, so the file is named by its hash.
    let parent = r#"["^ ","~:version",7,"~:chat",["^ ","~:id","my.Chat","~:title","parent"]]"#;
    cache.write(&format!("{FOLDER}/chats/0123456789abcdef0123456789abcdef.transit.json"), parent);
    assert_eq!(counts(&cache.import().await), (2, 0, 0));
    assert_eq!(cache.load("subagent-call_1").await.parent, Some(ChatId::new("my.Chat")));
    let listed = cache.store.list(ListQuery::default()).await.unwrap();
    assert_eq!(listed.iter().map(|chat| chat.id.as_str()).collect::<Vec<_>>(), ["my.Chat"]);
    cache.store.delete(&ChatId::new("my.Chat")).await.unwrap();
    assert_eq!(counts(&cache.import().await), (0, 2, 0));
    assert!(cache.store.list(ListQuery::default()).await.unwrap().is_empty());
}

#[tokio::test]
async fn the_older_file_with_all_chats_is_read_once() {
    let cache = Cache::new();
    let all = format!(
        r#"["^ ","~:version",6,"~:chats",["^ ","{ID}",["^ ","~:id","{ID}","~:title","old","~:messages",
            [["^ ","~:role","user","~:content",[["^ ","~:type","~:text","~:text","hi"]]]]],
            "broken",7,"with space",["^ "],"another-one-here",["^ ","~:title","second"]]]"#
    );
    let file = format!("{FOLDER}/db.transit.json");
    cache.write(&file, &all);
    let report = cache.import().await;
    assert_eq!(counts(&report), (2, 0, 2), "one bad chat among many costs only itself");
    assert!(report.problems[0].message.starts_with("chat 2 of them: "), "{:?}", report.problems);
    assert_eq!(cache.load("another-one-here").await.title.as_deref(), Some("second"));
    assert_eq!(counts(&cache.import().await), (0, 0, 0), "it is the same file");
    cache.write(&file, &all.replace("second", "changed"));
    assert_eq!(counts(&cache.import().await), (0, 2, 2));
    // Once the public server has moved on, the old file is not looked at.
    cache.write(&file, &all.replace("another-one-here", "a-third-one-now"));
    cache.write(&format!("{FOLDER}/chats/index.transit.json"), "x");
    assert_eq!(counts(&cache.import().await), (0, 0, 0));
}

#[tokio::test]
async fn of_several_copies_the_newest_is_taken() {
    let cache = Cache::new();
    cache.write_chat(ID, r#""~:title","older""#);
    let older = cache.folder.path().join(FOLDER).join(format!("chats/{ID}.transit.json"));
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    std::fs::File::options().write(true).open(older).unwrap().set_modified(long_ago).unwrap();
    let newer = format!(r#"["^ ","~:version",7,"~:chat",["^ ","~:id","{ID}","~:title","newer"]]"#);
    cache.write(&format!("YK1wb-Uz/chats/{ID}.transit.json"), &newer);
    assert_eq!(counts(&cache.import().await), (1, 0, 0));
    assert_eq!(cache.load(ID).await.title.as_deref(), Some("newer"));
}
