//! `schema`: the spec language for editors.

use sched::access::spec_schema;

use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Prints the JSON Schema of one task's definition.
pub(crate) fn schema(output: &Output) -> Result<Exit, Failure> {
    output.json(spec_schema::schema().to_string().as_bytes())?;
    Ok(Exit::Good)
}
