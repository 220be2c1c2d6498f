//! The requests that a drill itself makes, around those of its buyers: stock, audit, asking by id.

use std::time::Duration;

use super::LoadError;
use super::answer::{Answer, StockCounters, excerpt};
use super::audit::Audit;
use super::caller::{Caller, Outcome};
use super::request::Request;

/// Puts a new SKU into the service.
pub(crate) async fn create_sku(caller: &Caller, sku: &str, units: u64) -> Result<(), LoadError> {
    let mut request = Request::default();
    request.set_stock(caller.target(), sku, &format!("{sku}.set"), units);
    let read = |http: u16, body: &[u8]| match http {
        200 | 201 => StockCounters::read(body, sku),
        _ => Err(format!("HTTP {http}: {}", excerpt(body))),
    };
    let stock = must(
        format!("setting the stock of {sku}"),
        caller.call(request.bytes(), read).await,
    )?;
    if stock.on_hand == units && stock.available == units {
        return Ok(());
    }
    Err(LoadError::Request {
        what: format!("setting the stock of {sku} to {units}"),
        why: format!("it is {stock:?}"),
    })
}

/// Reads a SKU's counters.
pub(crate) async fn stock(caller: &Caller, sku: &str) -> Result<StockCounters, LoadError> {
    let mut request = Request::default();
    request.show_stock(caller.target(), sku);
    let read = |http: u16, body: &[u8]| match http {
        200 => StockCounters::read(body, sku),
        _ => Err(format!("HTTP {http}: {}", excerpt(body))),
    };
    must(
        format!("reading the stock of {sku}"),
        caller.call(request.bytes(), read).await,
    )
}

/// Asks what an id stands at.
pub(crate) async fn reservation(caller: &Caller, id: &str) -> Result<Answer, LoadError> {
    let mut request = Request::default();
    request.show(caller.target(), id);
    let outcome = caller
        .call(request.bytes(), |http, body| Answer::read(http, body, id))
        .await;
    must(format!("asking about {id}"), outcome)
}

/// An audit reads everything that the service has.
const AUDIT_WITHIN: Duration = Duration::from_secs(3_600);

/// Runs the service's audit.
pub(crate) async fn audit(caller: &Caller) -> Result<Audit, LoadError> {
    let mut request = Request::default();
    request.post(caller.target(), "/v1/audit");
    must(
        "the audit".to_owned(),
        caller
            .call_within(AUDIT_WITHIN, request.bytes(), Audit::read)
            .await,
    )
}

/// The answer, without which the drill cannot go on.
pub(crate) fn must<T>(what: String, outcome: Outcome<T>) -> Result<T, LoadError> {
    match outcome {
        Outcome::Answered { answer, .. } => Ok(answer),
        Outcome::Unanswered { why } | Outcome::Useless { why } => Err(LoadError::Request { what, why }),
    }
}
