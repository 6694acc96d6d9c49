//! Documents that an LSP client has open: what its user typed and did not save is read, and changed
//! in the editor instead of on the disk.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::mock_llm::{MockLlm, Script};
use crate::peer::outline::contents;
use crate::server::{TestServer, presets};

/// An editor's LSP client with one document.
struct Editor {
    server: TestServer,
    path: PathBuf,
    text: String,
    version: i64,
}

impl Editor {
    async fn open(model: &MockLlm, workspace: Value, disk: &str) -> Self {
        let server = TestServer::with(model)
            .client(presets::plain_lsp)
            .capabilities(json!({"textDocument": {}, "workspace": workspace}))
            .config(json!({"toolCall": {"approval": {"byDefault": "allow"}}}))
            .start()
            .await;
        let path = server.dirs.workspace.join("a b.txt");
        fs::write(&path, disk).unwrap();
        let editor = Self { server, path, text: disk.to_owned(), version: 1 };
        editor.notify(
            "textDocument/didOpen",
            json!({"textDocument": {
                "uri": editor.uri(), "languageId": "text", "version": 1, "text": disk,
            }}),
        );
        editor
    }

    fn uri(&self) -> String {
        format!("file://{}", self.path.display()).replace(' ', "%20")
    }

    fn notify(&self, method: &str, params: Value) {
        self.server.notify_raw(method, Some(params));
    }

    /// Types `text` at a place of the first line, counted in UTF-16 units.
    fn type_at(&mut self, character: usize, text: &str) {
        let units: Vec<u16> = self.text.encode_utf16().collect();
        let (before, after) = units.split_at(character);
        let typed: Vec<u16> = text.encode_utf16().collect();
        self.text = String::from_utf16(&[before, &typed, after].concat()).unwrap();
        self.version += 1;
        let place = json!({"line": 0, "character": character});
        self.report(json!({"range": {"start": place, "end": place}, "text": text}));
    }

    /// The whole text is another one.
    fn becomes(&mut self, text: &str) {
        text.clone_into(&mut self.text);
        self.version += 1;
        self.report(json!({"text": text}));
    }

    fn report(&self, change: Value) {
        let document = json!({"uri": self.uri(), "version": self.version});
        self.notify("textDocument/didChange", json!({"textDocument": document, "contentChanges": [change]}));
    }

    async fn asked_to_change(&mut self) -> Value {
        self.server.find("workspace/applyEdit", |message| message["method"] == "workspace/applyEdit").await
    }

    /// What the model was told about its last call.
    async fn result(&self, model: &MockLlm) -> String {
        model.next_request().await;
        model.next_request().await.body["messages"].as_array().unwrap().last().unwrap()["content"].to_string()
    }
}

fn edits() -> Value {
    json!({"applyEdit": true, "workspaceEdit": {"documentChanges": true}})
}

fn edit_call(path: &Path, from: &str, to: &str) -> Script {
    let arguments = json!({"path": path, "original_content": from, "new_content": to}).to_string();
    Script::tool_call("e", "eca__edit_file", &[&arguments])
}

#[tokio::test]
async fn a_document_with_unsaved_changes_is_read_and_changed_in_the_editor() {
    let model = MockLlm::start().await;
    let mut editor = Editor::open(&model, edits(), "a😀b\nlast\n").await;
    let sync = &editor.server.initialize_response["result"]["capabilities"]["textDocumentSync"];
    assert_eq!((&sync["openClose"], &sync["change"]), (&json!(true), &json!(2)));
    editor.type_at(3, "typed ");
    model.push(edit_call(&editor.path, "typed b", "typed and edited b"));
    model.push(Script::text_stream(&["done"]));
    editor.server.prompt(Some("c"), "edit").await;
    let request = editor.asked_to_change().await;
    let change = &request["params"]["edit"]["documentChanges"][0];
    assert_eq!(change["textDocument"], json!({"uri": editor.uri(), "version": 2}));
    let edit = &change["edits"][0];
    // Only what is new is put in, behind the pair of units of the emoji.
    assert_eq!(edit["newText"], "and edited ");
    assert_eq!(edit["range"]["start"], json!({"line": 0, "character": 9}));
    assert_eq!(edit["range"]["end"], edit["range"]["start"]);
    editor.becomes("a😀typed and edited b\nlast\n");
    editor.server.answer(&request, json!({"applied": true}));
    let turn = editor.server.collect_turn("c").await;
    assert_eq!(contents("toolCalled", &turn)[0]["error"], false);
    let said = editor.server.find("the request to save", |message| message["method"] == "window/showMessage").await;
    assert!(said["params"]["message"].as_str().unwrap().contains("a b.txt"), "{said}");
    editor.server.find("its double", |message| message["method"] == "$/showMessage").await;
    assert_eq!(fs::read_to_string(&editor.path).unwrap(), "a😀b\nlast\n", "the disk is the user's to write");
    assert!(editor.result(&model).await.contains("not on the disk"));

    // Saved, it is a file like any other.
    fs::write(&editor.path, &editor.text).unwrap();
    editor.notify("textDocument/didSave", json!({"textDocument": {"uri": editor.uri()}}));
    model.push(edit_call(&editor.path, "last", "end"));
    model.push(Script::text_stream(&["done"]));
    let turn = editor.server.turn("c", "edit the disk").await;
    assert_eq!(contents("toolCalled", &turn)[0]["error"], false);
    assert!(fs::read_to_string(&editor.path).unwrap().ends_with("b\nend\n"));
    // The editor takes it up, which is no typing.
    editor.becomes("a😀typed and edited b\nend\n");
    model.push(edit_call(&editor.path, "end", "END"));
    model.push(Script::text_stream(&["done"]));
    editor.server.turn("c", "once more").await;
    assert!(fs::read_to_string(&editor.path).unwrap().ends_with("b\nEND\n"));
    editor.notify("textDocument/didClose", json!({"textDocument": {"uri": editor.uri()}}));
    editor.server.ignore_rest();
    editor.server.finish().await;
}

#[tokio::test]
async fn an_editor_that_refuses_keeps_its_text_and_the_model_is_told() {
    let model = MockLlm::start().await;
    let mut editor = Editor::open(&model, edits(), "one\n").await;
    editor.type_at(0, "my ");
    model.push(edit_call(&editor.path, "my one", "two"));
    model.push(Script::text_stream(&["sorry"]));
    editor.server.prompt(Some("c"), "edit").await;
    let request = editor.asked_to_change().await;
    editor.server.answer(&request, json!({"applied": false, "failureReason": "buffer is locked"}));
    let turn = editor.server.collect_turn("c").await;
    let called = contents("toolCalled", &turn)[0];
    assert_eq!(called["error"], true);
    assert!(called.to_string().contains("buffer is locked"), "{called}");
    assert_eq!(fs::read_to_string(&editor.path).unwrap(), "one\n");
    editor.server.finish().await;
}

#[tokio::test]
async fn what_is_typed_while_a_change_is_on_its_way_is_kept() {
    let model = MockLlm::start().await;
    let mut editor = Editor::open(&model, edits(), "one\n").await;
    editor.type_at(0, "my ");
    model.push(edit_call(&editor.path, "one", "two"));
    model.push(Script::text_stream(&["done"]));
    editor.server.prompt(Some("c"), "edit").await;
    let outdated = editor.asked_to_change().await;
    assert_eq!(outdated["params"]["edit"]["documentChanges"][0]["textDocument"]["version"], 2);
    editor.type_at(0, "oh ");
    editor.server.answer(&outdated, json!({"applied": false, "failureReason": "another version"}));
    let fresh = editor.asked_to_change().await;
    let change = &fresh["params"]["edit"]["documentChanges"][0];
    assert_eq!(change["textDocument"]["version"], 3);
    assert_eq!(change["edits"][0]["range"]["start"], json!({"line": 0, "character": 6}));
    editor.becomes("oh my two\n");
    editor.server.answer(&fresh, json!({"applied": true}));
    let turn = editor.server.collect_turn("c").await;
    assert_eq!(contents("toolCalled", &turn)[0]["error"], false);
    assert_eq!(fs::read_to_string(&editor.path).unwrap(), "one\n");
    editor.server.ignore_rest();
    editor.server.finish().await;
}

#[tokio::test]
async fn an_editor_that_takes_no_changes_loses_none_and_one_without_versions_is_served() {
    let model = MockLlm::start().await;
    let mut editor = Editor::open(&model, json!({"workspaceFolders": true}), "one\n").await;
    editor.type_at(0, "my ");
    model.push(edit_call(&editor.path, "one", "two"));
    model.push(Script::text_stream(&["sorry"]));
    let turn = editor.server.turn("c", "edit").await;
    let called = contents("toolCalled", &turn)[0];
    assert_eq!(called["error"], true);
    assert!(called.to_string().contains("saved first"), "{called}");
    assert_eq!(fs::read_to_string(&editor.path).unwrap(), "one\n");
    editor.server.finish().await;

    let mut editor = Editor::open(&model, json!({"applyEdit": true}), "one\n").await;
    editor.type_at(0, "my ");
    model.push(edit_call(&editor.path, "one", "two"));
    model.push(Script::text_stream(&["done"]));
    editor.server.prompt(Some("c"), "edit").await;
    let request = editor.asked_to_change().await;
    let uri = editor.uri();
    assert_eq!(request["params"]["edit"]["changes"][&uri][0]["newText"], "two");
    editor.becomes("my two\n");
    editor.server.answer(&request, json!({"applied": true}));
    let turn = editor.server.collect_turn("c").await;
    assert_eq!(contents("toolCalled", &turn)[0]["error"], false);
    editor.server.ignore_rest();
    editor.server.finish().await;
}

#[tokio::test]
async fn a_document_that_is_open_and_saved_is_changed_on_the_disk() {
    let model = MockLlm::start().await;
    let mut editor = Editor::open(&model, edits(), "one\n").await;
    model.push(edit_call(&editor.path, "one", "two"));
    model.push(Script::text_stream(&["done"]));
    editor.server.prompt(Some("c"), "edit").await;
    let turn = editor.server.collect_turn("c").await;
    assert_eq!(contents("toolCalled", &turn)[0]["error"], false);
    assert_eq!(fs::read_to_string(&editor.path).unwrap(), "two\n");
    editor.server.finish().await;
}
