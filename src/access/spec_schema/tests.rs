//! placeholder
#[test]
fn print() {
    println!("{:#}", super::schema());
}
