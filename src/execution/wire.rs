//! The frames between daemon and executor: length-delimited JSON over the private socket.
//!
//! An executor that was started by an older schedd goes on while the daemon is replaced, so a
//! frame may gain fields that have a default, and nothing else, without a new [`PROTOCOL`]. A frame
//! may be new if it goes only to an executor whose Hello says, in such a field, that it knows it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::net::UnixStream;
use tokio_util::bytes::Bytes;
use tokio_util::codec::{Framed, LengthDelimitedCodec};

use crate::limits;
use crate::model::event::{AttemptRef, Hello, Report};
use crate::model::id::TaskId;
use crate::model::spec::Limits;
use crate::model::time::{millis, optional_millis};

/// Number of this set of frames.
pub const PROTOCOL: u32 = 1;

/// From the daemon to the executor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "frame")]
pub enum ToExecutor {
    /// The answer to Hello.
    Welcome {
        /// The daemon's [`PROTOCOL`].
        protocol: u32,
        /// Period of the heartbeat from now on; `None`: an older daemon, nothing changes.
        #[serde(default, rename = "heartbeatMs", with = "optional_millis")]
        heartbeat: Option<Duration>,
    },
    /// Start an attempt; repeated, it changes nothing.
    Run(Box<Assignment>),
    /// End an attempt's processes: TERM, grace, KILL.
    Kill {
        /// Which.
        of: AttemptRef,
    },
    /// Stop an attempt's processes and its clock; to executors only that said `frozen` in Hello.
    Freeze {
        /// Which.
        of: AttemptRef,
    },
    /// Let a frozen attempt go on; likewise.
    Thaw {
        /// Which.
        of: AttemptRef,
    },
    /// The end is durable: forget it.
    Acknowledge {
        /// Of which.
        of: AttemptRef,
    },
}

/// From the executor to the daemon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "frame")]
pub enum FromExecutor {
    /// The first frame of each connection.
    Hello {
        /// The executor's [`PROTOCOL`].
        protocol: u32,
        /// Period of its heartbeat; `None`: an older executor, it does not say.
        #[serde(default, rename = "heartbeatMs", with = "optional_millis")]
        heartbeat: Option<Duration>,
        /// Who it is and what it has.
        hello: Box<Hello>,
    },
    /// Everything after it.
    Report {
        /// What.
        report: Report,
        /// Period of its heartbeat, which each heartbeat says.
        #[serde(
            default,
            rename = "heartbeatMs",
            with = "optional_millis",
            skip_serializing_if = "Option::is_none"
        )]
        heartbeat: Option<Duration>,
    },
}

/// One attempt, fully resolved: nothing in it is a template and nothing is looked up in a spec.
///
/// What depends on the user database (home, login name) is left to the executor, which may run on
/// behalf of another user than the daemon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Assignment {
    /// Which dispatch.
    pub of: AttemptRef,
    /// Of which task.
    pub task_id: TaskId,
    /// The program: a path, or a name sought in the task's `PATH`.
    pub program: String,
    /// Arguments after the program.
    pub args: Vec<String>,
    /// Environment; user-dependent names absent here are filled in by the executor.
    pub env: BTreeMap<String, String>,
    /// Absolute directory to start in; `None`: the user's home.
    pub cwd: Option<String>,
    /// User; `None`: the executor's.
    pub user: Option<String>,
    /// Group; `None`: the user's.
    pub group: Option<String>,
    /// File mode mask; `None`: 022.
    pub umask: Option<u32>,
    /// Niceness; `None`: the executor's.
    pub nice: Option<i32>,
    /// Resource bounds.
    pub limits: Limits,
    /// Bound of the attempt from process start.
    #[serde(rename = "timeoutMs", with = "optional_millis")]
    pub timeout: Option<Duration>,
    /// Between TERM and KILL.
    #[serde(rename = "killGraceMs", with = "millis")]
    pub kill_grace: Duration,
    /// Where output goes.
    pub log_path: PathBuf,
    /// Bytes of output that are kept: head and tail.
    pub log_bytes_max: u64,
    /// What `SCHED_RESULT` names.
    pub result_path: PathBuf,
}

/// A connection that speaks in frames of at most [`limits::FRAME_BYTES_MAX`] bytes.
pub(super) type Frames = Framed<UnixStream, LengthDelimitedCodec>;

/// Puts frames onto a connection.
pub(super) fn frames(stream: UnixStream) -> Frames {
    Framed::new(stream, codec())
}

/// The codec of both directions.
pub(super) fn codec() -> LengthDelimitedCodec {
    LengthDelimitedCodec::builder().max_frame_length(limits::FRAME_BYTES_MAX).new_codec()
}

/// One frame's bytes.
///
/// # Errors
/// If it is larger than a frame may be, or a path in it is not UTF-8; in words.
pub(super) fn encode<T: Serialize>(frame: &T) -> Result<Bytes, String> {
    let bytes = serde_json::to_vec(frame).map_err(|error| error.to_string())?;
    if bytes.len() > limits::FRAME_BYTES_MAX {
        return Err(format!(
            "it needs {} bytes on the way to the executor; at most {} are allowed",
            bytes.len(),
            limits::FRAME_BYTES_MAX
        ));
    }
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::event::Load;
    use crate::model::id::{InstanceId, Lease};

    #[test]
    fn frames_survive_the_way_and_say_what_they_are() {
        let of =
            AttemptRef { instance_id: InstanceId::from_text("i1"), attempt: 2, lease: Lease(7) };
        let kill = ToExecutor::Kill { of };
        let bytes = encode(&kill).unwrap();
        assert_eq!(
            std::str::from_utf8(&bytes).unwrap(),
            r#"{"frame":"kill","of":{"instanceId":"i1","attempt":2,"lease":7}}"#
        );
        assert_eq!(serde_json::from_slice::<ToExecutor>(&bytes).unwrap(), kill);

        let report = FromExecutor::Report {
            report: Report::Heartbeat(Load { running: 3, load1: 0.5 }),
            heartbeat: Some(Duration::from_millis(7)),
        };
        let bytes = encode(&report).unwrap();
        assert_eq!(serde_json::from_slice::<FromExecutor>(&bytes).unwrap(), report);
    }

    #[test]
    fn frames_of_an_older_schedd_are_understood() {
        let welcome = r#"{"frame":"welcome","protocol":1}"#;
        let expected = ToExecutor::Welcome { protocol: 1, heartbeat: None };
        assert_eq!(serde_json::from_str::<ToExecutor>(welcome).unwrap(), expected);
        let report =
            r#"{"frame":"report","report":{"report":"heartbeat","running":0,"load1":0.0}}"#;
        assert!(serde_json::from_str::<FromExecutor>(report).is_ok());
        let hello = r#"{"frame":"hello","protocol":1,"hello":{"executor":"local","incarnation":1,
            "pid":7,"bootId":"b","running":[],"lost":[],"finished":[]}}"#;
        let Ok(FromExecutor::Hello { hello, .. }) = serde_json::from_str(hello) else {
            panic!("an older executor's Hello is none")
        };
        assert_eq!(hello.frozen, None, "it cannot freeze");
    }

    #[test]
    fn what_is_larger_than_a_frame_is_refused_before_it_is_sent() {
        let error = encode(&"x".repeat(limits::FRAME_BYTES_MAX)).unwrap_err();
        assert!(error.contains("4194306 bytes"), "{error}");
    }
}
