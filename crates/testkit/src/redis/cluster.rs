//! Six nodes: three primaries with a replica each.

use super::{Options, Server, until};

/// A running Redis Cluster; all its processes end with it.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Server>,
}

const PRIMARIES: usize = 3;
const SLOTS: usize = 16_384;

impl Cluster {
    pub fn start() -> Self {
        let nodes: Vec<Server> = (0..PRIMARIES * 2)
            .map(|_| {
                Server::with(Options {
                    cluster: true,
                    ..Options::default()
                })
            })
            .collect();
        let first = &nodes[0];
        for (index, node) in nodes.iter().enumerate() {
            node.run::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]);
        }
        for (index, node) in nodes.iter().take(PRIMARIES).enumerate() {
            let from = index * SLOTS / PRIMARIES;
            let to = (index + 1) * SLOTS / PRIMARIES - 1;
            node.run::<()>(&["CLUSTER", "ADDSLOTSRANGE", &from.to_string(), &to.to_string()]);
        }
        for node in &nodes[1..] {
            let (port, bus) = (node.port().to_string(), node.bus_port().to_string());
            first.run::<()>(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
        }
        let all = nodes.len();
        for node in &nodes {
            until("every node to know every other", || {
                let known: String = node.run(&["CLUSTER", "NODES"]);
                let met = known.lines().filter(|line| !line.contains("handshake")).count();
                (met == all && known.lines().count() == all).then_some(())
            });
        }
        for (index, node) in nodes.iter().enumerate().skip(PRIMARIES) {
            let primary: String = nodes[index - PRIMARIES].run(&["CLUSTER", "MYID"]);
            node.run::<()>(&["CLUSTER", "REPLICATE", &primary]);
        }
        let cluster = Self { nodes };
        cluster.wait_until_ok();
        cluster
    }

    /// Waits until every running node calls the cluster whole and every replica follows.
    pub fn wait_until_ok(&self) {
        for (index, node) in self.nodes.iter().enumerate() {
            until("the cluster to be whole", || {
                let mut admin = node.admin()?;
                let info: String = ::redis::cmd("CLUSTER").arg("INFO").query(&mut admin).ok()?;
                let mut ready = info.contains("cluster_state:ok") && info.contains("cluster_slots_ok:16384");
                if index >= PRIMARIES {
                    let info: String = ::redis::cmd("INFO").arg("replication").query(&mut admin).ok()?;
                    ready &= info.contains("master_link_status:up") || info.contains("role:master");
                }
                ready.then_some(())
            });
        }
    }

    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(Server::url).collect()
    }

    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    pub fn nodes_mut(&mut self) -> &mut [Server] {
        &mut self.nodes
    }

    /// The node that serves the slot of `key` now.
    pub fn owner_of(&self, key: &str) -> usize {
        until("a node to own the key's slot", || {
            self.nodes.iter().position(|node| {
                let Some(mut admin) = node.admin() else {
                    return false;
                };
                let role = ::redis::cmd("ROLE").query::<::redis::Value>(&mut admin);
                let primary = matches!(&role, Ok(::redis::Value::Array(parts))
                    if matches!(parts.first(), Some(::redis::Value::BulkString(word)) if word == b"master"));
                primary && ::redis::cmd("EXISTS").arg(key).query::<i64>(&mut admin).is_ok()
            })
        })
    }
}
