//! Spec files that the command line names: which they are, and their bytes. What is in them is not
//! known here.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use sched::access::spec_dir::is_spec_name;
use sched::limits;
use sched::model::event::SpecError;

/// The name of the standard input.
const STDIN: &str = "-";

/// A file as it was given.
#[derive(Debug)]
pub(crate) struct Given {
    /// Its own name without folders; `None`: the standard input has none.
    pub(crate) name: Option<String>,
    /// What it is called in messages.
    pub(crate) shown: String,
    /// Its bytes, one more than a spec file may have at most.
    pub(crate) bytes: Vec<u8>,
}

/// All files that were given, and why some cannot be read.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// In the order of the command line, those of a directory by name.
    pub(crate) files: Vec<Given>,
    /// One per file or directory that cannot be read.
    pub(crate) errors: Vec<SpecError>,
}

/// Reads files, of directories those that the daemon would read, and `-` from `stdin`.
pub(crate) fn gather(paths: &[PathBuf], stdin: &mut dyn Read) -> Gathered {
    let mut gathered = Gathered::default();
    for path in paths {
        if path.as_os_str() == STDIN {
            let read = bounded(stdin).map(|bytes| (None, STDIN.to_owned(), bytes));
            gathered.take(path, read);
        } else if path.is_dir() {
            match spec_files_in(path) {
                Ok(files) => files.iter().for_each(|file| gathered.take(file, regular(file))),
                Err(error) => gathered.errors.push(unreadable(path, &error)),
            }
        } else {
            gathered.take(path, named(path));
        }
    }
    gathered
}

type Parts = (Option<String>, String, Vec<u8>);

impl Gathered {
    fn take(&mut self, path: &Path, read: std::io::Result<Parts>) {
        match read {
            Ok((name, shown, bytes)) => self.files.push(Given { name, shown, bytes }),
            Err(error) => self.errors.push(unreadable(path, &error)),
        }
    }
}

/// A file that was named itself: it may be a pipe, such as a shell's `<(…)`.
fn named(path: &Path) -> std::io::Result<Parts> {
    let bytes = bounded(&mut File::open(path)?)?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok((name, path.to_string_lossy().into_owned(), bytes))
}

/// A file of a directory: what is no file there is not opened, it might never end.
fn regular(path: &Path) -> std::io::Result<Parts> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    named(path)
}

fn bounded(from: &mut dyn Read) -> std::io::Result<Vec<u8>> {
    let bound = u64::try_from(limits::SPEC_FILE_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    from.take(bound).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The spec files of a directory in the order of their names; links are followed, folders left out.
fn spec_files_in(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let name = entry?.file_name();
        if name.to_str().is_some_and(is_spec_name) && !dir.join(&name).is_dir() {
            files.push(dir.join(name));
        }
    }
    files.sort();
    Ok(files)
}

fn unreadable(path: &Path, error: &std::io::Error) -> SpecError {
    fault(&path.to_string_lossy(), format!("cannot be read: {error}"))
}

/// A fault of a file as a whole.
pub(crate) fn fault(file: &str, message: String) -> SpecError {
    SpecError { file: file.to_owned(), line: 0, column: 0, path: String::new(), message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_directories_and_the_standard_input_are_read_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let specs = dir.path().join("sched.d");
        std::fs::create_dir_all(specs.join("folder.yaml")).unwrap();
        for name in ["b.yml", "a.yaml", ".c.yaml", "d.yaml~", "e.txt"] {
            std::fs::write(specs.join(name), name).unwrap();
        }
        std::os::unix::fs::symlink("a.yaml", specs.join("link.yaml")).unwrap();
        std::fs::write(dir.path().join("own.txt"), "own").unwrap();
        let paths = [specs, dir.path().join("own.txt"), PathBuf::from("-")];
        let found = gather(&paths, &mut "piped".as_bytes());
        let named: Vec<(Option<&str>, &[u8])> =
            found.files.iter().map(|f| (f.name.as_deref(), f.bytes.as_slice())).collect();
        assert_eq!(
            named,
            [
                (Some("a.yaml"), b"a.yaml".as_slice()),
                (Some("b.yml"), b"b.yml".as_slice()),
                (Some("link.yaml"), b"a.yaml".as_slice()),
                (Some("own.txt"), b"own".as_slice()),
                (None, b"piped".as_slice()),
            ]
        );
        assert!(found.errors.is_empty(), "{:?}", found.errors);
    }

    #[test]
    fn what_cannot_be_read_is_told_and_the_rest_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        nix::unistd::mkfifo(&path("pipe.yaml"), nix::sys::stat::Mode::from_bits_truncate(0o600))
            .unwrap();
        std::os::unix::fs::symlink("nowhere", path("lost.yaml")).unwrap();
        std::fs::write(path("z.yaml"), "z").unwrap();
        let found = gather(&[dir.path().to_owned(), path("none.yaml")], &mut std::io::empty());
        let texts: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
        for (text, name) in texts.iter().zip(["lost.yaml", "pipe.yaml", "none.yaml"]) {
            assert!(text.contains(name) && text.contains("cannot be read"), "{texts:?}");
        }
        assert_eq!((texts.len(), found.files.len()), (3, 1));
    }
}
