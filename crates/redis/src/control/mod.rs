//! The shard on its node, beside the decisions: outbox, loading, rebuild, forgetting. Every call names its epoch, and is
//! safe when sent twice, after a lost reply, or by a process that slept through a rebuild.

mod care;
mod load;
mod older;
mod outbox;
mod rebuild;
pub(crate) mod reply;
mod skus;

pub(crate) use older::literal;

use crate::script::Contract;

/// The scripts of this part.
pub(crate) fn contracts() -> Vec<Contract> {
    [
        rebuild::contracts(),
        load::contracts(),
        older::contracts(),
        outbox::contracts(),
        skus::contracts(),
        care::contracts(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
