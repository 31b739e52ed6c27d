//! heap.rs [FILE] - the heap of heap.c in Rust: what stays, what is freed at once, what is held for a moment.
//!
//! Two threads. With a FILE it waits for that first and lives on until it is killed. "NAME LIVE ALLOCATED CALLS".
use std::hint::black_box;
use std::sync::{Arc, Barrier};
use std::{env, path::Path, thread, time::Duration};

const SMALL: usize = 40000;
const CHURN: usize = 100000;
const HOLD: usize = 20;
const THREADS: usize = 2;

#[inline(never)]
fn keep_boxes() {
    for _ in 0..SMALL {
        std::mem::forget(black_box(Box::new([1u8; 64])));
    }
}

#[inline(never)]
fn keep_vectors() {
    for _ in 0..40 {
        std::mem::forget(black_box(vec![1u8; 100000]));
    }
}

#[inline(never)]
fn churn_boxes() {
    for _ in 0..CHURN {
        black_box(Box::new([1u8; 256]));
    }
}

/// A vector that doubles: realloc.
#[inline(never)]
fn grow_vector() {
    for _ in 0..1000 {
        let mut v: Vec<u64> = Vec::with_capacity(4);
        for i in 0..64 {
            v.push(black_box(i));
        }
        std::mem::forget(black_box(v));
    }
}

#[inline(never)]
fn hold_vectors(together: &Barrier) {
    let mut held: [Vec<u8>; HOLD] = Default::default();
    for v in held.iter_mut() {
        *v = black_box(vec![1u8; 250000]);
    }
    std::mem::forget(black_box(Box::new([1u8; 16])));
    together.wait();
    drop(black_box(held));
    together.wait();
}

fn work(together: Arc<Barrier>) {
    keep_boxes();
    keep_vectors();
    churn_boxes();
    hold_vectors(&together);
    grow_vector();
}

fn say(name: &str, live: usize, allocated: usize, calls: usize) {
    println!("{} {} {} {}", name, live * THREADS, allocated * THREADS, calls * THREADS);
}

fn main() {
    let file = env::args().nth(1);
    println!("ready");
    while let Some(path) = &file {
        if Path::new(path).exists() {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    let together = Arc::new(Barrier::new(THREADS));
    let other = together.clone();
    let worker = thread::spawn(move || work(other));
    work(together);
    worker.join().unwrap();
    say("keep_boxes", SMALL * 64, SMALL * 64, SMALL);
    say("keep_vectors", 40 * 100000, 40 * 100000, 40);
    say("churn_boxes", 0, CHURN * 256, CHURN);
    say("hold_vectors", 16, HOLD * 250000 + 16, HOLD + 1);
    say("grow_vector", 1000 * 512, 1000 * (32 + 64 + 128 + 256 + 512), 5000);
    println!("done");
    while file.is_some() {
        thread::sleep(Duration::from_secs(1));
    }
}
