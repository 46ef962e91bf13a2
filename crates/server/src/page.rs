//! The page of the server: four files that are a part of the program.

use crate::state::ServerState;
use axum::Router;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// No script, style or connection from another site, and no script within the page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src \
                      'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Path, media type and text of each file.
const FILES: [(&str, &str, &str); 4] = [
    ("/", "text/html; charset=utf-8", include_str!("page/index.html")),
    ("/style.css", "text/css; charset=utf-8", include_str!("page/style.css")),
    ("/app.js", "text/javascript; charset=utf-8", include_str!("page/app.js")),
    ("/plot.js", "text/javascript; charset=utf-8", include_str!("page/plot.js")),
];

/// Whether a path is that of a file of the page.
pub(crate) fn is_page(path: &str) -> bool {
    FILES.iter().any(|(file, ..)| *file == path)
}

/// The page itself.
pub(crate) fn index_page(headers: &HeaderMap) -> Response {
    let (_, kind, text) = FILES[0];
    file(headers, kind, text)
}

/// The files of the page, without the page itself.
pub(crate) fn page_routes() -> Router<Arc<ServerState>> {
    FILES.into_iter().skip(1).fold(Router::new(), |router, (path, kind, text)| {
        router.route(path, get(move |headers: HeaderMap| async move { file(&headers, kind, text) }))
    })
}

fn file(headers: &HeaderMap, kind: &'static str, text: &'static str) -> Response {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let tag = format!("\"{:016x}\"", hasher.finish());
    let is_known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let mut response = if is_known { StatusCode::NOT_MODIFIED.into_response() } else { text.into_response() };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}
