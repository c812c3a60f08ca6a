//! Decimal numbers, as exactly as DynamoDB holds them.

/// The most digits that DynamoDB keeps, from the first to the last that is not zero.
const DIGITS_MAX: usize = 38;
/// The powers of ten of the first digit: from 1E-130 to 9.99…E+125.
const MAGNITUDE: std::ops::RangeInclusive<i64> = -130..=125;

/// Why a number cannot be held exactly; none if it can.
pub(crate) fn refusal(text: &str) -> Option<String> {
    let Some(Decimal { digits, power, .. }) = Decimal::parse(text) else {
        return Some(format!("{text:?} is no number"));
    };
    if digits.is_empty() {
        return None;
    }
    if digits.len() > DIGITS_MAX {
        let count = digits.len();
        return Some(format!("a number of {count} digits; DynamoDB holds {DIGITS_MAX}"));
    }
    let magnitude = power.saturating_add(digits.len() as i64 - 1);
    let is_held = MAGNITUDE.contains(&magnitude);
    (!is_held).then(|| {
        format!("a number of the magnitude 1e{magnitude}; DynamoDB holds 1e-130 to 9.99e125")
    })
}

/// A whole number of 64 bits, however it is written.
pub(crate) fn integer(text: &str) -> Option<i64> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let Decimal { is_negative, digits, power } = Decimal::parse(text)?;
    let zeros = usize::try_from(power).ok().filter(|zeros| *zeros < 20)?;
    let sign = if is_negative { "-" } else { "" };
    match digits.is_empty() {
        true => Some(0),
        false => format!("{sign}{digits}{}", "0".repeat(zeros)).parse().ok(),
    }
}

/// Digits without zeros at either end, times a power of ten. Zero has no digits.
struct Decimal {
    is_negative: bool,
    digits: String,
    power: i64,
}

impl Decimal {
    fn parse(text: &str) -> Option<Self> {
        let (is_negative, plain) = match text.strip_prefix('-') {
            Some(plain) => (true, plain),
            None => (false, text),
        };
        let (decimal, power) = match plain.split_once(['e', 'E']) {
            // An exponent that fits no number is that of a number that is far out of range, either way.
            Some((decimal, power)) => (decimal, exponent(power)?),
            None => (plain, 0),
        };
        let (whole, fraction) = decimal.split_once('.').unwrap_or((decimal, ""));
        let all = format!("{whole}{fraction}");
        if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let leading = all.trim_start_matches('0');
        let digits = leading.trim_end_matches('0');
        if digits.is_empty() {
            return Some(Self { is_negative, digits: String::new(), power: 0 });
        }
        let zeros = leading.len() - digits.len();
        let power = power.saturating_sub(fraction.len() as i64).saturating_add(zeros as i64);
        Some(Self { is_negative, digits: digits.to_owned(), power })
    }
}

fn exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let most = i64::MAX / 4;
    let size = digits.parse().unwrap_or(most).min(most);
    Some(if text.starts_with('-') { -size } else { size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_held_up_to_both_limits() {
        let nines = "9".repeat(38);
        for held in [
            "0",
            "-0",
            "0.0",
            "0e999",
            "0e99999999999999999999",
            "1",
            "-1.50",
            "1e125",
            "9.99e125",
            "1e-130",
            "-1E-130",
            "12345678901234567890123456789012345678",
            "1234567890123456789012345678901234567800",
            "0.00012345678901234567890123456789012345678",
            &nines,
            &format!("{nines}e88"),
        ] {
            assert_eq!(refusal(held), None, "{held}");
        }
        for (refused, says) in [
            ("123456789012345678901234567890123456789", "39 digits"),
            ("1.00000000000000000000000000000000000001", "39 digits"),
            ("1e126", "1e126"),
            ("10e125", "1e126"),
            ("1e-131", "1e-131"),
            ("1e99999999999999999999", "magnitude"),
            ("-1e-99999999999999999999", "magnitude"),
        ] {
            assert!(refusal(refused).is_some_and(|said| said.contains(says)), "{refused}");
        }
    }

    #[test]
    fn whole_numbers_are_read_in_every_form() {
        for (text, number) in [
            ("0", 0),
            ("-7", -7),
            ("1E+2", 100),
            ("1.5e1", 15),
            ("-0", 0),
            ("0.0", 0),
            ("9223372036854775807", i64::MAX),
            ("-9.223372036854775808E+18", i64::MIN),
        ] {
            assert_eq!(integer(text), Some(number), "{text}");
        }
        for text in ["", "x", "1.5", "9223372036854775808", "1e30", "1e-1", "-", "."] {
            assert_eq!(integer(text), None, "{text}");
        }
    }
}
