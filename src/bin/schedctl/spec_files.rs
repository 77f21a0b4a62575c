//! Spec files that the command line names: which they are, and their bytes. What is in them is not
//! known here.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use sched::access::spec_dir::is_spec_name;
use sched::limits;
use sched::model::event::SpecError;

use crate::exit::Exit;

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
    /// One per file or directory that cannot be read, or holds nothing to be read.
    pub(crate) errors: Vec<SpecError>,
    /// A path that was given is not there.
    pub(crate) is_missing: bool,
}

/// Reads files, of directories those that the daemon would read, and `-` from `stdin`.
pub(crate) fn gather(paths: &[PathBuf], stdin: &mut dyn Read) -> Gathered {
    let mut gathered = Gathered::default();
    let mut seen = BTreeSet::new();
    for path in paths {
        if path.as_os_str() == STDIN {
            let read = bounded(stdin).map(|bytes| (None, STDIN.to_owned(), bytes));
            gathered.take(path, read);
        } else if path.is_dir() {
            match spec_files_in(path) {
                Ok(files) if files.is_empty() => gathered.errors.push(empty(path)),
                Ok(mut files) => {
                    files.retain(|file| seen.insert(place(file)));
                    files.iter().for_each(|file| gathered.take(file, regular(file)));
                }
                Err(error) => gathered.errors.push(unreadable(path, &error)),
            }
        } else if seen.insert(place(path)) {
            let read = named(path);
            // A link in a directory that leads nowhere was not given by name.
            gathered.is_missing |= read.as_ref().is_err_and(|e| e.kind() == ErrorKind::NotFound);
            gathered.take(path, read);
        }
    }
    gathered
}

impl Gathered {
    /// How a verb ends that found so many errors in all.
    pub(crate) fn exit(&self, errors: usize) -> Exit {
        if self.is_missing {
            return Exit::NotFound;
        }
        if errors == 0 { Exit::Good } else { Exit::Refused }
    }

    /// What the user called the file that the daemon calls so.
    ///
    /// All files that the daemon knows are in one directory, so the name alone tells.
    pub(crate) fn called(&self, path: &str) -> Option<&str> {
        let name = Path::new(path).file_name()?.to_str()?;
        let given = self.files.iter().find(|file| file.name.as_deref() == Some(name))?;
        Some(&given.shown)
    }
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

/// Where a file stands, however it was named: given twice it is still one. A link is another file
/// than the one that it leads to.
fn place(file: &Path) -> PathBuf {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or_else(|| Path::new("."));
    match (folder.canonicalize(), file.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => file.to_owned(),
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

fn empty(dir: &Path) -> SpecError {
    let message = "no spec files in this directory; those are read whose names end in .yaml or .yml \
                   and do not begin with a dot";
    fault(&dir.to_string_lossy(), message.to_owned())
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
        assert_eq!(found.exit(3), Exit::NotFound);
        let found = gather(&[dir.path().to_owned()], &mut std::io::empty());
        assert_eq!(found.exit(2), Exit::Refused, "a link that leads nowhere was not asked for");
    }

    #[test]
    fn a_file_given_twice_is_one_and_a_link_to_it_another() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("a.yaml"), "a").unwrap();
        std::os::unix::fs::symlink("a.yaml", path("link.yaml")).unwrap();
        let paths = [path("a.yaml"), dir.path().to_owned(), path("./a.yaml")];
        let found = gather(&paths, &mut std::io::empty());
        let shown: Vec<&str> = found.files.iter().map(|f| f.name.as_deref().unwrap()).collect();
        assert_eq!(shown, ["a.yaml", "link.yaml"]);
    }

    #[test]
    fn a_directory_without_specs_is_told_with_the_names_that_are_read() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("notes.txt"), "x").unwrap();
        let found = gather(&[dir.path().to_owned()], &mut std::io::empty());
        let text = found.errors[0].to_string();
        assert!(text.contains("no spec files in") && text.contains(".yaml"), "{text}");
        assert_eq!(found.exit(1), Exit::Refused);
    }

    #[test]
    fn a_path_of_the_daemon_is_called_as_it_was_given() {
        let given = |name: &str, shown: &str| Given {
            name: Some(name.to_owned()),
            shown: shown.to_owned(),
            bytes: Vec::new(),
        };
        let files = vec![given("a.yaml", "./new/a.yaml")];
        let gathered = Gathered { files, ..Gathered::default() };
        assert_eq!(gathered.called("/etc/sched.d/a.yaml"), Some("./new/a.yaml"));
        assert_eq!(gathered.called("a.yaml"), Some("./new/a.yaml"));
        assert_eq!(gathered.called("/etc/sched.d/b.yaml"), None);
        assert_eq!(gathered.called("-"), None);
    }
}
