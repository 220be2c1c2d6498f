//! The flags of `stockade rush`.

use clap::Args as ClapArgs;

use crate::cli::Credentials;

/// The drill: run a flash sale and prove from the buyers' own history that nothing was oversold or undersold.
///
/// Without --url a service is started for the drill, on a free port and a temporary data folder, and stopped and
/// removed at the end. With --url a running service is driven, on new SKUs that begin with "rush-"; nothing else in it
/// is touched.
///
/// Exit codes: 0 all is well; 1 the drill found units oversold or undersold, drift, or requests without an answer;
/// 2 wrong flags; 3 the drill could not be run.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct Args {
    /// Buyers, each with one order.
    #[arg(long, value_name = "N", default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) buyers: u32,
    /// Units for sale, spread evenly over the SKUs.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(0..=1_000_000_000))]
    pub(crate) units: u64,
    /// SKUs; each order is for one of them.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) skus: u32,
    /// An order is for 1 up to so many units.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) max_quantity: u32,
    /// The most requests in flight.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub(crate) concurrency: u32,
    /// Of 100 buyers who get their units, so many confirm...
    #[arg(long, value_name = "N", default_value_t = 80, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) confirm_percent: u8,
    /// ...and so many cancel; the others walk away, and their reservations run out.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) cancel_percent: u8,
    /// Of 100 requests so many are sent twice at once, on two connections.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) duplicate_percent: u8,
    /// Seconds after which a reservation that nobody confirmed runs out.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) ttl_seconds: u32,
    /// Drive the service at this address, as `http://127.0.0.1:7077`.
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Let this Redis decide, in the service that is started for the drill; its keys begin with "stockade-rush" and are
    /// left there, to be looked at.
    #[arg(long, value_name = "URL", conflicts_with = "url")]
    pub(crate) redis: Option<String>,
    // The drill changes stock, reserves, and audits: a key of scope `admin`.
    #[command(flatten)]
    pub(crate) credentials: Credentials,
    /// Repeat the choices of an earlier run's buyers; how their requests fall together is new each time.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Print one JSON object and nothing else on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Args {
    /// What clap cannot check by itself.
    pub(crate) fn check(&self) -> Result<(), String> {
        let sum = u16::from(self.confirm_percent) + u16::from(self.cancel_percent);
        if sum > 100 {
            return Err(format!(
                "--confirm-percent {} and --cancel-percent {} are {sum} together; at most 100 are left to share",
                self.confirm_percent, self.cancel_percent
            ));
        }
        Ok(())
    }
}
