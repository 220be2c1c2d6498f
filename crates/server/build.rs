//! Has the binary built again when the dashboard was: its files are taken into the binary (`src/http/dashboard.rs`).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The folder is always there, for git keeps its `.gitignore`; what is in it comes from `make web`.
    println!("cargo::rerun-if-changed=../../web/dist");
}
