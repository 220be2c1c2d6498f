//! Clients that hang up: the command they sent is done whole or not at all, and asking by id tells which.

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::check::Which;
use super::claim::Claim;
use super::client::{Client, Step};
use super::shop::Shop;
use super::sums::Sums;
use super::{Campaign, Common, Report};
use crate::load::answer::Answer;
use crate::load::caller::{Caller, Outcome};
use crate::load::http::whole_answer;
use crate::load::request::Request;
use crate::load::service::Service;
use crate::load::target::Target;
use crate::load::{LoadError, fresh_folder, now_ms};

/// A connection is dropped at most so long after its request was sent; which of these is drawn first, so that moments
/// before, during and after the service's work all come up, however fast it is.
const HANG_UP_MS_MAX: [u64; 6] = [0, 1, 2, 5, 10, 20];
/// Of 100 requests so many are cut off in the middle.
const CUT_PERCENT: u8 = 25;
/// After the last hang-up the service may still be busy with what was sent; so long it may take.
const SETTLE_WITHIN: Duration = Duration::from_secs(30);
const SETTLE_POLL: Duration = Duration::from_millis(50);

/// Hangs up `times` times on one service.
pub(crate) async fn campaign(common: &Common, times: u32) -> Result<Report, LoadError> {
    let folder = fresh_folder("stockade-drill-", common.json)?;
    let (data, log) = (folder.path().join("data"), folder.path().join("service.log"));
    // Reservations that run out would change the counters on their own while they are compared.
    let mut campaign = Campaign::new(common, false);
    let ran = campaign.hang_up(times, &data, &log).await;
    campaign.finish(ran, folder)
}

async fn hang_up_often(
    mut client: Client,
    shop: Shop,
    patient: Rc<Caller>,
    left: Rc<Cell<u32>>,
) -> Result<Client, LoadError> {
    let mut request = Request::default();
    while let Some(rest) = left.get().checked_sub(1) {
        left.set(rest);
        let step = client.choose(&shop);
        let (Step::First { claim, command } | Step::Again { claim, command }) = step;
        client.write(&shop, &patient, claim, command, &mut request);
        let whole = request.bytes().len();
        let is_cut = client.random.u8(0..100) < CUT_PERCENT;
        let ms_max = client.random.choice(HANG_UP_MS_MAX).unwrap_or_default();
        let plan = HangUp {
            sent: if is_cut {
                client.random.usize(0..whole)
            } else {
                whole
            },
            after: Duration::from_micros(client.random.u64(0..=ms_max * 1_000)),
            reset: client.random.bool(),
        };
        let id = client.id(&shop, claim);
        let answer = plan.send(patient.target(), request.bytes(), &id).await;
        match answer {
            // The answer was faster: no hang-up, and the drill goes on with what it says.
            Ok(Some(outcome)) if !is_cut => {
                left.set(left.get() + 1);
                client.take(&shop, step, outcome);
            }
            // Half a request is no request: the claim stays what it was, with nothing in doubt.
            _ if is_cut => {
                client.touched.push(claim);
                client.tally.sent += 1;
                client.reopen(claim);
            }
            _ => client.take(
                &shop,
                step,
                Outcome::Unanswered {
                    why: "hung up".to_owned(),
                },
            ),
        }
    }
    Ok(client)
}

/// How one connection is to end.
#[derive(Clone, Copy, Debug)]
struct HangUp {
    /// Bytes of the request that are sent.
    sent: usize,
    after: Duration,
    /// Ends with a reset instead of an orderly close.
    reset: bool,
}

impl HangUp {
    /// Sends on a new connection and drops it. An answer that came first is returned.
    async fn send(self, target: &Target, request: &[u8], id: &str) -> io::Result<Option<Outcome<Answer>>> {
        let mut stream = target.connect().await?;
        if self.reset {
            stream.set_zero_linger()?;
        }
        stream
            .write_all(request.get(..self.sent).unwrap_or(request))
            .await?;
        let mut input = Vec::new();
        let answered = tokio::time::timeout(self.after, async {
            loop {
                if stream.read_buf(&mut input).await? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                if let Some((head, body)) = whole_answer(&mut input)? {
                    let body = input.get(body).unwrap_or_default();
                    return Ok(match Answer::read(head.status, body, id) {
                        Ok(answer) => Outcome::Answered {
                            answer,
                            resent: false,
                        },
                        Err(why) => Outcome::Useless { why },
                    });
                }
            }
        });
        match answered.await {
            Ok(answer) => answer.map(Some),
            Err(_) => Ok(None),
        }
    }
}

impl Campaign {
    async fn hang_up(&mut self, times: u32, data: &Path, log: &Path) -> Result<(), LoadError> {
        let service = Service::start(data, log).await?;
        let patient = self.patient_caller(&service)?;
        self.open_shop(&patient).await?;
        let left = Rc::new(Cell::new(times));
        self.each_client(&patient, |client, shop, caller| {
            hang_up_often(client, shop, caller, Rc::clone(&left))
        })
        .await?;
        self.faults = u64::from(times);
        self.until_settled(&patient).await?;
        if !self.gather_findings() {
            self.check(&patient, Which::All).await?;
        }
        service.stop().await
    }

    /// Waits until the service has done what it is going to do of what was sent: until counters that did not change
    /// meanwhile are the sums of the states found by id. A state that a claim cannot be in is a finding at any time.
    async fn until_settled(&mut self, caller: &Rc<Caller>) -> Result<(), LoadError> {
        let give_up = Instant::now() + SETTLE_WITHIN;
        loop {
            let before = self.read_stock(caller).await?;
            let found = Rc::new(Cell::new(Vec::new()));
            self.each_client(caller, |client, shop, caller| {
                find(client, shop, caller, Rc::clone(&found))
            })
            .await?;
            if self.gather_findings() {
                return Ok(());
            }
            let after = self.read_stock(caller).await?;
            let mut seen = Client::new(0, 0);
            seen.claims = found.take();
            let different = Sums::of(&self.shop, &[seen], now_ms()).compare(&self.shop, &after);
            if before == after && different.is_empty() {
                return Ok(());
            }
            if Instant::now() > give_up {
                self.findings.extend(different);
                self.findings
                    .push(format!("not settled {SETTLE_WITHIN:?} after the last hang-up"));
                return Ok(());
            }
            tokio::time::sleep(SETTLE_POLL).await;
        }
    }
}

/// Every claim of a client in the state in which it is found.
async fn find(
    mut client: Client,
    shop: Shop,
    caller: Rc<Caller>,
    all: Rc<Cell<Vec<Claim>>>,
) -> Result<Client, LoadError> {
    let mut found = Vec::with_capacity(client.claims.len());
    for index in 0..client.claims.len() {
        let state = client.ask_one(&shop, &caller, index).await?;
        if let Some((state, known)) = state.zip(client.claims.get(index)) {
            // Nothing runs out in this drill.
            found.push(Claim {
                state,
                expires_at_ms: i64::MAX,
                ..*known
            });
        }
    }
    let mut together = all.take();
    together.append(&mut found);
    all.set(together);
    Ok(client)
}
