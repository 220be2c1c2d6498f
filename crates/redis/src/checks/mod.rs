//! Whether a server is fit for a shard: what `stockade doctor` shows, and what start-up looks at. Each finding says what
//! was found and what to do; an error refuses start-up, a warning does not.

mod info;
mod keys;
mod server;
mod way;

use crate::error::{CallError, Kind};
use crate::hot::Hot;
use crate::types::Options;
use info::Info;
pub(crate) use keys::contracts;

const CONNECTION: &str = "connection";

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// As it should be.
    Ok,
    /// It works, with a risk that the finding names.
    Warning,
    /// The service refuses to start on it.
    Error,
}

impl Severity {
    /// The word in every interface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at; stable, for machines.
    pub id: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What was found.
    pub found: String,
    /// What to do about it; empty where it is as it should be.
    pub remedy: String,
}

impl Finding {
    pub(super) fn ok(id: &'static str, found: impl Into<String>) -> Self {
        Self {
            id,
            severity: Severity::Ok,
            found: found.into(),
            remedy: String::new(),
        }
    }

    pub(super) fn warning(id: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            id,
            severity: Severity::Warning,
            found: found.into(),
            remedy: remedy.into(),
        }
    }

    pub(super) fn error(id: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            id,
            severity: Severity::Error,
            found: found.into(),
            remedy: remedy.into(),
        }
    }
}

/// Connects and looks at everything. What keeps it from connecting is a finding, too.
pub async fn examine(options: Options) -> Vec<Finding> {
    match Hot::connect(options).await {
        Ok(hot) => hot.check().await,
        Err(error) => vec![unreachable(&error)],
    }
}

impl Hot {
    /// Looks at the server and at the shard's keys on it. Nothing is changed, but for a key that is there for a moment.
    pub async fn check(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        match self.look(&mut findings).await {
            Ok(()) => findings,
            Err(error) => {
                findings.retain(|finding| finding.id != CONNECTION);
                findings.push(unreachable(&error));
                findings
            }
        }
    }

    // An error here is one of the way to the server; what the server refuses is a finding of its own.
    async fn look(&self, findings: &mut Vec<Finding>) -> Result<(), CallError> {
        findings.push(Finding::ok(CONNECTION, "connected"));
        match Info::of(self).await {
            Ok(info) => {
                findings.push(server::version(&info));
                findings.push(server::role(&info));
                findings.push(server::eviction(&info));
                findings.push(server::memory(&info));
                findings.push(server::persistence(self, &info).await?);
                findings.push(server::replicas(&info));
            }
            Err(error) => findings.push(Finding::warning(
                "info",
                refused(error)?,
                "Let the user use INFO, or look at version, eviction, append-only file and replicas by hand.",
            )),
        }
        findings.push(way::latency(self).await?);
        findings.push(way::clock(self).await?);
        findings.push(keys::scripts(self).await?);
        findings.push(keys::permissions(self).await?);
        findings.extend(keys::names(self).await?);
        findings.push(keys::shard(self).await?);
        Ok(())
    }
}

/// What the server said when it refused something; an error where the server could not be asked at all.
fn refused(error: CallError) -> Result<String, CallError> {
    match error {
        CallError::NotDone {
            kind: Kind::NotAllowed | Kind::Other | Kind::ReadOnly | Kind::OutOfMemory | Kind::Moved,
            message,
        }
        // Raised inside a script, which is where permissions are checked.
        | CallError::Unknown {
            kind: Kind::NotAllowed | Kind::Other,
            message,
        } => Ok(message),
        CallError::Unreadable { place, message } => Ok(format!("{place}: {message}")),
        other => Err(other),
    }
}

fn unreachable(error: &CallError) -> Finding {
    let remedy = match error {
        CallError::NotDone { kind, .. } | CallError::Unknown { kind, .. } => match kind {
            Kind::NotAllowed => "Check user and password in the address, and the user's ACL.",
            Kind::Loading => "Wait until the server has read its data.",
            Kind::Busy => "Find the script that runs for so long (SLOWLOG GET) and end it (SCRIPT KILL).",
            Kind::TimedOut => {
                "Find out what keeps the server from answering, or allow a longer time for replies."
            }
            Kind::NoConnection
            | Kind::Cut
            | Kind::OutOfMemory
            | Kind::ReadOnly
            | Kind::Moved
            | Kind::Other => {
                "Check that the server runs and that the address is right and can be reached from here."
            }
        },
        CallError::Unreadable { .. } => "Check that the address is that of a Redis or Valkey server.",
    };
    Finding::error(CONNECTION, error.to_string(), remedy)
}
