//! The real binary, started on a free port with a folder of its own, met the way users meet it.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop with the place"
)]

mod access_log;
mod backup;
mod bytes;
mod care;
mod cli;
mod codes;
mod config;
mod connections;
mod dashboard;
mod docs;
mod document;
mod events;
mod export;
mod gate;
mod import;
mod keys;
mod names;
mod pages;
mod process;
mod redis;
mod service;
mod stories;
mod strict;
mod tls;
