//! The power goes again and again while idempotent producers write: what was not synced is gone
//! from the broker's ext4, and nothing acknowledged may be among it.
//!
//! GRACCHUS_POWER_CYCLES sets the number of cuts (2 unless set). Needs root and loop devices.

use std::time::{Duration, Instant};

use compat_tests::broker::Broker;
use compat_tests::client::Admin;
use compat_tests::image::Image;
use compat_tests::load::{self, Load, Plan};
use compat_tests::settings::{Chance, number};

#[test]
fn power_loop() {
    if std::env::var_os("KAFKA_BOOTSTRAP").is_some() {
        println!("SKIPPED: KAFKA_BOOTSTRAP is set and this test cuts its broker's power");
        return;
    }
    let mut image = match Image::new(4096) {
        Ok(image) => image,
        Err(why) => {
            println!("DID NOT RUN: the power-cut loop needs root and loop devices: {why}");
            return;
        }
    };
    let cycles = number("GRACCHUS_POWER_CYCLES", 2);
    let mut chance = Chance::from_env("power loop");
    let data = image.dir().join("data");
    let mut broker = Broker::start_in(Some(&data), &[]);
    let topic = Admin::new(&broker.bootstrap).topic(2, &[("segment.bytes", "2000000")]);
    let load = Load::start(&broker.bootstrap, Plan::new(&topic));
    let (mut worst, mut total) = (Duration::ZERO, Duration::ZERO);
    let mut stuck = None;
    for cycle in 0..cycles {
        if load.failed() > 0 || load.wait_acked(50, Duration::from_secs(60)).is_none() {
            stuck = Some(format!("before cut {cycle}: {}", load.plight()));
            break;
        }
        std::thread::sleep(Duration::from_millis(chance.between(0, 400)));
        // The wire dies with the disk. ext4 may answer a sync that the shutdown overtakes with
        // success (jbd2 no longer finds the aborted transaction): of six writers that do nothing
        // but write, sync and count, one in sixty misses its last block then, and none does when
        // they are stopped first. An acknowledgement that leaves after the cut is one that no
        // real power cut lets out.
        broker.freeze();
        image.cut_power().expect("the power goes");
        broker.kill();
        image.restore().expect("the power is back");
        let started = Instant::now();
        broker.spawn();
        if load.wait_acked(1, Duration::from_secs(60)).is_none() {
            stuck = Some(format!("after cut {cycle}: {}", load.plight()));
            break;
        }
        worst = worst.max(started.elapsed());
        total += started.elapsed();
        if cycle % 20 == 19 {
            println!("power loop: {} cycles, {} acknowledged", cycle + 1, load.acked());
        }
    }
    let (plan, history, fatal) = load.finish();
    let verdict = load::audit(&broker.bootstrap, &plan, history);
    println!(
        "power loop: {cycles} cuts, worst recovery {} ms, mean {} ms; {verdict}",
        worst.as_millis(),
        total.as_millis() / u128::from(cycles.max(1)),
    );
    if stuck.is_some() || !verdict.is_clean() {
        println!("{}", broker.log_tail(60));
        keep(&data);
    }
    // The broker goes before its disk does.
    drop(broker);
    assert!(fatal.is_empty(), "producers gave up: {fatal:?}");
    assert!(
        stuck.is_none(),
        "records were given up or nothing went on {}",
        stuck.unwrap_or_default()
    );
    assert!(verdict.is_clean(), "{verdict}");
    assert!(verdict.acked as u64 >= cycles * 50, "too little was written to prove anything");
}

/// Copies what the broker left to the directory of GRACCHUS_KEEP, if that is set.
fn keep(data: &std::path::Path) {
    if let Some(to) = std::env::var_os("GRACCHUS_KEEP") {
        let copied = std::process::Command::new("cp").arg("-a").arg(data).arg(to).status();
        println!("copying what is left: {copied:?}");
    }
}
