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
        Err(Error::Refused(why)) => println!("not to be had: {why:?}"),
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
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let data = std::env::args().nth(1).unwrap_or_else(|| "stockade-data".into());
    println!("{} units sold", sell(Path::new(&data)).await?);
    Ok(())
}
