//! A blocking client of the door: HTTP/1 over the Unix socket, one connection per request.
//!
//! It knows how to reach the daemon and what a refusal looks like. What the routes mean, and what
//! is shown to a person, is its callers' business. It runs a small runtime inside, so it must not
//! be used from async code.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header;
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use tokio::net::UnixStream;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

mod problem;
mod stream;
mod target;
#[cfg(test)]
mod tests;

pub use problem::Problem;
pub use stream::Stream;
pub use target::Target;

/// Time in which the head of an answer must be there.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// Bytes of one answer that is read as a whole.
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;
/// How often, and with what pause, a full backlog is tried again: together half a second.
const BACKLOG_TRIES: u32 = 20;
const BACKLOG_PAUSE: Duration = Duration::from_millis(25);

/// Why there is no good answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nothing is at the socket's path.
    #[error(
        "no daemon: {} does not exist; start schedd, or name its socket with --socket or \
         SCHEDD_SOCKET",
        path.display()
    )]
    NoSocket {
        /// The path.
        path: PathBuf,
    },
    /// Something is at the socket's path and nobody listens.
    #[error("no daemon: nobody listens at {}; it has stopped or crashed, start schedd", path.display())]
    DeadSocket {
        /// The path.
        path: PathBuf,
    },
    /// The socket's mode, or that of a directory above it, keeps the caller out.
    #[error(
        "not permitted: {} is closed to this user; only root and the daemon's own user get in",
        path.display()
    )]
    NotPermitted {
        /// The path.
        path: PathBuf,
    },
    /// The socket cannot be connected for another reason.
    #[error("cannot connect to {}", path.display())]
    Connect {
        /// The path.
        path: PathBuf,
        /// The system's word.
        #[source]
        source: std::io::Error,
    },
    /// The client's own runtime cannot be made.
    #[error("cannot prepare the connection")]
    Runtime(#[source] std::io::Error),
    /// The request cannot be put into HTTP.
    #[error("cannot ask for {target}")]
    Request {
        /// What was asked for.
        target: String,
        /// Why.
        #[source]
        source: hyper::http::Error,
    },
    /// The request's body cannot be put into JSON, or the answer is not the JSON expected.
    #[error("unexpected JSON with {target}")]
    Json {
        /// What was asked for.
        target: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The connection broke; an order may have been carried out all the same.
    #[error(
        "the daemon went away before it had answered {target}; ask again, and see whether an order was carried out"
    )]
    Broken {
        /// What was asked for.
        target: String,
        /// How.
        #[source]
        source: hyper::Error,
    },
    /// The daemon is there and says nothing.
    #[error("the daemon does not answer {target} (waited {} s)", ANSWER_WITHIN.as_secs())]
    Silent {
        /// What was asked for.
        target: String,
    },
    /// The answer or one of its lines is longer than this client takes.
    #[error("the answer to {target} is longer than {bytes_max} bytes")]
    TooLong {
        /// What was asked for.
        target: String,
        /// The bound.
        bytes_max: usize,
    },
    /// The time that the caller gave a stream is over.
    #[error("the time is over")]
    TimedOut,
    /// The daemon answered with a refusal.
    #[error("{}", .0.detail)]
    Refused(Problem),
}

/// A good answer, read as a whole.
#[derive(Debug, Clone)]
pub struct Response {
    target: String,
    /// The HTTP status, 200..=299.
    pub status: u16,
    /// Where the list goes on, from the `Link` header.
    pub next: Option<Target>,
    /// The body as it came.
    pub body: Bytes,
}

impl Response {
    /// Reads the body; what it holds may borrow from it.
    ///
    /// # Errors
    /// [`ClientError::Json`] if it is not what the caller expects.
    pub fn json<'b, T: Deserialize<'b>>(&'b self) -> Result<T, ClientError> {
        serde_json::from_slice(&self.body)
            .map_err(|source| ClientError::Json { target: self.target.clone(), source })
    }
}

/// A client of the daemon behind one socket.
#[derive(Debug)]
pub struct Client {
    path: PathBuf,
    runtime: tokio::runtime::Runtime,
    connections: TaskTracker,
}

impl Client {
    /// A client of the daemon behind this socket. Nothing is opened before the first request.
    ///
    /// # Errors
    /// [`ClientError::Runtime`] if the system refuses what a runtime needs.
    pub fn at(path: &Path) -> Result<Self, ClientError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(ClientError::Runtime)?;
        Ok(Self { path: path.to_owned(), runtime, connections: TaskTracker::new() })
    }

    /// Reads something.
    ///
    /// # Errors
    /// [`ClientError`]; `Refused` if the daemon says no.
    pub fn get(&self, target: &Target) -> Result<Response, ClientError> {
        let request = self.request("GET", target, &[], Bytes::new())?;
        self.runtime.block_on(self.whole(request, target))
    }

    /// Orders something; `body` goes out as JSON.
    ///
    /// # Errors
    /// [`ClientError`]; `Refused` if the daemon says no, `Broken` and `Silent` if nobody knows.
    pub fn post(&self, target: &Target, body: &impl Serialize) -> Result<Response, ClientError> {
        self.post_with(target, body, None)
    }

    /// Orders something whose repetition with the same key is harmless.
    ///
    /// # Errors
    /// As [`Client::post`].
    pub fn post_with(
        &self,
        target: &Target,
        body: &impl Serialize,
        idempotency_key: Option<&str>,
    ) -> Result<Response, ClientError> {
        let bytes = serde_json::to_vec(body)
            .map_err(|source| ClientError::Json { target: target.as_str().to_owned(), source })?;
        let mut headers = vec![("content-type", "application/json")];
        headers.extend(idempotency_key.map(|key| ("idempotency-key", key)));
        let request = self.request("POST", target, &headers, bytes.into())?;
        self.runtime.block_on(self.whole(request, target))
    }

    /// Brings a file as it is; `kind` is its media type.
    ///
    /// # Errors
    /// As [`Client::post`].
    pub fn post_file(
        &self,
        target: &Target,
        kind: &str,
        bytes: Vec<u8>,
    ) -> Result<Response, ClientError> {
        let request = self.request("POST", target, &[("content-type", kind)], bytes.into())?;
        self.runtime.block_on(self.whole(request, target))
    }

    /// Takes something away.
    ///
    /// # Errors
    /// As [`Client::post`].
    pub fn delete(&self, target: &Target) -> Result<Response, ClientError> {
        let request = self.request("DELETE", target, &[], Bytes::new())?;
        self.runtime.block_on(self.whole(request, target))
    }

    /// Reads something that comes bit by bit, for as long as the daemon gives it.
    ///
    /// # Errors
    /// [`ClientError`]; `Refused` if the daemon says no.
    pub fn stream(&self, target: &Target) -> Result<Stream<'_>, ClientError> {
        let request = self.request("GET", target, &[], Bytes::new())?;
        self.runtime.block_on(async {
            let response = self.send(request, target).await?;
            let status = response.status();
            if !status.is_success() {
                let body = read_whole(response.into_body(), target).await?;
                return Err(ClientError::Refused(Problem::read(status.as_u16(), &body)));
            }
            let body = response.into_body();
            Ok(Stream::new(&self.runtime, target.clone(), body))
        })
    }

    fn request(
        &self,
        method: &str,
        target: &Target,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<hyper::Request<Full<Bytes>>, ClientError> {
        let mut builder = hyper::Request::builder().method(method).uri(target.as_str());
        builder = builder.header(header::HOST, "localhost").header(header::CONNECTION, "close");
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        builder
            .body(Full::new(body))
            .map_err(|source| ClientError::Request { target: target.as_str().to_owned(), source })
    }

    async fn whole(
        &self,
        request: hyper::Request<Full<Bytes>>,
        target: &Target,
    ) -> Result<Response, ClientError> {
        let response = self.send(request, target).await?;
        let status = response.status();
        let next = next_page(response.headers());
        let body = read_whole(response.into_body(), target).await?;
        if !status.is_success() {
            return Err(ClientError::Refused(Problem::read(status.as_u16(), &body)));
        }
        Ok(Response { target: target.as_str().to_owned(), status: status.as_u16(), next, body })
    }

    async fn send(
        &self,
        request: hyper::Request<Full<Bytes>>,
        target: &Target,
    ) -> Result<hyper::Response<Incoming>, ClientError> {
        let broken = |source| ClientError::Broken { target: target.as_str().to_owned(), source };
        let stream = self.open().await?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        // What the connection has to say comes out of the request and of the body as well.
        self.connections.spawn(async move { drop(connection.await) });
        match timeout(ANSWER_WITHIN, sender.send_request(request)).await {
            Ok(answer) => answer.map_err(broken),
            Err(_elapsed) => Err(ClientError::Silent { target: target.as_str().to_owned() }),
        }
    }

    async fn open(&self) -> Result<UnixStream, ClientError> {
        use std::io::ErrorKind;
        let path = || self.path.clone();
        let mut tries = 0;
        loop {
            let source = match UnixStream::connect(&self.path).await {
                Ok(stream) => return Ok(stream),
                Err(source) => source,
            };
            // A full backlog says EAGAIN on a Unix socket: the daemon is there and busy.
            if source.kind() == ErrorKind::WouldBlock && tries < BACKLOG_TRIES {
                tries += 1;
                tokio::time::sleep(BACKLOG_PAUSE).await;
                continue;
            }
            let kind = source.kind();
            return Err(if kind == ErrorKind::NotFound {
                ClientError::NoSocket { path: path() }
            } else if kind == ErrorKind::ConnectionRefused {
                ClientError::DeadSocket { path: path() }
            } else if kind == ErrorKind::PermissionDenied {
                ClientError::NotPermitted { path: path() }
            } else {
                ClientError::Connect { path: path(), source }
            });
        }
    }
}

async fn read_whole(mut body: Incoming, target: &Target) -> Result<Bytes, ClientError> {
    let mut whole = Vec::new();
    loop {
        let frame = match timeout(ANSWER_WITHIN, body.frame()).await {
            Ok(None) => return Ok(whole.into()),
            Ok(Some(frame)) => frame.map_err(|source| ClientError::Broken {
                target: target.as_str().to_owned(),
                source,
            })?,
            Err(_elapsed) => {
                return Err(ClientError::Silent { target: target.as_str().to_owned() });
            }
        };
        if let Some(data) = frame.data_ref() {
            if whole.len() + data.len() > ANSWER_BYTES_MAX {
                let bytes_max = ANSWER_BYTES_MAX;
                return Err(ClientError::TooLong { target: target.as_str().to_owned(), bytes_max });
            }
            whole.extend_from_slice(data);
        }
    }
}

/// The target of `Link: <…>; rel="next"`, without scheme and host.
fn next_page(headers: &header::HeaderMap) -> Option<Target> {
    let links = headers.get_all(header::LINK).into_iter().filter_map(|v| v.to_str().ok());
    let next = links.flat_map(|line| line.split(',')).find(|link| {
        let rel = link.split(';').skip(1).map(str::trim);
        rel.into_iter().any(|p| p == "rel=\"next\"" || p == "rel=next")
    })?;
    let uri = next.split_once('<')?.1.split_once('>')?.0.parse::<hyper::Uri>().ok()?;
    uri.path_and_query().map(|p| Target::given(p.as_str()))
}
