//! Reading a shard's whole state piece by piece, for an audit: while commands go on, so that each piece is true at a
//! moment of its own.

use std::collections::HashMap;

use redis::{Value, from_redis_value};
use stockade_core::{Id, Position, Reservation, SkuRecord, Status};

use crate::error::CallError;
use crate::hot::Hot;
use crate::layout::{self, RS};
use crate::packed::{unpack_reservation, unpack_sku};

/// Fields or keys that one step asks for: well under a millisecond of the server's time.
const STEP: usize = 500;

/// What was read.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// The tip after the last piece was read: nothing of what was read is newer.
    pub tip: Position,
    /// Every SKU that is held.
    pub skus: Vec<SkuRecord>,
    /// Every live reservation.
    pub live: Vec<Reservation>,
    /// Owner usage where it is tracked: tenant, SKU, owner, used.
    pub usage: Vec<(Id, Id, Id, u64)>,
    /// SKUs whose owner usage is tracked: tenant, SKU.
    pub tracked: Vec<(Id, Id)>,
}

impl Hot {
    /// Reads the state of an epoch; `None`: the node is at another one.
    pub async fn state(&self, epoch: u64) -> Result<Option<State>, CallError> {
        let mut state = State::default();
        let mut eras: HashMap<(Id, Id), u32> = HashMap::new();
        for key in self.sku_keys(epoch).await? {
            self.read_sku(epoch, &key, &mut state, &mut eras).await?;
        }
        let reservations = format!("{}:{epoch}:reservations", self.keys().tag());
        for (field, packed) in self.fields(&reservations).await? {
            let wrong = || unreadable(&reservations, &field);
            let name = String::from_utf8(field.clone()).map_err(|_| wrong())?;
            let (tenant, id) = layout::split_name(&name).ok_or_else(wrong)?;
            let (reservation, _) = unpack_reservation(tenant, id, &packed).ok_or_else(wrong)?;
            if reservation.status == Status::Pending {
                state.live.push(reservation);
            }
        }
        let usage = format!("{}:{epoch}:usage", self.keys().tag());
        for (field, used) in self.fields(&usage).await? {
            let wrong = || unreadable(&usage, &field);
            let name = String::from_utf8(field.clone()).map_err(|_| wrong())?;
            let (sku, owner) = name.rsplit_once(RS).ok_or_else(wrong)?;
            let (tenant, sku) = layout::split_name(sku).ok_or_else(wrong)?;
            let owner = Id::new(owner).map_err(|_| wrong())?;
            let used = String::from_utf8(used).map_err(|_| wrong())?;
            let (era, units) = used.split_once(':').ok_or_else(wrong)?;
            let era: u32 = layout::number(era).ok_or_else(wrong)?;
            let units: u64 = layout::number(units).ok_or_else(wrong)?;
            // What an earlier era used does not count any more.
            if eras.get(&(tenant.clone(), sku.clone())) == Some(&era) {
                state.usage.push((tenant, sku, owner, units));
            }
        }
        let Some(meta) = self.meta().await? else {
            return Ok(None);
        };
        state.tip = meta.tip;
        Ok((meta.tip.epoch == epoch).then_some(state))
    }

    async fn read_sku(
        &self,
        epoch: u64,
        key: &str,
        state: &mut State,
        eras: &mut HashMap<(Id, Id), u32>,
    ) -> Result<(), CallError> {
        let wrong = || unreadable(key, b"");
        let prefix = format!("{}:{epoch}:sku:", self.keys().tag());
        let name = key.strip_prefix(&prefix).ok_or_else(wrong)?;
        let (tenant, sku) = layout::split_name(name).ok_or_else(wrong)?;
        let value = self.command(redis::cmd("HGETALL").arg(key)).await?;
        let fields: HashMap<String, String> = from_redis_value(value).map_err(|_| wrong())?;
        if fields.is_empty() {
            // Removed since the keys were listed.
            return Ok(());
        }
        let fields: Vec<(String, String)> = fields.into_iter().collect();
        let held = unpack_sku(tenant.clone(), sku.clone(), &fields).ok_or_else(wrong)?;
        eras.insert((tenant.clone(), sku.clone()), held.record.settings.era);
        if held.tracked {
            state.tracked.push((tenant, sku));
        }
        state.skus.push(held.record);
        Ok(())
    }

    async fn sku_keys(&self, epoch: u64) -> Result<Vec<String>, CallError> {
        let escaped: String = format!("{}:{epoch}:sku:", self.keys().tag())
            .chars()
            .flat_map(|c| {
                let special = matches!(c, '*' | '?' | '[' | ']' | '\\' | '^');
                special.then_some('\\').into_iter().chain([c])
            })
            .collect();
        let mut keys = Vec::new();
        let mut cursor = "0".to_owned();
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(&cursor).arg("MATCH").arg(format!("{escaped}*"));
            let value = self.command(scan.arg("COUNT").arg(STEP)).await?;
            let (next, mut page): (String, Vec<String>) =
                from_redis_value(value).map_err(|_| unreadable("SCAN", b""))?;
            keys.append(&mut page);
            cursor = next;
            if cursor == "0" {
                break;
            }
        }
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }

    async fn fields(&self, key: &str) -> Result<HashMap<Vec<u8>, Vec<u8>>, CallError> {
        let mut all = HashMap::new();
        let mut cursor = "0".to_owned();
        loop {
            let mut scan = redis::cmd("HSCAN");
            let value = self
                .command(scan.arg(key).arg(&cursor).arg("COUNT").arg(STEP))
                .await?;
            let (next, page): (String, Value) = from_redis_value(value).map_err(|_| unreadable(key, b""))?;
            let page: Vec<Vec<u8>> = from_redis_value(page).map_err(|_| unreadable(key, b""))?;
            let mut page = page.into_iter();
            // A field that moves while it is read can come twice: the later one counts.
            while let (Some(field), Some(value)) = (page.next(), page.next()) {
                all.insert(field, value);
            }
            cursor = next;
            if cursor == "0" {
                return Ok(all);
            }
        }
    }
}

fn unreadable(place: &str, field: &[u8]) -> CallError {
    CallError::Unreadable {
        place: format!("{place} {}", String::from_utf8_lossy(field)),
        message: "not what a script writes there".to_owned(),
    }
}
