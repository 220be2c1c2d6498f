//! The bare loop: the same tables and indexes, the same rows, prepared statements, one transaction a batch, and none
//! of the checks.

use crate::Failure;
use crate::orders::Shape;

pub(crate) fn run(shape: Shape, orders: u64, size: u64) -> Result<f64, Failure> {
    Err(format!("the bare loop waits for the schema: {shape:?} {orders} {size}").into())
}
