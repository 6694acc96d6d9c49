//! What is taken for unsaved, and that nothing grows without end.

use std::fs;

use lsp_types::{Position, Range};

use super::*;

struct Lab {
    folder: tempfile::TempDir,
    documents: Documents,
}

impl Lab {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), documents: Documents::default() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("a b.txt")
    }

    fn uri(&self) -> Uri {
        crate::workspace::uri_from_path(&self.path()).parse().unwrap()
    }

    fn open(&self, disk: &str, text: &str) {
        fs::write(self.path(), disk).unwrap();
        self.documents.opened(self.uri(), 1, text.into());
    }

    fn type_in(&self, version: i32, text: &str) {
        let start = Position::default();
        let range = Some(Range { start, end: start });
        let change = TextDocumentContentChangeEvent { range, range_length: None, text: text.into() };
        self.documents.changed(&self.uri(), version, &[change]);
    }

    fn becomes(&self, version: i32, text: &str) {
        let change = TextDocumentContentChangeEvent { range: None, range_length: None, text: text.into() };
        self.documents.changed(&self.uri(), version, &[change]);
    }

    async fn unsaved(&self) -> Option<String> {
        match self.documents.held(&self.path()).await {
            Held::Unsaved(unsaved) => Some(unsaved.text),
            Held::Nothing => None,
            Held::Unknown => Some("?".into()),
        }
    }
}

#[tokio::test]
async fn only_what_the_disk_does_not_have_is_unsaved() {
    let lab = Lab::new();
    lab.open("one\r\n", "one\n");
    assert_eq!(lab.unsaved().await, None);
    lab.type_in(2, "X");
    assert_eq!(lab.unsaved().await.as_deref(), Some("Xone\n"));
    lab.type_in(3, "Y");
    assert_eq!(lab.unsaved().await.as_deref(), Some("YXone\n"));
    lab.documents.saved(&lab.uri());
    assert_eq!(lab.unsaved().await, None);
    // Somebody else writes the file; the editor has nothing of its own.
    fs::write(lab.path(), "theirs\n").unwrap();
    assert_eq!(lab.unsaved().await, None);
    // It takes the change up, which looks like typing.
    lab.becomes(4, "theirs\n");
    assert_eq!(lab.unsaved().await, None);
    fs::write(lab.path(), "once more\n").unwrap();
    assert_eq!(lab.unsaved().await, None, "what it took up is not the user's");
    lab.type_in(5, "Z");
    assert!(lab.unsaved().await.is_some());
    lab.documents.closed(&lab.uri());
    assert_eq!(lab.unsaved().await, None);
    assert!(lab.documents.is_empty());
}

#[tokio::test]
async fn changes_of_an_earlier_session_and_new_documents_are_unsaved_from_the_start() {
    let lab = Lab::new();
    lab.open("disk\n", "restored\n");
    assert_eq!(lab.unsaved().await.as_deref(), Some("restored\n"));
    fs::remove_file(lab.path()).unwrap();
    lab.documents.opened(lab.uri(), 1, String::new());
    assert_eq!(lab.unsaved().await, None);
    lab.type_in(2, "new");
    assert_eq!(lab.unsaved().await.as_deref(), Some("new"));
    // Not a file: nobody's tools reach it.
    lab.documents.opened("untitled:Untitled-1".parse().unwrap(), 1, "x".into());
    lab.documents.changed(&"untitled:Untitled-1".parse().unwrap(), 2, &[]);
}

#[cfg(unix)]
#[tokio::test]
async fn a_document_is_known_by_the_place_where_its_links_lead() {
    let lab = Lab::new();
    let folder = tempfile::tempdir().unwrap();
    let real = dunce::canonicalize(folder.path()).unwrap().join("real.txt");
    fs::write(&real, "one").unwrap();
    std::os::unix::fs::symlink(&real, lab.path()).unwrap();
    lab.documents.opened(lab.uri(), 1, "one".into());
    lab.type_in(2, "my ");
    while lab.documents.table().find(&real).is_none() {
        tokio::task::yield_now().await;
    }
    assert!(matches!(lab.documents.held(&real).await, Held::Unsaved(unsaved) if unsaved.text == "my one"));
    assert!(lab.documents.is(&real, "my one") && lab.documents.is(&lab.path(), "my one"));
    fs::write(&real, "my one").unwrap();
    assert_eq!(lab.documents.held(&real).await, Held::Nothing);
    fs::write(&real, "theirs").unwrap();
    assert_eq!(lab.unsaved().await, None, "by either name");
}

#[tokio::test]
async fn a_document_that_is_too_large_is_known_to_be_changed_and_no_more() {
    let lab = Lab::new();
    let large = "x".repeat(MOST_BYTES + 1);
    lab.open("small", &large);
    assert_eq!(lab.unsaved().await, None);
    lab.type_in(2, "y");
    assert_eq!(lab.unsaved().await.as_deref(), Some("?"));
    lab.becomes(3, "fits again");
    assert_eq!(lab.unsaved().await.as_deref(), Some("fits again"));
    lab.becomes(4, &large);
    assert_eq!(lab.unsaved().await.as_deref(), Some("?"));
    lab.documents.saved(&lab.uri());
    assert_eq!(lab.unsaved().await, None);
}

#[tokio::test]
async fn all_documents_together_are_bounded() {
    let documents = Documents::default();
    let text = "x".repeat(MOST_BYTES);
    for number in 0..MOST_BYTES_IN_ALL / MOST_BYTES + 3 {
        let uri: Uri = format!("file:///nowhere/{number}").parse().unwrap();
        documents.opened(uri, 1, text.clone());
        assert!(documents.table().bytes <= MOST_BYTES_IN_ALL);
    }
    for number in 0..MOST_BYTES_IN_ALL / MOST_BYTES + 3 {
        documents.closed(&format!("file:///nowhere/{number}").parse().unwrap());
    }
    assert_eq!(documents.table().bytes, 0);
    assert!(documents.is_empty());
}

#[tokio::test]
async fn what_the_editor_reports_is_waited_for_within_bounds() {
    let lab = Lab::new();
    lab.open("a", "a");
    let path = lab.path();
    let waiting = lab.documents.becomes(&path, "b", Duration::from_secs(20));
    let typing = async {
        tokio::task::yield_now().await;
        lab.becomes(2, "b");
    };
    let (arrived, ()) = tokio::join!(waiting, typing);
    assert!(arrived);
    assert!(!lab.documents.becomes(&path, "never", Duration::ZERO).await);
}
