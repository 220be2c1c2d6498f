//! `stockade stock`: counts, changes, settings, reads.

use std::process::ExitCode;

use axum::http::Method;
use clap::Subcommand;
use serde_json::{Map, Value, json};
use stockade_core::Id;

use super::client::{Answer, encoded, query, send};
use super::value::{self, OrNone};
use super::{Failure, Service, ended, export, import, output};

/// Read and change stock.
#[derive(Debug, Subcommand)]
pub(crate) enum Stock {
    /// Set a count for one location; creates SKU and location.
    Set(SetArgs),
    /// Show a SKU.
    Get {
        /// The SKU.
        #[arg(value_parser = value::id)]
        sku: Id,
        #[command(flatten)]
        service: Service,
    },
    /// List SKUs in the order of their bytes.
    List {
        /// Only SKUs after this one.
        #[arg(long, value_name = "SKU", value_parser = value::id)]
        after: Option<Id>,
        /// At most so many.
        #[arg(long, value_name = "N", default_value = "100", value_parser = value::page_limit)]
        limit: u64,
        #[command(flatten)]
        service: Service,
    },
    /// Add units to a location, or take them away.
    Adjust {
        /// The SKU.
        #[arg(value_parser = value::id)]
        sku: Id,
        /// The change: 5, +5 or -5.
        #[arg(value_parser = value::delta, allow_hyphen_values = true)]
        delta: i64,
        /// The location.
        #[arg(long, value_parser = value::id, default_value = "default")]
        location: Id,
        #[command(flatten)]
        change: Change,
    },
    /// Move units from one location to another.
    Transfer {
        /// The SKU.
        #[arg(value_parser = value::id)]
        sku: Id,
        /// How many.
        #[arg(value_parser = value::quantity)]
        quantity: u64,
        /// Where they leave.
        #[arg(long, value_name = "LOCATION", value_parser = value::id)]
        from: Id,
        /// Where they arrive.
        #[arg(long, value_name = "LOCATION", value_parser = value::id)]
        to: Id,
        #[command(flatten)]
        change: Change,
    },
    /// Change the settings of a SKU; what is not given stays.
    Configure(Box<ConfigureArgs>),
    Import(Box<import::Args>),
    /// Write all stock as CSV or NDJSON, one row for each SKU and location.
    Export {
        /// Only SKUs after this one.
        #[arg(long, value_name = "SKU", value_parser = value::id)]
        after: Option<Id>,
        #[command(flatten)]
        file: export::File,
        #[command(flatten)]
        service: Service,
    },
}

/// Set a count.
#[derive(Debug, clap::Args)]
pub(crate) struct SetArgs {
    /// The SKU.
    #[arg(value_parser = value::id)]
    sku: Id,
    /// The units counted, reserved ones included.
    #[arg(value_parser = value::figure)]
    on_hand: u64,
    /// The location.
    #[arg(long, value_parser = value::id, default_value = "default")]
    location: Id,
    /// How many had been sold when the units were counted: sales since then are taken off the count. Where the location
    /// exists, this or --force is needed.
    #[arg(long, value_name = "N", value_parser = value::figure)]
    sold_seen: Option<u64>,
    /// Take the count as it is, whatever was sold meanwhile.
    #[arg(long, conflicts_with = "sold_seen")]
    force: bool,
    #[command(flatten)]
    change: Change,
}

/// Change settings.
#[derive(Debug, clap::Args)]
pub(crate) struct ConfigureArgs {
    /// The SKU.
    #[arg(value_parser = value::id)]
    sku: Id,
    /// Floor that stays back at a location; may be given for several.
    #[arg(long, value_name = "LOCATION=UNITS", value_parser = value::floor)]
    safety_stock: Vec<(Id, u64)>,
    /// The most units that one owner may hold and have bought, or `none`.
    #[arg(long, value_name = "N|none", value_parser = value::quantity_or_none)]
    limit_per_owner: Option<OrNone<u64>>,
    /// Before this no reserve is granted: milliseconds, RFC 3339, or `none`.
    #[arg(long, value_name = "TIME|none", value_parser = value::moment_or_none)]
    opens_at: Option<OrNone<i64>>,
    /// From this on no reserve is granted: milliseconds, RFC 3339, or `none`.
    #[arg(long, value_name = "TIME|none", value_parser = value::moment_or_none)]
    closes_at: Option<OrNone<i64>>,
    /// Refuse reserves for now.
    #[arg(long, value_name = "true|false")]
    paused: Option<bool>,
    /// A location in the order in which lines without a location take from them; give all, first to last.
    #[arg(long, value_name = "LOCATION", value_parser = value::id)]
    order: Vec<Id>,
    /// Whether one line may take from several locations.
    #[arg(long, value_name = "true|false")]
    split: Option<bool>,
    /// SKUs of one group lie on one shard; or `none`.
    #[arg(long, value_name = "GROUP|none", value_parser = value::group_or_none)]
    group: Option<OrNone<Id>>,
    /// Owner usage starts again from zero for everybody.
    #[arg(long)]
    reset_usage: bool,
    #[command(flatten)]
    change: Change,
}

/// What all changes of stock have in common.
#[derive(Debug, clap::Args)]
pub(crate) struct Change {
    /// The command's id; a fresh one is made and printed to stderr when not given. Sent again with the same id it has
    /// no second effect.
    #[arg(long, value_parser = value::id)]
    id: Option<Id>,
    /// Refuse unless the SKU has this revision.
    #[arg(long, value_name = "N", value_parser = value::figure)]
    if_revision: Option<u64>,
    /// Why.
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    service: Service,
}

impl Change {
    async fn send(&self, method: Method, path: String, mut body: Map<String, Value>) -> Result<(), Failure> {
        let id = value::given_or_fresh(self.id.as_ref(), "id");
        body.insert("id".to_owned(), json!(id));
        if let Some(revision) = self.if_revision {
            body.insert("if_revision".to_owned(), json!(revision));
        }
        if let Some(reason) = &self.reason {
            body.insert("reason".to_owned(), json!(reason));
        }
        let answer = send(&self.service, method, &path, Some(&Value::Object(body))).await;
        show(&self.service, answer)
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

pub(crate) async fn run(command: Stock) -> ExitCode {
    ended(match command {
        Stock::Set(args) => set(args).await,
        Stock::Get { sku, service } => {
            let path = format!("/v1/stock/{}", encoded(sku.as_str()));
            show(&service, send(&service, Method::GET, &path, None).await)
        }
        Stock::List {
            after,
            limit,
            service,
        } => {
            let parameters = [
                ("limit", Some(limit.to_string())),
                ("after", after.map(|a| a.to_string())),
            ];
            let path = format!("/v1/stock{}", query(&parameters));
            show(&service, send(&service, Method::GET, &path, None).await)
        }
        Stock::Adjust {
            sku,
            delta,
            location,
            change,
        } => {
            let path = format!("/v1/stock/{}/adjustments", encoded(sku.as_str()));
            let body = json!({"location": location.as_str(), "delta": delta});
            change.send(Method::POST, path, object(body)).await
        }
        Stock::Transfer {
            sku,
            quantity,
            from,
            to,
            change,
        } => {
            let path = format!("/v1/stock/{}/transfers", encoded(sku.as_str()));
            let body = json!({"from": from.as_str(), "to": to.as_str(), "quantity": quantity});
            change.send(Method::POST, path, object(body)).await
        }
        Stock::Configure(args) => configure(*args).await,
        Stock::Import(args) => return import::run(*args).await,
        Stock::Export { after, file, service } => {
            let parameters = [("after", after.map(|a| a.to_string()))];
            export::export(&service, &file, "/v1/stock/export", &parameters).await
        }
    })
}

async fn set(args: SetArgs) -> Result<(), Failure> {
    let mut body = object(json!({"location": args.location.as_str(), "on_hand": args.on_hand}));
    if let Some(sold_seen) = args.sold_seen {
        body.insert("sold_seen".to_owned(), json!(sold_seen));
    }
    if args.force {
        body.insert("force".to_owned(), json!(true));
    }
    let path = format!("/v1/stock/{}", encoded(args.sku.as_str()));
    args.change.send(Method::PUT, path, body).await
}

async fn configure(args: ConfigureArgs) -> Result<(), Failure> {
    let mut body = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(name.to_owned(), value);
        }
    };
    let floors: Vec<Value> = args
        .safety_stock
        .iter()
        .map(|(location, units)| json!({"location": location.as_str(), "safety_stock": units}))
        .collect();
    let order: Vec<&str> = args.order.iter().map(Id::as_str).collect();
    put(
        "safety_stock",
        (!floors.is_empty()).then_some(Value::Array(floors)),
    );
    put(
        "limit_per_owner",
        args.limit_per_owner.map(|limit| json!(limit.0)),
    );
    put("opens_at_ms", args.opens_at.map(|at| json!(at.0)));
    put("closes_at_ms", args.closes_at.map(|at| json!(at.0)));
    put("paused", args.paused.map(|paused| json!(paused)));
    put("order", (!order.is_empty()).then(|| json!(order)));
    put("split", args.split.map(|split| json!(split)));
    put(
        "group",
        args.group.map(|group| json!(group.0.as_ref().map(Id::as_str))),
    );
    put("reset_usage", args.reset_usage.then_some(Value::Bool(true)));
    if body.is_empty() {
        return Err(Failure::Usage(
            "nothing to change; see `stockade stock configure --help`".to_owned(),
        ));
    }
    let path = format!("/v1/stock/{}", encoded(args.sku.as_str()));
    args.change.send(Method::PATCH, path, body).await
}

fn show(service: &Service, answer: Result<Answer, Failure>) -> Result<(), Failure> {
    let answer = output::or_problem(service.json, answer)?;
    output::print(service.json, &answer, people)
}

/// One row a location.
fn people(body: &Value) -> String {
    let mut table = output::table(&[
        "sku",
        "revision",
        "location",
        "on_hand",
        "reserved",
        "sold",
        "safety_stock",
        "available",
    ]);
    let listed = body.get("stock").and_then(Value::as_array);
    let one = body.get("stock").filter(|stock| stock.is_object());
    for stock in listed.into_iter().flatten().chain(one) {
        for at in stock
            .get("locations")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let mut row = vec![
                output::shown(stock.get("sku")),
                output::shown(stock.get("revision")),
            ];
            let columns = [
                "location",
                "on_hand",
                "reserved",
                "sold",
                "safety_stock",
                "available",
            ];
            row.extend(columns.iter().map(|name| output::shown(at.get(name))));
            table.add_row(row);
        }
    }
    let mut parts = vec![table.to_string()];
    if let Some(settings) = one.and_then(|stock| stock.get("settings")) {
        let set = settings
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(name, value)| {
                let usual = if *name == "split" {
                    Value::Bool(true)
                } else {
                    Value::Bool(false)
                };
                !value.is_null() && **value != usual && **value != json!([])
            });
        for (name, value) in set {
            let value = if name.ends_with("_ms") {
                output::moment(Some(value))
            } else {
                output::shown(Some(value))
            };
            parts.push(format!("{}: {value}", name.trim_end_matches("_ms")));
        }
    }
    if body.get("code").and_then(Value::as_str) == Some("replayed") {
        parts.push("done before: this is the stock as it stands now".to_owned());
    }
    if let Some(after) = body.get("next_after").and_then(Value::as_str) {
        parts.push(format!("more: --after '{after}'"));
    }
    parts.join("\n")
}
