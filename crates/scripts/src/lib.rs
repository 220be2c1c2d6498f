//! Redis scripts that work alone, on plain keys such as `stock:1001`, for any language; a typed call for each; and what
//! stands on them: [`lock`], [`limiter`], [`delay_queue`], [`segments`].
//!
//! ```no_run
//! use std::time::Duration;
//! use stockade_scripts::{connect, scripts::{Deduct, Left}};
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let scripts = connect::single("redis://127.0.0.1/", Duration::from_secs(1)).await?;
//! match scripts.run(&Deduct { stock: "stock:1001", quantity: 2 }).await? {
//!     Left::Units(left) => println!("{left} left"),
//!     Left::Short => println!("sold out"),
//!     Left::NoSuchKey => println!("no such stock"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The files, their contracts and what they cost are described in `docs/scripts.md`.

pub mod call;
#[cfg(feature = "cli")]
pub mod cli;
pub mod connect;
pub mod delay_queue;
pub mod error;
pub mod header;
pub mod keys;
pub mod limiter;
pub mod lock;
pub mod runner;
pub mod scripts;
pub mod segments;
pub mod source;
pub mod vectors;

pub use call::{Args, Call};
pub use error::{Happened, ScriptError, ServerState};
pub use runner::Scripts;
pub use source::Script;
