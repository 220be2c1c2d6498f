//! The drills as their users run them: the whole binary, a real service process, real HTTP.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod campaigns;
mod rush;
mod support;
