//! What a process does without being asked: it records, trims, loads what is missing; and how it dies.

use crate::rules::Rule;
use crate::state::{Body, IDS, Loading, Marker, Mode, To, World};

impl World {
    /// Reads the outbox from the cursor of its view, and records up to `count` entries.
    pub(crate) fn take_outbox(&mut self, proc: usize, count: usize, late: bool) -> bool {
        let view = self.procs[proc].view;
        let node = self.procs[proc].conn;
        if view.mode != Mode::Hot || !self.has_room(late) {
            return false;
        }
        let fork = match self.admits(node, view.at.epoch, true) {
            Err(reply) => {
                self.refused(proc, view.at.epoch, &reply);
                return false;
            }
            Ok(meta) if meta.base_seq > view.at.seq => return false,
            // Inclusive: the entry at the cursor must be the ledger's.
            Ok(_) if self.rules.has(Rule::InclusiveRead) => !self.on_chain(node, view.at),
            Ok(_) => self.nodes[node]
                .stream
                .iter()
                .any(|e| e.at.seq == view.at.seq + 1 && e.prev != view.at.tag),
        };
        if fork {
            self.procs[proc].suspects = Some(view.at.epoch);
            self.log
                .say(|| format!("        process {proc} finds a fork on node {node}"));
            return false;
        }
        let after = self.nodes[node].stream.iter().filter(|e| e.at.seq > view.at.seq);
        let entries: Vec<_> = after.take(count).cloned().collect();
        if entries.is_empty() {
            return false;
        }
        self.send(To::Ledger, proc, Body::Record { entries }, late);
        true
    }

    pub(crate) fn cut(&mut self, proc: usize, late: bool) -> bool {
        let view = self.procs[proc].view;
        if view.mode != Mode::Hot || !self.has_room(late) || !self.ledger.entries.contains(&view.at) {
            return false;
        }
        let node = self.procs[proc].conn;
        if self.nodes[node].stream.iter().all(|e| e.at.seq != view.at.seq) && !late {
            return false;
        }
        self.send(To::Node(node), proc, Body::Trim { at: view.at }, late);
        true
    }

    /// A SKU that is not held gets a load marker, with the tip at which it was missed.
    pub(crate) fn mark(&mut self, proc: usize) -> bool {
        let (view, node) = (self.procs[proc].view, self.procs[proc].conn);
        if view.mode != Mode::Hot || self.nodes[node].sku.is_some() {
            return false;
        }
        let Ok(meta) = self.admits(node, view.at.epoch, true) else {
            return false;
        };
        let token = self.token();
        let made = Marker {
            token,
            tip: meta.tip(),
        };
        let marker = *self.nodes[node].marker.get_or_insert(made);
        let loading = Loading {
            epoch: view.at.epoch,
            token: marker.token,
            tip: marker.tip,
            node,
        };
        if self.procs[proc].loading == Some(loading) {
            return false;
        }
        self.procs[proc].loading = Some(loading);
        self.procs[proc].misses = false;
        true
    }

    /// Reads the SKU in the ledger once the marker's tip is recorded, and loads it under the marker.
    pub(crate) fn load_missed(&mut self, proc: usize, late: bool) -> bool {
        let Some(loading) = self.procs[proc].loading else {
            return false;
        };
        let ready = self.is_recorded(loading.tip) || !self.rules.has(Rule::LoadWait);
        if !ready || !self.has_room(late) {
            return false;
        }
        self.procs[proc].loading = None;
        let body = Body::Load {
            epoch: loading.epoch,
            token: loading.token,
            sku: self.ledger.sku,
            row: self.ledger.row.at,
        };
        self.send(To::Node(loading.node), proc, body, late);
        true
    }

    /// Death and restart: what it knew is gone, what it sent is not.
    pub(crate) fn crash(&mut self, proc: usize) {
        let p = &mut self.procs[proc];
        p.life += 1;
        p.view = self.ledger.row;
        p.conn = self.primary;
        p.kept = [None; IDS];
        p.rebuild = None;
        p.loading = None;
        p.suspects = None;
        p.misses = false;
        self.reqs.retain(|r| r.proc != proc);
        self.crashed = true;
    }
}
