//! Paths and queries, percent-encoded. It does not know which routes there are.

/// A path and query, percent-encoded as it grows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target(String);

impl Target {
    /// Starts with a fixed path, such as `/tasks`; the interface's version is put in front.
    #[must_use]
    pub fn new(path: &str) -> Self {
        Self(format!("/v1{path}"))
    }

    /// Takes over a path and query that the daemon gave, such as the next page of a list.
    #[must_use]
    pub fn given(path_and_query: &str) -> Self {
        Self(path_and_query.to_owned())
    }

    /// Adds `/` and one segment, whatever is in it.
    #[must_use]
    pub fn segment(mut self, text: &str) -> Self {
        self.0.push('/');
        encode(text, &mut self.0);
        self
    }

    /// Adds a query parameter.
    #[must_use]
    pub fn query(mut self, key: &str, value: &str) -> Self {
        self.0.push(if self.0.contains('?') { '&' } else { '?' });
        self.0.push_str(key);
        self.0.push('=');
        encode(value, &mut self.0);
        self
    }

    /// Adds a query parameter if there is one.
    #[must_use]
    pub fn query_some(self, key: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.query(key, value),
            None => self,
        }
    }

    /// The text as it goes out.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn encode(text: &str, out: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}
