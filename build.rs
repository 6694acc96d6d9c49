//! Links the released programs at a fixed address, as those of Node and Go are. Otherwise every start
//! would write 40,000 addresses into 800 kB of tables: a fifth of its time, and memory that no two
//! processes share. Libraries, heap and stack are still somewhere else each time; with `ECA_PIE` in the
//! environment of the build, so is the program.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=ECA_PIE");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let is_release = variable("PROFILE") == "release";
    let can_be_fixed = variable("CARGO_CFG_TARGET_OS") == "linux" && variable("CARGO_CFG_TARGET_ENV") == "gnu";
    if is_release && can_be_fixed && variable("ECA_PIE").is_empty() {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
