use std::time::Duration;

use reqwest::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};

/// When a server wants the next attempt: a number of seconds, or a date, which is read by the
/// server's own clock (its `Date` header), so that no clock needs to be right.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok().map(str::trim);
    let asked = text(RETRY_AFTER)?;
    if let Ok(seconds) = asked.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let then = httpdate::parse_http_date(asked).ok()?;
    let now = httpdate::parse_http_date(text(DATE)?).ok()?;
    // A moment that has passed is now.
    Some(then.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(retry: &str, date: Option<&str>) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, retry.parse().unwrap());
        if let Some(date) = date {
            headers.insert(DATE, date.parse().unwrap());
        }
        retry_after(&headers)
    }

    #[test]
    fn seconds_and_dates_are_read() {
        const NOON: &str = "Fri, 02 Jan 2026 12:00:00 GMT";
        const LATER: &str = "Fri, 02 Jan 2026 12:00:42 GMT";
        assert_eq!(asked("3", None), Some(Duration::from_secs(3)));
        assert_eq!(asked(LATER, Some(NOON)), Some(Duration::from_secs(42)));
        assert_eq!(asked(NOON, Some(LATER)), Some(Duration::ZERO));
        assert_eq!(asked(LATER, None), None);
        for odd in ["", "soon", "-3", "1e9", "99999999999999999999"] {
            assert_eq!(asked(odd, Some(NOON)), None, "{odd}");
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }
}
