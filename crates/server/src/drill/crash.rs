//! kill -9 at random moments. What was answered is on disk: a kill loses nothing of it. (A kill leaves the operating
//! system's cache alone; that the disk itself has it is up to SQLite's synchronous=FULL.)

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use super::check::Which;
use super::client::Client;
use super::shop::Shop;
use super::{Campaign, Common, Report};
use crate::load::caller::{Caller, Patience};
use crate::load::request::Request;
use crate::load::service::Service;
use crate::load::{LoadError, fresh_folder};

/// The kill comes at most so long after the load began.
const LOAD_MS_MAX: u64 = 300;
/// In one start out of so many the kill comes while the service is still starting...
const EARLY_KILL_ONE_IN: u32 = 6;
/// ...at most so long after the process began.
const EARLY_KILL_MS_MAX: u64 = 60;
/// Claims of earlier rounds that each client asks about in each round.
const OLDER_ASKED: usize = 20;
/// Of 100 steps so many are deliveries of more units.
const DELIVERIES_PERCENT: u8 = 2;

/// Runs `rounds` rounds on one data folder.
pub(crate) async fn campaign(common: &Common, rounds: u32) -> Result<Report, LoadError> {
    let folder = fresh_folder("stockade-drill-", common.json)?;
    let (data, log) = (folder.path().join("data"), folder.path().join("service.log"));
    let mut campaign = Campaign::new(common, true);
    let ran = campaign.rounds(rounds, &data, &log).await;
    campaign.finish(ran, folder)
}

/// A service that is killed while it recovers must leave a folder that the next one can recover.
async fn kill_while_starting(data: &Path, log: &Path, after: Duration) -> Result<(), LoadError> {
    // Dropping the start kills the process.
    match tokio::time::timeout(after, Service::start(data, log)).await {
        Err(_) => Ok(()),
        Ok(started) => started?.kill(),
    }
}

impl Campaign {
    async fn rounds(&mut self, rounds: u32, data: &Path, log: &Path) -> Result<(), LoadError> {
        let mut random = fastrand::Rng::with_seed(self.seed);
        for round in 0..rounds {
            if random.u32(0..EARLY_KILL_ONE_IN) == 0 {
                let after = Duration::from_millis(random.u64(0..=EARLY_KILL_MS_MAX));
                kill_while_starting(data, log, after).await?;
            }
            let service = Service::start(data, log).await?;
            let patient = self.patient_caller(&service)?;
            if round == 0 {
                self.open_shop(&patient).await?;
            }
            self.check(&patient, Which::Touched { older: OLDER_ASKED })
                .await?;
            if self.gather_findings() {
                return Ok(());
            }
            let after = Duration::from_millis(random.u64(1..=LOAD_MS_MAX));
            self.load_until_killed(service, after).await?;
        }
        let service = Service::start(data, log).await?;
        self.check(&self.patient_caller(&service)?, Which::All).await?;
        service.stop().await
    }

    async fn load_until_killed(&mut self, service: Service, after: Duration) -> Result<(), LoadError> {
        // One try: what the kill leaves unanswered stays in doubt until the next round.
        let once = Patience {
            tries: 1,
            ..Patience::default()
        };
        let clients = u32::try_from(self.clients.len()).unwrap_or(u32::MAX);
        let caller = Rc::new(Caller::new(service.target()?, clients, once)?);
        let over = Rc::new(Cell::new(false));
        let killer = tokio::task::spawn_local({
            let over = Rc::clone(&over);
            async move {
                tokio::time::sleep(after).await;
                over.set(true);
                service.kill()
            }
        });
        self.each_client(&caller, |client, shop, caller| {
            trade(client, shop, caller, Rc::clone(&over))
        })
        .await?;
        self.faults += 1;
        killer.await.map_err(|error| LoadError::Request {
            what: "killing the service".to_owned(),
            why: error.to_string(),
        })?
    }
}

async fn trade(
    mut client: Client,
    shop: Shop,
    caller: Rc<Caller>,
    over: Rc<Cell<bool>>,
) -> Result<Client, LoadError> {
    let mut request = Request::default();
    while !over.get() {
        if client.random.u8(0..100) < DELIVERIES_PERCENT {
            client.deliver(&shop, &caller, None, &mut request).await;
        } else {
            let step = client.choose(&shop);
            client.send(&shop, &caller, step, &mut request).await;
        }
    }
    Ok(client)
}
