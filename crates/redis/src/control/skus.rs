//! A SKU that the node does not hold: marked, read from the ledger, loaded under its marker.

use stockade_core::{Id, Position, SkuRecord};

use super::reply::{decided, hex, natural, word};
use crate::error::{CallError, Kind};
use crate::hot::Hot;
use crate::layout;
use crate::packed::pack_sku;
use crate::script::{call, script};
use crate::types::{Decided, Marked, MissingSku, Sent, Token};

script!(MARK, "mark");
script!(LOAD_SKU, "load_sku");

struct Mark {
    keys: [String; 4],
    epoch: u64,
    name: String,
    token: Token,
}

call! {
    Mark, MARK => Decided<MarkerFound>,
    keys ["meta", "reservations", "sku", "markers"] |call| call.keys.iter().map(String::as_str).collect(),
    args ["epoch", "name", "token"] |call, to| to
        .number(call.epoch)
        .text(&call.name)
        .text(layout::hex(call.token.0)),
    reply |reply| decided(reply, |rest| {
        let (state, rest) = rest.split_first()?;
        match (word(state)?, rest) {
            ("held", []) => Some(MarkerFound::Held),
            ("loading", [token, epoch, seq, tag]) => Some(MarkerFound::Loading(
                Token(hex(token)?),
                Position { epoch: natural(epoch)?, seq: natural(seq)?, tag: hex(tag)? },
            )),
            ("absent", [token]) => Some(MarkerFound::Absent(Token(hex(token)?))),
            _ => None,
        }
    })
}

enum MarkerFound {
    Held,
    Loading(Token, Position),
    Absent(Token),
}

struct Load<'a> {
    keys: [String; 5],
    epoch: u64,
    name: &'a str,
    token: Token,
    fields: &'a [(String, String)],
    usage: &'a [(String, String)],
}

call! {
    Load<'_>, LOAD_SKU => Decided<bool>,
    keys ["meta", "reservations", "sku", "markers", "usage"] |call| call.keys.iter().map(String::as_str).collect(),
    args ["epoch", "name", "token", "fields", "values"] |call, to| {
        to.number(call.epoch)
            .text(call.name)
            .text(layout::hex(call.token.0))
            .number(call.fields.len() as u64);
        for (field, value) in call.fields.iter().chain(call.usage) {
            to.text(field).text(value);
        }
    },
    reply |reply| decided(reply, |rest| match rest {
        [state] => match word(state)? {
            "loaded" => Some(true),
            "gone" => Some(false),
            _ => None,
        },
        _ => None,
    })
}

pub(super) fn contracts() -> Vec<crate::script::Contract> {
    use crate::script::contract;
    vec![contract::<Mark>(), contract::<Load<'_>>()]
}

/// An owner's usage of a SKU: the field's name.
pub(super) fn usage_field(tenant: &Id, sku: &Id, owner: &Id) -> String {
    format!("{}{}{owner}", layout::name(tenant, sku), layout::RS)
}

impl Hot {
    /// Sets a load marker, or finds the one that is there. `token` is random.
    pub async fn mark(
        &self,
        sent: &Sent,
        tenant: &Id,
        sku: &Id,
        token: Token,
    ) -> Result<Decided<Marked>, CallError> {
        let (keys, epoch) = (self.keys(), sent.epoch);
        let call = Mark {
            keys: [
                keys.meta(),
                keys.part(epoch, "reservations"),
                keys.sku(epoch, tenant, sku),
                keys.part(epoch, "markers"),
            ],
            epoch,
            name: layout::name(tenant, sku),
            token,
        };
        Ok(match self.run_control(&call).await? {
            Decided::Stale(stale) => Decided::Stale(stale),
            Decided::Done { tip, at, value } => {
                let missing = |token, tip, absent| Marked::Missing(MissingSku { token, tip, absent });
                let value = match value {
                    MarkerFound::Held => Marked::Held,
                    MarkerFound::Loading(token, saw) => missing(token, saw, false),
                    MarkerFound::Absent(token) => missing(token, tip, true),
                };
                Decided::Done { tip, at, value }
            }
        })
    }

    /// Loads a SKU under its marker. With `usage`, each owner's units, owner usage is kept on the node from now on; it
    /// must be given where the SKU has an owner limit. `record` is `None` where the ledger does not know the SKU: the
    /// marker says so from now on. `false`: the marker is gone, begin again.
    pub async fn load_sku(
        &self,
        sent: &Sent,
        tenant: &Id,
        sku: &Id,
        token: Token,
        record: Option<&SkuRecord>,
        usage: Option<&[(Id, u64)]>,
    ) -> Result<Decided<bool>, CallError> {
        let (keys, epoch) = (self.keys(), sent.epoch);
        let limited = record.is_some_and(|record| record.settings.limit_per_owner.is_some());
        if limited && usage.is_none() {
            return Err(CallError::NotDone {
                kind: Kind::Other,
                message: format!("{sku} has an owner limit and was to be loaded without owner usage"),
            });
        }
        let fields = record.map_or_else(Vec::new, |record| pack_sku(record, usage.is_some()));
        let era = record.map_or(0, |record| record.settings.era);
        let used = usage.unwrap_or_default().iter().filter(|(_, used)| *used > 0);
        let usage: Vec<_> = used
            .map(|(owner, used)| (usage_field(tenant, sku, owner), format!("{era}:{used}")))
            .collect();
        let call = Load {
            keys: [
                keys.meta(),
                keys.part(epoch, "reservations"),
                keys.sku(epoch, tenant, sku),
                keys.part(epoch, "markers"),
                keys.part(epoch, "usage"),
            ],
            epoch,
            name: &layout::name(tenant, sku),
            token,
            fields: &fields,
            usage: &usage,
        };
        self.run_control(&call).await
    }
}
