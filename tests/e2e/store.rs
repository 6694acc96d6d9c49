//! Chats that outlive their server.

use custom_methods::chat::{ChatDeleteParams, ChatListParams, ChatListResult, ChatListSortBy, ChatStatus};
use custom_methods::methods::{ChatDelete, ChatList};
use serde_json::Value;

use crate::chat::spoken;
use crate::mock_llm::{MockLlm, Script};
use crate::peer::{is_finished, outline};
use crate::server::TestServer;

async fn list(server: &mut TestServer) -> ChatListResult {
    server.request::<ChatList>(ChatListParams::default()).await
}

fn ids(result: &ChatListResult) -> Vec<&str> {
    result.chats.iter().map(|chat| chat.id.0.as_str()).collect()
}

async fn model() -> MockLlm {
    let model = MockLlm::start().await;
    model.respond_with(|_| Script::text_stream(&["answer"]));
    model
}

#[tokio::test]
async fn a_chat_goes_on_after_a_restart() {
    let model = model().await;
    let mut first = TestServer::with(&model).start().await;
    first.turn("c", "one").await;
    let dirs = first.dirs.clone();
    first.finish().await;
    let mut second = TestServer::with(&model).dirs(&dirs).start().await;
    second.start_prompt(Some("c"), "two");
    let turn = second.everything_until("the end", |message| is_finished(message, "c")).await;
    assert_eq!(outline(&turn)[0], "progress Starting", "a known chat is not opened again");
    model.next_request().await;
    let request = model.next_request().await;
    assert_eq!(spoken(&request.body), [("user", "one"), ("assistant", "answer"), ("user", "two")]);
    second.finish().await;
}

#[tokio::test]
async fn the_chats_model_and_totals_survive_a_restart() {
    let model = model().await;
    let mut first = TestServer::with(&model).start().await;
    let params = custom_methods::chat::ChatPromptParams {
        model: Some("mock/m2".into()),
        ..crate::server::prompt(Some("c"), "one")
    };
    first.request::<custom_methods::methods::ChatPrompt>(params).await;
    first.collect_turn("c").await;
    let dirs = first.dirs.clone();
    first.finish().await;
    let mut second = TestServer::with(&model).dirs(&dirs).start().await;
    assert_eq!(second.prompt(Some("c"), "two").await.model, "mock/m2");
    let turn = second.collect_turn("c").await;
    assert_eq!(crate::peer::outline::contents("usage", &turn)[0]["totalTokens"], 38);
    second.finish().await;
}

#[tokio::test]
async fn the_list_is_newest_first_bounded_and_complete_and_survives() {
    let model = model().await;
    let mut server = TestServer::with(&model).start().await;
    for chat in ["a", "b", "c"] {
        server.turn(chat, "hi").await;
    }
    server.turn("a", "again").await;
    let all = list(&mut server).await;
    assert_eq!(ids(&all), ["a", "c", "b"]);
    let by_creation = ChatListParams { sort_by: Some(ChatListSortBy::CreatedAt), ..ChatListParams::default() };
    assert_eq!(ids(&server.request::<ChatList>(by_creation).await), ["c", "b", "a"]);
    let two = ChatListParams { limit: Some(2), ..ChatListParams::default() };
    assert_eq!(ids(&server.request::<ChatList>(two).await), ["a", "c"]);
    let newest = &all.chats[0];
    assert_eq!((newest.status, newest.model.as_deref()), (ChatStatus::Idle, Some("mock/m1")));
    assert_eq!(newest.message_count, 4);
    assert!(newest.updated_at >= newest.created_at && newest.created_at.is_some());
    let dirs = server.dirs.clone();
    server.finish().await;
    let mut second = TestServer::with(&model).dirs(&dirs).start().await;
    assert_eq!(list(&mut second).await, all);
    second.finish().await;
}

#[tokio::test]
async fn a_running_chat_is_listed_as_running() {
    let model = MockLlm::start().await;
    model.push(Script::hang());
    let mut server = TestServer::with(&model).start().await;
    server.prompt(Some("c"), "hi").await;
    model.next_request().await;
    assert_eq!(list(&mut server).await.chats[0].status, ChatStatus::Running);
    server.stop("c");
    server.collect_turn("c").await;
    assert_eq!(list(&mut server).await.chats[0].status, ChatStatus::Idle);
    server.finish().await;
}

#[tokio::test]
async fn deleting_is_told_before_it_is_answered_and_leaves_nothing() {
    let model = model().await;
    let mut server = TestServer::with(&model).start().await;
    server.turn("a", "hi").await;
    server.turn("b", "hi").await;
    let id = server.start::<ChatDelete>(ChatDeleteParams { chat_id: Some("a".into()) });
    let messages = server.everything_until("the response", |message| message["id"] == id).await;
    assert_eq!(outline(&messages), ["chat/deleted", "response"]);
    assert_eq!(messages[1]["result"], serde_json::json!({}));
    assert_eq!(ids(&list(&mut server).await), ["b"]);
    // A new chat of the same name knows nothing of the old one.
    server.start_prompt(Some("a"), "new");
    let turn = server.everything_until("the end", |message| is_finished(message, "a")).await;
    assert_eq!(outline(&turn)[0], "chat/opened");
    let mut last = model.next_request().await;
    while let Some(request) = model.try_next_request().await {
        last = request;
    }
    assert_eq!(spoken(&last.body), [("user", "new")]);
    server.finish().await;
}

#[tokio::test]
async fn deleting_an_unknown_chat_succeeds_and_without_an_id_means_the_last_prompted() {
    let model = model().await;
    let mut server = TestServer::with(&model).start().await;
    server.request::<ChatDelete>(ChatDeleteParams::default()).await;
    server.turn("a", "hi").await;
    server.turn("b", "hi").await;
    server.request::<ChatDelete>(ChatDeleteParams { chat_id: Some("never".into()) }).await;
    let deleted = server.next_notification::<custom_methods::methods::ChatDeleted>().await;
    assert_eq!(deleted.chat_id.0, "never");
    server.request::<ChatDelete>(ChatDeleteParams::default()).await;
    let deleted = server.next_notification::<custom_methods::methods::ChatDeleted>().await;
    assert_eq!(deleted.chat_id.0, "b");
    assert_eq!(ids(&list(&mut server).await), ["a"]);
    server.finish().await;
}

#[tokio::test]
async fn deleting_a_running_chat_closes_its_turn_first() {
    let model = MockLlm::start().await;
    model.push(Script::stream().text("Hello").hang_here());
    let mut server = TestServer::with(&model).start().await;
    server.prompt(Some("c"), "hi").await;
    server.everything_until("the model's words", |message| message["params"]["role"] == "assistant").await;
    let id = server.start::<ChatDelete>(ChatDeleteParams { chat_id: Some("c".into()) });
    let messages = server.everything_until("the response", |message| message["id"] == id).await;
    assert_eq!(
        outline(&messages),
        ["system text", "status stopping", "status idle", "finished", "chat/deleted", "response"]
    );
    model.connection_closed().await;
    assert!(list(&mut server).await.chats.is_empty());
    server.finish().await;
}

#[tokio::test]
async fn two_servers_share_one_store() {
    let model = model().await;
    let mut one = TestServer::with(&model).start().await;
    let dirs = one.dirs.clone();
    let mut two = TestServer::with(&model).dirs(&dirs).start().await;
    for round in 0..10 {
        one.start_prompt(Some("of-one"), &format!("{round}"));
        two.start_prompt(Some("of-two"), &format!("{round}"));
        for (server, chat) in [(&mut one, "of-one"), (&mut two, "of-two")] {
            server.everything_until("the end", |message| is_finished(message, chat)).await;
        }
    }
    let mut seen = ids(&list(&mut one).await).iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    seen.sort();
    assert_eq!(seen, ["of-one", "of-two"]);
    // A chat that the other server works on is only read here.
    while model.try_next_request().await.is_some() {}
    let refused = two.turn("of-one", "and now here").await;
    let why = crate::peer::outline::text_by("system", &refused);
    assert!(why.contains("Another ECA server") && why.contains("/fork"), "{why}");
    assert!(model.try_next_request().await.is_none());
    // Once that server is gone, the chat is continued with its history.
    one.finish().await;
    two.turn("of-one", "and now here").await;
    let request = model.next_request().await;
    assert_eq!(spoken(&request.body).len(), 21);
    two.finish().await;
}

#[tokio::test]
async fn a_chat_is_recorded_before_it_is_echoed() {
    let model = MockLlm::start().await;
    model.push(Script::hang());
    let mut server = TestServer::with(&model).start().await;
    server.start_prompt(Some("c"), "remember me");
    server.everything_until("the echo", |message: &Value| message["params"]["role"] == "user").await;
    // Another process sees it at once.
    let dirs = server.dirs.clone();
    let mut other = TestServer::with(&model).dirs(&dirs).start().await;
    assert_eq!(ids(&list(&mut other).await), ["c"]);
    other.finish().await;
    server.stop("c");
    server.everything_until("the end", |message| is_finished(message, "c")).await;
    server.finish().await;
}

#[tokio::test]
async fn chats_without_a_usable_store_still_work_and_the_user_is_told_once() {
    let model = model().await;
    let dirs = std::sync::Arc::new(crate::server::TestDirs::new());
    // A file where the folder should be.
    std::fs::create_dir_all(dirs.eca.data.parent().unwrap()).unwrap();
    std::fs::write(&dirs.eca.data, "in the way").unwrap();
    let mut server = TestServer::with(&model).dirs(&dirs).start().await;
    for _ in 0..2 {
        let turn = server.turn("c", "hi").await;
        assert_eq!(crate::peer::outline::text_by("assistant", &turn), "answer");
    }
    let warned = server.take_unread();
    assert_eq!(outline(&warned), ["$/showMessage"]);
    server.finish().await;
}
