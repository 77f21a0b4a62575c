//! Contract §6, `Idempotency-Key`.

use super::bench::Bench;
use super::build::{id, on_event, task};
use crate::model::request::{RejectionCode, Reply, Request};
use crate::model::spec::JsonMap;

#[test]
fn an_order_sent_again_under_its_key_gets_its_answer_and_changes_nothing() {
    let specs = || vec![on_event("a", "go"), task("b"), task("c")];
    let mut bench = Bench::new(specs());
    let emit = || Request::Emit { name: "go".to_owned(), params: JsonMap::new() };
    let first = bench.ask_under("k1", emit()).unwrap();
    bench.restart(1_000, specs());
    assert_eq!(bench.ask_under("k1", emit()).unwrap(), first);
    assert_eq!(bench.of("a").len(), 1);
    let submit = |name| Request::Submit { task: id(name), submission: Box::default() };
    let made = bench.ask_under("k2", submit("b")).unwrap();
    let Reply::Submitted(again) = bench.ask_under("k2", submit("b")).unwrap() else { panic!() };
    assert!(
        again.repeated && matches!(made, Reply::Submitted(m) if m.instance_id == again.instance_id)
    );
    // Another order under the same key is not taken for it.
    assert_eq!(bench.ask_under("k2", submit("c")).unwrap_err().code, RejectionCode::Conflict);
    assert_eq!((bench.of("b").len(), bench.of("c").len()), (1, 0));
    bench.pass(25 * 3600 * 1_000);
    bench.ask_under("k2", submit("c")).unwrap();
    assert_eq!(bench.of("c").len(), 1, "a key is kept for a day");
}
