//! The files of the page, in the binary. `make web` builds them from `web/src/dashboard`.

/// A file: its path, its type, its contents.
pub(crate) struct File {
    pub(crate) path: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) text: &'static str,
    /// Whether it is there without a token: the form for the token, and its looks.
    pub(crate) public: bool,
    /// Whether a user may follow a link to it.
    pub(crate) is_page: bool,
}

const HTML: &str = "text/html; charset=utf-8";

pub(crate) const FILES: [File; 5] = [
    File { path: "/", kind: HTML, text: include_str!("../page/index.html"), public: false, is_page: true },
    File { path: LOGIN, kind: HTML, text: include_str!("../page/login.html"), public: true, is_page: true },
    File {
        path: "/dashboard.js",
        kind: "text/javascript; charset=utf-8",
        text: include_str!("../page/dashboard.js"),
        public: false,
        is_page: false,
    },
    File {
        path: "/dashboard.css",
        kind: "text/css; charset=utf-8",
        text: include_str!("../page/dashboard.css"),
        public: true,
        is_page: false,
    },
    File {
        path: "/icon.svg",
        kind: "image/svg+xml",
        text: include_str!("../page/icon.svg"),
        public: true,
        is_page: false,
    },
];

/// The page with the form for the token.
pub(crate) const LOGIN: &str = "/login";

/// No script, style or image from elsewhere, none inline, no frame around the page.
pub(crate) const SECURITY: [(&str, &str); 8] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
         base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    // With `no-referrer` browsers would send `Origin: null` with the form for the token.
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
    ("cache-control", "no-store"),
];
