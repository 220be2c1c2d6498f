//! The rules again, written as plainly as can be and in another way: everything in full, every sum computed anew,
//! ends taken at once. It is slow and has no chain; only its answers and counters count.

use std::collections::BTreeMap;

use stockade_core::{
    Action, Allocation, AskLine, Changes, Conflict, Count, Counters, Decision, Digest, Done, DoneCode,
    Expect, Id, InvalidField, LateConfirm, LateReason, Line, LocationRecord, Millis, Mode, OverLimit,
    PickLine, QUANTITY_MAX, Refusal, RefusedLine, Reply, Reservation, ReturnRecord, ReturnedLine, Rules,
    Settings, Short, SkuRecord, Status, StockSubject, Subject,
};

type Key = (Id, Option<Id>);
type Cart = BTreeMap<Key, (u32, u64)>;
type Payload = (Mode, Id, BTreeMap<Key, u64>);
type Answer = Result<(DoneCode, Subject), Refusal>;

#[derive(Debug)]
pub struct Oracle {
    rules: Rules,
    clock: Millis,
    skus: BTreeMap<Id, SkuRecord>,
    held: BTreeMap<Id, (Reservation, Option<Payload>)>,
    returns: BTreeMap<Id, (String, ReturnRecord)>,
    commands: BTreeMap<Id, (String, Id, u64)>,
}

/// An answer without what the oracle does not model: digests, versions, the wording of what is allowed.
pub fn plain(decision: &Decision) -> Reply {
    let mut reply = decision.reply.clone();
    match &mut reply {
        Reply::Done(done) => match &mut done.subject {
            Subject::Reservation(r) => r.digest = Digest(0),
            Subject::Return(both) => (both.0.digest, both.1.digest) = (Digest(0), Digest(0)),
            Subject::Stock(stock) => stock
                .stock
                .locations
                .iter_mut()
                .for_each(|l| l.counters.version = 0),
        },
        Reply::Refused(refusal) => match refusal {
            Refusal::Expired { reservation: r, .. }
            | Refusal::AlreadyConfirmed(r)
            | Refusal::AlreadyCancelled(r)
            | Refusal::NotConfirmed(r) => r.digest = Digest(0),
            Refusal::Invalid(fields) => {
                fields.truncate(1);
                fields.iter_mut().for_each(|f| *f = wrong(&f.field));
            }
            _ => {}
        },
        Reply::LookUp { .. } | Reply::Again | Reply::Corrupt { .. } => {}
    }
    reply
}

fn wrong(field: &str) -> InvalidField {
    InvalidField {
        field: field.into(),
        found: String::new(),
        allowed: String::new(),
    }
}

fn invalid<T>(field: &str) -> Result<T, Refusal> {
    Err(Refusal::Invalid(vec![wrong(field)]))
}

fn row<T>(key: &Key, index: u32, detail: T) -> RefusedLine<T> {
    RefusedLine {
        index,
        sku: key.0.clone(),
        location: key.1.clone(),
        detail,
    }
}

fn any<T>(mut rows: Vec<RefusedLine<T>>, refusal: fn(Vec<RefusedLine<T>>) -> Refusal) -> Result<(), Refusal> {
    rows.sort_by_key(|row| row.index);
    if rows.is_empty() {
        Ok(())
    } else {
        Err(refusal(rows))
    }
}

fn cart(lines: &[AskLine]) -> Cart {
    let mut cart = Cart::new();
    for (index, line) in (0..).zip(lines) {
        let cell = cart
            .entry((line.sku.clone(), line.location.clone()))
            .or_insert((index, 0));
        cell.1 += line.quantity;
    }
    cart
}

fn payload(mode: Mode, owner: &Id, lines: &[AskLine]) -> Payload {
    let sums = cart(lines).into_iter().map(|(key, (_, n))| (key, n)).collect();
    (mode, owner.clone(), sums)
}

fn show(r: &Reservation, code: DoneCode) -> Answer {
    Ok((code, Subject::Reservation(Box::new(r.clone()))))
}

impl Oracle {
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            clock: Millis::MIN,
            skus: BTreeMap::new(),
            held: BTreeMap::new(),
            returns: BTreeMap::new(),
            commands: BTreeMap::new(),
        }
    }

    pub fn apply(&mut self, now: Millis, action: &Action) -> Reply {
        self.clock = self.clock.max(now);
        for (r, _) in self.held.values_mut() {
            if r.status == Status::Pending && r.ends_at <= self.clock {
                r.status = Status::Expired;
            }
        }
        let answer = match action {
            Action::Reserve(_) => self.reserve(action),
            Action::Confirm(_) => self.confirm(action),
            Action::Cancel(_) | Action::Extend(_) | Action::ShowReservation { .. } => self.by_id(action),
            Action::Return(_) => self.give(action),
            Action::ShowStock { sku } => match self.skus.get(sku) {
                None => Err(Refusal::UnknownSku(vec![row(&(sku.clone(), None), 0, ())])),
                Some(found) => Ok(self.stock_reply(DoneCode::Ok, sku, found.revision, false)),
            },
            Action::Set(_) | Action::Adjust(_) | Action::Transfer(_) | Action::Configure(_) => {
                self.stock(action)
            }
        };
        match answer {
            Ok((code, subject)) => Reply::Done(Done { code, subject }),
            Err(refusal) => Reply::Refused(refusal),
        }
    }

    /// Counters of a location: reserved and sold are summed over everything there ever was.
    pub fn counters(&self, sku: &Id, location: &Id) -> Counters {
        let record = &self.skus[sku];
        let place = record.locations.iter().find(|l| l.location == *location).unwrap();
        let mut counters = place.counters;
        for (r, _) in self.held.values() {
            for line in r.lines.iter().filter(|line| line.sku == *sku) {
                for a in line.allocations.iter().filter(|a| a.location == *location) {
                    if r.status == Status::Pending {
                        counters.reserved += a.quantity;
                    }
                    counters.sold += a.confirmed - a.returned;
                }
            }
        }
        // What operators brought, less what was sold: kept as supply in `on_hand`.
        counters.on_hand -= counters.sold;
        counters
    }

    fn used(&self, owner: &Id, sku: &Id) -> u64 {
        let era = self.skus[sku].settings.era;
        let lines = self
            .held
            .values()
            .filter(|(r, _)| r.owner.as_ref() == Some(owner));
        lines
            .flat_map(|(r, _)| r.lines.iter().map(move |line| (r.status, line)))
            .filter(|(_, line)| line.sku == *sku && line.era == era)
            .map(|(status, line)| match status {
                Status::Pending => line.quantity(),
                _ => line.confirmed() - line.returned(),
            })
            .sum()
    }

    fn check(lines: &[AskLine]) -> Result<(), Refusal> {
        if lines.is_empty() || lines.len() > 100 {
            return invalid("lines");
        }
        for (index, line) in lines.iter().enumerate() {
            if line.quantity == 0 || line.quantity > QUANTITY_MAX {
                return invalid(&format!("lines[{index}].quantity"));
            }
        }
        Ok(())
    }

    fn sale(&self, lines: &[AskLine]) -> Result<(), Refusal> {
        let cart = cart(lines);
        let rows = |bad: &dyn Fn(&Key) -> bool| -> Vec<RefusedLine<()>> {
            cart.iter()
                .filter(|(key, _)| bad(key))
                .map(|(key, (index, _))| row(key, *index, ()))
                .collect()
        };
        any(rows(&|key| !self.skus.contains_key(&key.0)), Refusal::UnknownSku)?;
        let settings = |key: &Key| &self.skus[&key.0].settings;
        any(rows(&|key| settings(key).paused), Refusal::Paused)?;
        let times = |time: &dyn Fn(&Settings) -> Option<Millis>| -> Vec<RefusedLine<Millis>> {
            cart.iter()
                .filter_map(|(key, (index, _))| Some(row(key, *index, time(settings(key))?)))
                .collect()
        };
        any(
            times(&|s| s.opens_at.filter(|at| self.clock < *at)),
            Refusal::NotOpen,
        )?;
        any(
            times(&|s| s.closes_at.filter(|at| self.clock >= *at)),
            Refusal::Closed,
        )?;
        let mut conflicts: Vec<RefusedLine<Conflict>> = Vec::new();
        for line in lines {
            let found = self.skus[&line.sku].revision;
            let key = (line.sku.clone(), line.location.clone());
            let told = conflicts
                .iter()
                .any(|c| (&c.sku, &c.location) == (&key.0, &key.1));
            if let Some(expected) = line.if_revision.filter(|asked| *asked != found && !told) {
                let detail = Conflict {
                    expected: Some(expected),
                    found: Some(found),
                };
                conflicts.push(row(&key, cart[&key].0, detail));
            }
        }
        any(conflicts, Refusal::RevisionConflict)
    }

    fn order(&self, sku: &Id) -> Vec<Id> {
        let record = &self.skus[sku];
        let mut order = record.settings.order.clone();
        for place in &record.locations {
            if !order.contains(&place.location) {
                order.push(place.location.clone());
            }
        }
        order
    }

    fn available(&self, sku: &Id) -> BTreeMap<Id, u64> {
        let places = self.skus[sku].locations.iter();
        places
            .map(|l| (l.location.clone(), self.counters(sku, &l.location).available()))
            .collect()
    }

    fn allocate(&self, owner: &Id, lines: &[AskLine]) -> Result<Vec<Line>, Refusal> {
        let cart = cart(lines);
        let mut over = Vec::new();
        let mut firsts: BTreeMap<&Id, (u32, &Key, u64)> = BTreeMap::new();
        for (key, (index, n)) in &cart {
            let cell = firsts.entry(&key.0).or_insert((*index, key, 0));
            cell.2 += n;
            if *index < cell.0 {
                (cell.0, cell.1) = (*index, key);
            }
        }
        for (sku, (index, key, asked)) in firsts {
            let used = self.used(owner, sku);
            if let Some(limit) = self.skus[sku]
                .settings
                .limit_per_owner
                .filter(|l| used + asked > *l)
            {
                over.push(row(key, index, OverLimit { asked, used, limit }));
            }
        }
        any(over, Refusal::LimitExceeded)?;
        let mut left: BTreeMap<Id, BTreeMap<Id, u64>> = BTreeMap::new();
        let mut lines: BTreeMap<Key, Vec<(Id, u64)>> = BTreeMap::new();
        let mut short = Vec::new();
        let (free, pinned): (Vec<_>, Vec<_>) = cart.iter().partition(|(key, _)| key.1.is_none());
        for (key, (index, asked)) in pinned.into_iter().chain(free) {
            let left = left
                .entry(key.0.clone())
                .or_insert_with(|| self.available(&key.0));
            let order = match &key.1 {
                Some(location) => vec![location.clone()],
                None => self.order(&key.0),
            };
            let at = |left: &BTreeMap<Id, u64>, place: &Id| left.get(place).copied().unwrap_or(0);
            let mut taken = Vec::new();
            if let Some(place) = order.iter().find(|place| at(left, place) >= *asked) {
                taken.push((place.clone(), *asked));
            } else if self.skus[&key.0].settings.split {
                let mut missing = *asked;
                for place in &order {
                    let n = missing.min(at(left, place));
                    missing -= n;
                    if n > 0 {
                        taken.push((place.clone(), n));
                    }
                }
            }
            let got: u64 = taken.iter().map(|(_, n)| n).sum();
            if got < *asked {
                let most = order.iter().map(|place| at(left, place)).max().unwrap_or(0);
                let available = if self.skus[&key.0].settings.split {
                    got
                } else {
                    most
                };
                short.push(row(
                    key,
                    *index,
                    Short {
                        asked: *asked,
                        available,
                    },
                ));
                continue;
            }
            for (place, n) in &taken {
                *left.get_mut(place).unwrap() -= n;
            }
            lines.insert(key.clone(), taken);
        }
        any(short, Refusal::InsufficientStock)?;
        Ok(lines
            .into_iter()
            .map(|((sku, location), parts)| Line {
                era: self.skus[&sku].settings.era,
                sku,
                location,
                allocations: parts
                    .into_iter()
                    .map(|(location, quantity)| Allocation {
                        location,
                        quantity,
                        confirmed: 0,
                        returned: 0,
                    })
                    .collect(),
            })
            .collect())
    }

    fn grant(&mut self, id: &Id, paid: Payload, sold: bool, ends_at: Millis, lines: Vec<Line>) -> Answer {
        let r = Reservation {
            tenant: Id::default_name(),
            id: id.clone(),
            owner: Some(paid.1.clone()),
            mode: paid.0,
            digest: Digest(0),
            status: if sold { Status::Confirmed } else { Status::Pending },
            sealed: false,
            noted: false,
            granted_at: self.clock,
            ends_at,
            lines: lines.into(),
        };
        self.held.insert(id.clone(), (r.clone(), Some(paid)));
        show(&r, DoneCode::Ok)
    }

    fn seal(&mut self, id: &Id) -> Reservation {
        let r = Reservation {
            tenant: Id::default_name(),
            id: id.clone(),
            owner: None,
            mode: Mode::Reserve,
            digest: Digest(0),
            status: Status::Cancelled,
            sealed: true,
            noted: false,
            granted_at: self.clock,
            ends_at: self.clock,
            lines: [].into_iter().collect(),
        };
        self.held.insert(id.clone(), (r.clone(), None));
        r
    }

    fn reserve(&mut self, action: &Action) -> Answer {
        let Action::Reserve(ask) = action else {
            unreachable!()
        };
        let paid = payload(ask.mode, &ask.owner, &ask.lines);
        if let Some((r, known)) = self.held.get(&ask.id) {
            let b = Box::new(r.clone());
            return match r.status {
                Status::Cancelled if r.sealed => Err(Refusal::AlreadyCancelled(b)),
                _ if known.as_ref() != Some(&paid) => Err(Refusal::IdReused),
                Status::Pending | Status::Confirmed => show(r, DoneCode::Replayed),
                Status::Cancelled => Err(Refusal::AlreadyCancelled(b)),
                Status::Expired | Status::Lost => Err(Refusal::Expired {
                    reservation: b,
                    reason: LateReason::Over,
                }),
            };
        }
        Self::check(&ask.lines)?;
        if ask.mode == Mode::Reserve && !(1_000..=2_592_000_000).contains(&ask.ttl_ms) {
            return invalid("ttl_ms");
        }
        let before = self.held.clone();
        if let Some(old) = &ask.supersedes {
            if *old == ask.id {
                return invalid("supersedes");
            }
            match self.held.get_mut(old) {
                None => {
                    self.seal(old);
                }
                Some((r, _)) if r.owner.is_some() && r.owner.as_ref() != Some(&ask.owner) => {
                    return Err(Refusal::NotFound { id: old.clone() });
                }
                Some((r, _)) if r.status == Status::Confirmed => {
                    return Err(Refusal::AlreadyConfirmed(Box::new(r.clone())));
                }
                Some((r, _)) if r.status == Status::Pending => r.status = Status::Cancelled,
                Some(_) => {}
            }
        }
        let lines = self
            .sale(&ask.lines)
            .and_then(|()| self.allocate(&ask.owner, &ask.lines));
        let mut lines = match lines {
            Ok(lines) => lines,
            Err(refusal) => {
                self.held = before;
                return Err(refusal);
            }
        };
        let sold = ask.mode == Mode::Deduct;
        if sold {
            for a in lines.iter_mut().flat_map(|line| line.allocations.iter_mut()) {
                a.confirmed = a.quantity;
            }
        }
        let ends_at = if sold { self.clock } else { self.clock + ask.ttl_ms };
        self.grant(&ask.id, paid, sold, ends_at, lines)
    }

    // What is picked of each line, and where it stood in the command.
    fn picked(lines: &[(Key, u64)], picks: Option<&[PickLine]>) -> Result<Vec<(u64, u32)>, Refusal> {
        let Some(picks) = picks else {
            return Ok(lines
                .iter()
                .zip(0..)
                .map(|((_, room), index)| (*room, index))
                .collect());
        };
        if picks.is_empty() {
            return invalid("lines");
        }
        let mut sums: BTreeMap<usize, (u64, u32)> = BTreeMap::new();
        for (index, pick) in (0..).zip(picks) {
            if pick.quantity == 0 {
                return invalid(&format!("lines[{index}].quantity"));
            }
            let key = (pick.sku.clone(), pick.location.clone());
            let Some(at) = lines.iter().position(|(found, _)| *found == key) else {
                return invalid(&format!("lines[{index}].sku"));
            };
            sums.entry(at).or_insert((0, index)).0 += pick.quantity;
        }
        let all = 0..lines.len();
        for (at, (n, index)) in &sums {
            if *n > lines[*at].1 {
                return invalid(&format!("lines[{index}].quantity"));
            }
        }
        Ok(all.map(|at| sums.get(&at).copied().unwrap_or_default()).collect())
    }

    fn mark(lines: &mut [Line], picks: &[(u64, u32)]) {
        for (line, (n, _)) in lines.iter_mut().zip(picks) {
            let mut n = *n;
            for a in &mut line.allocations {
                a.confirmed = n.min(a.quantity);
                n -= a.confirmed;
            }
        }
    }

    fn confirm(&mut self, action: &Action) -> Answer {
        let Action::Confirm(ask) = action else {
            unreachable!()
        };
        let Some((r, known)) = self.held.get(&ask.id).cloned() else {
            let Some(along) = &ask.payload else {
                return Err(Refusal::NotFound { id: ask.id.clone() });
            };
            Self::check(&along.lines)?;
            let keys: Vec<_> = cart(&along.lines)
                .into_iter()
                .map(|(key, (_, n))| (key, n))
                .collect();
            let picks = Self::picked(&keys, ask.lines.as_deref())?;
            self.sale(&along.lines)?;
            let mut lines = self.allocate(&along.owner, &along.lines)?;
            Self::mark(&mut lines, &picks);
            let paid = payload(Mode::Reserve, &along.owner, &along.lines);
            return self.grant(&ask.id, paid, true, self.clock, lines);
        };
        if let Some(along) = &ask.payload
            && !r.sealed
            && Some(payload(r.mode, &along.owner, &along.lines)) != known
        {
            return Err(Refusal::IdReused);
        }
        if r.status == Status::Cancelled {
            return Err(Refusal::AlreadyCancelled(Box::new(r)));
        }
        let key = |line: &Line| (line.sku.clone(), line.location.clone());
        let keys: Vec<_> = r.lines.iter().map(|line| (key(line), line.quantity())).collect();
        let picks = Self::picked(&keys, ask.lines.as_deref())?;
        let mut after = r.clone();
        after.status = Status::Confirmed;
        Self::mark(&mut after.lines, &picks);
        match r.status {
            Status::Confirmed => {
                let same = r
                    .lines
                    .iter()
                    .zip(&picks)
                    .all(|(line, (n, _))| line.confirmed() == *n);
                if same {
                    return show(&r, DoneCode::Replayed);
                }
                return Err(Refusal::AlreadyConfirmed(Box::new(r)));
            }
            Status::Pending => {}
            Status::Expired | Status::Lost | Status::Cancelled => {
                for line in &mut after.lines {
                    line.era = self.skus[&line.sku].settings.era;
                }
                if let Some(reason) = self.obstacle(&after, &picks) {
                    let cell = &mut self.held.get_mut(&ask.id).unwrap().0;
                    cell.noted = true;
                    return Err(Refusal::Expired {
                        reservation: Box::new(cell.clone()),
                        reason,
                    });
                }
            }
        }
        self.held.insert(ask.id.clone(), (after.clone(), known));
        show(&after, DoneCode::Ok)
    }

    fn obstacle(&self, r: &Reservation, picks: &[(u64, u32)]) -> Option<LateReason> {
        if self.rules.late_confirm == LateConfirm::Reject {
            return Some(LateReason::Over);
        }
        let key = |line: &Line| (line.sku.clone(), line.location.clone());
        let mut over: Vec<RefusedLine<OverLimit>> = Vec::new();
        let mut short = Vec::new();
        let mut left: BTreeMap<Id, BTreeMap<Id, u64>> = BTreeMap::new();
        for sku in r
            .lines
            .iter()
            .map(|line| line.sku.clone())
            .collect::<std::collections::BTreeSet<_>>()
        {
            let mine = || {
                r.lines
                    .iter()
                    .zip(picks)
                    .filter(|(line, (n, _))| line.sku == sku && *n > 0)
            };
            let asked: u64 = mine().map(|(_, (n, _))| n).sum();
            let used = self.used(r.owner.as_ref().unwrap(), &sku);
            let Some((line, (_, index))) = mine().min_by_key(|(_, (_, index))| *index) else {
                continue;
            };
            if let Some(limit) = self.skus[&sku]
                .settings
                .limit_per_owner
                .filter(|l| used + asked > *l)
            {
                over.push(row(&key(line), *index, OverLimit { asked, used, limit }));
            }
        }
        for (line, (n, index)) in r.lines.iter().zip(picks) {
            let left = left
                .entry(line.sku.clone())
                .or_insert_with(|| self.available(&line.sku));
            let had: Vec<_> = line
                .allocations
                .iter()
                .map(|a| (&a.location, a.confirmed.min(left[&a.location])))
                .collect();
            let available = had.iter().map(|(_, n)| n).sum();
            if available < *n {
                short.push(row(&key(line), *index, Short { asked: *n, available }));
            } else {
                had.iter()
                    .for_each(|(place, n)| *left.get_mut(place).unwrap() -= n);
            }
        }
        over.sort_by_key(|row| row.index);
        short.sort_by_key(|row| row.index);
        match (over.is_empty(), short.is_empty()) {
            (false, _) => Some(LateReason::Limit(over)),
            (true, false) => Some(LateReason::Short(short)),
            (true, true) => None,
        }
    }

    fn by_id(&mut self, action: &Action) -> Answer {
        let id = match action {
            Action::Cancel(cancel) => &cancel.id,
            Action::Extend(extend) => &extend.id,
            Action::ShowReservation { id } => id,
            _ => unreachable!(),
        };
        let clock = self.clock;
        let Some((r, _)) = self.held.get_mut(id) else {
            return match action {
                Action::Cancel(_) => {
                    let r = self.seal(id);
                    show(&r, DoneCode::Sealed)
                }
                _ => Err(Refusal::NotFound { id: id.clone() }),
            };
        };
        let b = || Box::new(r.clone());
        match (action, r.status) {
            (Action::ShowReservation { .. }, _) => show(r, DoneCode::Ok),
            (Action::Cancel(_), Status::Cancelled) => show(r, DoneCode::Replayed),
            (_, Status::Confirmed) => Err(Refusal::AlreadyConfirmed(b())),
            (Action::Cancel(_), _) => {
                r.status = Status::Cancelled;
                show(r, DoneCode::Ok)
            }
            (_, Status::Cancelled) => Err(Refusal::AlreadyCancelled(b())),
            (Action::Extend(extend), Status::Pending) => {
                if extend.ends_at == r.ends_at {
                    return show(r, DoneCode::Replayed);
                }
                if extend.ends_at <= clock || extend.ends_at > clock + 2_592_000_000 {
                    return invalid("ends_at");
                }
                r.ends_at = extend.ends_at;
                show(r, DoneCode::Ok)
            }
            _ => Err(Refusal::Expired {
                reservation: b(),
                reason: LateReason::Over,
            }),
        }
    }

    fn give(&mut self, action: &Action) -> Answer {
        let Action::Return(ask) = action else {
            unreachable!()
        };
        let sums = ask.lines.as_ref().map(|lines| {
            let mut sums: BTreeMap<Key, u64> = BTreeMap::new();
            for line in lines {
                *sums.entry((line.sku.clone(), line.location.clone())).or_default() += line.quantity;
            }
            sums
        });
        let what = format!("{} {sums:?}", ask.reservation);
        if let Some((known, record)) = self.returns.get(&ask.id) {
            if *known != what {
                return Err(Refusal::IdReused);
            }
            let r = self.held[&record.reservation].0.clone();
            return Ok((DoneCode::Replayed, Subject::Return(Box::new((record.clone(), r)))));
        }
        let Some((r, _)) = self.held.get_mut(&ask.reservation) else {
            return Err(Refusal::NotFound {
                id: ask.reservation.clone(),
            });
        };
        if r.status != Status::Confirmed {
            return Err(Refusal::NotConfirmed(Box::new(r.clone())));
        }
        let sold = |line: &Line| line.confirmed() - line.returned();
        let key = |line: &Line| (line.sku.clone(), line.location.clone());
        let keys: Vec<_> = r.lines.iter().map(|line| (key(line), sold(line))).collect();
        let picks = Self::picked(&keys, ask.lines.as_deref())?;
        if picks.iter().all(|(n, _)| *n == 0) {
            return invalid("lines");
        }
        let mut lines = Vec::new();
        for (line, (n, _)) in r.lines.iter_mut().zip(&picks).filter(|(_, (n, _))| *n > 0) {
            lines.push(ReturnedLine {
                sku: line.sku.clone(),
                location: line.location.clone(),
                quantity: *n,
            });
            for _ in 0..*n {
                let a = line
                    .allocations
                    .iter_mut()
                    .rev()
                    .find(|a| a.returned < a.confirmed);
                a.unwrap().returned += 1;
            }
        }
        let record = ReturnRecord {
            tenant: Id::default_name(),
            id: ask.id.clone(),
            reservation: ask.reservation.clone(),
            digest: Digest(0),
            at: self.clock,
            lines,
        };
        let r = r.clone();
        self.returns.insert(ask.id.clone(), (what, record.clone()));
        Ok((DoneCode::Ok, Subject::Return(Box::new((record, r)))))
    }

    fn stock_reply(&self, code: DoneCode, sku: &Id, revision: u64, created: bool) -> (DoneCode, Subject) {
        let mut stock = self.skus[sku].clone();
        for place in &mut stock.locations {
            place.counters = self.counters(sku, &place.location);
        }
        let subject = StockSubject {
            stock,
            revision,
            created,
        };
        (code, Subject::Stock(Box::new(subject)))
    }

    fn stock(&mut self, action: &Action) -> Answer {
        let (own, sku, expect) = match action {
            Action::Set(c) => (&c.id, &c.sku, c.expect),
            Action::Adjust(c) => (&c.id, &c.sku, c.expect),
            Action::Transfer(c) => (&c.id, &c.sku, c.expect),
            Action::Configure(c) => (&c.id, &c.sku, c.expect),
            _ => unreachable!(),
        };
        let what = format!("{action:?}");
        if let Some((known, sku, revision)) = self.commands.get(own) {
            if *known != what {
                return Err(Refusal::IdReused);
            }
            return Ok(self.stock_reply(DoneCode::Replayed, sku, *revision, *revision == 1));
        }
        match action {
            Action::Adjust(c) if c.delta == 0 => return invalid("delta"),
            Action::Transfer(c) if c.quantity == 0 => return invalid("quantity"),
            Action::Transfer(c) if c.from == c.to => return invalid("to"),
            Action::Configure(c) => Self::check_changes(&c.changes)?,
            _ => {}
        }
        let found = self.skus.get(sku).map(|sku| sku.revision);
        let is_set = matches!(action, Action::Set(_));
        let unknown = |location: Option<&Id>| {
            let key = (sku.clone(), location.cloned());
            Refusal::UnknownSku(vec![row(&key, 0, ())])
        };
        if found.is_none() && !is_set {
            return Err(unknown(None));
        }
        let expected = match expect {
            Expect::Any => None,
            Expect::Revision(n) => (Some(n) != found).then_some(Some(n)),
            Expect::Absent => found.is_some().then_some(None),
        };
        if let Some(expected) = expected {
            let detail = Conflict { expected, found };
            return Err(Refusal::RevisionConflict(vec![row(
                &(sku.clone(), None),
                0,
                detail,
            )]));
        }
        let before = |location: &Id| {
            let record = self.skus.get(sku)?;
            record.locations.iter().find(|l| l.location == *location)?;
            Some(self.counters(sku, location))
        };
        let floor = |location: &Id, counters: Counters, result: i64| {
            if result < counters.reserved.cast_signed() {
                return Err(Refusal::BelowReserved {
                    location: location.clone(),
                    result,
                    reserved: counters.reserved,
                });
            }
            Ok(())
        };
        // New supply per location.
        let mut supply: Vec<(Id, i64)> = Vec::new();
        match action {
            Action::Set(c) => {
                let counters = before(&c.location);
                let target = c.target.cast_signed();
                let result = match (c.count, counters) {
                    (Count::Create, Some(_)) => return invalid("sold_seen"),
                    (Count::Seen { sold_seen }, found) => {
                        let sold = found.unwrap_or_default().sold;
                        if sold_seen > sold {
                            return invalid("sold_seen");
                        }
                        target - (sold - sold_seen).cast_signed()
                    }
                    (Count::Create | Count::Force, _) => target,
                };
                let counters = counters.unwrap_or_default();
                floor(&c.location, counters, result)?;
                supply.push((c.location.clone(), result + counters.sold.cast_signed()));
            }
            Action::Adjust(c) => {
                let counters = before(&c.location).ok_or_else(|| unknown(Some(&c.location)))?;
                let result = counters.on_hand.cast_signed() + c.delta;
                floor(&c.location, counters, result)?;
                supply.push((c.location.clone(), result + counters.sold.cast_signed()));
            }
            Action::Transfer(c) => {
                let n = c.quantity.cast_signed();
                for (location, delta) in [(&c.from, -n), (&c.to, n)] {
                    let counters = before(location).ok_or_else(|| unknown(Some(location)))?;
                    let result = counters.on_hand.cast_signed() + delta;
                    floor(location, counters, result)?;
                    supply.push((location.clone(), result + counters.sold.cast_signed()));
                }
            }
            Action::Configure(c) => self.change(sku, &c.changes)?,
            _ => unreachable!(),
        }
        let record = self.skus.entry(sku.clone()).or_insert_with(|| SkuRecord {
            tenant: Id::default_name(),
            sku: sku.clone(),
            revision: 0,
            settings: Settings::default(),
            locations: Vec::new(),
        });
        record.revision += 1;
        let revision = record.revision;
        for (location, units) in supply {
            if record.locations.iter().all(|l| l.location != location) {
                record.locations.push(LocationRecord {
                    location: location.clone(),
                    counters: Counters::default(),
                });
            }
            let place = record
                .locations
                .iter_mut()
                .find(|l| l.location == location)
                .unwrap();
            place.counters.on_hand = units.cast_unsigned();
        }
        self.commands.insert(own.clone(), (what, sku.clone(), revision));
        Ok(self.stock_reply(DoneCode::Ok, sku, revision, revision == 1))
    }

    fn check_changes(changes: &Changes) -> Result<(), Refusal> {
        let twice = |list: &[&Id]| (0..list.len()).any(|at| list[..at].contains(&list[at]));
        if twice(&changes.safety_stock.iter().map(|(l, _)| l).collect::<Vec<_>>()) {
            return invalid("safety_stock");
        }
        if changes.limit_per_owner == Some(Some(0)) {
            return invalid("limit_per_owner");
        }
        if changes
            .order
            .as_ref()
            .is_some_and(|order| twice(&order.iter().collect::<Vec<_>>()))
        {
            return invalid("order");
        }
        Ok(())
    }

    fn change(&mut self, sku: &Id, changes: &Changes) -> Result<(), Refusal> {
        let record = self.skus.get_mut(sku).unwrap();
        let mut s = record.settings.clone();
        s.limit_per_owner = changes.limit_per_owner.unwrap_or(s.limit_per_owner);
        s.opens_at = changes.opens_at.unwrap_or(s.opens_at);
        s.closes_at = changes.closes_at.unwrap_or(s.closes_at);
        s.paused = changes.paused.unwrap_or(s.paused);
        s.split = changes.split.unwrap_or(s.split);
        s.group = changes.group.clone().unwrap_or(s.group);
        s.era += u32::from(changes.reset_usage);
        if let (Some(opens_at), Some(closes_at)) = (s.opens_at, s.closes_at)
            && closes_at <= opens_at
        {
            return invalid("closes_at");
        }
        let named = changes
            .safety_stock
            .iter()
            .map(|(l, _)| l)
            .chain(changes.order.iter().flatten());
        for location in named {
            if record.locations.iter().all(|l| l.location != *location) {
                let key = (sku.clone(), Some(location.clone()));
                return Err(Refusal::UnknownSku(vec![row(&key, 0, ())]));
            }
        }
        for (location, floor) in &changes.safety_stock {
            let place = record
                .locations
                .iter_mut()
                .find(|l| l.location == *location)
                .unwrap();
            place.counters.safety_stock = *floor;
        }
        s.order = changes.order.clone().unwrap_or(s.order);
        record.settings = s;
        Ok(())
    }
}
