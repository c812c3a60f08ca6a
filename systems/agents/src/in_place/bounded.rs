//! A map that forgets what was put into it first.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

#[derive(Debug)]
pub(super) struct Bounded<K, V> {
    /// Each with its turn and its weight.
    held: HashMap<K, (u64, usize, V)>,
    turns: BTreeMap<u64, K>,
    turn: u64,
    weight: usize,
    count_max: usize,
    weight_max: usize,
}

impl<K: Hash + Eq + Clone, V> Bounded<K, V> {
    pub fn new(count_max: usize, weight_max: usize) -> Self {
        let (held, turns) = (HashMap::new(), BTreeMap::new());
        Self { held, turns, turn: 0, weight: 0, count_max, weight_max }
    }

    /// Puts one in, and forgets as many of the oldest as that takes. One that is too heavy alone is not kept.
    pub fn insert(&mut self, key: K, value: V, weight: usize) {
        self.remove(&key);
        if weight > self.weight_max {
            return;
        }
        while self.held.len() >= self.count_max || self.weight + weight > self.weight_max {
            let Some((_, oldest)) = self.turns.pop_first() else { break };
            if let Some((_, weight, _)) = self.held.remove(&oldest) {
                self.weight -= weight;
            }
        }
        self.turn += 1;
        self.weight += weight;
        self.turns.insert(self.turn, key.clone());
        self.held.insert(key, (self.turn, weight, value));
    }

    pub fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.held.get(key).map(|(_, _, value)| value)
    }

    /// All of them, in any order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.held.iter().map(|(key, (_, _, value))| (key, value))
    }

    pub fn remove<Q>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let (turn, weight, value) = self.held.remove(key)?;
        self.turns.remove(&turn);
        self.weight -= weight;
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten_by_number_and_by_weight() {
        let mut held: Bounded<&str, u8> = Bounded::new(3, 10);
        held.insert("a", 1, 1);
        held.insert("b", 2, 1);
        held.insert("a", 3, 1);
        held.insert("c", 4, 1);
        held.insert("d", 5, 1);
        assert_eq!((held.get("b"), held.get("a"), held.get("d")), (None, Some(&3), Some(&5)));
        held.insert("e", 6, 9);
        assert_eq!((held.get("c"), held.get("d"), held.get("e")), (None, Some(&5), Some(&6)));
        held.insert("f", 7, 11);
        assert_eq!((held.get("f"), held.iter().count()), (None, 2));
        assert_eq!((held.remove("e"), held.remove("e")), (Some(6), None));
        assert_eq!((held.weight, held.turns.len()), (1, 1));
    }
}
