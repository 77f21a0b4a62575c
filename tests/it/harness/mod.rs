//! One daemon in a directory of its own, and the ways to drive it: files, `schedctl`, the socket.

mod clock;
mod follow;
mod gate;
mod http;
mod processes;
mod sched;
mod spec;

pub(crate) use self::clock::{now_ms, pause};
pub(crate) use self::follow::Follower;
pub(crate) use self::gate::Gate;
pub(crate) use self::http::{Answer, exchange};
pub(crate) use self::processes::is_alive;
pub(crate) use self::sched::{Ran, Sched};
pub(crate) use self::spec::{TaskSpec, merge};
pub(crate) use serde_json::{Value, json};

/// Numbers that look random and come back with their seed (xorshift64*).
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number from 0 up to, not with, `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % bound
    }
}
