//! The metadata quorum as the rest of the broker sees it: an image to read, requests to submit.
//!
//! The loop that owns raft and the controller is `drive.rs`; what a new image changes here is
//! `publish.rs`.

mod drive;
pub mod publish;

use std::sync::Arc;

use arc_swap::ArcSwap;
use kraft::controller::{ControllerReply, ControllerRequest, RegisterBroker};
use kraft::image::Image;
use kraft::raft::{RaftError, Status};
use parking_lot::Mutex;
use protocol_compat::error::ErrorCode;
use storage::disk::create_dir_durable;
use storage::kv::{Kv, KvError};
use tokio::sync::{mpsc, oneshot};

use crate::config::Config;
use crate::env::{BoxFuture, Env};
use crate::node::Node;
use publish::Publisher;

/// This many requests may wait for the controller; then submitting waits, and with it the
/// connection.
pub const REQUESTS_WAITING_MAX: usize = 1024;

/// Why the quorum could not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum QuorumError {
    #[error(transparent)]
    Raft(#[from] RaftError),
    #[error(transparent)]
    Store(#[from] KvError),
    #[error("an entry cannot be read: {0}")]
    Entry(String),
    #[error("an entry does not fit the ones before it: {0}")]
    Image(#[from] kraft::image::ImageError),
    #[error("the broker was refused: {0}")]
    Register(String),
    #[error("the quorum thread ended before it was ready")]
    Gone,
}

/// A request on its way to the controller.
pub(super) struct Job {
    request: ControllerRequest,
    reply: oneshot::Sender<Result<ControllerReply, ErrorCode>>,
}

/// The handle.
pub struct Quorum {
    image: ArcSwap<Image>,
    status: ArcSwap<Option<Status>>,
    jobs: mpsc::Sender<Job>,
    waiting: Mutex<Option<mpsc::Receiver<Job>>>,
}

impl Default for Quorum {
    fn default() -> Quorum {
        let (jobs, waiting) = mpsc::channel(REQUESTS_WAITING_MAX);
        Quorum {
            image: ArcSwap::from_pointee(Image::default()),
            status: ArcSwap::from_pointee(None),
            jobs,
            waiting: Mutex::new(Some(waiting)),
        }
    }
}

impl Quorum {
    /// The metadata as committed.
    pub fn image(&self) -> Arc<Image> {
        self.image.load_full()
    }

    /// The node that leads the quorum, if known.
    pub fn leader(&self) -> Option<i32> {
        Option::as_ref(&self.status.load())?.leader
    }

    /// The quorum's state at the last change.
    pub fn status(&self) -> Option<Status> {
        Option::clone(&self.status.load())
    }

    /// Asks the controller; the answer comes when its records are committed and published here.
    ///
    /// # Errors
    /// NOT_CONTROLLER when nobody can answer now: the node stops, or leadership was lost.
    pub async fn submit(&self, request: ControllerRequest) -> Result<ControllerReply, ErrorCode> {
        let (reply, answer) = oneshot::channel();
        let job = Job { request, reply };
        self.jobs.send(job).await.map_err(|_| ErrorCode::NotController)?;
        answer.await.map_err(|_| ErrorCode::NotController)?
    }
}

/// Opens the store of the metadata log, creating it when absent, on a thread of its own: that takes
/// longer than anything else at a first start.
pub fn open_store(
    env: &Env,
    config: &Config,
) -> oneshot::Receiver<Result<Box<dyn Kv>, QuorumError>> {
    let (opened, is_open) = oneshot::channel();
    let (at, path) = (env.clone(), drive::store_path(config));
    let task = move || {
        Box::pin(async move {
            let io = |error: std::io::Error| KvError::Io(error.to_string());
            let made = create_dir_durable(&*at.disk, &path).map_err(io);
            let store = made.and_then(|()| at.kv.open(&path)).map_err(QuorumError::from);
            // The starter is waiting, unless it was cancelled.
            let _ = opened.send(store);
        }) as BoxFuture<()>
    };
    env.tasks.thread("store", Box::new(task));
    is_open
}

/// Starts the quorum thread; returns when the metadata is read and this broker is registered. The
/// receiver it returns fires when the thread has ended.
///
/// # Errors
/// The store or the log cannot be used.
pub async fn run(
    node: &Arc<Node>,
    store: Box<dyn Kv>,
    publisher: Arc<Publisher>,
    registration: RegisterBroker,
) -> Result<oneshot::Receiver<()>, QuorumError> {
    let waiting = node.quorum.waiting.lock().take().ok_or(QuorumError::Gone)?;
    let (ready, is_ready) = oneshot::channel();
    let (ended, has_ended) = oneshot::channel();
    let at = Arc::clone(node);
    let task = move || {
        Box::pin(async move {
            match drive::open(&at, store, publisher, registration) {
                Ok(driver) => {
                    let told = ready.send(Ok(()));
                    if told.is_ok() {
                        driver.drive(waiting).await;
                    }
                }
                Err(error) => {
                    // The starter is waiting for exactly this, unless it was cancelled.
                    let _ = ready.send(Err(error));
                }
            }
            // Nobody waits when the start failed.
            let _ = ended.send(());
        }) as BoxFuture<()>
    };
    node.env.tasks.thread("quorum", Box::new(task));
    is_ready.await.map_err(|_| QuorumError::Gone)??;
    Ok(has_ended)
}
