//! A bar on a terminal; silent anywhere else.

use std::fmt::Write;

use indicatif::{HumanCount, ProgressBar, ProgressState, ProgressStyle};

/// Draws on standard error, and only if that is a terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    pub(crate) fn new(buyers: u64) -> Self {
        let bar = ProgressBar::new(buyers);
        if let Ok(style) =
            ProgressStyle::with_template("{bar:32} {human_pos}/{human_len} buyers {rate} {elapsed} {msg}")
        {
            let style = style.with_key("rate", |state: &ProgressState, out: &mut dyn Write| {
                // What cannot be written is not drawn.
                let _ = out.write_str(&rate(state.per_sec()));
            });
            bar.set_style(style.progress_chars("##-"));
        }
        Self { bar }
    }

    /// One buyer was served. Those who stood in line are served once more when units come back, and were counted.
    pub(crate) fn step(&self) {
        if Some(self.bar.position()) < self.bar.length() {
            self.bar.inc(1);
        }
    }

    /// Says what is going on after the last buyer.
    pub(crate) fn say(&self, what: &str) {
        self.bar.set_message(what.to_owned());
        self.bar.tick();
    }

    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Whole buyers a second: `13,932/s`.
fn rate(per_second: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is neither negative nor near the bound, and a cast of what is not a number gives 0"
    )]
    let whole = per_second.round() as u64;
    format!("{}/s", HumanCount(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_whole() {
        assert_eq!(rate(13_932.035), "13,932/s");
        assert_eq!(rate(0.0), "0/s");
        assert_eq!(rate(f64::NAN), "0/s");
    }

    #[test]
    fn nobody_is_counted_twice() {
        let progress = Progress::new(2);
        for _ in 0..5 {
            progress.step();
        }
        assert_eq!(progress.bar.position(), 2);
    }
}
