//! What the server is and how it is set up.

use redis::Value;

use super::info::Info;
use super::{Finding, refused};
use crate::error::CallError;
use crate::hot::Hot;

/// The oldest Redis whose scripts are refused whole when memory is short.
const REDIS_MAJOR_MIN: u64 = 7;

pub(super) fn version(info: &Info) -> Finding {
    let id = "version";
    if let Some(version) = info.text("valkey_version") {
        return Finding::ok(id, format!("Valkey {version}"));
    }
    let Some(version) = info.text("redis_version") else {
        return Finding::error(
            id,
            "the server tells no version",
            "Use Redis 7.0 or later, or Valkey.",
        );
    };
    let major = version
        .split('.')
        .next()
        .and_then(|major| major.parse::<u64>().ok());
    if major.is_some_and(|major| major >= REDIS_MAJOR_MIN) {
        Finding::ok(id, format!("Redis {version}"))
    } else {
        Finding::error(
            id,
            format!("Redis {version}"),
            "Use Redis 7.0 or later, or Valkey.",
        )
    }
}

pub(super) fn role(info: &Info) -> Finding {
    let id = "role";
    if info.text("cluster_enabled") == Some("1") {
        return Finding::error(
            id,
            "a node of a Redis Cluster",
            "Use a standalone server: Redis Cluster is not supported yet.",
        );
    }
    match info.text("role") {
        Some("master") => Finding::ok(id, "primary"),
        Some(_) => Finding::error(
            id,
            "a replica, which takes no decisions",
            "Use the address of its primary.",
        ),
        None => Finding::warning(id, "the server tells no role", "Check that it is a primary."),
    }
}

pub(super) fn eviction(info: &Info) -> Finding {
    let id = "eviction";
    match info.text("maxmemory_policy") {
        Some("noeviction") => Finding::ok(id, "noeviction"),
        Some(policy) => Finding::error(
            id,
            format!("maxmemory-policy is {policy}: the server may throw stock away when memory is short"),
            "Set `maxmemory-policy noeviction` in redis.conf, and now with CONFIG SET.",
        ),
        None => Finding::warning(
            id,
            "the server does not tell its eviction policy",
            "Make sure that maxmemory-policy is noeviction.",
        ),
    }
}

pub(super) fn memory(info: &Info) -> Finding {
    let id = "memory";
    let Some(used) = info.number("used_memory") else {
        return Finding::warning(
            id,
            "the server does not tell what it uses",
            "Watch its memory by hand.",
        );
    };
    let limit = info.number("maxmemory").unwrap_or(0);
    let system = info.number("total_system_memory").unwrap_or(0);
    let (most, of) = if limit > 0 {
        (limit, "maxmemory")
    } else {
        (system, "the machine")
    };
    if most == 0 {
        return Finding::ok(id, format!("{} used, no limit", size(used)));
    }
    let share = used.saturating_mul(100) / most;
    let found = format!("{} used, {share} % of {of} ({})", size(used), size(most));
    if share >= 80 {
        Finding::warning(
            id,
            found,
            "Raise maxmemory or give the server a larger machine: when it is full, nothing is reserved any more.",
        )
    } else {
        Finding::ok(id, found)
    }
}

pub(super) async fn persistence(hot: &Hot, info: &Info) -> Result<Finding, CallError> {
    let id = "persistence";
    if info.text("aof_enabled") != Some("1") {
        return Ok(Finding::warning(
            id,
            "the append-only file is off: a restart loses every reservation that is not recorded",
            "Set `appendonly yes` and `appendfsync everysec` in redis.conf, and now with CONFIG SET.",
        ));
    }
    if info
        .text("aof_last_write_status")
        .is_some_and(|status| status != "ok")
    {
        return Ok(Finding::error(
            id,
            "the last write of the append-only file failed",
            "Look at the server's log and at its disk, which may be full.",
        ));
    }
    let setting = hot
        .command(redis::cmd("CONFIG").arg("GET").arg("appendfsync"))
        .await;
    let setting = match setting.map(redis::from_redis_value::<Vec<(String, String)>>) {
        Ok(Ok(pairs)) => pairs.into_iter().next().map(|(_, value)| value),
        Ok(Err(_)) => None,
        Err(error) => {
            return Ok(Finding::warning(
                id,
                format!(
                    "the append-only file is on; how often it is flushed cannot be seen ({})",
                    refused(error)?
                ),
                "Make sure that appendfsync is everysec or always, or let the user use CONFIG GET.",
            ));
        }
    };
    Ok(match setting.as_deref() {
        Some(often @ ("everysec" | "always")) => {
            Finding::ok(id, format!("append-only file, appendfsync {often}"))
        }
        Some(often) => Finding::warning(
            id,
            format!("appendfsync is {often}: a crash of the machine may lose many seconds of reservations"),
            "Set `appendfsync everysec` in redis.conf, and now with CONFIG SET.",
        ),
        None => Finding::warning(
            id,
            "the append-only file is on; how often it is flushed is not told",
            "Make sure that appendfsync is everysec or always.",
        ),
    })
}

pub(super) fn replicas(info: &Info) -> Finding {
    let id = "replicas";
    match info.number("connected_slaves") {
        Some(0) => Finding::warning(
            id,
            "no replica is connected: while this server is down nothing is sold",
            "Start a replica (`replicaof HOST PORT`).",
        ),
        Some(1) => Finding::ok(id, "1 connected"),
        Some(count) => Finding::ok(id, format!("{count} connected")),
        None => Finding::warning(id, "the server tells no replicas", "Check that it has one."),
    }
}

/// Bytes for people.
pub(super) fn size(bytes: u64) -> String {
    for (unit, one) in [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
        if bytes >= one {
            let tenths = u128::from(bytes) * 10 / u128::from(one);
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
    }
    format!("{bytes} bytes")
}

/// A reply as a list of texts.
pub(super) fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| crate::control::reply::word(part).map(str::to_owned))
            .collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::*;

    fn check(text: &str, look: fn(&Info) -> Finding, severity: Severity, found: &str) {
        let finding = look(&Info::of_text(text));
        assert_eq!(finding.severity, severity, "{finding:?}");
        assert!(finding.found.contains(found), "{finding:?}");
        assert_eq!(finding.remedy.is_empty(), severity == Severity::Ok, "{finding:?}");
    }

    #[test]
    fn each_setting_has_its_finding() {
        use Severity::{Error, Ok, Warning};
        check("redis_version:7.0.15\r\n", version, Ok, "Redis 7.0.15");
        check("redis_version:10.1.0\r\n", version, Ok, "Redis 10.1.0");
        check("redis_version:6.2.7\r\n", version, Error, "6.2.7");
        check(
            "redis_version:7.2.4\r\nvalkey_version:8.0.1\r\n",
            version,
            Ok,
            "Valkey 8.0.1",
        );
        check("", version, Error, "no version");
        check("role:master\r\ncluster_enabled:0\r\n", role, Ok, "primary");
        check("role:slave\r\n", role, Error, "replica");
        check("role:master\r\ncluster_enabled:1\r\n", role, Error, "Cluster");
        check("", role, Warning, "no role");
        check("maxmemory_policy:noeviction\r\n", eviction, Ok, "noeviction");
        check("maxmemory_policy:allkeys-lru\r\n", eviction, Error, "allkeys-lru");
        check("", eviction, Warning, "does not tell");
        check("used_memory:100\r\nmaxmemory:0\r\n", memory, Ok, "no limit");
        check(
            "used_memory:1048576\r\nmaxmemory:2097152\r\n",
            memory,
            Ok,
            "1.0 MiB used, 50 % of maxmemory (2.0 MiB)",
        );
        check("used_memory:90\r\nmaxmemory:100\r\n", memory, Warning, "90 %");
        check(
            "used_memory:90\r\nmaxmemory:0\r\ntotal_system_memory:100\r\n",
            memory,
            Warning,
            "the machine",
        );
        check("connected_slaves:0\r\n", replicas, Warning, "no replica");
        check("connected_slaves:2\r\n", replicas, Ok, "2 connected");
    }

    #[test]
    fn sizes_are_for_people() {
        assert_eq!(size(1_023), "1023 bytes");
        assert_eq!(size(1_536), "1.5 KiB");
        assert_eq!(size(u64::MAX), "17179869183.9 GiB");
    }
}
