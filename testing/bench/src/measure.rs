//! Comparing two things on a noisy machine.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::Result;

/// Which of the two is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// What the case is about.
    Measured,
    /// What it is compared with.
    Reference,
}

/// The outcome of a comparison. Everything is a median over the rounds, except the spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Measured by reference, of each round.
    pub ratio: f64,
    /// The smallest and the largest ratio of a round.
    pub spread: (f64, f64),
    /// What was measured.
    pub measured: f64,
    /// What it is compared with.
    pub reference: f64,
}

/// Runs both sides in turn for some rounds. A round is one short slice of each side, so that what
/// slows the machine down for a while slows both; which side goes first changes with every round.
///
/// `slice` gets the side and the number of the round and returns what it measured. A first round,
/// number zero, warms up and is not counted.
pub fn alternate(
    rounds: usize,
    mut slice: impl FnMut(Side, usize) -> Result<f64>,
) -> Result<Comparison> {
    let mut pairs = Vec::with_capacity(rounds);
    for round in 0..=rounds {
        let pair = if round % 2 == 0 {
            let measured = slice(Side::Measured, round)?;
            (measured, slice(Side::Reference, round)?)
        } else {
            let reference = slice(Side::Reference, round)?;
            (slice(Side::Measured, round)?, reference)
        };
        if round > 0 {
            pairs.push(pair);
        }
    }
    Ok(Comparison::of(&pairs))
}

impl Comparison {
    /// Summarises the rounds' pairs of measured and reference.
    pub fn of(pairs: &[(f64, f64)]) -> Self {
        let ratios: Vec<f64> =
            pairs.iter().map(|(measured, reference)| measured / reference).collect();
        Self {
            ratio: median(ratios.iter().copied()),
            spread: (
                ratios.iter().copied().fold(f64::INFINITY, f64::min),
                ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            ),
            measured: median(pairs.iter().map(|pair| pair.0)),
            reference: median(pairs.iter().map(|pair| pair.1)),
        }
    }
}

/// The middle value, or the mean of the two in the middle; of nothing, not a number.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// How many of `operations` were done in a second since `start`.
pub fn per_second(operations: usize, start: Instant) -> f64 {
    operations as f64 / start.elapsed().as_secs_f64()
}

/// How many nanoseconds each of `operations` took since `start`.
pub fn nanoseconds_each(operations: usize, start: Instant) -> f64 {
    start.elapsed().as_nanos() as f64 / operations as f64
}

/// How many times a second some clients get something done, each with numbers of its own.
pub async fn rate<F: Future<Output = Result<()>> + Send + 'static>(
    clients: u64,
    time: Duration,
    first: u64,
    act: impl Fn(u64) -> F + Send + Sync + 'static,
) -> Result<f64> {
    let act = Arc::new(act);
    let start = Instant::now();
    let deadline = start + time;
    let tasks: Vec<_> = (0..clients)
        .map(|client| {
            let act = act.clone();
            tokio::spawn(async move {
                let mut done = 0;
                while Instant::now() < deadline {
                    act(first + client * 10_000 + done).await?;
                    done += 1;
                }
                Ok::<u64, Box<dyn Error + Send + Sync>>(done)
            })
        })
        .collect();
    let mut done = 0;
    for task in tasks {
        done += task.await??;
    }
    Ok(done as f64 / start.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_value_or_the_mean_of_two() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.5);
        assert_eq!(median([7.0].into_iter()), 7.0);
        assert!(median([].into_iter()).is_nan());
    }

    #[test]
    fn the_ratio_is_the_median_of_the_rounds_and_not_of_the_sums() {
        // The second round was disturbed: both sides were slow.
        let comparison = Comparison::of(&[(80.0, 100.0), (4.0, 5.0), (90.0, 100.0)]);
        assert_eq!(comparison.ratio, 0.8);
        assert_eq!(comparison.spread, (0.8, 0.9));
        assert_eq!((comparison.measured, comparison.reference), (80.0, 100.0));
    }

    #[test]
    fn sides_alternate_and_the_first_round_is_not_counted() {
        let mut order = Vec::new();
        let comparison = alternate(2, |side, round| {
            order.push((side, round));
            Ok(if round == 0 { 1e9 } else { 5.0 })
        })
        .unwrap();
        assert_eq!(
            order,
            [
                (Side::Measured, 0),
                (Side::Reference, 0),
                (Side::Reference, 1),
                (Side::Measured, 1),
                (Side::Measured, 2),
                (Side::Reference, 2),
            ]
        );
        assert_eq!((comparison.ratio, comparison.measured), (1.0, 5.0));
    }
}
