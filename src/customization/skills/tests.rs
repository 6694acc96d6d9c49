//! Which skills there are, and what one says when it is loaded.

use super::*;
use crate::customization::tests::World;

fn names(world: &World) -> (Vec<String>, Vec<String>) {
    let (loaded, problems) = world.load();
    (loaded.skills.iter().map(|skill| format!("{}: {}", skill.name, skill.description)).collect(), problems)
}

#[test]
fn skills_are_found_and_the_nearest_counts() {
    let world = World::new();
    let skill = |name: &str, description: &str| format!("---\nname: {name}\ndescription: {description}\n---\nbody");
    world.write("eca/skills/lint/SKILL.md", skill("lint", "mine"));
    world.write("eca/skills/group/deep/SKILL.md", skill("deep", "found: with a colon"));
    world.write("eca/skills/lint/inner/SKILL.md", skill("inner", "part of lint"));
    world.write("repo/.eca/skills/lint/SKILL.md", skill("lint", "theirs"));
    world.write("repo/.agents/skills/shared/SKILL.md", skill("shared", "|\n  two\n  lines"));
    world.write("repo/.eca/skills/README.md", "no skill");
    let (found, problems) = names(&world);
    assert_eq!(found, ["deep: found: with a colon", "lint: theirs", "shared: two lines"]);
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn a_skill_needs_a_name_and_a_description() {
    let world = World::new();
    world.write("repo/.eca/skills/a/SKILL.md", "---\ndescription: x\n---\n");
    world.write("repo/.eca/skills/b/SKILL.md", "---\nname: b\n---\n");
    world.write("repo/.eca/skills/c/SKILL.md", "no settings at all");
    world.write("repo/.eca/skills/d/SKILL.md", "---\nname: [d]\ndescription: x\n---\n");
    world.write("repo/.eca/skills/e/SKILL.md", "---\nnonsense\n---\n");
    world.write(
        "repo/.eca/skills/f/SKILL.md",
        format!("---\nname: {}\ndescription: {}\n---\n", "n".repeat(200), "d".repeat(5000)),
    );
    let (found, problems) = names(&world);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].len(), MAX_NAME + 2 + MAX_DESCRIPTION);
    assert_eq!(problems.len(), 5, "{problems:?}");
    assert!(problems.iter().all(|problem| problem.ends_with("the skill is ignored")));
}

#[tokio::test]
async fn a_skill_is_read_as_it_is_now() {
    let world = World::new();
    let file = world.write("eca/skills/s/SKILL.md", "---\nname: s\ndescription: d\n---\nold");
    let (loaded, _) = world.load();
    std::fs::write(&file, "---\nname: s\ndescription: d\n---\nnew ${env:SECRET} for $1").unwrap();
    let skill = loaded.skills.load_skill("s").await.unwrap();
    assert_eq!((skill.text.as_str(), skill.directory.as_path()), ("new s3cret for $1", file.parent().unwrap()));
    assert_eq!(skill.with_arguments("you \"and me\""), "new s3cret for you");
    assert_eq!(loaded.skills.load_skill("t").await.unwrap_err(), "There is no skill \"t\". The skills are: s.");
    std::fs::remove_file(&file).unwrap();
    assert!(loaded.skills.load_skill("s").await.unwrap_err().contains("it is gone"));
    std::fs::write(&file, [0xff]).unwrap();
    assert!(loaded.skills.load_skill("s").await.unwrap_err().contains("not UTF-8"));
    assert!(Skills::default().get("x").unwrap_err().contains("nor any other"));
}

#[tokio::test]
async fn a_stranger_s_skill_is_text() {
    let mut world = World::new();
    let file = world
        .write("repo/.eca/skills/s/SKILL.md", "---\nname: s\ndescription: d ${cmd:x}\n---\n${env:SECRET} ${cmd:y}");
    let (loaded, problems) = world.load();
    assert_eq!(problems, Vec::<String>::new());
    assert!(loaded.calls().is_empty(), "a list of skills runs nothing");
    let text = "${env:SECRET} ${cmd:y}";
    assert_eq!(loaded.skills.load_skill("s").await.unwrap().text, text);
    std::fs::write(&file, "---\nname: s\ndescription: d\n---\n${env:SECRET}").unwrap();
    let hash = crate::config::texts::hash(
        &std::fs::read_to_string(&file).unwrap(),
        file.parent().unwrap(),
        &world.roots[0],
        None,
    );
    world.trusted.insert(file.clone(), hash.unwrap());
    assert_eq!(world.load().0.skills.load_skill("s").await.unwrap().text, "s3cret");
}
