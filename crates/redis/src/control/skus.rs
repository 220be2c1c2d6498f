//! A SKU that the node does not hold: marked, read from the ledger, loaded under its marker.

use stockade_core::{Id, Position, SkuRecord};

use super::older::literal;
use super::reply::{decided, hex, natural, whether, word};
use crate::error::{CallError, Kind};
use crate::hot::Hot;
use crate::layout;
use crate::packed::pack_sku;
use crate::script::{call, script};
use crate::types::{Decided, Marked, MissingSku, Sent, Token};

script!(MARK, "mark");
script!(LOAD_SKU, "load_sku");
script!(CLEAR_USAGE, "clear_usage");

/// Fields of owner usage looked at in one step of a scan.
const SCANNED_AT_ONCE: usize = 1_000;

struct Mark {
    keys: [String; 4],
    epoch: u64,
    name: String,
    token: Token,
    damaged: bool,
}

call! {
    Mark, MARK => Decided<MarkerFound>,
    keys ["meta", "reservations", "sku", "markers"] |call| call.keys.iter().map(String::as_str).collect(),
    args ["epoch", "name", "token", "damaged"] |call, to| to
        .number(call.epoch)
        .text(&call.name)
        .text(layout::hex(call.token.0))
        .number(u8::from(call.damaged)),
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

struct ClearUsage<'a> {
    keys: [String; 3],
    epoch: u64,
    name: &'a str,
    token: Token,
    fields: &'a [Vec<u8>],
}

call! {
    ClearUsage<'_>, CLEAR_USAGE => bool,
    keys ["meta", "markers", "usage"] |call| call.keys.iter().map(String::as_str).collect(),
    args ["epoch", "name", "token", "fields"] |call, to| {
        to.number(call.epoch).text(call.name).text(layout::hex(call.token.0));
        for field in call.fields {
            to.text(field);
        }
    },
    reply |reply| whether(reply, "cleared", "gone")
}

struct Load<'a> {
    keys: [String; 6],
    epoch: u64,
    name: &'a str,
    token: Token,
    read_at: Position,
    fields: &'a [(String, String)],
    usage: &'a [(String, String)],
}

call! {
    Load<'_>, LOAD_SKU => Decided<bool>,
    keys ["meta", "reservations", "sku", "markers", "usage", "outbox"]
        |call| call.keys.iter().map(String::as_str).collect(),
    args ["epoch", "name", "token", "read_epoch", "read_seq", "read_tag", "fields", "values"] |call, to| {
        to.number(call.epoch)
            .text(call.name)
            .text(layout::hex(call.token.0))
            .number(call.read_at.epoch)
            .number(call.read_at.seq)
            .text(layout::hex(call.read_at.tag))
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
    vec![
        contract::<Mark>(),
        contract::<ClearUsage<'_>>(),
        contract::<Load<'_>>(),
    ]
}

/// An owner's usage of a SKU: the field's name.
pub(super) fn usage_field(tenant: &Id, sku: &Id, owner: &Id) -> String {
    format!("{}{}{owner}", layout::name(tenant, sku), layout::RS)
}

impl Hot {
    /// Sets a load marker, or finds the one that is there. `token` is random. With `damaged`, what is held of the SKU
    /// and of its owner usage goes, which blocks it until it is loaded.
    pub async fn mark(
        &self,
        sent: &Sent,
        tenant: &Id,
        sku: &Id,
        token: Token,
        damaged: bool,
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
            damaged,
        };
        let found = self.run_control(&call).await?;
        if let (true, Decided::Done { value, .. }) = (damaged, &found)
            && let MarkerFound::Loading(token, _) = value
        {
            self.clear_usage(epoch, &call.name, *token).await?;
        }
        Ok(match found {
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

    // Owner usage of a SKU that nobody decides on now; the ledger's comes with the SKU.
    async fn clear_usage(&self, epoch: u64, name: &str, token: Token) -> Result<(), CallError> {
        let usage = self.keys().part(epoch, "usage");
        let pattern = format!("{}*", literal(&format!("{name}{}", layout::RS)));
        let mut cursor = "0".to_owned();
        loop {
            let mut scan = redis::cmd("HSCAN");
            scan.arg(&usage).arg(&cursor).arg("MATCH").arg(&pattern);
            let reply = self.command(scan.arg("COUNT").arg(SCANNED_AT_ONCE)).await?;
            let (next, pairs): (String, Vec<Vec<u8>>) =
                redis::from_redis_value(reply).map_err(|error| CallError::Unreadable {
                    place: usage.clone(),
                    message: error.to_string(),
                })?;
            let fields: Vec<Vec<u8>> = pairs.into_iter().step_by(2).collect();
            if !fields.is_empty() {
                let call = ClearUsage {
                    keys: [
                        self.keys().meta(),
                        self.keys().part(epoch, "markers"),
                        usage.clone(),
                    ],
                    epoch,
                    name,
                    token,
                    fields: &fields,
                };
                // Somebody else has loaded it meanwhile, or the epoch is over.
                if !self.run_control(&call).await? {
                    return Ok(());
                }
            }
            if next == "0" {
                return Ok(());
            }
            cursor = next;
        }
    }

    /// Loads a SKU under its marker. With `usage`, each owner's units, owner usage is kept on the node from now on; it
    /// must be given where the SKU has an owner limit. `record` is `None` where the ledger does not know the SKU: the
    /// marker says so from now on. `read_at` is where the shard stood in the ledger when the SKU was read, in the same
    /// snapshot. `false`: the marker is gone, or this node does not have what is recorded up to there (a fork): begin
    /// again.
    #[expect(
        clippy::too_many_arguments,
        reason = "each says another thing; a caller names them all"
    )]
    pub async fn load_sku(
        &self,
        sent: &Sent,
        tenant: &Id,
        sku: &Id,
        token: Token,
        read_at: Position,
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
                keys.part(epoch, "outbox"),
            ],
            epoch,
            name: &layout::name(tenant, sku),
            token,
            read_at,
            fields: &fields,
            usage: &usage,
        };
        self.run_control(&call).await
    }
}
