//! HTTP for operators: `/metrics`, `/healthz`, `/readyz`.

pub mod gather;
mod io;
mod page;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;

use crate::env::{BoxFuture, Listener};
use crate::node::Node;
use crate::progress::Phase;

/// Serves HTTP on a bound listener until the node stops.
pub fn serve(node: &Arc<Node>, listener: Box<dyn Listener>) {
    let app = Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(Arc::clone(node));
    let at = Arc::clone(node);
    let listener = io::HttpListener::new(listener, Arc::clone(&node.env.clock));
    let task = move || {
        Box::pin(async move {
            let stopped = async move { at.stop.asked().await };
            let served = axum::serve(listener, app).with_graceful_shutdown(stopped).await;
            if let Err(error) = served {
                tracing::error!(%error, "http ended");
            }
        }) as BoxFuture<()>
    };
    node.env.tasks.spawn_on(0, "http", Box::new(task));
}

/// The process lives.
async fn healthz() -> &'static str {
    "ok\n"
}

/// Whether everything serves, and how far the start is.
async fn readyz(State(node): State<Arc<Node>>) -> impl IntoResponse {
    let phase = node.progress.phase();
    let (opened, all) = node.progress.partitions();
    let text = format!("{} {opened}/{all} partitions\n", phase.name());
    let status =
        if phase == Phase::Ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, text)
}

async fn metrics(State(node): State<Arc<Node>>) -> impl IntoResponse {
    let mut text = node.metrics.render();
    text.push_str(&gather::gather(&node));
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text)
}
