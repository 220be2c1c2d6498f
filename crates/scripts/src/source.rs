//! A script's text: one file under `lua/`, with shared parts included before it goes to the server. A file that is
//! exported or loaded is whole: whoever uses it from another language needs nothing else.

use std::sync::OnceLock;

use sha1_smol::Sha1;

use crate::header::{Header, HeaderError};

/// The line that includes `lua/include/NAME.lua` where it stands.
const INCLUDE: &str = "-- @include ";

/// The parts that scripts of one folder may include: name and text.
pub type Includes = &'static [(&'static str, &'static str)];

/// One script: of the table in `docs/scripts.md`, or of another crate that keeps its Lua in files the same way.
#[derive(Debug)]
pub struct Script {
    name: &'static str,
    file: &'static str,
    vectors: &'static str,
    includes: Includes,
    ready: OnceLock<Result<Ready, SourceError>>,
}

/// A script as the server gets it.
#[derive(Clone, Debug)]
pub struct Ready {
    /// With everything included.
    pub text: String,
    /// SHA-1 of the text, by which EVALSHA names it.
    pub sha: String,
    pub header: Header,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    #[error("{file}: there is no include named {name}")]
    Missing { file: String, name: String },
    #[error("{file}: includes itself by way of {name}")]
    Circular { file: String, name: String },
    #[error("{file}: includes {name} a second time")]
    Twice { file: String, name: String },
    #[error(transparent)]
    Header(#[from] HeaderError),
}

impl Script {
    pub(crate) const fn new(name: &'static str, file: &'static str, vectors: &'static str) -> Self {
        Self {
            name,
            file,
            vectors,
            includes: INCLUDES,
            ready: OnceLock::new(),
        }
    }

    /// A script of another crate, with the parts that its folder has, and without vectors.
    pub const fn with_includes(name: &'static str, file: &'static str, includes: Includes) -> Self {
        Self {
            name,
            file,
            vectors: "[]",
            includes,
            ready: OnceLock::new(),
        }
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The vectors, as JSON: keys before, calls, replies, keys after.
    pub fn vectors(&self) -> &'static str {
        self.vectors
    }

    /// The text, its digest and its header, worked out once.
    pub fn ready(&self) -> Result<&Ready, SourceError> {
        let ready = self.ready.get_or_init(|| {
            let text = expand(self.name, self.file, &|name| {
                self.includes
                    .iter()
                    .find(|(known, _)| *known == name)
                    .map(|(_, text)| *text)
            })?;
            let sha = Sha1::from(&text).digest().to_string();
            let header = Header::parse(self.name, &text)?;
            Ok(Ready { text, sha, header })
        });
        ready.as_ref().map_err(Clone::clone)
    }
}

/// The parts under `lua/include` of this crate.
pub const INCLUDES: Includes = &[
    ("clock", include_str!("../lua/include/clock.lua")),
    ("holds", include_str!("../lua/include/holds.lua")),
    ("limits", include_str!("../lua/include/limits.lua")),
    ("numbers", include_str!("../lua/include/numbers.lua")),
    ("orders", include_str!("../lua/include/orders.lua")),
    ("queue", include_str!("../lua/include/queue.lua")),
    ("sale", include_str!("../lua/include/sale.lua")),
    ("segments", include_str!("../lua/include/segments.lua")),
    ("text", include_str!("../lua/include/text.lua")),
];

/// Puts every included part in its place. Including a part twice in one script is an error, since the second copy would
/// silently shadow the first.
pub fn expand<'a>(
    file: &str,
    text: &str,
    find: &dyn Fn(&str) -> Option<&'a str>,
) -> Result<String, SourceError> {
    let mut out = String::with_capacity(text.len() * 2);
    expand_into(
        file,
        text,
        find,
        &mut vec![file.to_owned()],
        &mut Vec::new(),
        &mut out,
    )?;
    Ok(out)
}

fn expand_into<'a>(
    file: &str,
    text: &str,
    find: &dyn Fn(&str) -> Option<&'a str>,
    open: &mut Vec<String>,
    done: &mut Vec<String>,
    out: &mut String,
) -> Result<(), SourceError> {
    for line in text.lines() {
        let Some(name) = line.strip_prefix(INCLUDE).map(str::trim) else {
            out.push_str(line);
            out.push('\n');
            continue;
        };
        let problem = |make: fn(String, String) -> SourceError| make(file.to_owned(), name.to_owned());
        if open.iter().any(|one| one == name) {
            return Err(problem(|file, name| SourceError::Circular { file, name }));
        }
        if done.iter().any(|one| one == name) {
            return Err(problem(|file, name| SourceError::Twice { file, name }));
        }
        let Some(part) = find(name) else {
            return Err(problem(|file, name| SourceError::Missing { file, name }));
        };
        open.push(name.to_owned());
        expand_into(name, part, find, open, done, out)?;
        open.pop();
        done.push(name.to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(name: &str) -> Option<&'static str> {
        match name {
            "a" => Some("local a = 1"),
            "b" => Some("-- @include a\nlocal b = a"),
            "loop" => Some("-- @include pool"),
            "pool" => Some("-- @include loop"),
            _ => None,
        }
    }

    #[test]
    fn includes_stand_where_they_are_named() {
        let text = expand("x", "#!lua\n-- @include b\nreturn b", &parts).unwrap();
        assert_eq!(text, "#!lua\nlocal a = 1\nlocal b = a\nreturn b\n");
    }

    #[test]
    fn a_missing_a_circular_and_a_second_include_are_errors() {
        let check = |text: &str| expand("x", text, &parts).unwrap_err().to_string();
        assert_eq!(check("-- @include nobody"), "x: there is no include named nobody");
        assert_eq!(check("-- @include loop"), "pool: includes itself by way of loop");
        assert_eq!(check("-- @include x"), "x: includes itself by way of x");
        assert_eq!(
            check("-- @include a\n-- @include a"),
            "x: includes a a second time"
        );
        assert_eq!(
            check("-- @include a\n-- @include b"),
            "b: includes a a second time"
        );
    }
}
