// tasks.rs [rounds] - tokio tasks that say themselves how often and how long they ran, lay in a queue and awaited.
//
// Each task is an async function whose whole body runs inside of `Metered`, which counts and times its polls and passes a
// waker of its own down, so that it knows when the task was woken, and by which task or thread. The last line is JSON:
//
//	{"types": [{"name": "tasks::sleeper", "spawned": 2, "finished": 2, "polls": 122, "wakes": 120, "requeued": 0,
//	            "poll_ns": …, "poll_max_ns": …, "queue_ns": …, "await_ns": …, "woken_by": {"thread tokio-runtime-w": [120, …]}}, …],
//	 "hogs": 10, "hog_ns": …}
//
// woken_by has the number of wakes and the awaited ns that they ended. `requeued` are polls of a task that was woken while it
// was polled: its runtime puts it back into the queue by itself. A task's wall time is poll_ns + queue_ns + await_ns.
use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::Future;
use std::io::BufRead;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::{mpsc, Notify};
use tokio::time::sleep;

fn now_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    1 + START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

// --- the meter ---

struct Meter {
    name: &'static str,
    spawned: AtomicU64,
    finished: AtomicU64,
    polls: AtomicU64,
    wakes: AtomicU64,
    requeued: AtomicU64,
    poll_ns: AtomicU64,
    poll_max_ns: AtomicU64,
    queue_ns: AtomicU64,
    await_ns: AtomicU64,
    woken_by: Mutex<BTreeMap<String, (u64, u64)>>,
}

impl Meter {
    const fn new(name: &'static str) -> Meter {
        const ZERO: AtomicU64 = AtomicU64::new(0);
        Meter {
            name,
            spawned: ZERO,
            finished: ZERO,
            polls: ZERO,
            wakes: ZERO,
            requeued: ZERO,
            poll_ns: ZERO,
            poll_max_ns: ZERO,
            queue_ns: ZERO,
            await_ns: ZERO,
            woken_by: Mutex::new(BTreeMap::new()),
        }
    }

    fn polled(&self, ns: u64) {
        self.polls.fetch_add(1, SeqCst);
        self.poll_ns.fetch_add(ns, SeqCst);
        self.poll_max_ns.fetch_max(ns, SeqCst);
    }

    fn json(&self) -> String {
        let get = |n: &AtomicU64| n.load(SeqCst);
        let by: Vec<String> =
            self.woken_by.lock().unwrap().iter().map(|(who, (n, ns))| format!("\"{}\": [{}, {}]", who, n, ns)).collect();
        format!(
            "{{\"name\": \"{}\", \"spawned\": {}, \"finished\": {}, \"polls\": {}, \"wakes\": {}, \"requeued\": {}, \
             \"poll_ns\": {}, \"poll_max_ns\": {}, \"queue_ns\": {}, \"await_ns\": {}, \"woken_by\": {{{}}}}}",
            self.name,
            get(&self.spawned),
            get(&self.finished),
            get(&self.polls),
            get(&self.wakes),
            get(&self.requeued),
            get(&self.poll_ns),
            get(&self.poll_max_ns),
            get(&self.queue_ns),
            get(&self.await_ns),
            by.join(", ")
        )
    }
}

thread_local! {
    // The type whose task this thread polls.
    static POLLING: Cell<&'static str> = const { Cell::new("") };
}

// The first wake since the last poll began.
struct Woken {
    at: AtomicU64, // 0: none yet
    by: Mutex<String>,
    waker: Mutex<Option<Waker>>,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let waker = self.waker.lock().unwrap().clone();
        let mut by = self.by.lock().unwrap();
        if self.at.load(SeqCst) == 0 {
            *by = match POLLING.with(|p| p.get()) {
                "" => format!("thread {}", thread::current().name().unwrap_or("?")),
                name => format!("task {}", name),
            };
            self.at.store(now_ns(), SeqCst);
        }
        drop(by);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

struct Metered<F> {
    meter: &'static Meter,
    spawned_ns: u64,
    end_ns: u64, // of the last poll; 0: none yet
    woken: Arc<Woken>,
    future: F,
}

fn metered<F: Future>(meter: &'static Meter, spawned_ns: u64, future: F) -> Metered<F> {
    let woken = Arc::new(Woken { at: AtomicU64::new(0), by: Mutex::new(String::new()), waker: Mutex::new(None) });
    Metered { meter, spawned_ns, end_ns: 0, woken, future }
}

impl<F> Metered<F> {
    // What the time since the last poll was.
    fn begin(&mut self, now: u64) {
        let m = self.meter;
        let by = self.woken.by.lock().unwrap();
        let at = self.woken.at.swap(0, SeqCst);
        if self.end_ns == 0 {
            m.queue_ns.fetch_add(now - self.spawned_ns, SeqCst);
        } else if at <= self.end_ns {
            // 0: it was woken between the beginning of that poll for the runtime and for this clock.
            m.requeued.fetch_add(1, SeqCst);
            m.queue_ns.fetch_add(now - self.end_ns, SeqCst);
        } else {
            let waited = at - self.end_ns;
            m.wakes.fetch_add(1, SeqCst);
            m.await_ns.fetch_add(waited, SeqCst);
            m.queue_ns.fetch_add(now - at, SeqCst);
            let mut all = m.woken_by.lock().unwrap();
            let sum = all.entry(by.clone()).or_insert((0, 0));
            *sum = (sum.0 + 1, sum.1 + waited);
        }
    }
}

impl<F: Future> Future for Metered<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let start = now_ns();
        let this = unsafe { self.get_unchecked_mut() };
        this.begin(start);
        {
            let mut waker = this.woken.waker.lock().unwrap();
            if !waker.as_ref().map_or(false, |w| w.will_wake(cx.waker())) {
                *waker = Some(cx.waker().clone());
            }
        }
        POLLING.with(|p| p.set(this.meter.name));
        let own = Waker::from(this.woken.clone());
        let result = unsafe { Pin::new_unchecked(&mut this.future) }.poll(&mut Context::from_waker(&own));
        if result.is_ready() {
            this.meter.finished.fetch_add(1, SeqCst);
        }
        // The end of a task wakes who joins it, after its last poll; the joiner's poll follows at once, on this thread.
        if result.is_pending() || this.meter.name != JOINED.name {
            POLLING.with(|p| p.set(""));
        }
        this.end_ns = now_ns();
        this.meter.polled(this.end_ns - start);
        result
    }
}

// A type of task: an async function, its meter, and a function that makes one.
macro_rules! task {
    ($meter:ident $name:ident($($arg:ident: $type:ty),*) $body:block) => {
        static $meter: Meter = Meter::new(concat!("tasks::", stringify!($name)));
        async fn $name(spawned_ns: u64, $($arg: $type),*) {
            metered(&$meter, spawned_ns, async move $body).await
        }
    };
}

fn born(meter: &Meter) -> u64 {
    meter.spawned.fetch_add(1, SeqCst);
    now_ns()
}

// --- what the tasks do ---

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

// Not a function, which would be the innermost one of the program on each stack.
macro_rules! spin_us {
    ($us:expr) => {
        let until = Instant::now() + Duration::from_micros($us);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
    };
}

#[inline(never)]
fn hog_the_worker(us: u64) {
    spin_us!(us);
    std::hint::black_box(us);
}

#[inline(never)]
fn digest(us: u64) {
    spin_us!(us);
    std::hint::black_box(us + 1);
}

task!(SLEEPER sleeper(rounds: u64) {
    for _ in 0..rounds {
        sleep(ms(10)).await;
    }
});

task!(PRODUCER producer(rounds: u64, to: mpsc::Sender<u64>) {
    for i in 0..rounds {
        sleep(ms(6)).await;
        let _ = to.send(i).await;
        spin_us!(50);
    }
});

task!(CONSUMER consumer(from: mpsc::Receiver<u64>) {
    let mut from = from;
    while from.recv().await.is_some() {
        spin_us!(200);
    }
});

task!(LOCK_HOLDER lock_holder(rounds: u64, lock: Arc<tokio::sync::Mutex<u64>>) {
    for _ in 0..rounds {
        let mut held = lock.lock().await;
        sleep(ms(8)).await;
        *held += 1;
        drop(held);
        sleep(ms(2)).await;
    }
});

task!(LOCK_WAITER lock_waiter(rounds: u64, lock: Arc<tokio::sync::Mutex<u64>>) {
    while *lock.lock().await < rounds {
        sleep(ms(3)).await;
    }
});

// Wakes its task while that is polled.
struct Again(bool);

impl Future for Again {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.0 {
            return Poll::Ready(());
        }
        self.0 = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

task!(YIELDER yielder(rounds: u64) {
    for _ in 0..rounds {
        for _ in 0..10 {
            spin_us!(5);
            Again(false).await;
            tokio::task::yield_now().await;
        }
        sleep(ms(9)).await;
    }
});

task!(JOINED joined() {
    sleep(ms(8)).await;
    spin_us!(100);
});

task!(JOINER joiner(rounds: u64) {
    for _ in 0..rounds {
        let _ = tokio::spawn(joined(born(&JOINED))).await;
    }
});

task!(SERVER server(listener: TcpListener) {
    let (mut peer, _) = listener.accept().await.unwrap();
    let mut byte = [0u8; 1];
    while peer.read(&mut byte).await.unwrap_or(0) == 1 {
        spin_us!(30);
        peer.write_all(&byte).await.unwrap();
    }
});

task!(CLIENT client(rounds: u64, address: std::net::SocketAddr) {
    let mut peer = TcpStream::connect(address).await.unwrap();
    peer.set_nodelay(true).unwrap();
    let mut byte = [7u8; 1];
    for _ in 0..rounds {
        peer.write_all(&byte).await.unwrap();
        peer.read_exact(&mut byte).await.unwrap();
        sleep(ms(6)).await;
    }
});

static HOGS: AtomicU64 = AtomicU64::new(0);
static HOG_NS: AtomicU64 = AtomicU64::new(0);

task!(BLOCKER blocker(rounds: u64) {
    for _ in 0..rounds {
        sleep(ms(30)).await;
        let start = now_ns();
        hog_the_worker(20_000);
        HOG_NS.fetch_add(now_ns() - start, SeqCst);
        HOGS.fetch_add(1, SeqCst);
    }
});

// Woken by a thread that is none of the runtime's, while the only worker may be blocked.
task!(STARVED starved(bell: Arc<Notify>, over: Arc<AtomicBool>) {
    while !over.load(SeqCst) {
        bell.notified().await;
        spin_us!(20);
    }
});

task!(LOCAL_PING local_ping(rounds: u64, to: mpsc::Sender<u64>, from: mpsc::Receiver<u64>) {
    let mut from = from;
    for i in 0..rounds {
        sleep(ms(5)).await;
        let _ = to.send(i).await;
        from.recv().await;
    }
});

task!(LOCAL_PONG local_pong(to: mpsc::Sender<u64>, from: mpsc::Receiver<u64>) {
    let mut from = from;
    while let Some(i) = from.recv().await {
        spin_us!(100);
        let _ = to.send(i).await;
    }
});

task!(LONE lone(rounds: u64) {
    for _ in 0..rounds {
        sleep(ms(10)).await;
    }
});

// A job of the blocking pool is one poll.
static DIGEST_JOB: Meter = Meter::new("tasks::digest_job");

fn digest_job(spawned_ns: u64) -> impl FnOnce() + Send + 'static {
    move || {
        let start = now_ns();
        DIGEST_JOB.queue_ns.fetch_add(start - spawned_ns, SeqCst);
        digest(5_000);
        DIGEST_JOB.finished.fetch_add(1, SeqCst);
        DIGEST_JOB.polled(now_ns() - start);
    }
}

// --- all of it ---

fn run_local(rounds: u64) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async move {
        let (to_pong, at_pong) = mpsc::channel(4);
        let (to_ping, at_ping) = mpsc::channel(4);
        let all = [
            tokio::task::spawn_local(local_ping(born(&LOCAL_PING), rounds, to_pong, at_ping)),
            tokio::task::spawn_local(local_pong(born(&LOCAL_PONG), to_ping, at_pong)),
            tokio::spawn(lone(born(&LONE), rounds / 2)),
        ];
        for one in all {
            one.await.unwrap();
        }
    });
}

fn run_starving(runtime: tokio::runtime::Runtime, rounds: u64) {
    let over = Arc::new(AtomicBool::new(false));
    let bells: Vec<Arc<Notify>> = (0..2).map(|_| Arc::new(Notify::new())).collect();
    let starving: Vec<_> =
        bells.iter().map(|bell| runtime.spawn(starved(born(&STARVED), bell.clone(), over.clone()))).collect();
    let ringer = {
        let (over, bells) = (over.clone(), bells.clone());
        let ring = move || {
            while !over.load(SeqCst) {
                bells.iter().for_each(|bell| bell.notify_one());
                thread::sleep(ms(3));
            }
            bells.iter().for_each(|bell| bell.notify_one());
        };
        thread::Builder::new().name("bell".into()).spawn(ring).unwrap()
    };
    runtime.block_on(async {
        runtime.spawn(blocker(born(&BLOCKER), rounds)).await.unwrap();
        over.store(true, SeqCst);
        for one in starving {
            one.await.unwrap();
        }
    });
    ringer.join().unwrap();
}

fn run_pool(runtime: &tokio::runtime::Runtime, rounds: u64) {
    let lock = Arc::new(tokio::sync::Mutex::new(0));
    let (to, from) = mpsc::channel(4);
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let jobs: Vec<_> = (0..12)
        .map(|_| runtime.spawn_blocking(digest_job(born(&DIGEST_JOB))))
        .collect();
    let all = [
        runtime.spawn(sleeper(born(&SLEEPER), rounds)),
        runtime.spawn(sleeper(born(&SLEEPER), rounds)),
        runtime.spawn(producer(born(&PRODUCER), rounds, to)),
        runtime.spawn(consumer(born(&CONSUMER), from)),
        runtime.spawn(lock_holder(born(&LOCK_HOLDER), rounds, lock.clone())),
        runtime.spawn(lock_waiter(born(&LOCK_WAITER), rounds, lock)),
        runtime.spawn(yielder(born(&YIELDER), rounds)),
        runtime.spawn(joiner(born(&JOINER), rounds)),
        runtime.spawn(server(born(&SERVER), listener)),
        runtime.spawn(client(born(&CLIENT), rounds, address)),
    ];
    runtime.block_on(async {
        for one in all {
            one.await.unwrap();
        }
        for one in jobs {
            one.await.unwrap();
        }
    });
}

fn main() {
    let rounds: u64 = std::env::args().nth(1).map_or(60, |a| a.parse().unwrap());
    let pool = Builder::new_multi_thread().worker_threads(2).max_blocking_threads(2).enable_all().build().unwrap();
    let starving =
        Builder::new_multi_thread().worker_threads(1).thread_name("starving").enable_all().build().unwrap();
    println!("ready");
    if std::env::var_os("GATED").is_some() {
        let _ = std::io::stdin().lock().read_line(&mut String::new());
    }
    let local = thread::Builder::new().name("local".into()).spawn(move || run_local(rounds)).unwrap();
    let starve = thread::spawn(move || run_starving(starving, rounds / 5));
    run_pool(&pool, rounds);
    starve.join().unwrap();
    local.join().unwrap();
    drop(pool); // all tasks are gone
    let meters = [
        &SLEEPER, &PRODUCER, &CONSUMER, &LOCK_HOLDER, &LOCK_WAITER, &YIELDER, &JOINED, &JOINER, &SERVER, &CLIENT, &BLOCKER, &STARVED,
        &LOCAL_PING, &LOCAL_PONG, &LONE, &DIGEST_JOB,
    ];
    let types: Vec<String> = meters.iter().map(|m| m.json()).collect();
    println!(
        "{{\"types\": [{}], \"hogs\": {}, \"hog_ns\": {}}}",
        types.join(", "),
        HOGS.load(SeqCst),
        HOG_NS.load(SeqCst)
    );
}
