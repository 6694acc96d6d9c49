//! Which files are told, in which order, and what an include may reach.

use super::*;
use crate::customization::tests::World;

fn texts(world: &World) -> (Vec<String>, Vec<String>) {
    let (loaded, problems) = world.load();
    (loaded.contexts.into_iter().map(|file| file.text).collect(), problems)
}

#[test]
fn roots_come_first_and_the_user_s_own_last() {
    let mut world = World::new();
    world.write("eca/AGENTS.md", "mine");
    world.write("repo/AGENTS.md", "theirs");
    world.write("other/AGENTS.md", "other");
    world.write("AGENTS.md", "above");
    world.roots.push(world.path("other"));
    assert_eq!(texts(&world).0, ["theirs", "other", "mine"]);
    world.settings.include_parent_agents_files = true;
    assert_eq!(texts(&world).0, ["above", "theirs", "other", "mine"], "the outermost first, and once");
}

#[test]
fn another_assistant_s_file_stands_in() {
    let mut world = World::new();
    world.write("repo/CLAUDE.md", "from another\n@more.md");
    world.write("repo/more.md", "more");
    assert_eq!(texts(&world).0, ["from another\n@more.md", "more"]);
    world.settings.compat_rules = false;
    assert_eq!(texts(&world).0, Vec::<String>::new());
    world.settings.compat_rules = true;
    world.write("repo/AGENTS.md", "own");
    assert_eq!(texts(&world).0, ["own"]);
    world.write("repo/AGENTS.md", "");
    assert_eq!(texts(&world).0, Vec::<String>::new(), "an empty one says that there is nothing to say");
}

#[test]
fn includes_are_followed_once_and_in_order() {
    let world = World::new();
    world.write("repo/AGENTS.md", "A @docs/b.md and @c.md, @docs/b.md. Not @missing.md.");
    world.write("repo/docs/b.md", "B @../c.md @b.md @./d.txt");
    world.write("repo/docs/d.txt", "D @../AGENTS.md");
    world.write("repo/c.md", "C");
    let (texts, problems) = texts(&world);
    let first: Vec<&str> = texts.iter().map(|text| &text[..1]).collect();
    assert_eq!(first, ["A", "B", "C", "D"]);
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn includes_end_somewhere() {
    let world = World::new();
    world.write("repo/AGENTS.md", "@0.md");
    for number in 0..20 {
        world.write(&format!("repo/{number}.md"), format!("@{}.md", number + 1));
    }
    let (deep, problems) = texts(&world);
    assert_eq!(deep.len(), MAX_DEPTH + 1);
    assert_eq!(problems, ["/repo/5.md: too many files include one another; it is ignored"]);
    let all: String = (0..100).map(|number| format!("@w{number}.md ")).collect();
    world.write("repo/AGENTS.md", all);
    for number in 0..100 {
        world.write(&format!("repo/w{number}.md"), vec![b'x'; 20 * 1024]);
    }
    let (wide, problems) = texts(&world);
    assert!(wide.len() < 30 && problems.iter().any(|problem| problem.contains("512 KiB")), "{problems:?}");
}

#[test]
fn an_include_of_a_workspace_stays_in_the_workspace() {
    let world = World::new();
    world.write("home/secret.md", "PRIVATE");
    let secret = world.path("home/secret.md").display().to_string();
    world.write("repo/prod.env", "PRIVATE");
    world.write("repo/key.pem", "PRIVATE");
    world.write("repo/AGENTS.md", format!("@../home/secret.md @~/secret.md @{secret} @prod.env @key.pem @ok.md"));
    world.write("repo/ok.md", "fine");
    world.write("eca/AGENTS.md", format!("@~/allowed.md @{}", world.path("repo/evil.md").display()));
    world.write("home/allowed.md", "allowed @more.md");
    world.write("home/more.md", "more");
    world.write("repo/evil.md", "evil @../home/secret.md");
    let (texts, problems) = texts(&world);
    assert!(texts.iter().all(|text| !text.contains("PRIVATE")), "{texts:?}");
    assert_eq!(texts.iter().filter(|text| !text.contains('@')).collect::<Vec<_>>(), ["fine", "more"]);
    assert!(texts.iter().any(|text| text.starts_with("evil")), "the user may include from the workspace");
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert!(problems.iter().all(|problem| problem.contains("leads out") || problem.contains("keys")));
}

#[test]
fn what_is_above_a_workspace_reaches_its_own_folder() {
    let mut world = World::new();
    world.settings.include_parent_agents_files = true;
    world.roots = vec![world.path("repo/packages/one")];
    std::fs::create_dir_all(&world.roots[0]).unwrap();
    world.write("repo/AGENTS.md", "top @docs/x.md @../home/secret.md");
    world.write("repo/docs/x.md", "documents");
    world.write("home/secret.md", "PRIVATE");
    let (texts, problems) = texts(&world);
    assert_eq!(texts.last().map(String::as_str), Some("documents"));
    assert_eq!(problems, ["/home/secret.md: leads out of the workspace; it is ignored"]);
}

#[test]
fn mentions_are_paths_outside_of_code() {
    for (text, expected) in [
        ("see @a.md, (@b/c.txt) and \"@d.md\".", vec!["a.md", "b/c.txt", "d.md"]),
        ("@start.md\n- @list.md:\n> @quote.md!", vec!["start.md", "list.md", "quote.md"]),
        ("@~/x.md @/abs/y.md @./z.md @../w.md", vec!["~/x.md", "/abs/y.md", "./z.md", "../w.md"]),
        ("me@host.org @types/node @everyone a/@b.md @@c.md", vec![]),
        ("`@code.md` and ``@more.md`` @yes.md", vec!["yes.md"]),
        ("a ` alone @yes.md", vec!["yes.md"]),
        ("```\n@no.md\n~~~\n@no.md\n```\n@yes.md\n~~~sh\n@no.md", vec!["yes.md"]),
        ("@.env @x. @.. @a.b/c @a.toolongextension", vec![]),
        ("@grün/日本.md", vec!["grün/日本.md"]),
    ] {
        assert_eq!(mentions(text), expected, "{text}");
    }
    assert_eq!(mentions(&"@a.md ".repeat(1000)).len(), MAX_MENTIONS);
}
