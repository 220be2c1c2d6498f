//! The Lua of this crate, as files under `lua/`: what is included is put in place before a script goes to the server.
//! A script's header is its contract; the typed call beside it owns its keys, arguments and the reading of its reply.

use stockade_scripts::source::Includes;
use stockade_scripts::{Call, Script};

/// The parts under `lua/include`.
pub(crate) const INCLUDES: Includes = &[
    ("commit", include_str!("../lua/include/commit.lua")),
    ("due", include_str!("../lua/include/due.lua")),
    ("holds", include_str!("../lua/include/holds.lua")),
    ("light", include_str!("../lua/include/light.lua")),
    ("meta", include_str!("../lua/include/meta.lua")),
    ("picks", include_str!("../lua/include/picks.lua")),
    ("plan", include_str!("../lua/include/plan.lua")),
    ("records", include_str!("../lua/include/records.lua")),
    ("seal", include_str!("../lua/include/seal.lua")),
    ("shapes", include_str!("../lua/include/shapes.lua")),
    ("skus", include_str!("../lua/include/skus.lua")),
    ("start", include_str!("../lua/include/start.lua")),
];

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

/// The plumbing of a typed call: which script, which keys and arguments, and how its reply reads.
macro_rules! call {
    (
        $type:ty, $script:ident => $reply:ty,
        keys [$($key:literal),*] |$call:ident| $keys:expr,
        args [$($arg:literal),*] |$this:ident, $to:ident| $args:expr,
        reply |$value:ident| $parse:expr
    ) => {
        impl stockade_scripts::Call for $type {
            type Reply = $reply;
            const KEYS: &'static [&'static str] = &[$($key),*];
            const ARGS: &'static [&'static str] = &[$($arg),*];

            fn script() -> &'static stockade_scripts::Script {
                &$script
            }

            fn keys(&self) -> Vec<&str> {
                let $call = self;
                $keys
            }

            fn args(&self, $to: &mut stockade_scripts::Args<'_>) {
                let $this = self;
                $args;
            }

            fn parse($value: &redis::Value) -> Option<Self::Reply> {
                $parse
            }
        }
    };
}

pub(crate) use {call, script};

/// A script with what its typed call says about it.
#[derive(Debug)]
pub(crate) struct Contract {
    pub(crate) script: &'static Script,
    #[cfg_attr(not(test), expect(dead_code, reason = "compared with the header by a test"))]
    pub(crate) keys: &'static [&'static str],
    #[cfg_attr(not(test), expect(dead_code, reason = "compared with the header by a test"))]
    pub(crate) args: &'static [&'static str],
}

pub(crate) fn contract<S: Call>() -> Contract {
    Contract {
        script: S::script(),
        keys: S::KEYS,
        args: S::ARGS,
    }
}

/// Every script of this crate.
pub(crate) fn all() -> Vec<Contract> {
    let mut all = crate::control::contracts();
    all.extend(crate::decide::contracts());
    all.extend(crate::checks::contracts());
    all
}

/// The version of all scripts together: a digest of their digests, so that two builds can be told apart.
pub fn version() -> String {
    let mut digests = String::new();
    for contract in all() {
        // A script that cannot be read is none, and a test sees to it that there is none such.
        if let Ok(ready) = contract.script.ready() {
            digests.push_str(&ready.sha);
        }
    }
    let mut whole = sha1_smol::Sha1::from(digests).digest().to_string();
    whole.truncate(12);
    whole
}

#[cfg(test)]
mod tests {
    use stockade_scripts::header::Parameter;

    use super::*;

    #[test]
    fn headers_and_typed_calls_name_the_same_keys_and_arguments() {
        for contract in all() {
            let name = contract.script.name();
            let ready = contract.script.ready().unwrap_or_else(|error| panic!("{error}"));
            let names = |list: &[Parameter]| list.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
            assert_eq!(names(&ready.header.keys), contract.keys, "{name}: keys");
            assert_eq!(names(&ready.header.args), contract.args, "{name}: arguments");
            assert!(!ready.header.returns.is_empty(), "{name} returns something");
            for list in [&ready.header.keys, &ready.header.args] {
                for (index, one) in list.iter().enumerate() {
                    assert_eq!(one.first, index + 1, "{name}: {} is out of order", one.name);
                }
            }
        }
    }

    #[test]
    fn every_key_and_argument_is_bound_once() {
        for contract in all() {
            let name = contract.script.name();
            let ready = contract.script.ready().unwrap();
            let lines = ready.text.lines().filter(|line| !line.starts_with("--"));
            let body = lines.collect::<Vec<_>>().join("\n");
            for (word, list) in [("KEYS", &ready.header.keys), ("ARGV", &ready.header.args)] {
                if list.iter().any(|one| one.many) {
                    assert_eq!(
                        body.matches(word).count(),
                        1,
                        "{name}: {word} is bound once, whole"
                    );
                    continue;
                }
                for one in list {
                    let uses = body.matches(&format!("{word}[{}]", one.first)).count();
                    assert_eq!(uses, 1, "{name}: {word}[{}] is bound once", one.first);
                }
                let uses = body.matches(word).count();
                assert_eq!(uses, list.len(), "{name}: only declared {word}");
            }
        }
    }

    #[test]
    fn every_file_is_a_script_of_the_list() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/lua");
        let listed: Vec<_> = all().iter().map(|one| one.script.name()).collect();
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "lua") {
                let name = path.file_stem().unwrap().to_string_lossy().into_owned();
                assert!(listed.contains(&name.as_str()), "{name} is in no list");
            }
        }
    }
}
