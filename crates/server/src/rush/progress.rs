//! A bar on a terminal; silent anywhere else.

use indicatif::{ProgressBar, ProgressStyle};

/// Draws on standard error, and only if that is a terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    pub(crate) fn new(buyers: u64) -> Self {
        let bar = ProgressBar::new(buyers);
        if let Ok(style) =
            ProgressStyle::with_template("{bar:32} {human_pos}/{human_len} buyers {per_sec} {elapsed} {msg}")
        {
            bar.set_style(style.progress_chars("##-"));
        }
        Self { bar }
    }

    pub(crate) fn step(&self) {
        self.bar.inc(1);
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
