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
    for cycle in 0..cycles {
        load.wait_acked(50, Duration::from_secs(60)).unwrap_or_else(|| {
            panic!("no acks in cycle {cycle}: {}\n{}", load.plight(), broker.log_tail(40))
        });
        std::thread::sleep(Duration::from_millis(chance.between(0, 400)));
        image.cut_power().expect("the power goes");
        // A dead disk for a moment: the broker must not acknowledge on it.
        std::thread::sleep(Duration::from_millis(chance.between(0, 20)));
        broker.kill();
        image.restore().expect("the power is back");
        let started = Instant::now();
        broker.spawn();
        load.wait_acked(1, Duration::from_secs(60)).unwrap_or_else(|| {
            panic!("stuck after cut {cycle}: {}\n{}", load.plight(), broker.log_tail(40))
        });
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
    // The broker goes before its disk does.
    drop(broker);
    assert!(fatal.is_empty(), "producers gave up: {fatal:?}");
    assert!(verdict.is_clean(), "{verdict}");
    assert!(verdict.acked as u64 >= cycles * 50, "too little was written to prove anything");
}
