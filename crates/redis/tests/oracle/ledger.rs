//! What the entries of the rules alone came to: the ledger of the oracle.

use std::collections::BTreeMap;

use stockade_core::{
    Action, Change, Command, Entry, Id, LookedUp, Record, Reservation, ReturnRecord, Space, Status,
    StockRecord,
};

type Key = (Id, Id);

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) reservations: BTreeMap<Key, Reservation>,
    pub(crate) returns: BTreeMap<Key, ReturnRecord>,
    pub(crate) commands: BTreeMap<Key, StockRecord>,
}

impl Ledger {
    pub(crate) fn fold(&mut self, entry: &Entry) {
        let mut keep = |r: &Reservation| {
            self.reservations
                .insert((r.tenant.clone(), r.id.clone()), r.clone());
        };
        for effect in &entry.effects {
            match &effect.change {
                Change::Reservation { after, .. } => keep(after),
                Change::Return { record, after } => {
                    keep(after);
                    let key = (record.tenant.clone(), record.id.clone());
                    self.returns.insert(key, record.clone());
                }
                Change::Stock { record, .. } => {
                    let key = (record.tenant.clone(), record.id.clone());
                    self.commands.insert(key, record.clone());
                }
            }
        }
    }

    fn find(&self, space: Space, key: &Key) -> Option<Record> {
        match space {
            Space::Reservation => self.reservations.get(key).cloned().map(Record::Reservation),
            Space::Return => self.returns.get(key).cloned().map(Record::Return),
            Space::Stock => self.commands.get(key).cloned().map(Record::Stock),
        }
    }

    /// The ledger's word about an id, read at a tip.
    pub(crate) fn word(&self, epoch: u64, cursor: u64, space: Space, tenant: &Id, id: &Id) -> LookedUp {
        LookedUp {
            epoch,
            cursor,
            space,
            id: id.clone(),
            record: self.find(space, &(tenant.clone(), id.clone())),
        }
    }

    /// Its word about every id that a command may need; live reservations are never forgotten.
    pub(crate) fn words(&self, epoch: u64, cursor: u64, command: &Command) -> Vec<LookedUp> {
        use Space::{Reservation as R, Return as X, Stock as C};
        let mut ids: Vec<(Space, Id)> = match &command.action {
            Action::Reserve(reserve) => {
                let mut ids = vec![(R, reserve.id.clone())];
                ids.extend(reserve.supersedes.iter().map(|id| (R, id.clone())));
                ids
            }
            Action::Confirm(confirm) => vec![(R, confirm.id.clone())],
            Action::Cancel(cancel) => vec![(R, cancel.id.clone())],
            Action::Extend(extend) => vec![(R, extend.id.clone())],
            Action::Return(give) => vec![(X, give.id.clone()), (R, give.reservation.clone())],
            Action::Set(set) => vec![(C, set.id.clone())],
            Action::Adjust(adjust) => vec![(C, adjust.id.clone())],
            Action::Transfer(transfer) => vec![(C, transfer.id.clone())],
            Action::Configure(configure) => vec![(C, configure.id.clone())],
            Action::ShowReservation { id } => vec![(R, id.clone())],
            Action::ShowStock { .. } => Vec::new(),
        };
        if let Action::Return(give) = &command.action
            && let Some(record) = self.returns.get(&(command.tenant.clone(), give.id.clone()))
        {
            ids.push((R, record.reservation.clone()));
        }
        ids.into_iter()
            .map(|(space, id)| self.word(epoch, cursor, space, &command.tenant, &id))
            .filter(
                |word| !matches!(&word.record, Some(Record::Reservation(r)) if r.status == Status::Pending),
            )
            .collect()
    }
}
