use std::time::Duration;

use jiff::Timestamp;
use keyward_engine::Expiry;
use proptest::prelude::*;

#[test]
fn an_end_beyond_the_calendar_is_the_last_moment() {
    let now = Timestamp::from_second(1_767_225_600).unwrap();
    let end = Expiry::After(Duration::MAX).moment(now);
    assert!(end > Timestamp::from_second(200_000_000_000).unwrap(), "{end}");
    assert_eq!(Expiry::At(Timestamp::MIN).moment(now), Timestamp::MIN);
}

proptest! {
    #[test]
    fn an_end_is_rounded_up_to_a_millisecond_and_never_down(
        now in -1_000_000_000_000_000_000_i128..3_000_000_000_000_000_000,
        ttl in 0_u64..10_000_000_000_000,
    ) {
        let now = Timestamp::from_nanosecond(now).unwrap();
        let ttl = Duration::from_nanos(ttl);
        let exact = now.as_nanosecond() + ttl.as_nanos() as i128;
        let end = Expiry::After(ttl).moment(now).as_nanosecond();
        prop_assert_eq!(end.rem_euclid(1_000_000), 0);
        prop_assert!(end >= exact && end - exact < 1_000_000);
        let again = Timestamp::from_nanosecond(end).unwrap();
        prop_assert_eq!(Expiry::At(again).moment(now), again, "a rounded end stays");
    }
}
