//! `stockade movements`: who changed what and why.

use std::process::ExitCode;

use axum::http::Method;
use serde_json::Value;
use stockade_core::Id;

use super::client::{query, send};
use super::{Failure, Service, ended, export, output, value};

/// Which movements, and what to do with them.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    instead: Option<Instead>,
    #[command(flatten)]
    filter: Filter,
    /// At most so many.
    #[arg(long, value_name = "N", default_value = "100", value_parser = value::page_limit)]
    limit: u64,
    #[command(flatten)]
    service: Service,
}

/// What may be done instead of listing them.
#[derive(Debug, clap::Subcommand)]
enum Instead {
    /// Write all of them as CSV or NDJSON, newest first.
    Export {
        #[command(flatten)]
        filter: Filter,
        #[command(flatten)]
        file: export::File,
        #[command(flatten)]
        service: Service,
    },
}

/// Which movements.
#[derive(Debug, clap::Args)]
struct Filter {
    /// Of this SKU.
    #[arg(long, value_parser = value::id)]
    sku: Option<Id>,
    /// Of this reservation.
    #[arg(long, value_parser = value::id)]
    reservation: Option<Id>,
    /// Of this owner.
    #[arg(long, value_parser = value::id)]
    owner: Option<Id>,
    /// At or after: milliseconds since 1970 in UTC, or RFC 3339.
    #[arg(long, value_name = "TIME", value_parser = value::moment)]
    from: Option<i64>,
    /// Before: milliseconds since 1970 in UTC, or RFC 3339.
    #[arg(long, value_name = "TIME", value_parser = value::moment)]
    until: Option<i64>,
    /// Only movements with a smaller number.
    #[arg(long, value_name = "NUMBER", value_parser = value::figure)]
    before: Option<u64>,
}

impl Filter {
    fn parameters(self, limit: Option<u64>) -> [(&'static str, Option<String>); 7] {
        let text = |id: Option<Id>| id.map(|id| id.to_string());
        [
            ("sku", text(self.sku)),
            ("reservation", text(self.reservation)),
            ("owner", text(self.owner)),
            ("from_ms", self.from.map(|ms| ms.to_string())),
            ("until_ms", self.until.map(|ms| ms.to_string())),
            ("before", self.before.map(|number| number.to_string())),
            ("limit", limit.map(|limit| limit.to_string())),
        ]
    }
}

pub(crate) async fn run(args: Args) -> ExitCode {
    ended(match args.instead {
        None => list(args).await,
        Some(Instead::Export {
            filter,
            file,
            service,
        }) => export::export(&service, &file, "/v1/movements/export", &filter.parameters(None)).await,
    })
}

async fn list(args: Args) -> Result<(), Failure> {
    let parameters = args.filter.parameters(Some(args.limit));
    let path = format!("/v1/movements{}", query(&parameters));
    let answer = send(&args.service, Method::GET, &path, None).await;
    let answer = output::or_problem(args.service.json, answer)?;
    output::print(args.service.json, &answer, people)
}

fn people(body: &Value) -> String {
    let columns = [
        "number",
        "at",
        "kind",
        "actor",
        "reservation",
        "command",
        "sku",
        "location",
        "on_hand",
        "reserved",
        "sold",
        "available",
        "reason",
    ];
    let mut table = output::table(&columns);
    for movement in body
        .get("movements")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        table.add_row(columns.iter().map(|name| match *name {
            "at" => output::moment(movement.get("at_ms")),
            "available" => output::shown(movement.get("after").and_then(|after| after.get("available"))),
            name => output::shown(movement.get(name)),
        }));
    }
    let mut parts = vec![table.to_string()];
    if let Some(before) = body.get("next_before").and_then(Value::as_i64) {
        parts.push(format!("more: --before {before}"));
    }
    parts.join("\n")
}
