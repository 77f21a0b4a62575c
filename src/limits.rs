//! Every bound of the program in one place.

use std::time::Duration;

/// Bytes of a task id (contract §2).
pub const TASK_ID_BYTES_MAX: usize = 200;
/// Bytes of one spec file.
pub const SPEC_FILE_BYTES_MAX: usize = 256 * 1024;
/// Nesting of a spec file.
pub const SPEC_DEPTH_MAX: usize = 32;
/// Values in a spec file.
pub const SPEC_NODES_MAX: usize = 20_000;
/// Bytes of a condition on an edge.
pub const CONDITION_BYTES_MAX: usize = 1024;
/// Nesting of a condition on an edge, in brackets and in operators.
pub const CONDITION_DEPTH_MAX: u16 = 24;
/// Values that a condition which goes through a list or map may be asked about.
pub const CONDITION_VALUES_MAX: usize = 1000;
/// Faults of one file that are told; the others are counted.
pub const SPEC_FAULTS_MAX: usize = 200;
/// Longest duration that a spec or the configuration may name: a hundred years.
pub const DURATION_MAX: Duration = Duration::from_secs(100 * 365 * 86_400);
/// Bytes of one text, or of all texts of a set of parameters, once placeholders are filled in: the
/// kernel hands a program no longer argument or variable.
pub const FILLED_BYTES_MAX: usize = 128 * 1024;
/// Bytes of all arguments of a task once they are filled in: about what the kernel hands over.
pub const ARGUMENTS_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Bytes of a dedup key once it is filled in.
pub const DEDUP_KEY_BYTES_MAX: usize = 1024;
/// Paths in a task's `outputs`.
pub const OUTPUTS_MAX: usize = 256;
/// Bytes of all of a task's `outputs` once they are filled in: dependents get them in a variable.
pub const OUTPUTS_BYTES_MAX: usize = 32 * 1024;
/// Bytes of an instance's message.
pub const MESSAGE_BYTES_MAX: usize = 4096;
/// Bytes of a parameter's pattern.
pub const PATTERN_BYTES_MAX: usize = 1024;
/// Bytes of a pattern once it is compiled.
pub const PATTERN_COMPILED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Patterns of one spec file: each takes some milliseconds to compile.
pub const PATTERNS_MAX: usize = 100;
/// Bytes of a cron expression.
pub const CRON_BYTES_MAX: usize = 1024;
/// Bytes of a request's body.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of a request to plan or apply files: a large spec directory as JSON.
pub const PLAN_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Files of a request to plan or apply.
pub const PLAN_FILES_MAX: usize = 10_000;
/// Bytes of a file's name, the kernel's bound.
pub const FILE_NAME_BYTES_MAX: usize = 255;
/// Bytes of a task's result file (contract §3).
pub const RESULT_BYTES_MAX: usize = 64 * 1024;
/// Lists and objects in one another in a parameter, an event's parameters or a task's output.
pub const JSON_DEPTH_MAX: usize = 64;
/// Bytes of one frame between daemon and executor.
pub const FRAME_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of a Unix socket's path, the kernel's bound without the closing NUL.
pub const SOCKET_PATH_BYTES_MAX: usize = 107;
/// Events that wait for the core.
pub const EVENT_QUEUE: usize = 4096;
/// Events handled in one turn of the loop, and so in one commit at most.
pub const BATCH_MAX: usize = 1024;
/// Files that one event tells of: each may start a wave.
pub const ARRIVALS_MAX: usize = 64;
/// Events about files that may wait for the core: what else happens waits behind few of them.
pub const ARRIVAL_EVENTS_MAX: usize = 4;
/// Records that a follower may lag behind before it must read from the store.
pub const FEED_QUEUE: usize = 4096;
/// Ledger rows that are looked through for the one that counts a time: ten days of every ten seconds.
pub const LEDGER_ROWS_MAX: usize = 100_000;
/// Upstreams that one explanation tells of.
pub const BLOCKERS_MAX: usize = 100;
/// Instances and edges that the picture of one cycle shows.
pub const GRAPH_INSTANCES_MAX: usize = 2000;
/// Rows of one page of a list.
pub const PAGE_MAX: usize = 1000;
/// Connections to the door.
pub const CONNECTIONS_MAX: usize = 512;
/// Time that systemd is asked for while the store is opened.
pub const START_WITHIN: Duration = Duration::from_secs(600);
/// Time in which a signalled stop must be over.
pub const STOP_WITHIN: Duration = Duration::from_secs(2);
/// Quiet time after which a changed spec file is read that nobody was heard to close.
pub const SPEC_SETTLE: Duration = Duration::from_millis(50);
/// Quiet time after which a spec file is read although somebody still has it open for writing.
pub const SPEC_OPEN_SETTLE: Duration = Duration::from_secs(1);
/// Time after which what spec files lost is told although others of them are still being changed.
pub const SPEC_MOVE_SETTLE: Duration = Duration::from_secs(2);
/// Changed spec files that one event tells of: each may start a wave of work.
pub const SPEC_FILES_PER_EVENT: usize = 64;
/// Files of the spec directory that are not read and are named in the log.
pub const SPEC_IGNORED_NAMED_MAX: usize = 256;
/// Period of the full rescan, whatever the watcher said.
pub const RESCAN_EVERY: Duration = Duration::from_secs(30);
/// Period of checking that the folders of arriving files are still those that are watched: that
/// one was moved together with its parent is not told.
pub const FOLDER_CHECK_EVERY: Duration = Duration::from_secs(2);
/// Period of looking for arrived files on a remote file system, where the task's file names none.
pub const POLL_REMOTE_EVERY: Duration = Duration::from_secs(5);
/// How long a look for arrived files may take, walks of 10 s and all, before a file system is taken
/// to hang.
pub const LOOK_WITHIN: Duration = Duration::from_secs(15);
/// Shortest period of looking for arrived files that a spec may name.
pub const POLL_LEAST: Duration = Duration::from_millis(10);
/// How long a taken file that is gone is remembered, should it come back as it was.
pub const ARRIVAL_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// How long the answer to an order with a key is kept for its repetition.
pub const ANSWER_KEPT: Duration = Duration::from_secs(24 * 3600);
/// How long a stop that cancels or drains waits for an executor that has not connected yet.
pub const STOP_HEARS_WITHIN: Duration = Duration::from_secs(5);
/// Fires that are handled before other events have their turn, unless they are all of one instant.
pub const FIRES_PER_TURN: usize = 1024;
/// Times that triggers of one task share which are looked at, one by one, in one go.
pub const SHARED_LOOKS_MAX: u64 = 100_000;
/// How late a fire may be noticed and still count as seen: the daemon was busy, not away.
pub const FIRE_LATE: Duration = Duration::from_secs(60);
/// A clock that is set forward by more than this was wrong before: what it goes past is not made up.
pub const CLOCK_CORRECTION: Duration = Duration::from_secs(3 * 3600);
/// A difference between the wall clock and the time since the boot that is a step of the clock.
pub const CLOCK_STEP: Duration = Duration::from_secs(1);
/// Cycles of a task in which it fired but made no instance that are remembered, the newest: open
/// edges to them end.
pub const EMPTY_CYCLES_MAX: usize = 256;
/// Rows after which a commit is made before more events are handled.
pub const COMMIT_ROWS: usize = 1024;
/// Instances that one backfill may make, and nominal times that it may go through: all of it is one
/// turn of the core and one commit.
pub const BACKFILL_MAX: usize = 10_000;
/// Cycles with wrong parameters that the refusal of a backfill names.
pub const BACKFILL_FAULTS_MAX: usize = 20;
/// Heartbeats that an executor may miss.
pub const HEARTBEATS_MISSED_MAX: u32 = 3;
/// Times that a lost or preempted attempt is queued again (design, 'Attempts').
pub const REQUEUES_MAX: u32 = 3;
/// Times that a start which failed for want of resources is tried again.
pub const SPAWN_RETRIES_MAX: u32 = 10;
/// Days that a simulation may span.
pub const SIMULATION_DAYS_MAX: u32 = 31;
/// Instances that a simulation may hold.
pub const SIMULATION_INSTANCES_MAX: usize = 200_000;
/// Events that a simulation may take.
pub const SIMULATION_STEPS_MAX: usize = 4_000_000;
/// How long before its beginning a simulation may take up what runs and waits now.
pub const SIMULATION_RUN_UP: Duration = Duration::from_secs(24 * 3600);
/// Times at which most fires come together that a simulation tells, and tasks that it names at each.
pub const SIMULATION_PEAKS_MAX: usize = 10;
/// Past instances of a task from which a simulation learns how long it takes.
pub const SIMULATION_SAMPLES_MAX: usize = 50;
/// Those of all tasks together.
pub const SIMULATION_SAMPLES_ALL_MAX: usize = 100_000;
/// How old an ended instance may be that an edge of a simulated one can still bind to.
pub const SIMULATION_ENDED_KEPT: Duration = Duration::from_secs(3 * 24 * 3600);

const _: () = assert!(BATCH_MAX <= EVENT_QUEUE);
const _: () = assert!(RESULT_BYTES_MAX < FRAME_BYTES_MAX);
// A file that stays open is taken before what may have moved there is told lost.
const _: () = assert!(SPEC_OPEN_SETTLE.as_millis() < SPEC_MOVE_SETTLE.as_millis());
