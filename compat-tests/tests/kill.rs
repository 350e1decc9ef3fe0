//! kill -9 again and again while idempotent producers write: nothing acknowledged may be lost,
//! nothing may be there twice or out of order.
//!
//! GRACCHUS_KILL_CYCLES sets the number of kills (3 unless set), GRACCHUS_SEED repeats their times.

use std::time::{Duration, Instant};

use compat_tests::broker::Broker;
use compat_tests::client::Admin;
use compat_tests::load::{self, Load, Plan};
use compat_tests::settings::{Chance, number};

#[test]
fn kill_loop() {
    let Some(mut broker) = Broker::restartable(&[]) else { return };
    let cycles = number("GRACCHUS_KILL_CYCLES", 3);
    let mut chance = Chance::from_env("kill loop");
    let topic = Admin::new(&broker.bootstrap).topic(2, &[("segment.bytes", "2000000")]);
    let load = Load::start(&broker.bootstrap, Plan::new(&topic));
    let (mut worst, mut total) = (Duration::ZERO, Duration::ZERO);
    let mut stuck = None;
    for cycle in 0..cycles {
        if load.failed() > 0 || load.wait_acked(50, Duration::from_secs(60)).is_none() {
            stuck = Some(format!("before kill {cycle}: {}", load.plight()));
            break;
        }
        std::thread::sleep(Duration::from_millis(chance.between(0, 400)));
        broker.kill();
        let started = Instant::now();
        broker.spawn();
        // Recovered is when a producer has its next acknowledgement.
        if load.wait_acked(1, Duration::from_secs(60)).is_none() {
            stuck = Some(format!("after kill {cycle}: {}", load.plight()));
            break;
        }
        worst = worst.max(started.elapsed());
        total += started.elapsed();
        if cycle % 20 == 19 {
            println!("kill loop: {} cycles, {} acknowledged", cycle + 1, load.acked());
        }
    }
    let (plan, history, fatal) = load.finish();
    let verdict = load::audit(&broker.bootstrap, &plan, history);
    println!(
        "kill loop: {cycles} cycles, worst recovery {} ms, mean {} ms; {verdict}",
        worst.as_millis(),
        total.as_millis() / u128::from(cycles.max(1)),
    );
    assert!(fatal.is_empty(), "producers gave up: {fatal:?}");
    assert!(
        stuck.is_none(),
        "records were given up or nothing went on {}",
        stuck.unwrap_or_default()
    );
    assert!(verdict.is_clean(), "{verdict}");
    assert!(verdict.acked as u64 >= cycles * 50, "too little was written to prove anything");
}
