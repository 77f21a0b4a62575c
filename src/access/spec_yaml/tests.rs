//! Given a spec, these diagnostics; every expected text is written by hand.
