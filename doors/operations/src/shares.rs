//! Shares of what all callers have together: places, slots, bytes. One holder gets only a part.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::identity::Identity;

/// The part that one holder may have when nothing else is said: a quarter.
const PART: usize = 4;

/// Units that are held for a while, such as open watches, request slots or bytes of bodies: so many in
/// all, and a part of them, at least one, for each holder. The local user, with whom nobody shares, may
/// hold all. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Shares(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    all_max: usize,
    one_max: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    all: usize,
    by: HashMap<Holder, usize>,
}

/// Who holds a place: a credential, or the network address of somebody without one. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Holder(Arc<Kind>);

#[derive(Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// The one user of a server without credentials.
    Local,
    Credential {
        tenant: String,
        credential: String,
    },
    Network(IpAddr),
}

impl Holder {
    /// A caller with a credential.
    pub fn of(who: &Identity) -> Self {
        let (tenant, credential) = (who.tenant().name(), who.credential());
        Self(Arc::new(match who.is_local() {
            true => Kind::Local,
            false => {
                Kind::Credential { tenant: tenant.to_owned(), credential: credential.to_owned() }
            }
        }))
    }

    /// The network that an address belongs to: whoever has one address of it has all.
    pub fn at(address: IpAddr) -> Self {
        Self(Arc::new(Kind::Network(network(address))))
    }
}

/// The network that an address belongs to: whoever has one address of version 6 has the 64 bits below it.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) => IpAddr::V6((six.to_bits() & !u128::from(u64::MAX)).into()),
        four => four,
    }
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// All are held.
    All,
    /// The holder has all that one may have.
    Part,
}

/// Units that are held until this is dropped.
#[derive(Debug)]
pub struct Place {
    shares: Arc<Inner>,
    holder: Holder,
    units: usize,
}

impl Shares {
    /// So many in all, a quarter of them for each holder.
    pub fn new(all_max: usize) -> Self {
        Self::with_part(all_max, all_max / PART)
    }

    /// So many in all, half of them for each holder.
    pub fn halved(all_max: usize) -> Self {
        Self::with_part(all_max, all_max / 2)
    }

    /// So many in all, and for each holder.
    pub fn with_part(all_max: usize, one_max: usize) -> Self {
        let held = Mutex::default();
        Self(Arc::new(Inner { all_max, one_max: one_max.max(1), held }))
    }

    /// Takes one place, in one step: of two that come for the last one, one gets it.
    pub fn take(&self, holder: &Holder) -> Result<Place, Full> {
        let mut place = self.nothing(holder);
        place.grow(1)?;
        Ok(place)
    }

    /// Takes several units at once. More than one holder may have count as all that it may have: whoever
    /// holds nothing is given anything.
    pub fn take_some(&self, holder: &Holder, units: usize) -> Result<Place, Full> {
        let mut place = self.nothing(holder);
        place.grow(units.min(self.0.one_max(holder)))?;
        Ok(place)
    }

    /// Whether the holder could get one more unit.
    pub fn check(&self, holder: &Holder) -> Result<(), Full> {
        let held = self.0.held();
        if held.all >= self.0.all_max {
            return Err(Full::All);
        }
        let own = held.by.get(holder).copied().unwrap_or_default();
        if own < self.0.one_max(holder) { Ok(()) } else { Err(Full::Part) }
    }

    /// Units that are there already, and so are held also beyond the bounds: whoever comes next waits for
    /// them to be given back.
    pub fn hold(&self, holder: &Holder, units: usize) -> Place {
        let mut held = self.0.held();
        held.all = held.all.saturating_add(units);
        let own = held.by.entry(holder.clone()).or_default();
        *own = own.saturating_add(units);
        drop(held);
        Place { shares: self.0.clone(), holder: holder.clone(), units }
    }

    /// A place of no units yet.
    pub fn nothing(&self, holder: &Holder) -> Place {
        Place { shares: self.0.clone(), holder: holder.clone(), units: 0 }
    }
}

impl Inner {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn one_max(&self, holder: &Holder) -> usize {
        match *holder.0 {
            Kind::Local => self.all_max,
            Kind::Credential { .. } | Kind::Network(_) => self.one_max,
        }
    }
}

impl Place {
    /// Who holds it.
    pub fn holder(&self) -> &Holder {
        &self.holder
    }

    /// Takes more units; all of them, or none.
    pub fn grow(&mut self, units: usize) -> Result<(), Full> {
        if units == 0 {
            return Ok(());
        }
        let mut held = self.shares.held();
        let fits = |held: usize, max: usize| held.checked_add(units).filter(|sum| *sum <= max);
        let all = fits(held.all, self.shares.all_max).ok_or(Full::All)?;
        let own = held.by.get(&self.holder).copied().unwrap_or_default();
        let own = fits(own, self.shares.one_max(&self.holder)).ok_or(Full::Part)?;
        held.by.insert(self.holder.clone(), own);
        held.all = all;
        self.units += units;
        Ok(())
    }

    /// Gives back all but so many units.
    pub fn shrink_to(&mut self, units: usize) {
        let back = self.units.saturating_sub(units);
        if back == 0 {
            return;
        }
        self.units -= back;
        let mut held = self.shares.held();
        held.all -= back;
        if let Some(own) = held.by.get_mut(&self.holder) {
            *own -= back;
            if *own == 0 {
                held.by.remove(&self.holder);
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> Holder {
        Holder::at(address.parse().unwrap())
    }

    #[test]
    fn one_holder_gets_its_part_and_leaves_the_rest_to_others() {
        let shares = Shares::halved(4);
        let (one, other) = (at("10.0.0.1"), at("10.0.0.2"));
        let held = (shares.take(&one).unwrap(), shares.take(&one).unwrap());
        assert_eq!(shares.take(&one).unwrap_err(), Full::Part);
        let others = (shares.take(&other).unwrap(), shares.take(&other).unwrap());
        assert_eq!(shares.take(&at("10.0.0.3")).unwrap_err(), Full::All);
        drop(held);
        shares.take(&one).unwrap();
        drop(others);
        assert!(shares.0.held().by.is_empty(), "who holds nothing is forgotten");
    }

    #[test]
    fn the_local_user_may_hold_everything() {
        let shares = Shares::new(8);
        let local = Holder::of(&Identity::local());
        let all: Vec<_> = (0..8).map(|_| shares.take(&local).unwrap()).collect();
        assert_eq!(shares.take(&local).unwrap_err(), Full::All);
        drop(all);
        assert_eq!(shares.0.held().all, 0);
    }

    #[test]
    fn units_are_taken_as_they_come_and_given_back_in_part() {
        let shares = Shares::halved(1_000);
        let mut body = shares.nothing(&at("10.0.0.1"));
        body.grow(400).unwrap();
        assert_eq!(body.grow(101), Err(Full::Part));
        body.grow(100).unwrap();
        assert_eq!(body.grow(usize::MAX), Err(Full::All));
        body.shrink_to(50);
        body.shrink_to(900);
        assert_eq!(shares.0.held().all, 50);
        body.grow(450).unwrap();
        drop(body);
        assert_eq!(shares.0.held().all, 0);
    }

    #[test]
    fn whoever_holds_nothing_is_given_anything() {
        let shares = Shares::new(100);
        let (one, other) = (at("10.0.0.1"), at("10.0.0.2"));
        let held = shares.take_some(&one, 20).unwrap();
        assert_eq!(shares.take_some(&one, 10).unwrap_err(), Full::Part);
        let all = shares.take_some(&other, 1_000).unwrap();
        assert_eq!(all.units, 25);
        drop(held);
        let _again = shares.take_some(&one, 25).unwrap();
        assert_eq!(shares.take_some(&one, 1).unwrap_err(), Full::Part);
    }

    #[test]
    fn what_is_held_beyond_the_bounds_keeps_the_next_one_waiting() {
        let shares = Shares::halved(100);
        let (one, other) = (at("10.0.0.1"), at("10.0.0.2"));
        assert_eq!(shares.check(&one), Ok(()));
        let large = shares.hold(&one, 80);
        assert_eq!((shares.check(&one), shares.check(&other)), (Err(Full::Part), Ok(())));
        let larger = shares.hold(&other, 80);
        assert_eq!(shares.check(&at("10.0.0.3")), Err(Full::All));
        drop((large, larger));
        assert!(shares.0.held().by.is_empty() && shares.0.held().all == 0);
    }

    #[test]
    fn addresses_of_one_network_share_one_part() {
        let shares = Shares::with_part(10, 1);
        let _held = shares.take(&at("2001:db8::1")).unwrap();
        assert_eq!(shares.take(&at("2001:db8::2")).unwrap_err(), Full::Part);
        shares.take(&at("2001:db8:0:1::1")).unwrap();
    }
}
