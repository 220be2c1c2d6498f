//! The beginning: epoch 1 is open on the primary, the replica is a copy, the ledger has recorded nothing.

use crate::log::Log;
use crate::scenario::Scenario;
use crate::state::{IDS, Ledger, Meta, Mode, Node, Owner, Position, Proc, Row, Sku, Status, World};

impl World {
    pub fn new(scenario: &Scenario) -> Self {
        let at = Position {
            epoch: 1,
            seq: 0,
            tag: 0,
        };
        let row = Row {
            at,
            mode: Mode::Hot,
            owner: Owner { proc: 0, token: 0 },
        };
        let node = Node {
            meta: Some(Meta {
                epoch: 1,
                open: true,
                based: true,
                chunks: 2,
                seq: 0,
                tag: 0,
                base_seq: 0,
                base_tag: 0,
                forgot: 0,
                filter: 0,
            }),
            sku: Some(Sku::FULL),
            ..Node::default()
        };
        let proc = Proc {
            life: 0,
            view: row,
            conn: 0,
            kept: [None; IDS],
            rebuild: None,
            loading: None,
            suspects: None,
            misses: false,
        };
        Self {
            rules: scenario.rules,
            look: scenario.look,
            refusals_wait: scenario.refusals_wait,
            nodes: [node.clone(), node],
            primary: 0,
            ledger: Ledger {
                row,
                entries: vec![at],
                sku: Sku::FULL,
                records: [(Status::Absent, 0); IDS],
            },
            procs: [proc.clone(), proc],
            reqs: Vec::new(),
            msgs: Vec::new(),
            clock: 0,
            faults: scenario.faults,
            fresh: 0,
            serial: 0,
            told: [0; IDS],
            extended: [0; IDS],
            asked: [false; IDS],
            reported: [false; IDS],
            lossy: false,
            crashed: false,
            broken: None,
            log: Log::default(),
        }
    }
}
