//! The Lua of this crate, as files under `lua/`: what is included is put in place before a script goes to the server.

use stockade_scripts::source::Includes;

/// The parts under `lua/include`.
pub(crate) const INCLUDES: Includes = &[];

/// Declares the script of a file under `lua/`.
macro_rules! script {
    ($name:ident, $file:literal) => {
        pub(crate) static $name: stockade_scripts::Script = stockade_scripts::Script::with_includes(
            $file,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/lua/", $file, ".lua")),
            crate::script::INCLUDES,
        );
    };
}

#[allow(unused_imports)]
pub(crate) use script;
