//! The keys of older epochs go away: found by a scan, so that keys of an epoch of which nothing else is left are found
//! too, and removed by a script that knows the present epoch.

use super::reply::{list, natural, word};
use crate::error::CallError;
use crate::hot::Hot;
use crate::script::{call, script};
use crate::types::{Decided, Stale};

script!(DROP_OLDER, "drop_older");

/// Keys looked at in one step of the scan; the server works that long without a break.
const SCANNED_AT_ONCE: usize = 1_000;

struct Drop<'a> {
    meta: String,
    epochs: String,
    keys: &'a [String],
    epoch: u64,
    last: bool,
}

call! {
    Drop<'_>, DROP_OLDER => Result<u64, Stale>,
    keys ["meta", "epochs", "keys"] |call| {
        let fixed = [call.meta.as_str(), call.epochs.as_str()];
        fixed.into_iter().chain(call.keys.iter().map(String::as_str)).collect()
    },
    args ["epoch", "last"] |call, to| to.number(call.epoch).number(u8::from(call.last)),
    reply |reply| {
        if let [done, removed] = list(reply)?
            && word(done) == Some("done")
        {
            return Some(Ok(natural(removed)?));
        }
        match super::reply::decided(reply, |_| Some(()))? {
            Decided::Stale(stale) => Some(Err(stale)),
            Decided::Done { .. } => None,
        }
    }
}

pub(super) fn contracts() -> Vec<crate::script::Contract> {
    vec![crate::script::contract::<Drop<'_>>()]
}

/// A text as a pattern that matches only itself.
pub(crate) fn literal(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '\\' | '^' | '-') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

impl Hot {
    /// Removes the keys of older epochs, in small steps; how many. While the epoch is not open the older outboxes stay,
    /// so that a rebuild that begins anew finds its survivors: call again after opening.
    pub async fn drop_older(&self, epoch: u64) -> Result<u64, CallError> {
        let pattern = format!("{}:*", literal(self.keys().tag()));
        let (mut cursor, mut removed) = ("0".to_owned(), 0_u64);
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(&cursor)
                .arg("MATCH")
                .arg(&pattern)
                .arg("COUNT")
                .arg(SCANNED_AT_ONCE);
            let reply = self.command(&scan).await?;
            let (next, found): (String, Vec<Vec<u8>>) =
                redis::from_redis_value(reply).map_err(|error| CallError::Unreadable {
                    place: "SCAN".to_owned(),
                    message: error.to_string(),
                })?;
            // Names that are no text are none of ours.
            let found = found.into_iter().filter_map(|name| String::from_utf8(name).ok());
            let start = format!("{}:", self.keys().tag());
            let keys: Vec<String> = found.filter(|name| is_older(name, &start, epoch)).collect();
            let last = next == "0";
            if last || !keys.is_empty() {
                let call = Drop {
                    meta: self.keys().meta(),
                    epochs: self.keys().epochs(),
                    keys: &keys,
                    epoch,
                    last,
                };
                match self.run_control(&call).await? {
                    Ok(count) => removed = removed.saturating_add(count),
                    // The node is another epoch's by now, which is older or has its own to remove.
                    Err(_) => return Ok(removed),
                }
            }
            if last {
                break;
            }
            cursor = next;
        }
        Ok(removed)
    }
}

fn is_older(name: &str, start: &str, epoch: u64) -> bool {
    let of = name.strip_prefix(start).and_then(|rest| rest.split_once(':'));
    of.is_some_and(|(of, _)| crate::layout::number::<u64>(of).is_some_and(|of| of < epoch))
}

#[cfg(test)]
mod tests {
    use super::literal;

    #[test]
    fn a_prefix_is_no_pattern() {
        assert_eq!(literal("{stockade:0}"), "{stockade:0}");
        assert_eq!(literal("{a*[b]?\\:0}"), "{a\\*\\[b\\]\\?\\\\:0}");
    }
}
