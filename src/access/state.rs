//! What every handler has at hand. Knows no route and no rule.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::model::history::History;
use crate::model::record::LogRecord;
use crate::model::request::{Ask, Caller, Reply, Request};
use crate::model::time::Timestamp;

use super::problem::Problem;
use super::spec_yaml::SpecContext;

/// Gives the present time; the daemon's clock, since the door has none.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What every handler has at hand.
pub(super) struct Shared {
    pub(super) ask: Arc<dyn Ask>,
    pub(super) history: Arc<dyn History>,
    pub(super) feed: broadcast::Sender<Arc<LogRecord>>,
    pub(super) log_dir: PathBuf,
    /// Where definitions live.
    pub(super) spec_dir: PathBuf,
    /// What they may refer to.
    pub(super) spec_context: Arc<SpecContext>,
    pub(super) now: Now,
    pub(super) stop: CancellationToken,
    /// The daemon's own user.
    pub(super) own_uid: u32,
}

/// The handlers' shared state.
pub(super) type App = Arc<Shared>;

impl Shared {
    /// Asks the core; a refusal becomes a problem.
    pub(super) async fn ask(&self, request: Request, caller: Caller) -> Result<Reply, Problem> {
        self.ask.ask(request, caller).await.map_err(Problem::from)
    }

    /// Gives the core an order that has no answer but "done".
    pub(super) async fn order(&self, request: Request, caller: Caller) -> Result<(), Problem> {
        self.ask(request, caller).await.map(drop)
    }
}
