//! Requests and their answers.
//!
//! | request | answer |
//! | --- | --- |
//! | `GET /`, `/dashboard.js`, `/dashboard.css` | the page |
//! | `GET /api/state` | the program, what may be asked, counts of the server: JSON |
//! | `GET /api/history` | the last hour: [`crate::history::History::encode`] |
//! | `GET /api/events` | reports and marks as they come: server-sent events |
//! | `POST /api/what-if` | another policy with the traffic of the last minute: JSON |
//! | `POST /api/reload` | reads the policy again, or puts the one in the body in force, if control is allowed: JSON |
//! | `GET`, `POST /login` | the form for the token; sets the cookie |

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, SET_COOKIE};
use hyper::{Method, Request, Response, StatusCode};
use rustix::process::setpriority_process;
use serde::Serialize;
use tokio::sync::{Semaphore, oneshot};

use crate::body::Body;
use crate::connection::Connection;
use crate::guard::{Guard, Refusal};
use crate::hub::{Hub, Question, count};
use crate::page::{FILES, File, LOGIN, SECURITY};

/// The longest body of a request, in bytes: a policy.
pub(crate) const LONGEST_BODY: usize = 64 << 10;

/// Histories in memory at a time.
const MOST_HISTORIES: usize = 2;

/// State that all connections share.
pub(crate) struct Shared {
    pub(crate) hub: Arc<Hub>,
    pub(crate) guard: Guard,
    histories: Arc<Semaphore>,
    /// Whether a question is being answered: one at a time.
    asking: Arc<AtomicBool>,
}

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

impl Shared {
    pub(crate) fn new(hub: Arc<Hub>, guard: Guard) -> Self {
        Self { hub, guard, histories: Arc::new(Semaphore::new(MOST_HISTORIES)), asking: Arc::default() }
    }

    /// The answer, with the headers that every answer has.
    pub(crate) async fn answer(&self, request: Request<Incoming>, connection: &Connection) -> Response<Body> {
        let mut response = self.answer_bare(request, connection).await;
        let headers = response.headers_mut();
        for (name, value) in SECURITY {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        count(&self.hub.counts().answered);
        response
    }

    async fn answer_bare(&self, request: Request<Incoming>, connection: &Connection) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let file = FILES.iter().find(|file| file.path == path);
        let is_page = file.is_some_and(|file| file.is_page);
        if let Err(refusal) = self.guard.admit(request.method(), request.uri(), request.headers(), is_page) {
            return self.refuse(refusal);
        }
        if let Some(file) = file.filter(|_| is_read(request.method())) {
            return self.file(file, &request);
        }
        if path == LOGIN {
            return if request.method() == Method::POST {
                self.log_in(request).await
            } else {
                self.not_allowed("GET, HEAD, POST")
            };
        }
        if let Err(refusal) = self.guard.authorise(request.headers()) {
            return self.refuse(refusal);
        }
        let method = request.method();
        match path.as_str() {
            "/api/state" | "/api/history" | "/api/events" if *method != Method::GET => self.not_allowed("GET"),
            "/api/what-if" | "/api/reload" if *method != Method::POST => self.not_allowed("POST"),
            "/api/state" => plain(StatusCode::OK, JSON, self.hub.state()),
            "/api/history" => self.history().await,
            "/api/events" => self.events(connection),
            "/api/what-if" => self.what_if(request, connection).await,
            "/api/reload" => self.reload(request, connection).await,
            _ if file.is_some() => self.not_allowed("GET, HEAD"),
            _ => self.other(StatusCode::NOT_FOUND, "there is nothing here"),
        }
    }

    fn refuse(&self, refusal: Refusal) -> Response<Body> {
        let counts = self.hub.counts();
        let (counter, code, words) = match refusal {
            Refusal::Host => (
                &counts.refused_host,
                StatusCode::MISDIRECTED_REQUEST,
                "this server is asked by its address, by localhost, or by a name given with --web-name",
            ),
            Refusal::Origin => (&counts.refused_origin, StatusCode::FORBIDDEN, "a page of another site may not ask"),
            Refusal::Token => (&counts.refused_token, StatusCode::UNAUTHORIZED, "a token is needed: /login takes it"),
        };
        count(counter);
        problem(code, words)
    }

    /// The answer to a request that is wrong in another way.
    fn other(&self, code: StatusCode, words: &str) -> Response<Body> {
        count(&self.hub.counts().refused_other);
        problem(code, words)
    }

    fn not_allowed(&self, allowed: &'static str) -> Response<Body> {
        let mut response = self.other(StatusCode::METHOD_NOT_ALLOWED, &format!("the methods are {allowed}"));
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
        response
    }

    fn file(&self, file: &File, request: &Request<Incoming>) -> Response<Body> {
        if !file.public
            && let Err(refusal) = self.guard.authorise(request.headers())
        {
            return if file.is_page { see(LOGIN) } else { self.refuse(refusal) };
        }
        plain(StatusCode::OK, file.kind, file.text)
    }

    /// The token, as a form sends it: `token=...`. Tokens have no character that a form would change.
    async fn log_in(&self, request: Request<Incoming>) -> Response<Body> {
        let body = match self.body(request).await {
            Ok(body) => body,
            Err(response) => return response,
        };
        let token = std::str::from_utf8(&body).ok().and_then(|body| body.strip_prefix("token="));
        let Some(token) = token else {
            return self.other(StatusCode::BAD_REQUEST, "a form with the token is needed");
        };
        match self.guard.check(token.trim_matches(['+', ' '])) {
            Ok(()) => {
                let mut response = see("/");
                response.headers_mut().insert(SET_COOKIE, self.guard.set_cookie());
                response
            }
            Err(Refusal::Token) => {
                count(&self.hub.counts().refused_token);
                see("/login#wrong")
            }
            Err(refusal) => self.refuse(refusal),
        }
    }

    async fn body(&self, request: Request<Incoming>) -> Result<Bytes, Response<Body>> {
        let body = Limited::new(request.into_body(), LONGEST_BODY).collect().await;
        body.map(http_body_util::Collected::to_bytes).map_err(|_| {
            let words = format!("a body of at most {LONGEST_BODY} bytes is needed, and all of it");
            self.other(StatusCode::PAYLOAD_TOO_LARGE, &words)
        })
    }

    async fn history(&self) -> Response<Body> {
        // Closed never: others wait within their own time.
        let Ok(permit) = Arc::clone(&self.histories).acquire_owned().await else {
            return problem(StatusCode::SERVICE_UNAVAILABLE, "the server ends");
        };
        let mut response = Response::new(Body::Large { bytes: Some(self.hub.history().into()), _permit: permit });
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
        response
    }

    fn events(&self, connection: &Connection) -> Response<Body> {
        let Some(reports) = self.hub.listen(&connection.end) else {
            return problem(StatusCode::SERVICE_UNAVAILABLE, "too many browsers look at this dashboard");
        };
        connection.is_stream();
        let mut response = Response::new(Body::Reports(reports));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        response
    }

    /// Answers on a thread of its own, which gives way to all others. One question at a time.
    async fn what_if(&self, request: Request<Incoming>, connection: &Connection) -> Response<Body> {
        let body = match self.body(request).await {
            Ok(body) => body,
            Err(response) => return response,
        };
        let question = match question(&body) {
            Ok(question) => question,
            Err(words) => return self.other(StatusCode::BAD_REQUEST, &words),
        };
        if self.asking.swap(true, Ordering::AcqRel) {
            return problem(StatusCode::SERVICE_UNAVAILABLE, "another question is being answered");
        }
        connection.takes_longer();
        let busy = Busy(Arc::clone(&self.asking));
        let (answer, answered) = oneshot::channel();
        let hub = Arc::clone(&self.hub);
        let asked = thread::Builder::new().name("what-if".to_owned()).spawn(move || {
            // Without the right to it, the thread is like the others.
            let _ = setpriority_process(None, 19);
            let result = hub.program().what_if(&question);
            // Who has the answer may ask at once. A panic drops it, too.
            drop(busy);
            let _ = answer.send(result);
        });
        let result = match asked {
            Ok(_) => answered.await.unwrap_or_else(|_| Err("the question could not be answered".to_owned())),
            Err(error) => Err(format!("no thread for the question: {error}")),
        };
        match result {
            Ok(json) => plain(StatusCode::OK, JSON, json),
            Err(words) => problem(StatusCode::UNPROCESSABLE_ENTITY, &words),
        }
    }

    /// Without a body, the program reads its policy again.
    async fn reload(&self, request: Request<Incoming>, connection: &Connection) -> Response<Body> {
        if !self.hub.about().control {
            return self.other(StatusCode::FORBIDDEN, "the page only reads: --web-control lets it change something");
        }
        let body = match self.body(request).await {
            Ok(body) => body,
            Err(response) => return response,
        };
        let policy = match (!body.is_empty()).then(|| question(&body)).transpose() {
            Ok(policy) => policy,
            Err(words) => return self.other(StatusCode::BAD_REQUEST, &words),
        };
        let Some(reloading) = self.hub.program().reload(policy.as_ref()) else {
            return self.other(StatusCode::NOT_FOUND, "this program reads no policy");
        };
        connection.takes_longer();
        match reloading.await {
            Ok(message) => plain(StatusCode::OK, JSON, said("message", &message)),
            Err(error) => problem(StatusCode::UNPROCESSABLE_ENTITY, &error),
        }
    }
}

fn question(body: &[u8]) -> Result<Question, String> {
    serde_json::from_slice(body).map_err(|error| format!("no policy: {error}"))
}

/// A question that is being answered, even if the thread panics.
struct Busy(Arc<AtomicBool>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

fn is_read(method: &Method) -> bool {
    *method == Method::GET || *method == Method::HEAD
}

fn said(key: &str, words: &str) -> String {
    #[derive(Serialize)]
    struct Said<'a>(#[serde(serialize_with = "pair")] (&'a str, &'a str));
    fn pair<S: serde::Serializer>(pair: &(&str, &str), serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([*pair])
    }
    serde_json::to_string(&Said((key, words))).unwrap_or_default()
}

/// An error, in words for the page.
fn problem(code: StatusCode, words: &str) -> Response<Body> {
    plain(code, JSON, said("error", words))
}

fn plain(code: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::from(text.into()));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// The browser goes on to another page.
fn see(path: &'static str) -> Response<Body> {
    let mut response = plain(StatusCode::SEE_OTHER, TEXT, format!("see {path}\n"));
    response.headers_mut().insert(LOCATION, HeaderValue::from_static(path));
    response
}
