//! What every handler has at hand, and the path that every request takes through it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::Request;
use axum::http::HeaderMap;
use axum::response::Response;
use bytes::Bytes;
use stockade::{Answered, Durability, Stockade};
use stockade_core::{Action, Command, Id};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::access::{Access, Caller};
use super::answer::{self, Answer};
use super::events::Hub;
use super::json::{self, Object};
use super::mark::{AccessLog, Mark};
use super::metrics::{Metrics, Route};
use super::problem::{Ask, Problem};
use super::request::{header_id, read_body};
use crate::gate::{Gate, Line, LookUps, Rules};
use crate::keys::{Key, Keys, Scope};

/// What a request may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) body_bytes_max: usize,
    pub(crate) body_within: Duration,
    pub(crate) answer_within: Duration,
    pub(crate) access_log: AccessLog,
    /// `/metrics` needs no key.
    pub(crate) metrics_open: bool,
}

/// The service.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) store: Stockade,
    pub(crate) metrics: Metrics,
    /// What happens, for whoever listens.
    pub(crate) events: Arc<Hub>,
    /// Each audit holds a copy of the shard and reads the whole ledger: one at a time.
    auditing: Arc<Semaphore>,
    limits: Limits,
    access: Access,
    pub(super) gate: Gate,
    pub(super) look_ups: LookUps,
    pub(crate) openapi: std::sync::OnceLock<Bytes>,
    /// The same for people.
    pub(crate) docs: std::sync::OnceLock<Bytes>,
}

/// The body and what came with it.
#[derive(Debug)]
pub(crate) struct Read<T> {
    pub(crate) caller: Caller,
    pub(crate) headers: HeaderMap,
    pub(crate) header_id: Option<Id>,
    pub(crate) body: T,
}

impl App {
    pub(crate) fn new(
        store: Stockade,
        metrics: Metrics,
        limits: Limits,
        keys: Option<Arc<Keys>>,
        rules: Rules,
    ) -> Arc<Self> {
        Arc::new(Self {
            events: Hub::new(store.clone()),
            store,
            metrics,
            auditing: Arc::new(Semaphore::new(1)),
            access: Access::new(keys, limits.metrics_open),
            gate: Gate::new(rules),
            look_ups: LookUps::default(),
            limits,
            openapi: std::sync::OnceLock::new(),
            docs: std::sync::OnceLock::new(),
        })
    }

    /// Runs a handler, counts and logs the request. Bodies and ids are never logged.
    pub(crate) async fn answer<F, Fut>(
        self: Arc<Self>,
        route: Route,
        mut request: Request,
        handler: F,
    ) -> Response
    where
        F: FnOnce(Arc<Self>, Request) -> Fut,
        Fut: Future<Output = Result<Answer, Problem>>,
    {
        let since = Instant::now();
        let mut mark = Mark::of(&request, self.limits.access_log);
        let mut key = None;
        let result = match self.admit(route, &mut request) {
            Ok(()) => {
                if self.gate.has_key_rate() {
                    key = request.extensions().get::<Arc<Key>>().cloned();
                }
                mark.with_key(&request);
                handler(Arc::clone(&self), request).await
            }
            Err(problem) => Err(problem),
        };
        let mut response = match result {
            Ok(answer) => {
                answer.codes(|code| self.metrics.outcome(code));
                answer.stopped(|line| self.metrics.stopped(line));
                answer.into_response()
            }
            Err(problem) => {
                self.metrics.outcome(problem.code());
                self.metrics.stopped(problem.line());
                if let Problem::Unavailable { why } | Problem::OutcomeUnknown { why, .. } = &problem {
                    tracing::warn!(?route, code = problem.code().as_str(), why);
                }
                answer::problem(&problem)
            }
        };
        if let Some(key) = key {
            let now = self.gate.moment(self.store.now());
            let shown = response.headers().contains_key("ratelimit");
            if let Some(level) = self.gate.key_level(&key.public_id, now).filter(|_| !shown) {
                answer::rate_headers(response.headers_mut(), Line::KeyRate.as_str(), level);
            }
        }
        let status = response.status().as_u16();
        self.metrics.request(route, status, since);
        mark.answered(route, status, since, response.headers_mut());
        tracing::debug!(?route, status, us = since.elapsed().as_micros(), "answered");
        response
    }

    /// Lets a request on, and leaves its key with it.
    fn admit(&self, route: Route, request: &mut Request) -> Result<(), Problem> {
        let key = self.access.check(route, request.headers(), || self.store.now())?;
        if let Some(key) = key {
            if self.gate.has_key_rate() && counts_at_once(route) {
                let now = self.gate.moment(self.store.now());
                self.gate.key(&key.public_id, now).map_err(Problem::Stopped)?;
            }
            request.extensions_mut().insert(key);
        }
        Ok(())
    }

    /// Whether a request whose answer never ends may go on: its key may have been revoked meanwhile.
    pub(crate) fn may_go_on(&self, route: Route, headers: &HeaderMap) -> bool {
        self.access.check(route, headers, || self.store.now()).is_ok()
    }

    /// In whose name a request is done.
    pub(crate) fn caller(&self, request: &Request) -> Caller {
        self.access.caller(request.extensions(), request.headers())
    }

    /// Whether a request may do what a scope covers.
    pub(crate) fn may(&self, request: &Request, scope: Scope) -> bool {
        self.access.may(request.extensions(), scope)
    }

    /// Reads and checks a body. An empty one is `{}`, so that commands without required fields need none.
    pub(crate) async fn read<T>(
        &self,
        request: Request,
        reader: impl FnOnce(&mut Object<'_, '_>, bool) -> Option<T>,
    ) -> Result<Read<T>, Problem> {
        let (parts, bytes) = read_body(request, self.limits.body_bytes_max, self.limits.body_within).await?;
        let header_id = header_id(&parts.headers)?;
        let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        let body = json::read(text, |object| reader(object, header_id.is_some()))?;
        Ok(Read {
            caller: self.access.caller(&parts.extensions, &parts.headers),
            headers: parts.headers,
            header_id,
            body,
        })
    }

    fn command(caller: &Caller, action: Action) -> Command {
        Command {
            tenant: caller.tenant.clone(),
            actor: caller.actor.clone(),
            action,
        }
    }

    /// Whoever imports, with what that takes.
    pub(crate) fn importer(&self, caller: Caller) -> super::import::Importer {
        super::import::Importer {
            store: self.store.clone(),
            tenant: caller.tenant,
            actor: caller.actor,
            answer_within: self.limits.answer_within,
            idle_within: self.limits.body_within,
        }
    }

    /// Does a command. When the caller hangs up or the time is over the command is still done whole, or not at all.
    pub(crate) async fn submit(&self, caller: &Caller, action: Action) -> Result<Answered, Problem> {
        self.submit_with(caller, action, None).await
    }

    /// Does a command that may say when it wants to be answered.
    pub(crate) async fn submit_with(
        &self,
        caller: &Caller,
        action: Action,
        durability: Option<Durability>,
    ) -> Result<Answered, Problem> {
        let ask = Ask::about(&action);
        let is_reserve = matches!(action, Action::Reserve(_));
        let command = Self::command(caller, action);
        let durability = durability.unwrap_or(self.store.durability());
        let submitting = self.store.submit_with(command, durability);
        match timeout(self.limits.answer_within, submitting).await {
            Ok(Ok(answered)) => {
                self.noted(is_reserve, &answered);
                Ok(answered)
            }
            Ok(Err(error)) => Err(Problem::from(error).asked(ask)),
            Err(_) => Err(Problem::OutcomeUnknown {
                why: self.too_late(),
                ask,
            }),
        }
    }

    /// Does many commands, independent of each other.
    pub(crate) async fn submit_many(
        &self,
        caller: &Caller,
        actions: Vec<Action>,
        durability: Option<Durability>,
    ) -> Result<Vec<Result<Answered, Problem>>, Problem> {
        // Only reservations come in batches.
        let ask = Ask::ByReservation;
        let commands = actions
            .into_iter()
            .map(|action| Self::command(caller, action))
            .collect();
        let durability = durability.unwrap_or(self.store.durability());
        let submitting = self.store.submit_many_with(commands, durability);
        match timeout(self.limits.answer_within, submitting).await {
            Ok(results) => Ok(results
                .into_iter()
                .map(|result| {
                    let result = result.inspect(|answered| self.noted(true, answered));
                    result.map_err(|error| Problem::from(error).asked(ask))
                })
                .collect()),
            Err(_) => Err(Problem::OutcomeUnknown {
                why: self.too_late(),
                ask,
            }),
        }
    }

    /// The answer, if it comes in time.
    pub(super) async fn within<T>(&self, asking: impl Future<Output = T>) -> Option<T> {
        timeout(self.limits.answer_within, asking).await.ok()
    }

    /// Measures the queue, for as long as the service runs.
    pub(crate) async fn watch_queue(self: Arc<Self>) {
        self.gate.shed.watch().await;
    }

    /// Reads: when the time is over nothing has changed.
    pub(crate) async fn ask<T>(
        &self,
        asking: impl Future<Output = Result<T, stockade::Error>>,
    ) -> Result<T, Problem> {
        match timeout(self.limits.answer_within, asking).await {
            Ok(result) => result.map_err(Problem::from),
            Err(_) => Err(Problem::Unavailable { why: self.too_late() }),
        }
    }

    /// Reads one record.
    pub(crate) async fn show(&self, caller: &Caller, action: Action) -> Result<Answer, Problem> {
        let command = Self::command(caller, action);
        Ok(Answer::changed(
            self.ask(self.store.submit_with(command, self.store.durability()))
                .await?,
        ))
    }

    /// Audits, however long it takes. When the caller hangs up it goes on, and so does the refusal of another one.
    pub(crate) async fn audit(&self, limit: usize) -> Result<stockade::AuditReport, Problem> {
        let permit = Arc::clone(&self.auditing)
            .try_acquire_owned()
            .map_err(|_| Problem::Auditing)?;
        let store = self.store.clone();
        let audit = tokio::spawn(async move {
            let report = store.audit(limit).await;
            drop(permit);
            report
        });
        match audit.await {
            Ok(Ok(report)) => {
                Metrics::audited(report.findings.len(), self.store.now());
                Ok(report)
            }
            Ok(Err(error)) => Err(Problem::from(error)),
            Err(why) => Err(Problem::Unavailable {
                why: format!("the audit broke: {why}"),
            }),
        }
    }

    fn too_late(&self) -> String {
        format!("no answer within {} ms", self.limits.answer_within.as_millis())
    }
}

/// Whether a request counts as soon as it comes. Reservations count one by one, once they are read; and what settles a
/// reservation is never stopped.
const fn counts_at_once(route: Route) -> bool {
    !matches!(
        route,
        Route::Reserve
            | Route::Batch
            | Route::Confirm
            | Route::Cancel
            | Route::Extend
            | Route::Return
            | Route::Metrics
    )
}
