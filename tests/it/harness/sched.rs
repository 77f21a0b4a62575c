//! The daemon under test.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::clock::look_until;
use super::gate::Gate;
use super::http::{Answer, exchange};
use super::processes::{members_of, signal};
use super::spec::{TaskSpec, merge};

/// Bound of every wait that names no other.
const WITHIN: Duration = Duration::from_secs(20);
/// Bound of what must be live soon.
const SOON: Duration = Duration::from_secs(3);
/// Bound of the end of a daemon that a test leaves behind.
const END_WITHIN: Duration = Duration::from_secs(5);

/// What `schedctl` did.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn of(output: &Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// A daemon in a directory of its own; ended, with all it started, when dropped.
#[derive(Debug)]
pub(crate) struct Sched {
    dir: TempDir,
    config: Value,
    environment: Vec<(String, String)>,
    prelude: Option<String>,
    daemon: Option<Child>,
}

impl Sched {
    /// A running daemon with the usual configuration.
    pub(crate) fn new() -> Self {
        Self::with(&json!({}))
    }

    /// A running daemon, these keys put into the usual configuration.
    pub(crate) fn with(config: &Value) -> Self {
        let mut sched = Self::prepared(config);
        sched.start();
        sched
    }

    /// A directory with its configuration, and no daemon yet.
    pub(crate) fn prepared(config: &Value) -> Self {
        let dir = tempfile::Builder::new().prefix("schedd-it-").tempdir().unwrap();
        fs::create_dir(dir.path().join("sched.d")).unwrap();
        let mut all = json!({
            "specDir": "sched.d", "stateDir": "state", "logDir": "log",
            "socket": {"path": "s.sock", "mode": "0600"}, "timezone": "UTC",
            "executors": [{"id": "local", "slots": 8}],
        });
        merge(&mut all, config);
        fs::write(dir.path().join("schedd.yaml"), all.to_string()).unwrap();
        Self { dir, config: all, environment: Vec::new(), prelude: None, daemon: None }
    }

    /// The daemon gets this variable at its next start.
    pub(crate) fn variable(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// A shell runs this and then becomes the daemon, at its next start.
    pub(crate) fn prelude(&mut self, script: &str) {
        self.prelude = Some(script.to_owned());
    }

    // --- the directory ---

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn spec_path(&self, name: &str) -> PathBuf {
        self.path("sched.d").join(name)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path("s.sock")
    }

    pub(crate) fn gate(&self, name: &str) -> Gate {
        Gate::new(&self.path(name))
    }

    /// Lines of a file in the directory; none if it is not there.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits for as many lines of a file in the directory.
    pub(crate) fn until_lines(&self, name: &str, count: usize) -> Vec<String> {
        self.until(&format!("{count} lines in {name}"), || {
            Some(self.lines(name)).filter(|lines| lines.len() >= count)
        })
    }

    // --- the daemon ---

    pub(crate) fn command(&self) -> Command {
        let program = env!("CARGO_BIN_EXE_schedd");
        let mut command = match &self.prelude {
            None => Command::new(program),
            Some(prelude) => {
                let mut shell = Command::new("/bin/sh");
                shell.args(["-c", &format!("{prelude}; exec \"$0\" \"$@\""), program]);
                shell
            }
        };
        command.arg("--config").arg(self.path("schedd.yaml")).stdin(Stdio::null());
        command
    }

    /// Starts the daemon and waits until it answers.
    pub(crate) fn start(&mut self) {
        let out = OpenOptions::new().append(true).create(true).open(self.path("daemon.out"));
        let out = out.unwrap();
        let mut command = self.command();
        command.stdout(out.try_clone().unwrap()).stderr(out).envs(self.environment.clone());
        self.daemon = Some(command.spawn().unwrap());
        let answers = look_until(WITHIN, || {
            let ended = self.daemon.as_mut().and_then(|d| d.try_wait().unwrap());
            assert!(ended.is_none(), "schedd ended: {ended:?}");
            self.ask("GET", "/status", "").ok().filter(|a| a.status == 200)
        });
        assert!(answers.is_some(), "schedd does not answer");
    }

    pub(crate) fn pid(&self) -> u32 {
        self.daemon.as_ref().expect("a running daemon").id()
    }

    pub(crate) fn signal(&self, number: Signal) {
        signal(self.pid(), number);
    }

    /// Ends the daemon as a crash would.
    pub(crate) fn kill_9(&mut self) {
        let mut daemon = self.daemon.take().expect("a running daemon");
        daemon.kill().unwrap();
        daemon.wait().unwrap();
    }

    /// Ends an executor as a crash would, and waits until it is gone.
    pub(crate) fn kill_executor(&self, pid: u32) {
        signal(pid, Signal::SIGKILL);
        self.until("the executor's end", || (!super::is_alive(pid)).then_some(()));
    }

    /// The process of the only executor, once it is connected.
    pub(crate) fn executor_pid(&self) -> u32 {
        self.until("a connected executor", || {
            let executor = &self.get("/executors")[0];
            let pid = executor["pid"].as_u64().filter(|_| executor["connected"] == true)?;
            u32::try_from(pid).ok()
        })
    }

    /// The exit status of a daemon that ends by itself.
    pub(crate) fn exit_status(&mut self, within: Duration) -> i32 {
        let daemon = self.daemon.as_mut().expect("a running daemon");
        let ended = look_until(within, || daemon.try_wait().unwrap());
        let status = ended.unwrap_or_else(|| panic!("schedd has not ended within {within:?}"));
        self.daemon = None;
        status.code().unwrap_or(-1)
    }

    /// Stops with SIGTERM and starts anew.
    pub(crate) fn restart(&mut self) {
        self.signal(Signal::SIGTERM);
        assert_eq!(self.exit_status(END_WITHIN), 0);
        self.start();
    }

    pub(crate) fn output(&self) -> String {
        fs::read_to_string(self.path("daemon.out")).unwrap_or_default()
    }

    // --- the socket ---

    pub(crate) fn ask(&self, method: &str, target: &str, body: &str) -> std::io::Result<Answer> {
        exchange(&self.socket(), method, target, &[], body)
    }

    /// Reads something that is there.
    pub(crate) fn get(&self, target: &str) -> Value {
        let answer = self.ask("GET", target, "").unwrap();
        assert_eq!(answer.status, 200, "{target}: {answer:?}");
        answer.json()
    }

    pub(crate) fn instance(&self, id: &str) -> Value {
        self.get(&format!("/instances/{id}"))
    }

    /// Instances of a task, newest first.
    pub(crate) fn instances(&self, task: &str) -> Vec<Value> {
        let rows = self.get(&format!("/instances?taskId={task}&limit=1000"));
        rows.as_array().unwrap().clone()
    }

    /// The ledger of a task.
    pub(crate) fn fires(&self, task: &str) -> Vec<Value> {
        self.json(&["fires", task]).as_array().unwrap().clone()
    }

    // --- schedctl ---

    pub(crate) fn schedctl(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_schedctl"));
        command.env("SCHEDD_SOCKET", self.socket()).stdin(Stdio::null());
        command
    }

    pub(crate) fn ctl(&self, args: &[&str]) -> Ran {
        Ran::of(&self.schedctl().args(args).output().unwrap())
    }

    /// What a verb prints, which must succeed.
    pub(crate) fn good(&self, args: &[&str]) -> String {
        let ran = self.ctl(args);
        assert_eq!(ran.status, 0, "schedctl {args:?}: {ran:?}");
        ran.out
    }

    /// The JSON of a verb, which must succeed.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let out = self.good(&[args, &["-o", "json"]].concat());
        serde_json::from_str(&out).unwrap_or_else(|e| panic!("schedctl {args:?}: {e}: {out}"))
    }

    /// Submits and gives the instance's id.
    pub(crate) fn run(&self, task: &str, args: &[&str]) -> String {
        self.good(&[&["run", task, "-q"], args].concat()).trim().to_owned()
    }

    // --- definitions ---

    /// Writes a file of the spec directory in one step.
    pub(crate) fn write_spec(&self, file: &str, text: &str) {
        let draft = self.spec_path(&format!(".{file}.new"));
        fs::write(&draft, text).unwrap();
        fs::rename(&draft, self.spec_path(file)).unwrap();
    }

    /// Puts a definition in force; returns once it is.
    pub(crate) fn put(&self, spec: &TaskSpec) {
        self.put_all(std::slice::from_ref(spec));
    }

    /// Puts definitions in force; returns once all are.
    pub(crate) fn put_all(&self, specs: &[TaskSpec]) {
        for spec in specs {
            self.write_spec(&format!("{}.yaml", spec.id()), &spec.text());
        }
        self.good(&["reload"]);
        for spec in specs {
            let found = self.get(&format!("/tasks/{}", spec.id()));
            assert_eq!(found["spec"]["handler"], spec.handler(), "{found:#}");
        }
    }

    /// A shell task in force.
    pub(crate) fn task(&self, task: &str, script: &str) {
        self.put(&TaskSpec::shell(task, script));
    }

    // --- waits ---

    /// Waits for what `look` sees, 20 s at most.
    pub(crate) fn until<T>(&self, what: &str, look: impl FnMut() -> Option<T>) -> T {
        look_until(WITHIN, look).unwrap_or_else(|| panic!("not within {WITHIN:?}: {what}"))
    }

    /// Waits for what must be live soon, 3 s at most.
    pub(crate) fn soon<T>(&self, what: &str, look: impl FnMut() -> Option<T>) -> T {
        look_until(SOON, look).unwrap_or_else(|| panic!("not within {SOON:?}: {what}"))
    }

    /// Waits until an instance is in a state.
    pub(crate) fn until_state(&self, id: &str, state: &str) -> Value {
        self.until(&format!("{id} {state}"), || {
            Some(self.instance(id)).filter(|i| i["state"] == state)
        })
    }

    /// Waits until an instance has ended for good, in this state.
    pub(crate) fn until_over(&self, id: &str, state: &str) -> Value {
        let over = self.until(&format!("{id} over, {state}"), || {
            let instance = self.instance(id);
            let ended = matches!(
                instance["state"].as_str(),
                Some("SUCCEEDED" | "FAILED" | "TIMEOUT" | "CANCELLED")
            );
            (ended && instance["nextRetryAt"].is_null()).then_some(instance)
        });
        assert_eq!(over["state"], state, "{over:#}");
        over
    }

    /// Waits until nothing is open any more.
    pub(crate) fn until_idle(&self) {
        self.until("nothing open", || {
            (self.get("/status")["instances"]["open"] == 0).then_some(())
        });
    }

    /// Waits until nothing of a task is open any more, and gives its instances, newest first.
    pub(crate) fn until_count(&self, task: &str, state: &str, count: usize) -> Vec<Value> {
        self.until(&format!("{count} of {task} {state}"), || {
            Some(self.instances(task))
                .filter(|all| all.iter().filter(|i| i["state"] == state).count() >= count)
        })
    }
}

impl Drop for Sched {
    fn drop(&mut self) {
        if std::thread::panicking() {
            #[expect(clippy::print_stderr, reason = "a failed test shows what the daemon said")]
            {
                eprintln!("--- schedd under {} said:\n{}", self.dir().display(), self.output());
                eprintln!("--- its configuration: {}", self.config);
            }
        }
        if let Some(mut daemon) = self.daemon.take() {
            Command::new(env!("CARGO_BIN_EXE_schedctl"))
                .args(["shutdown", "--cancel", "-y", "--socket"])
                .arg(self.socket())
                .stdin(Stdio::null())
                .output()
                .ok();
            if look_until(END_WITHIN, || daemon.try_wait().ok().flatten()).is_none() {
                daemon.kill().ok();
                daemon.wait().ok();
            }
        }
        look_until(END_WITHIN, || {
            let left = members_of(self.dir());
            for pid in &left {
                signal(*pid, Signal::SIGKILL);
            }
            left.is_empty().then_some(())
        });
    }
}
