//! `eca chats`: what earlier commands left behind, listed, shown, found, and taken elsewhere.

use serde_json::Value;

use super::{Home, Ran, run, run_with_stdin};

impl Home {
    fn chats(&self, args: &[&str]) -> Ran {
        run(self.eca(&[&["chats"][..], args].concat()))
    }

    fn listed(&self, args: &[&str]) -> Vec<Value> {
        let ran = self.chats(&[&["list", "--json"][..], args].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        serde_json::from_str(&ran.out).unwrap()
    }
}

#[test]
fn looking_at_nothing_creates_nothing() {
    let home = Home::new();
    let ran = home.chats(&["list"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""));
    assert!(ran.err.contains("no chats"), "{}", ran.err);
    assert!(home.listed(&[]).is_empty());
    let ran = home.chats(&["search", "anything"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    let ran = home.chats(&["show", "abc"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.starts_with("error: there is no chat \"abc\""), "{}", ran.err);
    assert!(!home.path(".local/share/eca/chats.db").exists());
}

#[test]
fn chats_are_listed_shown_and_found() {
    let home = Home::new();
    assert_eq!(run(home.chat(&["show", "code", "with", "marzipan"])).code, Some(0));
    std::fs::create_dir(home.path("elsewhere")).unwrap();
    let mut other = home.chat(&["code", "with", "nougat"]);
    other.current_dir(home.path("elsewhere"));
    assert_eq!(run(other).code, Some(0));

    let here = home.listed(&[]);
    assert_eq!((here.len(), &here[0]["messageCount"]), (1, &Value::from(2)));
    let all = home.listed(&["--all"]);
    assert_eq!(all.len(), 2);
    assert_eq!(home.listed(&["--all", "--limit", "1"]), all[..1]);
    let table = home.chats(&["list", "--all"]);
    assert!(table.out.starts_with("CHAT ") && table.out.lines().count() == 3, "{}", table.out);
    let id = here[0]["id"].as_str().unwrap();
    assert!(table.out.contains(&id[..8]), "{}", table.out);

    let shown = home.chats(&["show", &id[..8]]);
    assert_eq!((shown.code, shown.err.as_str()), (Some(0), ""));
    assert!(shown.out.contains("## You\n\nshow code with marzipan\n\n## Assistant\n\nHere is"), "{}", shown.out);
    let json = home.chats(&["show", "--json", id]);
    let document: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(document["chat"]["messages"].as_array().unwrap().len(), 2);

    let found = home.chats(&["search", "MARZI"]);
    assert_eq!(found.code, Some(0), "{}", found.err);
    assert!(found.out.contains("1: show code with marzipan"), "{}", found.out);
    assert_eq!(home.chats(&["search", "nougat"]).code, Some(1));
    let everywhere = home.chats(&["search", "--all", "--json", "nougat"]);
    let hits: Value = serde_json::from_str(&everywhere.out).unwrap();
    assert_eq!((hits.as_array().unwrap().len(), &hits[0]["message"]), (1, &Value::from(1)));
    // Words that would be operators elsewhere.
    assert_eq!(home.chats(&["search", "NOT", "(\"*"]).code, Some(1));
}

#[test]
fn a_chat_can_be_taken_to_another_home() {
    let (home, other) = (Home::new(), Home::new());
    assert_eq!(run(home.chat(&["code"])).code, Some(0));
    let id = home.listed(&[])[0]["id"].as_str().unwrap().to_owned();
    let file = home.path("chat.json").display().to_string();
    let ran = home.chats(&["export", &id, &file]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{}", ran.err);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let again = home.chats(&["export", &id, &file]);
    assert_eq!(again.code, Some(1), "nothing is overwritten");
    assert!(again.err.contains("chat.json"), "{}", again.err);

    let ran = other.chats(&["import", &file]);
    assert_eq!((ran.code, ran.out.trim_end()), (Some(0), id.as_str()), "{}", ran.err);
    assert_eq!(other.chats(&["show", &id]).out, home.chats(&["show", &id]).out);
    let document = home.chats(&["export", &id]).out;
    let ran = run_with_stdin(other.eca(&["chats", "import", "-"]), document.as_bytes());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_ne!(ran.out.trim_end(), id);
    assert_eq!(other.listed(&[]).len(), 2);

    for (document, complaint) in [("{", "not valid JSON at line 1"), ("{}", "format"), ("", "not valid JSON")] {
        let ran = run_with_stdin(other.eca(&["chats", "import", "-"]), document.as_bytes());
        assert_eq!(ran.code, Some(1), "{document}");
        assert!(ran.err.starts_with("error: ") && ran.err.contains(complaint), "{}", ran.err);
    }
    assert_eq!(other.chats(&["import", "/nowhere/at/all.json"]).code, Some(1));
}

#[test]
fn the_public_servers_chats_are_taken_once() {
    let home = Home::new();
    let workspace = dunce::canonicalize(home.path("")).unwrap();
    let digest = ring::digest::digest(&ring::digest::SHA256, workspace.to_str().unwrap().as_bytes());
    let folder = home.path(".cache/eca").join(format!("home_{}", base64url(&digest.as_ref()[..6]))).join("chats");
    std::fs::create_dir_all(&folder).unwrap();
    let chat = r#"["^ ","~:version",7,"~:chat",["^ ","~:id","11111111-aaaa","~:title","From there","~:messages",
        [["^ ","~:role","user","~:content",[["^ ","~:type","~:text","~:text","hello there"]]]]]]"#;
    std::fs::write(folder.join("11111111-aaaa.transit.json"), chat).unwrap();
    let in_workspace = |args: &[&str]| {
        let mut command = home.eca(&[&["chats"][..], args].concat());
        command.current_dir(&workspace);
        run(command)
    };
    let ran = in_workspace(&["import", "--public"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Imported 1 chat; 0 chats not taken again.\n"), "{}", ran.err);
    let ran = in_workspace(&["import", "--public"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Imported 0 chats; 1 chat not taken again.\n"));
    assert!(in_workspace(&["list"]).out.contains("From there"));
    std::fs::write(folder.join("22222222-bbbb.transit.json"), "broken").unwrap();
    let ran = in_workspace(&["import", "--public"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.starts_with("problem: ") && ran.err.contains("22222222-bbbb"), "{}", ran.err);
}

fn base64url(six: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let three = |three: &[u8]| {
        let bits = u32::from(three[0]) << 16 | u32::from(three[1]) << 8 | u32::from(three[2]);
        [18, 12, 6, 0].map(|shift| char::from(DIGITS[(bits >> shift & 63) as usize]))
    };
    six.chunks(3).flat_map(three).collect()
}

#[test]
fn a_damaged_history_is_told_and_left_alone() {
    let home = Home::new();
    let data = home.path(".local/share/eca");
    std::fs::create_dir_all(&data).unwrap();
    let garbage = "not a database ".repeat(500);
    std::fs::write(data.join("chats.db"), &garbage).unwrap();
    assert_eq!(run(home.chat(&["code"])).code, Some(0));
    let ran = home.chats(&["list"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.out.lines().count() == 2 && ran.err.contains("chats-2.db"), "{} {}", ran.out, ran.err);
    assert_eq!(std::fs::read_to_string(data.join("chats.db")).unwrap(), garbage);
}
