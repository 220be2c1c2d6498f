//! What may be done on the server, and what lies there already.

use redis::Value;
use stockade_core::QUANTITY_MAX;

use super::server::{size, texts};
use super::{Finding, refused};
use crate::control::literal;
use crate::error::CallError;
use crate::hot::Hot;
use crate::layout;
use crate::script::{call, script};

script!(CHECK, "check");

/// Names looked at, at most: enough to see what lies under the prefix, short on a server that others use, too.
const SCAN_STEPS: usize = 20;
const SCAN_STEP: usize = 1_000;

struct Check {
    scratch: String,
}

call! {
    Check, CHECK => Vec<String>,
    keys ["scratch"] |call| vec![&call.scratch],
    args [] |_call, _to| {},
    reply |reply| match reply {
        Value::Array(_) => Some(texts(reply)),
        _ => None,
    }
}

pub(crate) fn contracts() -> Vec<crate::script::Contract> {
    vec![crate::script::contract::<Check>()]
}

pub(super) async fn scripts(hot: &Hot) -> Result<Finding, CallError> {
    let id = "scripts";
    match hot.load_scripts().await {
        Ok(()) => Ok(Finding::ok(
            id,
            format!("loaded, version {}", crate::script::version()),
        )),
        Err(error) => Ok(Finding::error(
            id,
            format!("scripts cannot be loaded: {}", refused(error)?),
            "Let the user use EVAL, EVALSHA and SCRIPT LOAD (ACL category @scripting).",
        )),
    }
}

pub(super) async fn permissions(hot: &Hot) -> Result<Finding, CallError> {
    let id = "permissions";
    let scratch = format!("{}:check:{:016x}", hot.keys().tag(), fastrand::u64(..));
    let remedy = format!(
        "Let the user use these commands on keys `{}:*` (ACL SETUSER).",
        hot.keys().tag()
    );
    Ok(match hot.run_control(&Check { scratch }).await {
        Ok(refused) if refused.is_empty() => Finding::ok(id, "every command that is needed may be used"),
        Ok(refused) => Finding::error(id, refused.join("; "), remedy),
        Err(error) => Finding::error(id, refused(error)?, remedy),
    })
}

/// Other shards and other people's keys under the prefix.
pub(super) async fn names(hot: &Hot) -> Result<Vec<Finding>, CallError> {
    let tag = hot.keys().tag();
    let start = tag.rsplit_once(':').map_or(tag, |(start, _)| start);
    let mut others = Vec::new();
    let mut foreign = Vec::new();
    let mut cursor = "0".to_owned();
    let pattern = format!("{}:*", literal(start));
    for _ in 0..SCAN_STEPS {
        let mut scan = redis::cmd("SCAN");
        scan.arg(&cursor)
            .arg("MATCH")
            .arg(&pattern)
            .arg("COUNT")
            .arg(SCAN_STEP);
        let reply = match hot.command(&scan).await {
            Ok(reply) => reply,
            Err(error) => {
                return Ok(vec![Finding::error(
                    "shards",
                    refused(error)?,
                    "Let the user use SCAN: keys of older epochs are found by it.",
                )]);
            }
        };
        let (next, found): (String, Vec<Vec<u8>>) =
            redis::from_redis_value(reply).map_err(|error| CallError::Unreadable {
                place: "SCAN".to_owned(),
                message: error.to_string(),
            })?;
        for name in found {
            let name = String::from_utf8_lossy(&name).into_owned();
            match belongs(&name, start, tag) {
                Belongs::Here => {}
                Belongs::Shard(shard) if others.contains(&shard) => {}
                Belongs::Shard(shard) => others.push(shard),
                Belongs::Nobody => foreign.push(name),
            }
        }
        cursor = next;
        if cursor == "0" {
            break;
        }
    }
    Ok(vec![shards(hot.shard(), &others), strangers(&foreign)])
}

fn shards(own: u32, others: &[u32]) -> Finding {
    if others.is_empty() {
        return Finding::ok("shards", format!("shard {own} alone"));
    }
    let others = others.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    Finding::error(
        "shards",
        format!("keys of other shards lie under this prefix: {others}"),
        "Use the number of shards that the data was made with, or another prefix or database.",
    )
}

fn strangers(foreign: &[String]) -> Finding {
    match foreign.first() {
        None => Finding::ok("foreign_keys", "none under the prefix"),
        Some(name) => Finding::warning(
            "foreign_keys",
            format!(
                "{} keys under the prefix are not ours, such as {name:?}",
                foreign.len()
            ),
            "Give Stockade a prefix or database of its own.",
        ),
    }
}

enum Belongs {
    Here,
    Shard(u32),
    Nobody,
}

fn belongs(name: &str, start: &str, tag: &str) -> Belongs {
    let rest = name.strip_prefix(start).and_then(|rest| rest.strip_prefix(':'));
    let Some((shard, rest)) = rest.and_then(|rest| rest.split_once("}:")) else {
        return Belongs::Nobody;
    };
    let Some(shard) = layout::number::<u32>(shard) else {
        return Belongs::Nobody;
    };
    let (first, part) = rest.split_once(':').unwrap_or((rest, ""));
    let known = match layout::number::<u64>(first) {
        Some(_) => {
            let kind = part.split(':').next().unwrap_or_default();
            matches!(
                kind,
                "sku"
                    | "reservations"
                    | "returns"
                    | "commands"
                    | "ends"
                    | "end"
                    | "usage"
                    | "markers"
                    | "ended"
                    | "outbox"
            )
        }
        None => matches!(rest, "meta" | "epochs") || first == "check",
    };
    match known {
        false => Belongs::Nobody,
        true if name.starts_with(tag) => Belongs::Here,
        true => Belongs::Shard(shard),
    }
}

/// The shard as it stands, and what a reservation takes.
pub(super) async fn shard(hot: &Hot) -> Result<Finding, CallError> {
    let id = "shard";
    let meta = match hot.meta().await {
        Ok(None) => return Ok(Finding::ok(id, "nothing is stored yet")),
        Ok(Some(meta)) => meta,
        Err(error) => {
            return Ok(Finding::error(
                id,
                refused(error)?,
                "Start the service, which loads the shard anew from the ledger, or give it another prefix.",
            ));
        }
    };
    let epoch = meta.tip.epoch;
    let state = if meta.open { "open" } else { "closed" };
    let reservations = hot.keys().part(epoch, "reservations");
    let count = number(hot, redis::cmd("HLEN").arg(&reservations)).await?;
    let bytes = number(hot, redis::cmd("MEMORY").arg("USAGE").arg(&reservations)).await?;
    let ended = hot.keys().part(epoch, "ended");
    let list = number(hot, redis::cmd("MEMORY").arg("USAGE").arg(ended)).await?;
    let each = match (count, bytes) {
        (Some(count), Some(bytes)) if count > 0 => {
            let each = bytes.saturating_add(list.unwrap_or(0)) / count;
            format!("{count} reservations, about {each} bytes each ({})", size(bytes))
        }
        _ => "no reservations".to_owned(),
    };
    Ok(Finding::ok(
        id,
        format!("epoch {epoch}, {state}, entry {}, {each}", meta.tip.seq),
    ))
}

// What the user may not ask, or what is not there, is not known.
async fn number(hot: &Hot, command: &redis::Cmd) -> Result<Option<u64>, CallError> {
    match hot.command(command).await {
        Ok(Value::Int(number)) => Ok(u64::try_from(number)
            .ok()
            .filter(|number| *number <= QUANTITY_MAX)),
        Ok(_) => Ok(None),
        Err(error) => refused(error).map(|_| None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        let of = |name: &str| match belongs(name, "{a", "{a:0}") {
            Belongs::Here => "here".to_owned(),
            Belongs::Shard(shard) => shard.to_string(),
            Belongs::Nobody => "nobody".to_owned(),
        };
        for name in [
            "{a:0}:meta",
            "{a:0}:epochs",
            "{a:0}:3:sku:x}:y",
            "{a:0}:3:end:17",
            "{a:0}:12:outbox",
        ] {
            assert_eq!(of(name), "here", "{name}");
        }
        assert_eq!(of("{a:1}:meta"), "1");
        assert_eq!(of("{a:10}:3:outbox"), "10");
        for name in [
            "{a:0}:notes",
            "{a:x}:meta",
            "{a:0}:3:orders",
            "{a:0}:03:outbox",
            "{a:0}:meta:x",
        ] {
            assert_eq!(of(name), "nobody", "{name}");
        }
    }
}
