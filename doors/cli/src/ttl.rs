//! How long an entry lives, as a person writes it.

use std::time::Duration;

/// Reads a time to live: whole numbers with units, such as `90s`, `15m`, `2h`, `7d` or `1h30m`.
/// Nothing at all is not a time to live.
pub fn parse(text: &str) -> Result<Duration, String> {
    const FORM: &str = "write a number and a unit (ms, s, m, h, d), such as 90s, 15m, 2h or 7d";
    let mut millis: u64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or(FORM)?;
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| c.is_ascii_digit());
        let (unit, after) = after.split_at(letters.unwrap_or(after.len()));
        let unit = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(FORM.to_owned()),
        };
        if number.is_empty() {
            return Err(FORM.to_owned());
        }
        let part = number.parse::<u64>().ok().and_then(|n| n.checked_mul(unit));
        millis = part
            .and_then(|part| millis.checked_add(part))
            .ok_or("that is longer than can be counted")?;
        rest = after;
    }
    if millis == 0 {
        return Err(format!("an entry lives longer than no time; {FORM}"));
    }
    Ok(Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_units_add_up() {
        for (text, millis) in [
            ("250ms", 250),
            ("90s", 90_000),
            ("15m", 900_000),
            ("2h", 7_200_000),
            ("7d", 604_800_000),
            ("1h30m", 5_400_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "0s",
            "90",
            "s",
            "1y",
            "-5s",
            "1.5h",
            "5 s",
            "1h30",
            "١s",
            "99999999999999999999d",
            "300000000000d",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
