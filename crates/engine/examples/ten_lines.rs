//! A store, a reservation, a sale: `cargo run -p stockade --example ten_lines [data folder]`.

use std::path::Path;

use stockade::{Error, Stockade};

pub(crate) async fn sell(data: &Path) -> Result<u64, Box<dyn std::error::Error>> {
    let store = Stockade::open(data).await?;
    let delivery = store.set_stock("count-1", "A/1", 100).await?;
    println!(
        "{} units came in",
        delivery
            .stock
            .locations
            .iter()
            .map(|l| l.counters.on_hand)
            .sum::<u64>()
    );
    match store.reserve("order-1", "alice").line("A/1", 2).await {
        Ok(held) => println!("held until {} ms", held.reservation.ends_at),
        Err(error @ Error::Refused(_)) => println!("not to be had: {error}"),
        Err(error) => return Err(error.into()),
    }
    store.confirm("order-1").await?;
    let sold = store
        .stock("A/1")
        .await?
        .locations
        .iter()
        .map(|l| l.counters.sold)
        .sum();
    store.close().await?;
    Ok(sold)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::process::ExitCode {
    let data = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "stockade-library-data".into());
    match sell(Path::new(&data)).await {
        Ok(sold) => println!("{sold} units sold"),
        Err(error) => {
            eprintln!("error: {error}");
            return std::process::ExitCode::FAILURE;
        }
    }
    std::process::ExitCode::SUCCESS
}
