//! An answer that comes bit by bit, as bytes or as lines. It does not know what is in them.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::{ClientError, Target};

/// Bytes of one line.
const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// An answer that comes bit by bit.
#[derive(Debug)]
pub struct Stream<'c> {
    runtime: &'c Runtime,
    target: Target,
    body: Incoming,
    pending: Vec<u8>,
}

impl<'c> Stream<'c> {
    pub(super) fn new(runtime: &'c Runtime, target: Target, body: Incoming) -> Self {
        Self { runtime, target, body, pending: Vec::new() }
    }

    /// The next bytes; `None`: the daemon has ended the stream. `within` bounds the wait.
    ///
    /// # Errors
    /// [`ClientError::TimedOut`] when that is over, `Broken` if the connection is.
    pub fn chunk(&mut self, within: Option<Duration>) -> Result<Option<Bytes>, ClientError> {
        if !self.pending.is_empty() {
            return Ok(Some(std::mem::take(&mut self.pending).into()));
        }
        self.fresh(within)
    }

    fn fresh(&mut self, within: Option<Duration>) -> Result<Option<Bytes>, ClientError> {
        let Self { runtime, target, body, .. } = self;
        runtime.block_on(async {
            loop {
                let frame = match within {
                    None => body.frame().await,
                    Some(within) => match timeout(within, body.frame()).await {
                        Ok(frame) => frame,
                        Err(_elapsed) => return Err(ClientError::TimedOut),
                    },
                };
                let Some(frame) = frame else { return Ok(None) };
                let frame = frame.map_err(|source| ClientError::Broken {
                    target: target.as_str().to_owned(),
                    source,
                })?;
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        })
    }

    /// The next line without its end, blank ones left out; `None`: the stream has ended.
    /// `within` bounds the wait for each bit of it.
    ///
    /// # Errors
    /// As [`Stream::chunk`], and [`ClientError::TooLong`] for a line without end.
    pub fn line(&mut self, within: Option<Duration>) -> Result<Option<String>, ClientError> {
        loop {
            while let Some(end) = self.pending.iter().position(|b| *b == b'\n') {
                let rest = self.pending.split_off(end + 1);
                let line = std::mem::replace(&mut self.pending, rest);
                let text = String::from_utf8_lossy(&line);
                if !text.trim().is_empty() {
                    return Ok(Some(text.trim_end().to_owned()));
                }
            }
            if self.pending.len() > LINE_BYTES_MAX {
                let bytes_max = LINE_BYTES_MAX;
                return Err(ClientError::TooLong {
                    target: self.target.as_str().to_owned(),
                    bytes_max,
                });
            }
            match self.fresh(within)? {
                Some(data) => self.pending.extend_from_slice(&data),
                None => {
                    let rest = std::mem::take(&mut self.pending);
                    let text = String::from_utf8_lossy(&rest);
                    return Ok((!text.trim().is_empty()).then(|| text.trim_end().to_owned()));
                }
            }
        }
    }
}
