//! What a script says about itself in its first lines. The header is the contract: the typed calls, the vectors and the
//! command line are all checked against it.

use std::fmt;

/// The contract at the top of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// `allow-oom`: runs although the server is out of memory, since it frees more than it takes.
    pub allow_oom: bool,
    pub summary: String,
    pub keys: Vec<Parameter>,
    pub args: Vec<Parameter>,
    pub returns: Vec<Return>,
    /// Codes of the script's own error replies, such as `CORRUPT`.
    pub errors: Vec<String>,
}

/// A line `KEYS[..]` or `ARGV[..]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    pub name: String,
    /// 1-based position of the first.
    pub first: usize,
    /// Stands for any number of keys or arguments, up to the last one.
    pub many: bool,
    pub optional: bool,
    /// Type, then access for keys; type, unit and range for arguments; then what it is.
    pub about: String,
}

/// A line `RETURNS`: `-1`, `n`, or a list such as `{n, replayed}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Return {
    pub form: String,
    pub about: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{script}: {problem}")]
pub struct HeaderError {
    pub script: String,
    pub problem: String,
}

impl Header {
    pub fn parse(script: &str, text: &str) -> Result<Self, HeaderError> {
        let problem = |problem: String| HeaderError {
            script: script.to_owned(),
            problem,
        };
        let mut lines = text.lines();
        let allow_oom = match lines.next() {
            Some("#!lua") => false,
            Some("#!lua flags=allow-oom") => true,
            other => return Err(problem(format!("begins with {other:?}, not with #!lua"))),
        };
        let title = format!("-- {script}: ");
        let summary = lines
            .next()
            .and_then(|line| line.strip_prefix(&title))
            .ok_or_else(|| problem(format!("the second line does not begin with {title:?}")))?;
        let mut header = Self {
            allow_oom,
            summary: summary.to_owned(),
            keys: Vec::new(),
            args: Vec::new(),
            returns: Vec::new(),
            errors: Vec::new(),
        };
        for line in lines {
            let Some(line) = line.strip_prefix("-- ") else {
                break;
            };
            if let Some(rest) = line.strip_prefix("KEYS[") {
                header
                    .keys
                    .push(parameter(rest).ok_or_else(|| problem(format!("not understood: {line}")))?);
            } else if let Some(rest) = line.strip_prefix("ARGV[") {
                header
                    .args
                    .push(parameter(rest).ok_or_else(|| problem(format!("not understood: {line}")))?);
            } else if let Some(rest) = line.strip_prefix("RETURNS ") {
                header.returns.push(form(rest));
            } else if let Some(rest) = line.strip_prefix("ERRORS ") {
                header.errors = rest.split_whitespace().map(str::to_owned).collect();
                break;
            } else {
                return Err(problem(format!("not understood: {line}")));
            }
        }
        Ok(header)
    }

    /// Whether so many keys and arguments can be right.
    pub fn fits(&self, keys: usize, args: usize) -> bool {
        fits(&self.keys, keys) && fits(&self.args, args)
    }
}

fn fits(parameters: &[Parameter], count: usize) -> bool {
    let least = parameters.iter().filter(|one| !one.optional).count();
    count >= least && (count <= parameters.len() || parameters.last().is_some_and(|one| one.many))
}

/// `1] stock  string  rw  units left`, `1..n] stocks ...`, `2] now?  int ...`.
fn parameter(rest: &str) -> Option<Parameter> {
    let (place, rest) = rest.split_once(']')?;
    let (first, many) = match place.split_once("..") {
        Some((first, "n")) => (first, true),
        Some(_) => return None,
        None => (place, false),
    };
    let (name, about) = rest.trim().split_once(' ')?;
    let (name, optional) = name.strip_suffix('?').map_or((name, false), |name| (name, true));
    let about = about.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(Parameter {
        name: name.to_owned(),
        first: first.parse().ok()?,
        many,
        optional,
        about,
    })
}

fn form(rest: &str) -> Return {
    let rest = rest.trim();
    let end = if rest.starts_with('{') {
        rest.find('}').map(|at| at + 1)
    } else {
        rest.find(' ')
    };
    let (form, about) = rest.split_at(end.unwrap_or(rest.len()));
    Return {
        form: form.to_owned(),
        about: about.trim().to_owned(),
    }
}

impl fmt::Display for Header {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}", self.summary)?;
        for (word, list) in [("KEYS", &self.keys), ("ARGV", &self.args)] {
            for one in list {
                let to = if one.many { "..n" } else { "" };
                let optional = if one.optional { "?" } else { "" };
                writeln!(
                    out,
                    "  {word}[{}{to}] {}{optional}: {}",
                    one.first, one.name, one.about
                )?;
            }
        }
        for one in &self.returns {
            writeln!(out, "  {}: {}", one.form, one.about)?;
        }
        if !self.errors.is_empty() {
            writeln!(out, "  errors: {}", self.errors.join(" "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_and_counted() {
        let text = "#!lua\n-- x: does x\n-- KEYS[1] a string rw it\n-- KEYS[2..n] b string r them\n-- ARGV[1] c int - 1..2\n\
                    -- ARGV[2] d? int - 1..2\n-- RETURNS {n, more...} good\n-- RETURNS -1 bad\n-- ERRORS BADARG\nreturn 1";
        let header = Header::parse("x", text).unwrap();
        assert_eq!(header.summary, "does x");
        assert!(header.keys[1].many && header.args[1].optional);
        assert_eq!(header.returns[0].form, "{n, more...}");
        assert_eq!(header.returns[1].about, "bad");
        assert!(header.fits(2, 1) && header.fits(9, 2));
        assert!(!header.fits(1, 1) && !header.fits(2, 0) && !header.fits(2, 3));
    }

    #[test]
    fn a_header_without_its_shebang_or_with_a_strange_line_is_an_error() {
        Header::parse("x", "-- x: does x\n").unwrap_err();
        Header::parse("x", "#!lua\n-- y: does y\n").unwrap_err();
        Header::parse("x", "#!lua\n-- x: does x\n-- KEY[1] a string rw it\n").unwrap_err();
    }
}
