//! Puts what runs at every start side by side in the program, so that a start touches a megabyte of
//! it and not ten. `src/start.ld` lists those functions; `.ci/start-order` makes the list anew.
//!
//! A function that is not listed, or listed and gone, costs a little speed and nothing else.

fn main() {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    println!("cargo::rerun-if-changed=src/start.ld");
    let is_release = variable("PROFILE") == "release";
    let has_sections = variable("CARGO_CFG_TARGET_OS") == "linux";
    // The linkers that come with a toolchain take such a list; others may not.
    let own_linker = !variable("RUSTC_LINKER").is_empty() || variable("CARGO_ENCODED_RUSTFLAGS").contains("link");
    if is_release && has_sections && !own_linker {
        let list = std::path::Path::new(&variable("CARGO_MANIFEST_DIR")).join("src/start.ld");
        println!("cargo::rustc-link-arg-bin=eca=-Wl,-T,{}", list.display());
    }
}
