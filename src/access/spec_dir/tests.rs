//! Given a directory's history, these definitions.
