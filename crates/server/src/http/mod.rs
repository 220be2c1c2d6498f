//! The HTTP interface: routes, strict bodies, answers and problem details.

mod access;
mod answer;
mod app;
mod audits;
mod body;
mod code;
mod dashboard;
mod docs;
mod events;
mod guarded;
mod import;
mod json;
mod kind;
mod mark;
mod metrics;
mod openapi;
mod problem;
mod problem_view;
mod request;
mod routes;
mod secure;
mod table;
mod view;

pub(crate) use app::{App, Limits};
pub(crate) use kind::Whole;
pub(crate) use mark::{AccessLog, Peer};
pub(crate) use metrics::Metrics;
pub(crate) use routes::{AuditView, router};
