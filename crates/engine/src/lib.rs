//! Stockade deducts stock under flash-sale load and never sells what is not there.

mod api;

pub use api::{AuditReport, Error, Health, OpenError, Options, Readiness, Stockade};
pub use stockade_core as rules;
pub use stockade_ledger as ledger;
