//! The server's INFO, as fields.

use std::collections::HashMap;

use crate::error::CallError;
use crate::hot::Hot;

pub(super) struct Info {
    fields: HashMap<String, String>,
}

impl Info {
    pub(super) async fn of(hot: &Hot) -> Result<Self, CallError> {
        let value = hot.command(&redis::cmd("INFO")).await?;
        let text: String = redis::from_redis_value(value).map_err(|error| CallError::Unreadable {
            place: "INFO".to_owned(),
            message: error.to_string(),
        })?;
        Ok(Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let pairs = text.lines().filter_map(|line| line.trim_end().split_once(':'));
        Self {
            fields: pairs
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        }
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }
}

#[cfg(test)]
impl Info {
    pub(super) fn of_text(text: &str) -> Self {
        Self::parse(text)
    }
}
