//! Which moments a schedule has.

use jiff::Timestamp;
use keyward_registry::Schedule;

fn at(moment: &str) -> Timestamp {
    moment.parse().unwrap()
}

/// The first moments after one, in the local time of the schedule's zone.
#[track_caller]
fn after(cron: &str, zone: &str, moment: &str, expected: &[&str]) {
    let schedule = Schedule::new(cron, zone).unwrap();
    let mut moment = at(moment);
    for wanted in expected {
        moment = schedule.next(moment).unwrap();
        assert_eq!(moment, at(wanted), "{schedule}: {moment} instead of {wanted}");
    }
}

#[test]
fn a_time_of_day_is_that_of_the_time_zone() {
    after("0 16 * * *", "UTC", "2026-01-01T16:00:00Z", &["2026-01-02T16:00Z"]);
    after("0 16 * * *", "UTC", "2026-01-01T15:59:59.999Z", &["2026-01-01T16:00Z"]);
    after("0 16 * * *", "Asia/Seoul", "2026-01-01T00:00Z", &["2026-01-01T16:00+09"]);
    after(
        "0 9 * * MON-FRI",
        "America/New_York",
        "2026-01-02T20:00Z",
        &["2026-01-05T09:00-05", "2026-01-06T09:00-05"],
    );
    after("30 6 29 2 *", "Europe/Berlin", "2025-01-01T00:00Z", &["2028-02-29T06:30+01"]);
}

#[test]
fn a_time_that_the_clock_leaves_out_is_due_when_it_is_changed() {
    // In Berlin 02:00 of 29 March 2026 is followed by 03:00, in New York that of 8 March.
    after(
        "30 2 * * *",
        "Europe/Berlin",
        "2026-03-27T12:00Z",
        &["2026-03-28T02:30+01", "2026-03-29T03:00+02", "2026-03-30T02:30+02"],
    );
    after(
        "0,30 2,3 * * *",
        "America/New_York",
        "2026-03-07T12:00Z",
        &["2026-03-08T03:00-04", "2026-03-08T03:30-04", "2026-03-09T02:00-04"],
    );
    // Samoa left out a whole day.
    after(
        "0 12 * * *",
        "Pacific/Apia",
        "2011-12-29T13:00-10",
        &["2011-12-31T00:00+14", "2011-12-31T12:00+14"],
    );
}

#[test]
fn a_time_that_comes_twice_is_due_once() {
    after(
        "30 2 * * *",
        "Europe/Berlin",
        "2026-10-24T12:00Z",
        &["2026-10-25T02:30+02", "2026-10-26T02:30+01"],
    );
    // Also for a server that starts between the two, or right after.
    after("30 2 * * *", "Europe/Berlin", "2026-10-25T02:45+02", &["2026-10-26T02:30+01"]);
    after("*/10 2 * * *", "Europe/Berlin", "2026-10-25T02:05+01", &["2026-10-26T02:00+01"]);
}

#[test]
fn what_runs_all_day_goes_on_through_both_changes() {
    after(
        "*/30 * * * *",
        "Europe/Berlin",
        "2026-03-29T01:00+01",
        &["2026-03-29T01:30+01", "2026-03-29T03:00+02", "2026-03-29T03:30+02"],
    );
    after(
        "*/30 * * * *",
        "Europe/Berlin",
        "2026-10-25T02:00+02",
        &[
            "2026-10-25T02:30+02",
            "2026-10-25T02:00+01",
            "2026-10-25T02:30+01",
            "2026-10-25T03:00+01",
        ],
    );
    // Lord Howe Island changes by half an hour.
    after(
        "*/15 * * * *",
        "Australia/Lord_Howe",
        "2026-10-04T01:30+10:30",
        &["2026-10-04T01:45+10:30", "2026-10-04T02:30+11", "2026-10-04T02:45+11"],
    );
}

#[test]
fn moments_ascend_whatever_the_clock_does() {
    for cron in ["17 * * * *", "*/20 2-3 * * *", "5 1,2,3 * * *", "* 2 * * *", "0 */2 * * SUN"] {
        for zone in ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"] {
            let schedule = Schedule::new(cron, zone).unwrap();
            let mut last = at("2026-01-01T00:00Z");
            for _ in 0..5_000 {
                let next = schedule.next(last).unwrap();
                assert!(next > last, "{schedule} after {last}");
                // No moment lies between, from wherever one looks.
                let between = last + (next.duration_since(last) / 2);
                assert_eq!(schedule.next(between), Some(next), "{schedule} after {between}");
                last = next;
            }
        }
    }
}

#[test]
fn something_was_missed_if_a_moment_lies_between() {
    let schedule = Schedule::new("0 16 * * *", "UTC").unwrap();
    let missed = |last, now| schedule.missed(at(last), at(now));
    assert!(!missed("2026-01-01T16:00Z", "2026-01-02T15:59:59Z"));
    assert!(missed("2026-01-01T16:00Z", "2026-01-02T16:00Z"));
    assert!(missed("2026-01-01T16:00Z", "2027-01-01T00:00Z"));
    assert!(!missed("2026-01-02T16:00Z", "2026-01-01T16:00Z"));
}

#[test]
fn what_is_no_schedule_is_refused_with_what_to_write() {
    for (cron, zone, reason) in [
        ("", "UTC", "it has 0 fields, not five"),
        ("0 16 * *", "UTC", "it has 4 fields, not five"),
        ("0 16 * * * Europe/Berlin", "UTC", "it has 6 fields, not five"),
        ("60 16 * * *", "UTC", "0..=59"),
        ("0 16 30 2 *", "UTC", "it fits no moment of four years"),
        ("0 16 L * *", "UTC", "name the days"),
        ("0 16 * * 5L", "UTC", "name the days"),
        ("@daily", "UTC", "it has 1 fields, not five"),
        ("a b c d e", "UTC", "is not valid"),
    ] {
        let told = Schedule::new(cron, zone).unwrap_err().to_string();
        assert!(told.contains(reason), "{told}");
        assert!(told.ends_with(r#"as in "0 16 * * *""#), "{told}");
        assert!(!told.contains('\n'), "{told}");
    }
    for zone in ["", "Mars/Olympus", "../../etc/passwd", "CEST+1", &"x".repeat(100_000)] {
        let told = Schedule::new("0 16 * * *", zone).unwrap_err().to_string();
        assert!(told.contains("there is no time zone"), "{told}");
        assert!(told.contains("Europe/Berlin") && told.len() < 500, "{told}");
    }
    assert!(Schedule::new("0 16 * JUL,DEC *", "utc").is_ok());
}

#[test]
fn years_that_cannot_be_added_to_have_no_moments() {
    let schedule = Schedule::new("0 16 * * *", "UTC").unwrap();
    assert_eq!(schedule.next(Timestamp::MAX), None);
    assert!(!schedule.missed(Timestamp::MAX, Timestamp::MAX));
}
