//! Stockade deducts stock under flash-sale load and never sells what is not there.
//!
//! A store lies in a folder and needs nothing else: the rules decide in memory, on one thread, and every answer is
//! given when it is on disk. Callers choose the id of each command, so that anything can be sent again: the answer is
//! the same and there is no second effect.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let data = folder.path();
//! use stockade::Stockade;
//!
//! let store = Stockade::open(data).await?;
//! store.set_stock("count-1", "A/1", 100).await?;
//! let held = store.reserve("order-1", "alice").line("A/1", 2).await?;
//! println!("held until {} ms", held.reservation.ends_at);
//! store.confirm("order-1").await?;
//! let stock = store.stock("A/1").await?;
//! assert_eq!(stock.locations[0].counters.sold, 2);
//! assert!(store.audit(10).await?.is_clean());
//! store.close().await?;
//! # Ok(())
//! # }
//! ```
//!
//! [`Stockade`] has a friendly call for each command; [`Stockade::submit`] and [`Stockade::submit_many`] take
//! [`rules::Command`]s as values. [`Options`] says how a store is opened. A refusal is a value with the numbers
//! ([`Error::Refused`]), never a surprise.

mod api;
mod audit;
mod calls;
mod care;
pub mod clock;
mod error;
mod folder;
mod memory;
pub mod names;
mod readers;
mod redis;
mod tags;
mod tally;
mod tier;

#[doc(hidden)]
pub use api::WrapLedger;
pub use api::{AuditReport, Health, Options, Readiness, Stockade};
pub use calls::{
    AdjustCall, CancelCall, ConfigureCall, ConfirmCall, ExtendCall, Granted, ReserveCall, ReturnCall,
    Returned, SetCall, StockChanged, TransferCall,
};
pub use care::PassingCopy;
pub use error::{Error, OpenError};
pub use folder::FolderLock;
pub use redis::RedisOptions;
pub use stockade_core as rules;
pub use stockade_ledger as ledger;
pub use tier::{Answered, Durability};
