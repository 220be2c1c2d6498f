//! The friendly calls: each is built up by name, then awaited.
//!
//! Texts become ids when the call is awaited; those that cannot are refused together as `invalid`, each naming its
//! field.

mod reservation;
mod stock;

use stockade_core::{Action, Command, Done, Id, IdError, InvalidField, Reason, Refusal, Subject};

use crate::api::Stockade;
use crate::error::Error;

pub use reservation::{CancelCall, ConfirmCall, ExtendCall, Granted, ReserveCall, ReturnCall, Returned};
pub use stock::{AdjustCall, ConfigureCall, SetCall, StockChanged, TransferCall};

/// What every call has: the store, the tenant, the actor, and what was wrong with the texts so far.
#[derive(Debug)]
struct Base<'a> {
    store: &'a Stockade,
    tenant: Id,
    actor: Id,
    problems: Vec<InvalidField>,
}

impl<'a> Base<'a> {
    fn new(store: &'a Stockade) -> Self {
        Self {
            store,
            tenant: Id::default_name(),
            actor: library(),
            problems: Vec::new(),
        }
    }

    /// The text as an id; a wrong one is noted and stands for itself nowhere, since the call is then not sent.
    fn id(&mut self, field: &str, text: &str) -> Id {
        match Id::new(text) {
            Ok(id) => id,
            Err(error) => {
                self.problem(field, found(error), IdError::ALLOWED.into());
                Id::default_name()
            }
        }
    }

    fn reason(&mut self, text: &str) -> Reason {
        match Reason::new(text) {
            Ok(reason) => reason,
            Err(error) => {
                self.problem("reason", found(error), Reason::ALLOWED.into());
                Reason::default()
            }
        }
    }

    fn problem(&mut self, field: &str, found: String, allowed: String) {
        self.problems.push(InvalidField {
            field: field.into(),
            found,
            allowed,
        });
    }

    async fn send(self, action: Action) -> Result<Done, Error> {
        if !self.problems.is_empty() {
            return Err(Error::Refused(Refusal::Invalid(self.problems)));
        }
        let command = Command {
            tenant: self.tenant,
            actor: self.actor,
            action,
        };
        self.store.submit(command).await
    }
}

/// What was found in place of an id.
fn found(error: IdError) -> String {
    match error {
        IdError::Empty => "nothing".into(),
        IdError::TooLong { bytes } => format!("{bytes} bytes"),
        IdError::Control { at } => format!("a control character at byte {at}"),
        IdError::Dots => "a dot segment".into(),
    }
}

/// The actor of commands that name none.
fn library() -> Id {
    Id::new("library").unwrap_or_else(|_| Id::default_name())
}

/// The answer was about something else than the command: a defect, told rather than hidden.
fn foreign(subject: &Subject) -> Error {
    Error::OutcomeUnknown {
        why: format!("the answer is about something else, which is a defect: {subject:?}"),
    }
}

/// What every call can be told.
macro_rules! common {
    () => {
        /// The tenant that all ids of the call live in; `default` when not named.
        pub fn tenant(mut self, tenant: &str) -> Self {
            self.base.tenant = self.base.id("tenant", tenant);
            self
        }

        /// Who gives the command, for the movements; `library` when not named.
        pub fn actor(mut self, actor: &str) -> Self {
            self.base.actor = self.base.id("actor", actor);
            self
        }
    };
}

/// Makes a call awaitable.
macro_rules! awaitable {
    ($call:ident, $output:ty) => {
        impl<'a> std::future::IntoFuture for $call<'a> {
            type Output = Result<$output, crate::error::Error>;
            type IntoFuture = std::pin::Pin<Box<dyn std::future::Future<Output = Self::Output> + Send + 'a>>;

            fn into_future(self) -> Self::IntoFuture {
                Box::pin(self.send())
            }
        }
    };
}

use {awaitable, common};
