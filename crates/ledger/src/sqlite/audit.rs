//! audit
use super::reader::Reader;
use crate::api::Finding;

pub(super) fn audit(_reader: &Reader, _shard: u32, _limit: usize) -> rusqlite::Result<Vec<Finding>> {
    Ok(Vec::new())
}
