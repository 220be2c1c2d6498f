//! A stock spread over several keys, so that one hot stock can use several nodes of a cluster.
//!
//! In one slot, a script sees all segments and decides at once. Over several slots no script can, so the order walks from
//! segment to segment, always the same way: it begins at the segment that its id names, and every segment remembers what
//! it gave this order, also when that was nothing. A retry therefore gets the same answers on the same way, and takes
//! nothing twice. If all together have too little, what was taken is given back.

use redis::aio::ConnectionLike;

use crate::error::ScriptError;
use crate::keys::{KeyError, companion};
use crate::runner::Scripts;
use crate::scripts::{
    Part, PartReply, Restore, RestoreReply, SegmentDeduct, SegmentGather, SegmentInit, SegmentPart,
    SegmentReply, SegmentRestore, SegmentRestoreReply, UnknownOrder,
};

/// Where the segments lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// `{stock:1001}:1`, `{stock:1001}:2`, ...: one slot, one script. Spreads keys, not load over nodes.
    OneSlot,
    /// `stock:1001:1`, `stock:1001:2`, ...: each in a slot of its own.
    ManySlots,
}

/// One stock in segments.
#[derive(Clone, Debug)]
pub struct Segments<C> {
    scripts: Scripts<C>,
    stock: String,
    keys: Vec<String>,
    spread: Spread,
    keep_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    Done {
        parts: Vec<Part>,
        replayed: bool,
    },
    /// All segments together have fewer units than asked. Nothing was taken, or all was given back.
    Short,
    NoSuchSegment {
        segment: u64,
    },
    OtherQuantity,
    /// The order was given back, or it was short over several slots before. A new try needs a new order id.
    GivenBack,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum SegmentsError {
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// What an order's key holds was not written here.
    #[error("{key} holds {found:?}")]
    Corrupt { key: String, found: String },
}

/// The segment at which this caller starts, from 0: as the scripts compute it.
pub fn start_segment(caller: &str, count: usize) -> usize {
    let digest = sha1_smol::Sha1::from(caller).digest().bytes();
    let first = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
    usize::try_from(first).unwrap_or_default() % count.max(1)
}

impl<C: ConnectionLike + Clone> Segments<C> {
    /// `count` segments of `stock`; an order is remembered for `keep_ms`.
    pub fn new(
        scripts: Scripts<C>,
        stock: &str,
        count: usize,
        spread: Spread,
        keep_ms: u64,
    ) -> Result<Self, KeyError> {
        let keys = (1..=count)
            .map(|segment| match spread {
                Spread::OneSlot => companion(stock, &segment.to_string()),
                Spread::ManySlots => {
                    let key = format!("{stock}:{segment}");
                    // A tag or a brace in the name would put all of them into one slot, or their orders elsewhere.
                    if stock.contains(['{', '}']) {
                        Err(KeyError::NoTag { key })
                    } else {
                        Ok(key)
                    }
                }
            })
            .collect::<Result<Vec<String>, KeyError>>()?;
        Ok(Self {
            scripts,
            stock: stock.to_owned(),
            keys,
            spread,
            keep_ms,
        })
    }

    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// Spreads `total` over the segments that are not there yet. `false`: some were there already and stay as they are.
    pub async fn init(&self, total: u64) -> Result<bool, SegmentsError> {
        if self.spread == Spread::OneSlot {
            return Ok(self
                .scripts
                .run(&SegmentInit {
                    segments: &self.keys,
                    total,
                })
                .await?);
        }
        let count = self.keys.len() as u64;
        let mut all_new = true;
        for (index, key) in self.keys.iter().enumerate() {
            let share = total / count + u64::from((index as u64) < total % count);
            let call = SegmentInit {
                segments: std::slice::from_ref(key),
                total: share,
            };
            all_new &= self.scripts.run(&call).await?;
        }
        Ok(all_new)
    }

    /// Takes units for an order: from one segment if one has enough, else from several. Sent again with the same order,
    /// it answers the same and takes nothing; an outcome that is unknown is finished by sending it again, or undone by
    /// [`restore`](Self::restore).
    pub async fn deduct(&self, order: &str, quantity: u64) -> Result<Taken, SegmentsError> {
        match self.spread {
            Spread::OneSlot => self.deduct_at_once(order, quantity).await,
            Spread::ManySlots => self.deduct_step_by_step(order, quantity).await,
        }
    }

    async fn deduct_at_once(&self, order: &str, quantity: u64) -> Result<Taken, SegmentsError> {
        let key = companion(&self.stock, &format!("parts:{order}"))?;
        let (segments, keep_ms) = (self.keys.as_slice(), self.keep_ms);
        let one = SegmentDeduct {
            order: &key,
            segments,
            quantity,
            caller: order,
            keep_ms,
        };
        let mut reply = self.scripts.run(&one).await?;
        if matches!(reply, SegmentReply::Gather { .. }) {
            let several = SegmentGather {
                order: &key,
                segments,
                quantity,
                caller: order,
                keep_ms,
            };
            reply = self.scripts.run(&several).await?;
        }
        Ok(match reply {
            SegmentReply::Done { parts, replayed } => Taken::Done { parts, replayed },
            SegmentReply::Gather { .. } | SegmentReply::Short { .. } => Taken::Short,
            SegmentReply::NoSuchSegment { segment } => Taken::NoSuchSegment { segment },
            SegmentReply::OtherQuantity => Taken::OtherQuantity,
            SegmentReply::GivenBack => Taken::GivenBack,
        })
    }

    /// The segments in this order's sequence, from 0.
    fn way(&self, order: &str) -> impl Iterator<Item = usize> + use<C> {
        let count = self.keys.len();
        let start = start_segment(order, count);
        (0..count).map(move |step| (start + step) % count)
    }

    fn order_key(&self, segment: usize, order: &str, gather: bool) -> Result<String, KeyError> {
        let kind = if gather { "gather" } else { "order" };
        companion(&self.keys[segment], &format!("{kind}:{order}"))
    }

    async fn part(
        &self,
        segment: usize,
        order: &str,
        gather: bool,
        quantity: u64,
    ) -> Result<PartReply, SegmentsError> {
        let key = self.order_key(segment, order, gather)?;
        let least = if gather { 1 } else { quantity };
        let call = SegmentPart {
            segment: &self.keys[segment],
            order: &key,
            quantity,
            least,
            keep_ms: self.keep_ms,
        };
        Ok(self.scripts.run(&call).await?)
    }

    async fn deduct_step_by_step(&self, order: &str, quantity: u64) -> Result<Taken, SegmentsError> {
        let number = |segment: usize| segment as u64 + 1;
        // First a single segment that has all of it.
        for segment in self.way(order) {
            match self.part(segment, order, false, quantity).await? {
                PartReply::Taken { units: 0, .. } => {}
                PartReply::Taken { units, replayed } => {
                    return Ok(Taken::Done {
                        parts: vec![Part {
                            segment: number(segment),
                            units,
                        }],
                        replayed,
                    });
                }
                PartReply::NoSuchSegment => {
                    return Ok(Taken::NoSuchSegment {
                        segment: number(segment),
                    });
                }
                PartReply::OtherQuantity => return Ok(Taken::OtherQuantity),
                PartReply::GivenBack => return Ok(Taken::GivenBack),
            }
        }
        // Then a part from each, until it is enough.
        let (mut parts, mut missing, mut all_replayed) = (Vec::new(), quantity, true);
        for segment in self.way(order) {
            match self.part(segment, order, true, missing).await? {
                PartReply::Taken { units, replayed } => {
                    all_replayed &= replayed;
                    if units > 0 {
                        parts.push(Part {
                            segment: number(segment),
                            units,
                        });
                    }
                    missing = missing.saturating_sub(units);
                    if missing == 0 {
                        return Ok(Taken::Done {
                            parts,
                            replayed: all_replayed,
                        });
                    }
                }
                PartReply::NoSuchSegment => {
                    self.give_back(order, true, &parts).await?;
                    return Ok(Taken::NoSuchSegment {
                        segment: number(segment),
                    });
                }
                PartReply::OtherQuantity => return Ok(Taken::OtherQuantity),
                PartReply::GivenBack => {
                    // Somebody began to give this order back: finish it.
                    self.give_back(order, true, &parts).await?;
                    return Ok(Taken::GivenBack);
                }
            }
        }
        self.give_back(order, true, &parts).await?;
        Ok(Taken::Short)
    }

    async fn give_back(&self, order: &str, gather: bool, parts: &[Part]) -> Result<bool, SegmentsError> {
        let mut any = false;
        for part in parts {
            let segment = usize::try_from(part.segment.saturating_sub(1)).unwrap_or(usize::MAX);
            let Some(stock) = self.keys.get(segment) else {
                continue;
            };
            let key = self.order_key(segment, order, gather)?;
            let restore = Restore {
                stock,
                order: &key,
                quantity: part.units,
                keep_ms: self.keep_ms,
                unknown: UnknownOrder::Refuse,
            };
            any |= matches!(
                self.scripts.run(&restore).await?,
                RestoreReply::Done { replayed: false, .. }
            );
        }
        Ok(any)
    }

    /// Gives back what an order took, to where it came from, once. `false`: nothing was there to give back, or it was
    /// given back before.
    pub async fn restore(&self, order: &str) -> Result<bool, SegmentsError> {
        if self.spread == Spread::OneSlot {
            let key = companion(&self.stock, &format!("parts:{order}"))?;
            let call = SegmentRestore {
                order: &key,
                segments: &self.keys,
                keep_ms: self.keep_ms,
            };
            let reply = self.scripts.run(&call).await?;
            return Ok(matches!(reply, SegmentRestoreReply::Done { replayed: false, .. }));
        }
        let mut any = false;
        for gather in [false, true] {
            for segment in self.way(order) {
                let key = self.order_key(segment, order, gather)?;
                let mut connection = self.scripts.connection();
                let found: Option<String> = redis::cmd("GET")
                    .arg(&key)
                    .query_async(&mut connection)
                    .await
                    .map_err(|error| ScriptError::from_redis("segments", error))?;
                let Some(found) = found else { continue };
                let Some(units) = taken_in(&found) else {
                    return Err(SegmentsError::Corrupt { key, found });
                };
                if units > 0 {
                    let part = Part {
                        segment: segment as u64 + 1,
                        units,
                    };
                    any |= self.give_back(order, gather, &[part]).await?;
                }
            }
        }
        Ok(any)
    }
}

/// The units in a record `done:UNITS:ASKED`; 0 when it was given back.
fn taken_in(record: &str) -> Option<u64> {
    let (state, rest) = record.split_once(':')?;
    let (units, _) = rest.split_once(':')?;
    match state {
        "done" => units.parse().ok(),
        "back" => Some(0),
        _ => None,
    }
}
