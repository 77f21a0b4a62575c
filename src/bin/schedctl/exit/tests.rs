use super::*;
use sched::model::event::SpecError;

fn refusal(status: u16, code: &str) -> Failure {
    let (code, detail) = (code.to_owned(), "no".to_owned());
    Failure::Client(ClientError::Refused(Problem { status, code, detail, errors: Vec::new() }))
}

#[test]
fn refusals_have_the_statuses_of_the_contract() {
    for (status, code, exit) in [
        (404, "NOT_FOUND", 4),
        (409, "CONFLICT", 6),
        (422, "INVALID", 6),
        (507, "NO_SPACE", 6),
        (403, "NOT_PERMITTED", 7),
        (429, "RATE_LIMITED", 7),
        (503, "UNAVAILABLE", 5),
        (404, "", 4),
        (400, "", 6),
        (413, "PAYLOAD_TOO_LARGE", 6),
        (429, "", 7),
        (507, "", 6),
        (503, "", 5),
        (500, "", 1),
    ] {
        assert_eq!(refusal(status, code).exit() as u8, exit, "{status} {code}");
    }
}

#[test]
fn a_daemon_out_of_reach_is_5_and_a_closed_socket_7() {
    let path = || std::path::PathBuf::from("/run/x.sock");
    for (error, exit) in [
        (ClientError::NoSocket { path: path() }, 5),
        (ClientError::DeadSocket { path: path() }, 5),
        (ClientError::NotPermitted { path: path() }, 7),
        (ClientError::Silent { target: "/v1/tasks".to_owned() }, 5),
        (ClientError::TimedOut, 124),
    ] {
        assert_eq!(Failure::from(error).exit() as u8, exit);
    }
}

#[test]
fn the_text_of_a_refusal_has_the_detail_and_every_fault() {
    let fault = |file: &str, line, path: &str, message: &str| SpecError {
        file: file.to_owned(),
        line,
        column: 3,
        path: path.to_owned(),
        message: message.to_owned(),
    };
    let errors =
        vec![fault("", 0, "n", "abc is no int"), fault("/s/a.yaml", 7, "retry", "is no object")];
    let problem = Problem {
        status: 422,
        code: "INVALID".to_owned(),
        detail: "two faults".to_owned(),
        errors,
    };
    let text = Failure::Client(ClientError::Refused(problem)).text();
    assert_eq!(text, "two faults\n  n: abc is no int\n  /s/a.yaml:7:3: retry: is no object");
}

#[test]
fn a_cause_follows_its_effect() {
    let source = std::io::Error::other("disk on fire");
    assert_eq!(Failure::Output(source).text(), "cannot write the output: disk on fire");
}
