// blockwaits.rs [blocks] - an engine thread that waits as those of reth and ethrex do, and says for how long.
//
// The thread `engine` receives a block, outside of any block function; inside of validate_block_with_state it waits for
// another thread's answer, and inside of add_block_pipeline_inner for scoped threads, whose names the kernel cuts to
// `block_executor_`. Each 4th block it stands in wait_for_persistence_event. The thread `stranger` receives in a
// function that nobody knows. The last line has the sums by the program's own clock, in ns:
//
//	truth outside NS answer NS join NS pressure NS stranger NS
use std::sync::mpsc::{channel, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Default)]
struct Truth {
    outside: u64,
    answer: u64,
    join: u64,
    pressure: u64,
}

struct Block {
    answer: Receiver<()>,
    persisted: Option<Receiver<()>>,
    done: Sender<()>,
}

// Not a function of its own, which would be the innermost one of the program at each wait.
macro_rules! receive {
    ($rx:expr, $sum:expr) => {{
        let start = Instant::now();
        let got = $rx.recv();
        $sum += start.elapsed().as_nanos() as u64;
        got.ok()
    }};
}

// About so many ms, not by the clock: on a busy machine there must be samples of it, too.
#[inline(always)]
fn burn(ms: u64, seed: u64) -> u64 {
    let mut x = seed | 1;
    for _ in 0..ms * 300_000 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        std::hint::black_box(x);
    }
    x
}

mod tree {
    use super::*;

    #[inline(never)]
    pub fn validate_block_with_state(block: &Block, t: &mut Truth) {
        receive!(block.answer, t.answer);
        std::hint::black_box(burn(1, 1));
    }

    #[inline(never)]
    pub fn wait_for_persistence_event(rx: &Receiver<()>, t: &mut Truth) {
        receive!(rx, t.pressure);
        std::hint::black_box(());
    }

    #[inline(never)]
    pub fn run(rx: Receiver<Block>) -> Truth {
        let mut t = Truth::default();
        while let Some(block) = receive!(rx, t.outside) {
            if let Some(persisted) = &block.persisted {
                wait_for_persistence_event(persisted, &mut t);
            }
            validate_block_with_state(&block, &mut t);
            blockchain::add_block_pipeline_inner(&mut t);
            block.done.send(()).unwrap();
        }
        t
    }
}

mod blockchain {
    use super::*;

    #[inline(never)]
    pub fn warm_block() -> u64 {
        burn(6, 2) + 1
    }

    #[inline(never)]
    pub fn execute_block() -> u64 {
        burn(10, 3) + 2
    }

    #[inline(never)]
    pub fn handle_merkleization() -> u64 {
        burn(8, 4) + 3
    }

    #[inline(never)]
    pub fn add_block_pipeline_inner(t: &mut Truth) {
        let mut start = Instant::now();
        thread::scope(|s| {
            let named = |name: &str| thread::Builder::new().name(name.to_string());
            named("block_executor_warmer").spawn_scoped(s, || std::hint::black_box(warm_block())).unwrap();
            named("block_executor_execution").spawn_scoped(s, || std::hint::black_box(execute_block())).unwrap();
            named("block_executor_merkleizer").spawn_scoped(s, || std::hint::black_box(handle_merkleization())).unwrap();
            start = Instant::now();
        });
        t.join += start.elapsed().as_nanos() as u64;
    }
}

#[inline(never)]
fn strange_loop(rx: Receiver<()>) -> u64 {
    let mut sum = 0;
    while receive!(rx, sum).is_some() {}
    sum
}

fn main() {
    let blocks: u64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(40);
    let (tx, rx): (Sender<Block>, _) = channel();
    let (to_stranger, from_us) = channel();
    let engine = thread::Builder::new().name("engine".into()).spawn(move || tree::run(rx)).unwrap();
    let stranger = thread::Builder::new().name("stranger".into()).spawn(move || strange_loop(from_us)).unwrap();

    for i in 0..blocks {
        let (answer_tx, answer) = channel();
        let (persisted_tx, persisted) = channel();
        let (done, is_done) = channel();
        let pressed = i % 4 == 3;

        thread::sleep(Duration::from_millis(40));
        tx.send(Block { answer, persisted: pressed.then_some(persisted), done }).unwrap();
        if pressed {
            thread::sleep(Duration::from_millis(20));
            persisted_tx.send(()).unwrap();
        }
        thread::sleep(Duration::from_millis(15));
        answer_tx.send(()).unwrap();
        to_stranger.send(()).unwrap();
        is_done.recv().unwrap(); // on a busy machine the next one must not find it at work
    }
    drop(tx);
    drop(to_stranger);
    let t = engine.join().unwrap();
    let strange = stranger.join().unwrap();
    println!("truth outside {} answer {} join {} pressure {} stranger {}", t.outside, t.answer, t.join, t.pressure, strange);
}
