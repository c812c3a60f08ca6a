//! What an attachment holds.

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Response, StatusCode, Url};

use super::client::{Client, read, unwanted};
use super::shapes::AttachmentShape;
use super::{failed, refused};
use crate::Result;

/// Confluence leads to a server of media, which may lead on.
const REDIRECTS_MAX: usize = 3;

impl Client {
    /// Downloads a version of an attachment, whole: an answer of another size is none.
    pub async fn download(&self, page: &str, attached: &AttachmentShape) -> Result<Bytes> {
        let (id, bytes_max) = (&*attached.id, self.options.limits.attachment_bytes_max);
        if attached.file_size.is_some_and(|size| size > bytes_max) {
            return Err(refused(format!("{:?} has more than {bytes_max} bytes", attached.title)));
        }
        let path = ["rest", "api", "content", page, "child", "attachment", id, "download"];
        let version = attached.version.number.to_string();
        let mut url = self.address(&path, &[("version", &version)])?;
        for _ in 0..=REDIRECTS_MAX {
            let answer = self.send(&url, "*/*", self.options.download_timeout).await?;
            let status = answer.status();
            if status.is_redirection() {
                url = self.led_to(&url, &answer)?;
                continue;
            }
            if status == StatusCode::NOT_FOUND {
                return Err(failed(format!("{:?} was just changed or removed", attached.title)));
            }
            if !status.is_success() {
                return Err(unwanted(status));
            }
            check_kind(attached, &answer)?;
            let bytes = read(answer, bytes_max).await?;
            if attached.file_size.is_some_and(|size| size != bytes.len() as u64) {
                return Err(failed(format!(
                    "what came for {:?} is not as long as it should be",
                    attached.title
                )));
            }
            return Ok(bytes.into());
        }
        Err(refused(format!("{:?} is not there after {REDIRECTS_MAX} redirects", attached.title)))
    }

    /// Where an answer leads to: by TLS, unless nothing is secret here.
    fn led_to(&self, from: &Url, answer: &Response) -> Result<Url> {
        let place = answer.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let url = place.and_then(|place| from.join(place).ok());
        let url =
            url.ok_or_else(|| failed("Confluence leads elsewhere, and does not say where"))?;
        match (self.base.scheme(), url.scheme()) {
            (_, "https") | ("http", "http") => Ok(url),
            _ => Err(refused("Confluence leads to a place that is not reached by https")),
        }
    }
}

/// Refuses a login page in the place of a file.
fn check_kind(attached: &AttachmentShape, answer: &Response) -> Result<()> {
    let is_html = |kind: &str| kind.to_ascii_lowercase().starts_with("text/html");
    let came = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let html = came.is_some_and(is_html);
    if html && !attached.media_type.as_deref().is_some_and(is_html) {
        return Err(refused(format!(
            "a page of HTML came for {:?}, perhaps a login page",
            attached.title
        )));
    }
    Ok(())
}
