// pools.rs MILLISECONDS - threads of several pools, which run units of work whose CPU time is known: each unit burns by its
// thread's own CPU clock, until all of them have had so much. Prints "NAME NANOSECONDS" for each at the end.
use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{mpsc, Arc, Mutex};
use std::time::Duration;

use rayon::prelude::*;

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

extern "C" {
    fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
}

fn thread_cpu_ns() -> u64 {
    let mut t = Timespec { seconds: 0, nanoseconds: 0 };
    unsafe { clock_gettime(3, &mut t) };
    t.seconds as u64 * 1_000_000_000 + t.nanoseconds as u64
}

static STOP: AtomicBool = AtomicBool::new(false);

// A sum for each unit.
struct Unit {
    name: &'static str,
    ns: AtomicU64,
}

const fn unit(name: &'static str) -> Unit {
    Unit { name, ns: AtomicU64::new(0) }
}

static POLLER: Unit = unit("pools::poller");
static BOXED: Unit = unit("pools::boxed");
static COUNTER: Unit = unit("pools::Counter");
static BLOCKING: Unit = unit("pools::read_blocks");
static MAIN: Unit = unit("pools::drive");
static SUM: Unit = unit("pools::sum_rows");
static SPAWNED: Unit = unit("pools::spawn_on_rayon");
static THREAD: Unit = unit("pools::watch");
static QUEUED: Unit = unit("pools::index_one");

#[inline(never)]
fn burn(unit: &Unit, ns: u64) {
    let begin = thread_cpu_ns();
    let mut x = 1u64;
    let mut now = begin;
    while now - begin < ns {
        for i in 0..2000u64 {
            x = black_box(x.wrapping_mul(6364136223846793005).wrapping_add(i));
        }
        now = thread_cpu_ns();
    }
    unit.ns.fetch_add(now - begin, Ordering::Relaxed);
}

// The same, for a closure: one that ended in a call would have no frame of its own meanwhile.
#[inline(always)]
fn burn_in_closure(unit: &Unit, ns: u64) {
    burn(unit, ns);
    black_box(());
}

fn stopped() -> bool {
    STOP.load(Ordering::Relaxed)
}

const MS: u64 = 1_000_000;

async fn poller() {
    while !stopped() {
        burn(&POLLER, 2 * MS);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn boxed() {
    while !stopped() {
        burn(&BOXED, MS);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

struct Counter {
    sleep: Pin<Box<tokio::time::Sleep>>,
}

impl Future for Counter {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, context: &mut std::task::Context<'_>) -> std::task::Poll<()> {
        loop {
            burn(&COUNTER, MS);
            if stopped() {
                return std::task::Poll::Ready(());
            }
            if self.sleep.as_mut().poll(context).is_pending() {
                return std::task::Poll::Pending;
            }
            self.sleep = Box::pin(tokio::time::sleep(Duration::from_millis(7)));
        }
    }
}

fn read_blocks() -> impl FnOnce() + Send + 'static {
    || {
        while !stopped() {
            burn(&BLOCKING, 2 * MS);
            std::thread::sleep(Duration::from_millis(4));
        }
    }
}

async fn drive() {
    while !stopped() {
        burn(&MAIN, MS);
        tokio::time::sleep(Duration::from_millis(6)).await;
    }
}

fn sum_rows(rows: &[u64]) {
    rows.par_iter().for_each(|_| burn_in_closure(&SUM, MS / 4));
}

fn spawn_on_rayon() {
    rayon::spawn(|| burn_in_closure(&SPAWNED, 2 * MS));
}

fn watch() -> impl FnOnce() + Send + 'static {
    || {
        while !stopped() {
            burn(&THREAD, MS);
            std::thread::sleep(Duration::from_millis(6));
        }
    }
}

type Job = Box<dyn FnOnce() + Send>;

// A pool as programs make it themselves.
fn start_workers(n: usize) -> mpsc::Sender<Job> {
    let (sender, receiver) = mpsc::channel::<Job>();
    let receiver = Arc::new(Mutex::new(receiver));
    for _ in 0..n {
        let receiver = receiver.clone();
        std::thread::Builder::new().name("own-pool".into()).spawn(move || loop {
            let job = receiver.lock().unwrap().recv();
            match job {
                Ok(job) => job(),
                Err(_) => return,
            }
        }).unwrap();
    }
    sender
}

fn index_one() -> Job {
    Box::new(|| burn_in_closure(&QUEUED, MS))
}

fn main() {
    let units = [&POLLER, &BOXED, &COUNTER, &BLOCKING, &MAIN, &SUM, &SPAWNED, &THREAD, &QUEUED];
    let least: u64 = std::env::args().nth(1).map(|s| s.parse().unwrap()).unwrap_or(60) * MS;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    rayon::ThreadPoolBuilder::new().num_threads(2).build_global().unwrap();

    let queue = start_workers(2);
    let watchers: Vec<_> = (0..2)
        .map(|i| std::thread::Builder::new().name(format!("watcher-{i}")).spawn(watch()).unwrap())
        .collect();
    let feeder = std::thread::Builder::new().name("feeder".into()).spawn(move || {
        let rows = [0u64; 16];
        while !stopped() {
            sum_rows(&rows);
            spawn_on_rayon();
            for _ in 0..4 {
                queue.send(index_one()).unwrap();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }).unwrap();
    runtime.spawn(poller());
    let any: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(boxed());
    runtime.spawn(any);
    let entered = runtime.enter();
    runtime.spawn(Counter { sleep: Box::pin(tokio::time::sleep(Duration::from_millis(7))) });
    drop(entered);
    runtime.spawn_blocking(read_blocks());
    std::thread::spawn(move || {
        while units.iter().any(|u| u.ns.load(Ordering::Relaxed) < least) {
            std::thread::sleep(Duration::from_millis(10));
        }
        STOP.store(true, Ordering::Relaxed);
    });
    runtime.block_on(drive());
    for thread in watchers {
        thread.join().unwrap();
    }
    feeder.join().unwrap();
    drop(runtime);
    for unit in units {
        println!("{} {}", unit.name, unit.ns.load(Ordering::Relaxed));
    }
}
