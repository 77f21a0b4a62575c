use std::os::unix::fs::PermissionsExt;

use super::super::testing::{alone, assignment_in};
use super::*;
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

/// The message of a start that must fail.
fn refused(assignment: &Assignment) -> StartError {
    let _alone = alone();
    let assignment = Arc::new(assignment.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let launched =
            match prepare(&assignment, &OwnUser::default()).and_then(|p| p.launch(&assignment)) {
                Ok(launched) => launched,
                Err(error) => return error,
            };
        let refused = launched.verdict.told(&assignment).await.unwrap_err();
        let pid = Pid::from_raw(launched.leader.identity.pid.try_into().unwrap());
        waitpid(pid, None).unwrap();
        refused
    })
}

fn script(dir: &Path, name: &str, text: &str, mode: u32) -> String {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn start_failures_name_step_and_object_and_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let base = assignment_in(dir.path(), "true");
    let at = dir.path();
    let program = |program: String| Assignment { program, args: Vec::new(), ..base.clone() };
    let cases = [
        (program("/no/such".into()), "program /no/such: No such file or directory"),
        (program("no-such-command".into()), "no directory of PATH holds it"),
        (program("/etc/passwd".into()), "Permission denied (os error 13); it is not executable"),
        (program("/tmp".into()), "it is a directory"),
        (program(script(at, "interp", "#!/no/interp\n", 0o755)), "interpreter /no/interp is not"),
        (program(script(at, "crlf", "#!/bin/sh\r\ntrue\r\n", 0o755)), "carriage return"),
        (program(script(at, "plain", "true\n", 0o755)), "a first line such as #!/bin/sh"),
        (Assignment { cwd: Some("/no/dir".into()), ..base.clone() }, "directory /no/dir as"),
        (
            Assignment { user: Some("no-such-user".into()), ..base.clone() },
            "user no-such-user is not in the user database",
        ),
        (
            Assignment { group: Some("no-such-group".into()), ..base.clone() },
            "group no-such-group is not in the group database",
        ),
        (Assignment { log_path: "/dev/null/x.log".into(), ..base.clone() }, "the log /dev/null/x"),
    ];
    let mut seen = std::collections::BTreeSet::new();
    for (assignment, expected) in cases {
        let error = refused(&assignment);
        assert!(error.message.contains(expected), "{}", error.message);
        assert!(!error.transient, "{}", error.message);
        assert!(seen.insert(error.message));
    }
}

#[test]
fn too_large_an_argument_is_the_systems_refusal() {
    let dir = tempfile::tempdir().unwrap();
    let mut assignment = assignment_in(dir.path(), "true");
    assignment.env.insert("LARGE".into(), "x".repeat(200_000));
    let error = refused(&assignment);
    assert!(error.message.contains("Argument list too long"), "{}", error.message);
}

#[test]
fn want_of_resources_is_worth_another_try_and_nothing_else_is() {
    for errno in [libc::EAGAIN, libc::ENOMEM, libc::EMFILE, libc::ENFILE] {
        assert!(is_transient(&io::Error::from_raw_os_error(errno)), "{errno}");
    }
    for errno in [libc::ENOENT, libc::EACCES, libc::E2BIG, libc::ENOSPC, libc::EPERM] {
        assert!(!is_transient(&io::Error::from_raw_os_error(errno)), "{errno}");
    }
}

#[test]
fn a_link_in_the_logs_place_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let assignment = assignment_in(dir.path(), "true");
    std::fs::create_dir_all(assignment.log_path.parent().unwrap()).unwrap();
    let victim = dir.path().join("victim");
    std::fs::write(&victim, "").unwrap();
    std::os::unix::fs::symlink(&victim, &assignment.log_path).unwrap();
    assert!(refused(&assignment).message.contains("cannot open the log"));
}
