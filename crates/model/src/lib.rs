//! A model of Stockade's protocol: two processes, two Redis nodes, a ledger, clients, and everything that can go wrong
//! between them; and a search that looks for a run that breaks the promise.
//!
//! It stands on nothing of this house, so that nothing can mend the protocol by accident, and it is built before the
//! code: when a rule is taken away (`Rule`), the search must find out why it was there. `docs/protocol.md` tells what
//! the rules are, what was found without each, and what the model leaves out.

mod action;
mod care;
mod check;
mod clients;
mod decide;
mod happen;
mod ledger;
mod log;
mod message;
mod node;
mod process;
mod rebuild;
mod reload;
mod rng;
mod rules;
mod scenario;
mod search;
mod settle;
mod state;
mod world;

pub use action::Action;
pub use rules::{Look, Rule, Rules};
pub use scenario::{EVERYTHING, Scenario};
pub use search::{Found, Outcome, exhaust, walks};
pub use state::{Broken, World};
