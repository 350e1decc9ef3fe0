//! The `gracchus` binary: arguments, configuration, logging, run until asked to stop.

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::Context;
use broker::cli::Arguments;
use broker::config::{Config, Loaded, keys};
use broker::env::real;
use broker::loggers::Apply;
use broker::{loggers, metrics, start};
use clap::Parser;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, reload};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let apply_levels = log_to_stderr();
    match run(&arguments, apply_levels) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gracchus: {}", one_line(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error and its causes, each said once: many name their cause themselves.
fn one_line(error: &anyhow::Error) -> String {
    let mut line = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !line.contains(&cause) {
            line.push_str(": ");
            line.push_str(&cause);
        }
    }
    line
}

/// Logs to standard error; what it returns changes the levels.
fn log_to_stderr() -> Apply {
    let filter = EnvFilter::try_from_env("GRACCHUS_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let (filter, handle) = reload::Layer::new(filter);
    let colours = std::io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt::layer().with_ansi(colours).with_writer(std::io::stderr);
    tracing_subscriber::registry().with(filter).with(lines).init();
    Box::new(move |levels| {
        if let Err(error) = handle.reload(EnvFilter::new(loggers::directives(levels))) {
            tracing::warn!(%error, "the levels of the log did not change");
        }
    })
}

fn run(arguments: &Arguments, apply_levels: Apply) -> anyhow::Result<()> {
    let config = load(arguments)?;
    let observers = start::Observers { recorder: metrics::install(), apply_levels };
    let shards = usize::try_from(config.int(keys::NUM_NETWORK_THREADS)).unwrap_or(1);
    let env = real::env(real::cores().min(shards))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let running = start::start(env, config, observers).await?;
        for (name, address) in &running.addresses {
            tracing::info!(listener = %name, %address, "listening");
        }
        if let Some(address) = running.http {
            tracing::info!(%address, "metrics and health over http");
        }
        real::stop_requested().await?;
        tracing::info!("stopping");
        let clean = running.stop().await;
        anyhow::ensure!(clean, "not stopped cleanly: the next start will look at the logs");
        Ok(())
    })
}

fn load(arguments: &Arguments) -> anyhow::Result<Config> {
    let file = match arguments.config_file() {
        None => None,
        Some(path) => {
            let name = path.display().to_string();
            let text = real::read_config(path).with_context(|| format!("cannot read {name}"))?;
            Some((name, text))
        }
    };
    let file = file.as_ref().map(|(name, text)| (name.as_str(), text.as_str()));
    let Loaded { config, notices } = Config::load(file, &arguments.overrides)?;
    for notice in notices {
        tracing::warn!("{notice}");
    }
    Ok(config)
}
