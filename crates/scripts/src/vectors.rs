//! What each script must do, as data: keys before, calls, replies, keys after. A port to another language, and a server
//! that somebody wants to trust, can both be held against it.

use std::collections::BTreeMap;

use redis::aio::ConnectionLike;
use redis::{Cmd, FromRedisValue, Value};
use serde::{Deserialize, Serialize};

use crate::error::ScriptError;
use crate::runner::Scripts;
use crate::scripts::named;

/// The file of one script.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct VectorFile {
    pub script: String,
    pub vectors: Vec<Vector>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Vector {
    pub name: String,
    /// The keys of every call that names none of its own.
    pub keys: Vec<String>,
    #[serde(default)]
    pub before: BTreeMap<String, Stored>,
    pub calls: Vec<VectorCall>,
    /// All that is there afterwards: a key that is named anywhere in the vector and not here must be absent.
    #[serde(default)]
    pub after: BTreeMap<String, Stored>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct VectorCall {
    /// Another script than the file's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<String>>,
    pub args: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<serde_json::Value>,
    /// The beginning of the error reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What a key holds.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Stored {
    Plain(String),
    Typed(Typed),
}

#[derive(Clone, Debug, PartialEq, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Typed {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub string: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<BTreeMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zset: Option<BTreeMap<String, i64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<Vec<String>>,
    /// Whether the key must have an end of its own. Not looked at when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<bool>,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum VectorError {
    #[error("the vectors of {script} cannot be read: {message}")]
    File { script: String, message: String },
    /// Vectors write plain keys such as `stock:1001`, so they never run where such keys are in use.
    #[error("key {key} is there already: vectors run on an empty database only")]
    InUse { key: String },
    #[error("{0}")]
    Redis(#[from] redis::RedisError),
    #[error("{script}: {vector}: {message}")]
    Differs {
        script: String,
        vector: String,
        message: String,
    },
}

impl VectorFile {
    pub fn of(script: &crate::Script) -> Result<Self, VectorError> {
        let file: Self = serde_json::from_str(script.vectors()).map_err(|error| VectorError::File {
            script: script.name().to_owned(),
            message: error.to_string(),
        })?;
        Ok(file)
    }

    /// Runs all vectors. The keys that they make are removed again.
    pub async fn run<C: ConnectionLike + Clone>(&self, scripts: &Scripts<C>) -> Result<usize, VectorError> {
        for vector in &self.vectors {
            let named = vector.named_keys();
            for key in &named {
                if ask::<i64, C>(scripts, &["EXISTS", key]).await? != 0 {
                    return Err(VectorError::InUse { key: key.clone() });
                }
            }
            let result = vector.run(&self.script, scripts).await;
            for key in &named {
                ask::<Value, C>(scripts, &["DEL", key]).await?;
            }
            result?;
        }
        Ok(self.vectors.len())
    }
}

impl Vector {
    fn named_keys(&self) -> Vec<String> {
        let calls = self.calls.iter().filter_map(|call| call.keys.as_ref()).flatten();
        let mut all: Vec<String> = self
            .keys
            .iter()
            .chain(calls)
            .chain(self.before.keys())
            .chain(self.after.keys())
            .cloned()
            .collect();
        all.sort();
        all.dedup();
        all
    }

    async fn run<C: ConnectionLike + Clone>(
        &self,
        script: &str,
        scripts: &Scripts<C>,
    ) -> Result<(), VectorError> {
        let differs = |message: String| VectorError::Differs {
            script: script.to_owned(),
            vector: self.name.clone(),
            message,
        };
        for (key, stored) in &self.before {
            stored.put(key, scripts).await?;
        }
        for (index, call) in self.calls.iter().enumerate() {
            let name = call.script.as_deref().unwrap_or(script);
            let found = named(name).ok_or_else(|| differs(format!("there is no script {name}")))?;
            let bytes = |texts: &[String]| {
                texts
                    .iter()
                    .map(|text| text.clone().into_bytes())
                    .collect::<Vec<_>>()
            };
            let keys = bytes(call.keys.as_ref().unwrap_or(&self.keys));
            let reply = scripts.run_raw(found, &keys, &bytes(&call.args)).await;
            if let Some(problem) = call.differs(&reply) {
                return Err(differs(format!("call {}: {problem}", index + 1)));
            }
        }
        for key in self.named_keys() {
            let found = read(&key, scripts).await?;
            let wanted = self.after.get(&key).map(Stored::typed);
            let same = match (&found, &wanted) {
                (Some(found), Some(wanted)) => {
                    let looked_at = wanted.expires.is_none() || found.expires == wanted.expires;
                    looked_at
                        && Typed {
                            expires: None,
                            ..found.clone()
                        } == Typed {
                            expires: None,
                            ..wanted.clone()
                        }
                }
                (None, None) => true,
                _ => false,
            };
            if !same {
                return Err(differs(format!(
                    "{key} holds {found:?} afterwards, not {wanted:?}"
                )));
            }
        }
        Ok(())
    }
}

impl VectorCall {
    fn differs(&self, reply: &Result<Value, ScriptError>) -> Option<String> {
        match (reply, &self.reply, &self.error) {
            (Ok(value), Some(wanted), None) => {
                let found = json(value);
                (found != *wanted).then(|| format!("answered {found}, not {wanted}"))
            }
            (Err(error), None, Some(wanted)) => {
                let code = match error {
                    ScriptError::BadArgument { message, .. } => format!("BADARG {message}"),
                    ScriptError::Corrupt { key, message, .. } => format!("CORRUPT \"{key}\" {message}"),
                    ScriptError::Overflow { message, .. } => format!("OVERFLOW {message}"),
                    other => other.to_string(),
                };
                (!code.starts_with(wanted.as_str())).then(|| format!("failed with {code:?}, not {wanted:?}"))
            }
            (_, Some(_), Some(_)) | (_, None, None) => {
                Some("names not exactly one of reply and error".to_owned())
            }
            (reply, ..) => Some(format!("answered {reply:?}")),
        }
    }
}

impl Stored {
    fn typed(&self) -> Typed {
        match self {
            Self::Plain(text) => Typed {
                string: Some(text.clone()),
                ..Typed::default()
            },
            Self::Typed(typed) => typed.clone(),
        }
    }

    async fn put<C: ConnectionLike + Clone>(
        &self,
        key: &str,
        scripts: &Scripts<C>,
    ) -> Result<(), redis::RedisError> {
        let typed = self.typed();
        if let Some(text) = &typed.string {
            ask::<Value, C>(scripts, &["SET", key, text]).await?;
        }
        for (field, value) in typed.hash.iter().flatten() {
            ask::<Value, C>(scripts, &["HSET", key, field, value]).await?;
        }
        for (member, score) in typed.zset.iter().flatten() {
            ask::<Value, C>(scripts, &["ZADD", key, &score.to_string(), member]).await?;
        }
        for item in typed.list.iter().flatten() {
            ask::<Value, C>(scripts, &["RPUSH", key, item]).await?;
        }
        if typed.expires == Some(true) {
            ask::<Value, C>(scripts, &["PEXPIRE", key, "3600000"]).await?;
        }
        Ok(())
    }
}

async fn read<C: ConnectionLike + Clone>(
    key: &str,
    scripts: &Scripts<C>,
) -> Result<Option<Typed>, redis::RedisError> {
    let mut found = Typed::default();
    let kind: String = ask(scripts, &["TYPE", key]).await?;
    match kind.as_str() {
        "none" => return Ok(None),
        "string" => found.string = Some(ask(scripts, &["GET", key]).await?),
        "hash" => found.hash = Some(ask(scripts, &["HGETALL", key]).await?),
        "zset" => found.zset = Some(ask(scripts, &["ZRANGE", key, "0", "-1", "WITHSCORES"]).await?),
        "list" => found.list = Some(ask(scripts, &["LRANGE", key, "0", "-1"]).await?),
        _ => {}
    }
    found.expires = Some(ask::<i64, C>(scripts, &["PTTL", key]).await? > 0);
    Ok(Some(found))
}

async fn ask<T: FromRedisValue, C: ConnectionLike + Clone>(
    scripts: &Scripts<C>,
    words: &[&str],
) -> Result<T, redis::RedisError> {
    let mut command = Cmd::new();
    for word in words {
        command.arg(word);
    }
    command.query_async(&mut scripts.connection()).await
}

/// A reply as JSON: integers as numbers, bytes as text, lists as lists.
pub fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::Int(number) => (*number).into(),
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into(),
        Value::SimpleString(text) => text.clone().into(),
        Value::Okay => "OK".into(),
        Value::Array(parts) => parts.iter().map(json).collect(),
        Value::Nil => serde_json::Value::Null,
        other => format!("{other:?}").into(),
    }
}
