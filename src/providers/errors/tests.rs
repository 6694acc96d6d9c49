//! The class and the words of every kind of failure.

use reqwest::header::HeaderValue;
use serde_json::json;

use super::*;

fn origin() -> Origin {
    Origin::new("acme", "gpt-x", "https://user:pw@api.acme.test/v1/?key=abc", vec![Secret::new("sk-secret-1")])
}

fn status(status: u16, body: &str) -> LlmError {
    origin().status(status, &HeaderMap::new(), body.as_bytes())
}

#[test]
fn statuses_have_classes() {
    let cases = [
        (400, "{}", ErrorClass::BadRequest),
        (400, r#"{"error":{"message":"too bad","code":"context_length_exceeded"}}"#, ErrorClass::ContextOverflow),
        (400, r#"{"error":{"type":"exceed_context_size_error","message":"x"}}"#, ErrorClass::ContextOverflow),
        (400, "This model's maximum context length is 4096 tokens", ErrorClass::ContextOverflow),
        (400, r#"{"error":{"code":400,"message":"API key not valid. Please pass one."}}"#, ErrorClass::Auth),
        (401, "", ErrorClass::Auth),
        (402, "", ErrorClass::Auth),
        (403, "", ErrorClass::Auth),
        (404, "", ErrorClass::BadRequest),
        (408, "", ErrorClass::Overloaded),
        (413, "", ErrorClass::ContextOverflow),
        (418, "", ErrorClass::BadRequest),
        (429, "slow down", ErrorClass::RateLimited),
        (429, r#"{"error":{"code":"insufficient_quota","message":"You have no quota"}}"#, ErrorClass::Auth),
        (500, "", ErrorClass::Overloaded),
        (502, "", ErrorClass::Overloaded),
        (503, r#"{"error":{"message":"Loading model"}}"#, ErrorClass::Overloaded),
        (503, "Rate limit reached", ErrorClass::RateLimited),
        (529, "", ErrorClass::Overloaded),
        (301, "", ErrorClass::BadRequest),
        (501, "", ErrorClass::Unknown),
        (199, "", ErrorClass::Unknown),
    ];
    for (code, body, class) in cases {
        assert_eq!(status(code, body).class, class, "{code} {body}");
    }
}

#[test]
fn the_providers_words_are_found_wherever_they_are() {
    for body in [
        r#"{"error":{"message":"the words"}}"#,
        r#"{"error":"the words"}"#,
        r#"{"message":"the words"}"#,
        r#"{"detail":"the words"}"#,
        r#"{"detail":[{"loc":["body"],"msg":"the words"}]}"#,
        r#"[{"error":{"code":400,"message":"the words"}}]"#,
        r#"{"error":{"message":"Provider returned error","metadata":{"raw":"the words"}}}"#,
        "the words\n",
    ] {
        let text = status(400, body).user_text;
        assert!(text.contains("the words") && text.contains("acme"), "{body}: {text}");
    }
}

#[test]
fn texts_are_short_clean_and_without_secrets() {
    let text = status(401, r#"{"error":{"message":"bad key sk-secret-1\nin line two"}}"#).user_text;
    assert_eq!(
        text,
        "acme did not accept the API key: bad key **** in line two. Check the key configured for this provider."
    );
    let long = status(400, &"x".repeat(200_000)).user_text;
    assert!(long.len() < 700, "{}", long.len());
    let page = status(502, "<!DOCTYPE html><html>lots</html>").user_text;
    assert_eq!(page, "acme cannot answer right now (HTTP 502). Try again in a moment.");
    let missing = status(404, "").user_text;
    assert!(missing.contains("gpt-x") && missing.contains("https://api.acme.test/v1"), "{missing}");
    assert!(!missing.contains("pw") && !missing.contains("abc"), "{missing}");
    assert!(status(402, "").user_text.contains("billing"));
    let not_utf8 = origin().status(400, &HeaderMap::new(), b"\xFF\xFEbad");
    assert_eq!(not_utf8.class, ErrorClass::BadRequest);
}

#[test]
fn a_redirect_names_its_target() {
    let mut headers = HeaderMap::new();
    headers.insert("location", HeaderValue::from_static("https://other.test/v1?token=1"));
    let text = origin().status(307, &headers, b"").user_text;
    assert!(text.contains("https://other.test/v1") && !text.contains("token"), "{text}");
}

#[test]
fn the_wait_is_taken_from_the_headers() {
    let mut headers = HeaderMap::new();
    headers.insert("retry-after", HeaderValue::from_static("12"));
    assert_eq!(origin().status(429, &headers, b"").retry_after, Some(Duration::from_secs(12)));
    assert_eq!(status(429, "").retry_after, None);
}

#[test]
fn errors_inside_a_stream_have_classes() {
    let cases = [
        (json!({"message": "m", "type": "overloaded_error"}), ErrorClass::Overloaded),
        (json!({"message": "m", "type": "server_error"}), ErrorClass::Overloaded),
        (json!({"message": "m", "code": 502}), ErrorClass::Overloaded),
        (json!({"message": "m", "code": "429"}), ErrorClass::RateLimited),
        (json!({"message": "m", "type": "rate_limit_error"}), ErrorClass::RateLimited),
        (json!({"message": "m", "code": 400, "type": "exceed_context_size_error"}), ErrorClass::ContextOverflow),
        (json!({"message": "m", "code": "invalid_api_key"}), ErrorClass::Auth),
        (json!({"message": "m", "type": "invalid_request_error"}), ErrorClass::BadRequest),
        (json!("just words"), ErrorClass::Unknown),
        (json!({"odd": []}), ErrorClass::Unknown),
        (json!(null), ErrorClass::Unknown),
    ];
    for (error, class) in cases {
        assert_eq!(origin().fault(Fault::Reported(error.clone())).class, class, "{error}");
    }
    let text = origin().fault(Fault::Reported(json!("just words"))).user_text;
    assert!(text.contains("just words"), "{text}");
}

#[test]
fn images_that_cannot_be_used_are_told_apart() {
    for (code, body) in [
        (
            400,
            r#"{"error": {"type": "invalid_request_error", "message": "messages.0.content.1: Could not process image"}}"#,
        ),
        (400, r#"{"error": {"code": "invalid_image_format", "message": "You uploaded an unsupported image."}}"#),
        (422, r#"{"message": "This model does not support image inputs"}"#),
    ] {
        assert_eq!(status(code, body).class, ErrorClass::InvalidImage, "{body}");
    }
    assert_eq!(
        status(400, r#"{"error": {"message": "the image of the container is missing"}}"#).class,
        ErrorClass::BadRequest
    );
}
