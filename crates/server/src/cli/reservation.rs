//! `stockade reservation`: reserve, deduct, and everything that happens to a reservation.

use std::process::ExitCode;

use axum::http::Method;
use clap::Subcommand;
use serde_json::{Map, Value, json};
use stockade_core::Id;

use super::client::{Answer, encoded, query, send};
use super::{Failure, Service, ended, output, value};

/// Reserve, deduct, and everything that happens to a reservation.
#[derive(Debug, Subcommand)]
pub(crate) enum Reservation {
    /// Hold units until an end: all lines or none.
    Reserve {
        /// How long the units are held: 1..=2592000, 1800 when not given.
        #[arg(long, value_name = "SECONDS", value_parser = value::ttl_seconds)]
        ttl_seconds: Option<u64>,
        #[command(flatten)]
        asked: Asked,
    },
    /// Sell units at once: all lines or none.
    Deduct {
        #[command(flatten)]
        asked: Asked,
    },
    /// Turn reserved units into sold ones; what is not listed is released.
    Confirm {
        #[command(flatten)]
        picked: Picked,
    },
    /// Give reserved units back; an id that never came is sealed.
    Cancel {
        /// The reservation's id.
        #[arg(value_parser = value::id)]
        id: Id,
        /// Why.
        #[arg(long)]
        reason: Option<String>,
        #[command(flatten)]
        service: Service,
    },
    /// Move the end of a pending reservation; it may also come nearer.
    Extend {
        /// The reservation's id.
        #[arg(value_parser = value::id)]
        id: Id,
        /// The new end: milliseconds since 1970 in UTC, or RFC 3339.
        #[arg(long, value_name = "TIME", value_parser = value::moment)]
        expires_at: i64,
        #[command(flatten)]
        service: Service,
    },
    /// Give sold units back to where they came from; without lines everything.
    Return {
        /// The return's own id; a fresh one is made and printed to stderr when not given.
        #[arg(long, value_parser = value::id)]
        return_id: Option<Id>,
        /// Why.
        #[arg(long)]
        reason: Option<String>,
        #[command(flatten)]
        picked: Picked,
    },
    /// Show a reservation as it stands.
    Show {
        /// The reservation's id.
        #[arg(value_parser = value::id)]
        id: Id,
        #[command(flatten)]
        service: Service,
    },
    /// List reservations, newest first.
    List(ListArgs),
}

/// What is asked for.
#[derive(Debug, clap::Args)]
pub(crate) struct Asked {
    /// The lines, such as `B-7=3`; a SKU may hold `=` itself.
    #[arg(required = true, value_name = "SKU=QUANTITY", value_parser = value::line)]
    lines: Vec<(Id, u64)>,
    /// Who buys.
    #[arg(long, value_parser = value::id)]
    owner: Id,
    /// The reservation's id; a fresh one is made and printed to stderr when not given. Sent again with the same id it has no
    /// second effect.
    #[arg(long, value_parser = value::id)]
    id: Option<Id>,
    /// Take the units of all lines from here only.
    #[arg(long, value_parser = value::id)]
    location: Option<Id>,
    /// The owner's own pending reservation that this one takes the place of.
    #[arg(long, value_name = "ID", value_parser = value::id)]
    supersedes: Option<Id>,
    #[command(flatten)]
    service: Service,
}

/// Which reservation, and which of its units.
#[derive(Debug, clap::Args)]
pub(crate) struct Picked {
    /// The reservation's id.
    #[arg(value_parser = value::id)]
    id: Id,
    /// The lines; all when not given.
    #[arg(value_name = "SKU=QUANTITY", value_parser = value::line)]
    lines: Vec<(Id, u64)>,
    /// The location that the reservation's lines asked for, if they did.
    #[arg(long, value_parser = value::id)]
    location: Option<Id>,
    #[command(flatten)]
    service: Service,
}

/// Which reservations.
#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// Of this owner.
    #[arg(long, value_parser = value::id)]
    owner: Option<Id>,
    /// With a line of this SKU.
    #[arg(long, value_parser = value::id)]
    sku: Option<Id>,
    /// With this status: pending, confirmed, cancelled, expired or lost.
    #[arg(long)]
    status: Option<String>,
    /// Granted at or after: milliseconds since 1970 in UTC, or RFC 3339.
    #[arg(long, value_name = "TIME", value_parser = value::moment)]
    from: Option<i64>,
    /// Granted before: milliseconds since 1970 in UTC, or RFC 3339.
    #[arg(long, value_name = "TIME", value_parser = value::moment)]
    until: Option<i64>,
    /// The reservation that ended the page before.
    #[arg(long, value_name = "ID", value_parser = value::id)]
    before: Option<Id>,
    /// At most so many.
    #[arg(long, value_name = "N", default_value = "100", value_parser = value::page_limit)]
    limit: u64,
    #[command(flatten)]
    service: Service,
}

fn lines(lines: &[(Id, u64)], location: Option<&Id>) -> Value {
    let lines = lines.iter().map(|(sku, quantity)| match location {
        None => json!({"sku": sku.as_str(), "quantity": quantity}),
        Some(location) => json!({"sku": sku.as_str(), "quantity": quantity, "location": location.as_str()}),
    });
    Value::Array(lines.collect())
}

pub(crate) async fn run(command: Reservation) -> ExitCode {
    ended(match command {
        Reservation::Reserve { ttl_seconds, asked } => reserve("reserve", ttl_seconds, asked).await,
        Reservation::Deduct { asked } => reserve("deduct", None, asked).await,
        Reservation::Confirm { picked } => pick("confirm", picked, Map::new()).await,
        Reservation::Cancel { id, reason, service } => {
            let body = reason.map_or_else(|| json!({}), |reason| json!({"reason": reason}));
            act("cancel", &id, &body, &service).await
        }
        Reservation::Extend {
            id,
            expires_at,
            service,
        } => act("extend", &id, &json!({"expires_at_ms": expires_at}), &service).await,
        Reservation::Return {
            return_id,
            reason,
            picked,
        } => {
            let mut body = Map::new();
            let id = value::given_or_fresh(return_id.as_ref(), "return id");
            body.insert("id".to_owned(), json!(id));
            if let Some(reason) = reason {
                body.insert("reason".to_owned(), json!(reason));
            }
            pick("return", picked, body).await
        }
        Reservation::Show { id, service } => {
            let path = format!("/v1/reservations/{}", encoded(id.as_str()));
            show(&service, send(&service, Method::GET, &path, None).await)
        }
        Reservation::List(args) => list(args).await,
    })
}

async fn reserve(mode: &str, ttl_seconds: Option<u64>, asked: Asked) -> Result<(), Failure> {
    let id = value::given_or_fresh(asked.id.as_ref(), "id");
    let mut body = Map::new();
    body.insert("id".to_owned(), json!(id));
    body.insert("owner".to_owned(), json!(asked.owner.as_str()));
    body.insert("mode".to_owned(), json!(mode));
    if let Some(seconds) = ttl_seconds {
        body.insert("ttl_seconds".to_owned(), json!(seconds));
    }
    if let Some(superseded) = &asked.supersedes {
        body.insert("supersedes".to_owned(), json!(superseded.as_str()));
    }
    body.insert("lines".to_owned(), lines(&asked.lines, asked.location.as_ref()));
    let answer = send(
        &asked.service,
        Method::POST,
        "/v1/reservations",
        Some(&Value::Object(body)),
    )
    .await;
    show(&asked.service, answer)
}

async fn pick(verb: &str, picked: Picked, mut body: Map<String, Value>) -> Result<(), Failure> {
    if !picked.lines.is_empty() {
        body.insert("lines".to_owned(), lines(&picked.lines, picked.location.as_ref()));
    } else if picked.location.is_some() {
        return Err(Failure::Usage(
            "--location says where the given lines are; give lines too".to_owned(),
        ));
    }
    act(verb, &picked.id, &Value::Object(body), &picked.service).await
}

async fn act(verb: &str, id: &Id, body: &Value, service: &Service) -> Result<(), Failure> {
    let path = format!("/v1/reservations/{}/{verb}", encoded(id.as_str()));
    show(service, send(service, Method::POST, &path, Some(body)).await)
}

async fn list(args: ListArgs) -> Result<(), Failure> {
    let text = |id: Option<Id>| id.map(|id| id.to_string());
    let parameters = [
        ("owner", text(args.owner)),
        ("sku", text(args.sku)),
        ("status", args.status),
        ("from_ms", args.from.map(|ms| ms.to_string())),
        ("until_ms", args.until.map(|ms| ms.to_string())),
        ("before", text(args.before)),
        ("limit", Some(args.limit.to_string())),
    ];
    let path = format!("/v1/reservations{}", query(&parameters));
    show(&args.service, send(&args.service, Method::GET, &path, None).await)
}

fn show(service: &Service, answer: Result<Answer, Failure>) -> Result<(), Failure> {
    let answer = output::or_problem(service.json, answer)?;
    output::print(service.json, &answer, people)
}

/// One row a line.
fn people(body: &Value) -> String {
    let mut table = output::table(&[
        "id",
        "owner",
        "status",
        "expires",
        "sku",
        "quantity",
        "confirmed",
        "returned",
        "from",
    ]);
    let listed = body.get("reservations").and_then(Value::as_array);
    for reservation in listed.into_iter().flatten().chain(body.get("reservation")) {
        let mut head: Vec<String> = ["id", "owner", "status"]
            .iter()
            .map(|name| output::shown(reservation.get(name)))
            .collect();
        if reservation.get("sealed").and_then(Value::as_bool) == Some(true) {
            head.push("-".to_owned());
            head.extend(std::iter::repeat_n("-".to_owned(), 5));
            table.add_row(head);
            continue;
        }
        head.push(output::moment(reservation.get("expires_at_ms")));
        for line in reservation
            .get("lines")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let mut row = head.clone();
            row.extend(
                ["sku", "quantity", "confirmed", "returned"]
                    .iter()
                    .map(|name| output::shown(line.get(name))),
            );
            let from = line
                .get("allocations")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .map(|part| {
                    format!(
                        "{} {}",
                        output::shown(part.get("quantity")),
                        output::shown(part.get("location"))
                    )
                });
            row.push(from.collect::<Vec<_>>().join(", "));
            table.add_row(row);
        }
    }
    let mut parts = vec![table.to_string()];
    match body.get("code").and_then(Value::as_str) {
        Some("replayed") => parts.push("done before: no second effect".to_owned()),
        Some("sealed") => parts.push("sealed: if this id turns up later, it is refused".to_owned()),
        _ => {}
    }
    if let Some(before) = body.get("next_before").and_then(Value::as_str) {
        parts.push(format!("more: --before '{before}'"));
    }
    parts.join("\n")
}
