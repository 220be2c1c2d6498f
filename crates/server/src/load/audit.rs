//! The audit, asked for over HTTP.

use serde::Deserialize;

use super::answer::excerpt;

/// What an audit says.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Audit {
    /// One row per difference, as the service words it.
    pub(crate) findings: Vec<serde_json::Value>,
    /// There were more than are listed.
    #[serde(default)]
    pub(crate) truncated: bool,
}

impl Audit {
    pub(crate) fn read(http: u16, body: &[u8]) -> Result<Self, String> {
        if http != 200 {
            return Err(format!("HTTP {http}: {}", excerpt(body)));
        }
        serde_json::from_slice(body).map_err(|error| format!("{error}: {}", excerpt(body)))
    }
}
