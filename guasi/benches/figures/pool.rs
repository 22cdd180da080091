//! The plain way to build a thread pool, to measure against: a request on the heap, one list of
//! work and one of results, each under a mutex, a condition variable signalled for every request
//! and for every result.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

struct Request {
    function: fn(usize) -> isize,
    argument: usize,
    result: isize,
}

#[derive(Default)]
struct Lists {
    work: Mutex<(VecDeque<Box<Request>>, bool)>,
    work_came: Condvar,
    results: Mutex<VecDeque<Box<Request>>>,
    result_came: Condvar,
}

/// The pool; dropping it ends its threads.
pub struct Pool {
    lists: Arc<Lists>,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    pub fn new(threads: usize) -> Pool {
        let lists = Arc::new(Lists::default());
        let start = |_| {
            let lists = Arc::clone(&lists);
            std::thread::spawn(move || while work(&lists) {})
        };
        let threads = (0..threads).map(start).collect();
        Pool { lists, threads }
    }

    pub fn submit(&self, function: fn(usize) -> isize, argument: usize) {
        let request = Box::new(Request {
            function,
            argument,
            result: 0,
        });
        self.lists.work.lock().unwrap().0.push_back(request);
        self.lists.work_came.notify_one();
    }

    /// Waits for a result, and takes all that there are; returns how many.
    pub fn fetch(&self) -> usize {
        let mut results = self.lists.results.lock().unwrap();
        while results.is_empty() {
            results = self.lists.result_came.wait(results).unwrap();
        }
        let count = results.len();
        for request in results.drain(..) {
            std::hint::black_box(request.result);
        }
        count
    }
}

/// Runs one request; false when the pool ends.
fn work(lists: &Lists) -> bool {
    let mut work = lists.work.lock().unwrap();
    let mut request = loop {
        if work.1 {
            return false;
        }
        match work.0.pop_front() {
            Some(request) => break request,
            None => work = lists.work_came.wait(work).unwrap(),
        }
    };
    drop(work);
    request.result = (request.function)(request.argument);
    lists.results.lock().unwrap().push_back(request);
    lists.result_came.notify_one();
    true
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.lists.work.lock().unwrap().1 = true;
        self.lists.work_came.notify_all();
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}
