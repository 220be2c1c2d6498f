//! Alternating rounds, medians and spreads: these machines are noisy, so that only figures of one run compare.

use std::fmt;

/// The figures of one way over all rounds.
#[derive(Clone, Debug)]
pub(crate) struct Figures(Vec<f64>);

impl Figures {
    pub(crate) fn new() -> Self {
        Self(Vec::new())
    }
    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
        self.0.sort_by(f64::total_cmp);
    }
    pub(crate) fn median(&self) -> f64 {
        match self.0.len() {
            0 => f64::NAN,
            n if n % 2 == 1 => self.0[n / 2],
            n => f64::midpoint(self.0[n / 2 - 1], self.0[n / 2]),
        }
    }
    fn ends(&self) -> (f64, f64) {
        (
            self.0.first().copied().unwrap_or(f64::NAN),
            self.0.last().copied().unwrap_or(f64::NAN),
        )
    }
}

/// `median (lowest..highest)`, in thousands where that reads better.
impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = self.ends();
        write!(f, "{} ({}..{})", short(self.median()), short(low), short(high))
    }
}

/// A figure with three digits that mean something.
pub(crate) fn short(value: f64) -> String {
    if value >= 100_000.0 {
        format!("{:.0}k", value / 1_000.0)
    } else if value >= 1_000.0 {
        format!("{:.1}k", value / 1_000.0)
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.3}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        let mut figures = Figures::new();
        for value in [3.0, 1.0, 2.0] {
            figures.push(value);
        }
        assert!((figures.median() - 2.0).abs() < f64::EPSILON);
        figures.push(10.0);
        assert!((figures.median() - 2.5).abs() < f64::EPSILON);
        assert_eq!(figures.to_string(), "2.500 (1.000..10.0)");
    }
}
