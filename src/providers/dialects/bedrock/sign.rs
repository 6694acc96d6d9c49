//! Amazon's signature, version 4, for requests without a query.
//!
//! The signature proves knowledge of the secret key and covers method, path, the named headers
//! and the body; it is valid for a few minutes around its date.

use jiff::Timestamp;
use reqwest::Url;
use ring::{digest, hmac};

use super::AwsCredentials;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const SERVICE: &str = "bedrock";

/// The headers that a POST of `body` as JSON needs, `authorization` among them.
pub(super) fn headers(
    credentials: &AwsCredentials,
    region: &str,
    url: &Url,
    body: &[u8],
    now: Timestamp,
) -> Vec<(&'static str, String)> {
    let host = match url.port() {
        Some(port) => format!("{}:{port}", url.host_str().unwrap_or_default()),
        None => url.host_str().unwrap_or_default().to_owned(),
    };
    let date = date(now);
    let mut signed =
        vec![("content-type", "application/json".to_owned()), ("host", host), ("x-amz-date", date.clone())];
    if let Some(token) = &credentials.session_token {
        signed.push(("x-amz-security-token", token.expose().trim().to_owned()));
    }
    let scope = Scope { region, service: SERVICE, date: &date };
    let signature = authorization(credentials, scope, "POST", url.path(), &signed, body);
    // The connection adds its own host, and the content type is set already.
    signed.retain(|(name, _)| name.starts_with("x-amz-"));
    signed.push(("authorization", signature));
    signed
}

/// Everything but what the vendors of urls leave alone is written as `%XX`.
pub(super) fn percent_encoded(text: &str) -> String {
    encoded(text, |_| false)
}

/// When and for what a signature is good.
#[derive(Debug, Clone, Copy)]
struct Scope<'a> {
    region: &'a str,
    service: &'a str,
    /// `20150830T123600Z`
    date: &'a str,
}

fn date(now: Timestamp) -> String {
    now.strftime("%Y%m%dT%H%M%SZ").to_string()
}

/// `path` is as it goes over the wire; this service wants it encoded once more. `headers` have
/// names in lower case and are signed all.
fn authorization(
    credentials: &AwsCredentials,
    scope: Scope<'_>,
    method: &str,
    path: &str,
    headers: &[(&str, String)],
    body: &[u8],
) -> String {
    let mut headers: Vec<(&str, String)> =
        headers.iter().map(|(name, value)| (*name, value.split_whitespace().collect::<Vec<_>>().join(" "))).collect();
    headers.sort_by(|a, b| a.0.cmp(b.0));
    let names = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
    let lines: String = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let path = encoded(if path.is_empty() { "/" } else { path }, |byte| byte == b'/');
    let request = format!("{method}\n{path}\n\n{lines}\n{names}\n{}", sha256(body));

    let Scope { region, service, date } = scope;
    let day = date.get(..8).unwrap_or(date);
    let area = format!("{day}/{region}/{service}/aws4_request");
    let text = format!("{ALGORITHM}\n{date}\n{area}\n{}", sha256(request.as_bytes()));
    let secret = format!("AWS4{}", credentials.secret_access_key.expose().trim());
    let key = [day, region, service, "aws4_request"]
        .iter()
        .fold(secret.into_bytes(), |key, part| keyed(&key, part.as_bytes()));
    let signature = hex(&keyed(&key, text.as_bytes()));
    let id = credentials.access_key_id.trim();
    format!("{ALGORITHM} Credential={id}/{area}, SignedHeaders={names}, Signature={signature}")
}

fn encoded(text: &str, keep: impl Fn(u8) -> bool) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') || keep(byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn keyed(key: &[u8], text: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;

    fn example() -> AwsCredentials {
        AwsCredentials {
            access_key_id: "AKIDEXAMPLE".to_owned(),
            secret_access_key: Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
            session_token: None,
        }
    }

    const TOKEN: &str = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";

    /// Amazon's published test suite, as far as it has no query: name, method, path, further
    /// headers, body, names of the signed headers, signature.
    #[test]
    #[rustfmt::skip]
    fn published_vectors() {
        type Vector = (&'static str, &'static str, &'static str, &'static [(&'static str, &'static str)], &'static str, &'static str, &'static str);
        let vectors: [Vector; 10] = [
            ("get-vanilla", "GET", "/", &[], "", "host;x-amz-date", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
            ("get-unreserved", "GET", "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", &[], "", "host;x-amz-date", "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"),
            ("get-utf8", "GET", "/ሴ", &[], "", "host;x-amz-date", "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"),
            ("get-header-value-order", "GET", "/", &[("my-header1", "value4,value1,value3,value2")], "", "host;my-header1;x-amz-date", "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01"),
            ("get-header-value-trim", "GET", "/", &[("my-header2", " \"a   b   c\"  "), ("my-header1", " value1")], "", "host;my-header1;my-header2;x-amz-date", "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"),
            ("post-vanilla", "POST", "/", &[], "", "host;x-amz-date", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
            ("post-header-key-sort", "POST", "/", &[("my-header1", "value1")], "", "host;my-header1;x-amz-date", "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c"),
            ("post-header-value-case", "POST", "/", &[("my-header1", "VALUE1")], "", "host;my-header1;x-amz-date", "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d"),
            ("post-sts-header-before", "POST", "/", &[("x-amz-security-token", TOKEN)], "", "host;x-amz-date;x-amz-security-token", "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead"),
            ("post-x-www-form-urlencoded", "POST", "/", &[("content-type", "application/x-www-form-urlencoded")], "Param1=value1", "content-type;host;x-amz-date", "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"),
        ];
        let date = "20150830T123600Z";
        for (name, method, path, more, body, names, signature) in vectors {
            let mut headers = vec![("x-amz-date", date.to_owned()), ("host", "example.amazonaws.com".to_owned())];
            headers.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
            let scope = Scope { region: "us-east-1", service: "service", date };
            let found = authorization(&example(), scope, method, path, &headers, body.as_bytes());
            let expected = format!("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders={names}, Signature={signature}");
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn a_request_to_bedrock() {
        let now: Timestamp = "2015-08-30T12:36:00.789Z".parse().unwrap();
        let id = percent_encoded("us.anthropic.claude-x-v1:0");
        assert_eq!(id, "us.anthropic.claude-x-v1%3A0");
        let url = Url::parse(&format!("http://127.0.0.1:99/model/{id}/converse")).unwrap();
        let plain = headers(&example(), "eu-west-1", &url, b"{}", now);
        let names: Vec<&str> = plain.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["x-amz-date", "authorization"]);
        assert_eq!(plain[0].1, "20150830T123600Z");
        let start = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/eu-west-1/bedrock/aws4_request, \
                     SignedHeaders=content-type;host;x-amz-date, Signature=";
        assert!(plain[1].1.starts_with(start), "{}", plain[1].1);
        let token = AwsCredentials { session_token: Some(Secret::new("session")), ..example() };
        let with_token = headers(&token, "eu-west-1", &url, b"{}", now);
        assert_eq!(with_token[1], ("x-amz-security-token", "session".to_owned()));
        assert!(with_token[2].1.contains("host;x-amz-date;x-amz-security-token"));
        // Body, path and secret all count.
        let other_body = headers(&example(), "eu-west-1", &url, b"{} ", now);
        let other_url = Url::parse("http://127.0.0.1:99/model/us.anthropic.claude-x-v1:0/converse").unwrap();
        let other_path = headers(&example(), "eu-west-1", &other_url, b"{}", now);
        assert!(plain[1] != other_body[1] && plain[1] != other_path[1]);
    }
}
