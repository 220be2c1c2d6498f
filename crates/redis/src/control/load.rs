//! Loading the ledger's state into a fenced epoch, a chunk at a time.

use std::collections::{HashMap, HashSet};

use stockade_core::{Id, Reservation, SkuRecord};

use super::reply::whether;
use super::skus::usage_field;
use crate::error::CallError;
use crate::hot::Hot;
use crate::layout;
use crate::packed::{pack_reservation, pack_sku};
use crate::script::{call, script};
use crate::types::Chunk;

script!(CHUNK, "chunk");

struct Load<'a> {
    // Four of the epoch, then one for each SKU.
    keys: Vec<String>,
    epoch: u64,
    number: u64,
    live: &'a [Reservation],
    usage: Vec<(String, String)>,
    skus: Vec<Vec<(String, String)>>,
}

call! {
    Load<'_>, CHUNK => bool,
    keys ["meta", "reservations", "ends", "usage", "skus"] |call| call.keys.iter().map(String::as_str).collect(),
    args ["epoch", "number", "live", "usages", "values"] |call, to| {
        to.number(call.epoch)
            .number(call.number)
            .number(call.live.len() as u64)
            .number(call.usage.len() as u64);
        for one in call.live {
            to.text(layout::name(&one.tenant, &one.id)).text(pack_reservation(one, 0));
        }
        for one in call.live {
            to.number(layout::second(one.ends_at));
        }
        for (field, value) in &call.usage {
            to.text(field).text(value);
        }
        for fields in &call.skus {
            to.number(fields.len() as u64);
            for (field, value) in fields {
                to.text(field).text(value);
            }
        }
    },
    reply |reply| whether(reply, "taken", "other")
}

pub(super) fn contracts() -> Vec<crate::script::Contract> {
    vec![crate::script::contract::<Load<'_>>()]
}

impl Hot {
    /// Loads chunk `number` (from 1), only when exactly `number - 1` are in; the last one sent again is taken without
    /// effect. `false`: not taken, and the epoch is to be given up. Rows of owner usage go into the chunk of their SKU.
    pub async fn chunk(&self, epoch: u64, number: u64, chunk: &Chunk) -> Result<bool, CallError> {
        let eras: HashMap<(&Id, &Id), u32> = chunk
            .skus
            .iter()
            .map(|record| ((&record.tenant, &record.sku), record.settings.era))
            .collect();
        let mut usage = Vec::with_capacity(chunk.usage.len());
        let mut used = HashSet::new();
        for (tenant, sku, owner, units) in &chunk.usage {
            let Some(era) = eras.get(&(tenant, sku)) else {
                return Err(CallError::NotDone {
                    kind: crate::error::Kind::Other,
                    message: format!("owner usage of {sku} comes in another chunk than the SKU"),
                });
            };
            used.insert((tenant, sku));
            if *units > 0 {
                usage.push((usage_field(tenant, sku, owner), format!("{era}:{units}")));
            }
        }
        let tracked = |record: &SkuRecord| {
            record.settings.limit_per_owner.is_some() || used.contains(&(&record.tenant, &record.sku))
        };
        let parts = ["reservations", "ends", "usage"];
        let mut keys = vec![self.keys().meta()];
        keys.extend(parts.iter().map(|part| self.keys().part(epoch, part)));
        let names = chunk.skus.iter();
        keys.extend(names.map(|record| self.keys().sku(epoch, &record.tenant, &record.sku)));
        let skus = chunk.skus.iter().map(|record| pack_sku(record, tracked(record)));
        let call = Load {
            keys,
            epoch,
            number,
            live: &chunk.live,
            usage,
            skus: skus.collect(),
        };
        self.run_control(&call).await
    }
}
