//! The search: random walks from a seed, an exhaustive search to a small depth, and the shortening of what is found.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::action::Action;
use crate::log::Log;
use crate::rng::Rng;
use crate::scenario::Scenario;
use crate::state::{Broken, World};

/// What broke, and the steps that lead there.
#[derive(Clone, Debug)]
pub struct Found {
    pub seed: u64,
    pub broken: Broken,
    pub actions: Vec<Action>,
    /// It shows only when everything comes to rest.
    pub at_rest: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub found: Option<Found>,
    pub runs: u64,
    pub steps: u64,
    pub states: u64,
    /// An exhaustive search that looked at everything up to its depth.
    pub complete: bool,
}

/// Runs actions from the beginning, leaving out those that are not possible.
fn replay(scenario: &Scenario, actions: &[Action], at_rest: bool, told: bool) -> (World, Vec<Action>) {
    let mut world = World::new(scenario);
    if told {
        world.log = Log(Some(Vec::new()));
    }
    let mut taken = Vec::with_capacity(actions.len());
    for &action in actions {
        let before = world.log.0.as_ref().map_or(0, Vec::len);
        if world.step(action) {
            taken.push(action);
            if let Some(lines) = &mut world.log.0 {
                lines.insert(before, format!("{:>4}. {action:?}", taken.len()));
            }
        }
        if world.broken.is_some() {
            break;
        }
    }
    if at_rest && world.broken.is_none() {
        world.settle();
    }
    (world, taken)
}

impl Found {
    /// Leaves out every step without which the same still breaks.
    #[must_use]
    pub fn shortened(mut self, scenario: &Scenario) -> Self {
        let mut width = (self.actions.len() / 2).max(1);
        loop {
            let mut at = 0;
            let mut shorter = false;
            while at < self.actions.len() {
                let mut fewer = self.actions.clone();
                fewer.drain(at..(at + width).min(fewer.len()));
                let (world, taken) = replay(scenario, &fewer, self.at_rest, false);
                if world.broken == Some(self.broken) && taken.len() < self.actions.len() {
                    self.actions = taken;
                    shorter = true;
                } else {
                    at += width;
                }
            }
            if width == 1 && !shorter {
                return self;
            }
            width = (width / 2).max(1);
        }
    }

    /// The story, a line a step.
    pub fn story(&self, scenario: &Scenario) -> Vec<String> {
        let (world, _) = replay(scenario, &self.actions, self.at_rest, true);
        world.log.0.unwrap_or_default()
    }
}

/// One run: random steps, then rest.
fn walk(scenario: &Scenario, seed: u64, out: &mut Outcome) {
    let mut rng = Rng::new(seed);
    let mut world = World::new(scenario);
    let mut actions = Vec::with_capacity(scenario.depth);
    let mut tries = scenario.depth * 20;
    while actions.len() < scenario.depth && tries > 0 {
        tries -= 1;
        let action = Action::random(&mut rng, scenario);
        if world.step(action) {
            actions.push(action);
        }
        if world.broken.is_some() {
            break;
        }
    }
    out.runs += 1;
    out.steps += u64::try_from(actions.len()).unwrap_or(0);
    let at_rest = world.broken.is_none();
    if at_rest {
        world.settle();
    }
    if let Some(broken) = world.broken {
        let found = Found {
            seed,
            broken,
            actions,
            at_rest,
        };
        out.found = Some(found.shortened(scenario));
    }
}

/// Random walks with the seeds from `seed` on, until something breaks or so many steps are done.
pub fn walks(scenario: &Scenario, seed: u64, steps: u64) -> Outcome {
    let mut out = Outcome::default();
    let mut at = seed;
    while out.steps < steps && out.found.is_none() {
        walk(scenario, at, &mut out);
        at = at.wrapping_add(1);
    }
    out
}

fn digest(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}

/// Everything that can happen in `depth` steps, each state once, at most `states` of them. What comes to rest is checked
/// from every new state.
pub fn exhaust(scenario: &Scenario, depth: usize, states: u64) -> Outcome {
    let mut out = Outcome::default();
    let actions = Action::every(scenario);
    let mut seen = HashSet::new();
    let mut level = vec![(World::new(scenario), Vec::new())];
    for _ in 0..depth {
        let mut next = Vec::new();
        for (world, path) in &level {
            for &action in &actions {
                let mut after = world.clone();
                if !after.step(action) || (after.broken.is_none() && !seen.insert(digest(&after))) {
                    continue;
                }
                out.steps += 1;
                out.states += 1;
                let mut rest = after.clone();
                let at_rest = rest.broken.is_none();
                if at_rest {
                    rest.settle();
                }
                let mut path: Vec<Action> = path.clone();
                path.push(action);
                if let Some(broken) = rest.broken {
                    let found = Found {
                        seed: 0,
                        broken,
                        actions: path,
                        at_rest,
                    };
                    out.found = Some(found.shortened(scenario));
                    return out;
                }
                if out.states >= states {
                    return out;
                }
                next.push((after, path));
            }
        }
        level = next;
    }
    out.complete = true;
    out
}
