//! Names, arguments and prompts of commands.

use super::*;
use crate::customization::tests::World;

#[test]
fn commands_are_found_by_their_file_names() {
    let world = World::new();
    world.write("eca/commands/Check.md", "mine");
    world.write("eca/commands/sub/Other.MD", "other");
    world.write("eca/commands/notes.txt", "no command");
    world.write("repo/.eca/commands/check.md", "---\ndescription: Look\n---\ntheirs $1");
    let (loaded, problems) = world.load();
    assert_eq!(problems, Vec::<String>::new());
    let names: Vec<_> = loaded.commands.iter().map(|command| (command.name.as_str(), command.origin)).collect();
    assert_eq!(names, [("check", Origin::Workspace), ("other", Origin::Global)]);
    assert_eq!(loaded.commands.get("CHECK").unwrap().description.as_deref(), Some("Look"));
    assert_eq!(loaded.commands.expand("check", "a b").unwrap(), "theirs a");
    assert_eq!(loaded.commands.expand("other", "and more").unwrap(), "other\n\nand more");
    assert_eq!(loaded.commands.expand("nope", "").unwrap_err().to_string(), "There is no command /nope.");
}

#[test]
fn arguments_are_described_and_required() {
    let world = World::new();
    let declared = "arguments:\n  - name: city\n    description: Where\n  - name: units\n    required: false\n";
    world.write(
        "eca/commands/weather.md",
        format!("---\n{declared}---\n{{{{city}}}} in {{{{units}}}} for {{{{ days }}}}"),
    );
    world.write("eca/commands/plain.md", format!("---\n{declared}---\n$1 in $2 and $3"));
    world.write("eca/commands/all.md", "$ARGUMENTS");
    world.write("eca/commands/strict.md", "---\narguments: [{name: x, required: true}]\n---\n$1");
    world.write("eca/commands/none.md", "nothing");
    let (loaded, problems) = world.load();
    assert_eq!(problems, Vec::<String>::new());
    let arguments = |name: &str| -> Vec<(String, bool)> {
        let command = loaded.commands.get(name).unwrap();
        command.arguments.iter().map(|argument| (argument.name.clone(), argument.required)).collect()
    };
    let pairs = |pairs: &[(&str, bool)]| {
        pairs.iter().map(|(name, required)| ((*name).to_owned(), *required)).collect::<Vec<_>>()
    };
    assert_eq!(arguments("weather"), pairs(&[("city", true), ("units", false), ("days", true)]));
    assert_eq!(arguments("plain"), pairs(&[("city", false), ("units", false), ("arg3", false)]));
    assert_eq!(arguments("all"), pairs(&[("arguments", false)]));
    assert_eq!(arguments("none"), pairs(&[]));
    assert_eq!(loaded.commands.get("weather").unwrap().arguments[0].description.as_deref(), Some("Where"));
    let expand = |name: &str, written: &str| loaded.commands.expand(name, written).map_err(|error| error.to_string());
    assert_eq!(expand("weather", "Paris metric 3"), Ok("Paris in metric for 3".to_owned()));
    assert_eq!(expand("weather", "\"New York\" metric 3 or 4"), Ok("New York in metric for 3 or 4".to_owned()));
    assert_eq!(expand("weather", ""), Err("/weather needs more: city, days.".to_owned()));
    assert_eq!(expand("plain", "a"), Ok("a in  and ".to_owned()));
    assert_eq!(expand("strict", " "), Err("/strict needs more: x.".to_owned()));
}

#[test]
fn what_cannot_be_a_command_is_reported() {
    let world = World::new();
    for (name, text, word) in [
        ("mixed", "{{a}} $1", "cannot be mixed"),
        ("empty", "---\ndescription: x\n---\n", "says nothing"),
        ("two words", "x", "cannot be the name"),
        ("args", "---\narguments: 7\n---\nx", "`arguments` must be"),
        ("arg", "---\narguments: [{description: x}]\n---\nx", "needs a `name`"),
    ] {
        world.write(&format!("repo/.eca/commands/{name}.md"), text);
        let (loaded, problems) = world.load();
        assert_eq!(loaded.commands.iter().count(), 0, "{name}");
        let found = problems.iter().find(|problem| problem.contains(&format!("/{name}.md")));
        assert!(found.is_some_and(|problem| problem.contains(word)), "{problems:?}");
    }
}

#[test]
fn a_file_that_is_being_saved_is_no_mistake() {
    let world = World::new();
    for place in ["commands/c.md", "rules/r.md", "agents/a.md", "skills/s/SKILL.md"] {
        world.write(&format!("repo/.eca/{place}"), "");
    }
    let (loaded, problems) = world.load();
    assert_eq!((loaded.commands.iter().count(), problems), (0, Vec::<String>::new()));
}
