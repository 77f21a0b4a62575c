//! Who a task runs as, looked up in the user database.
//!
//! It blocks; it changes nothing and knows nothing of processes.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nix::unistd::{Gid, Group, Uid, User, getegid, geteuid, getgrouplist};

use super::clock;
use super::process::Ids;
use super::start::{StartError, c_string};

/// For how long the executor's own user is not looked up again.
const OWN_USER_FOR: Duration = Duration::from_secs(60);

/// Who a task runs as.
pub(super) struct Account {
    /// Login name.
    pub(super) name: String,
    /// Home directory.
    pub(super) home: String,
    /// User.
    pub(super) uid: Uid,
    /// What must be changed for that; `None`: it is whoever we are.
    pub(super) ids: Option<Ids>,
}

/// The executor's own entry in the user database, as most starts need it, looked up now and then.
#[derive(Default)]
pub(super) struct OwnUser {
    // Not held while the database is asked, which may take its time.
    known: Mutex<Option<(Duration, User)>>,
}

impl OwnUser {
    /// The entry, asked for if the last answer is old. That there is none, or no answer, is not
    /// kept; without an answer the last entry serves on.
    fn find(&self, now: Duration, ask: impl FnOnce() -> nix::Result<Option<User>>) -> Option<User> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let last = known().clone();
        match last {
            Some((at, user)) if now.saturating_sub(at) < OWN_USER_FOR => Some(user),
            last => {
                let Ok(found) = ask() else { return last.map(|(_, user)| user) };
                *known() = found.clone().map(|user| (now, user));
                found
            }
        }
    }
}

/// Looks up who the task runs as; [`Account::ids`] is set only if that is somebody else.
/// Blocks, for as long as the user database takes.
///
/// # Errors
/// [`StartError`]: there is no such user or group, or the database did not answer.
pub(super) fn account(
    user: Option<&str>,
    group: Option<&str>,
    own: &OwnUser,
) -> Result<Account, StartError> {
    let lookup = |what: &str, name: &str, error: nix::errno::Errno| {
        StartError::io(&format!("cannot look up {what} {name}"), &error.into())
    };
    let me = geteuid();
    let found = match user {
        Some(name) => {
            Some(User::from_name(name).map_err(|e| lookup("user", name, e))?.ok_or_else(|| {
                StartError::plain(format!("user {name} is not in the user database"))
            })?)
        }
        None => own.find(clock::monotonic(), || User::from_uid(me)),
    };
    let asked_gid = match group {
        Some(name) => Some(
            Group::from_name(name)
                .map_err(|e| lookup("group", name, e))?
                .ok_or_else(|| {
                    StartError::plain(format!("group {name} is not in the group database"))
                })?
                .gid,
        ),
        None => None,
    };
    let Some(found) = found else {
        // An executor whose user has no entry, as in some containers.
        let name = me.to_string();
        let ids = asked_gid.filter(|gid| *gid != getegid()).map(|gid| Ids {
            uid: me,
            gid,
            groups: vec![gid],
        });
        return Ok(Account { name, home: "/".to_owned(), uid: me, ids });
    };
    let home = found.dir.to_string_lossy().into_owned();
    let gid = asked_gid.unwrap_or(if user.is_some() { found.gid } else { getegid() });
    let same = found.uid == me && gid == getegid();
    let ids = if same { None } else { Some(ids(&found, gid)?) };
    Ok(Account { name: found.name, home, uid: found.uid, ids })
}

fn ids(user: &User, gid: Gid) -> Result<Ids, StartError> {
    let name = c_string(&user.name)?;
    let groups = getgrouplist(&name, gid).map_err(|errno| {
        StartError::io(&format!("cannot look up the groups of user {}", user.name), &errno.into())
    })?;
    Ok(Ids { uid: user.uid, gid, groups })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_user_is_asked_for_once_a_minute_and_a_failure_is_not_kept() {
        let own = OwnUser::default();
        let me = User::from_uid(Uid::from_raw(0)).unwrap().unwrap();
        let at = Duration::from_secs;
        let unasked = || -> nix::Result<Option<User>> { panic!("asked") };
        let failed = || Err(nix::errno::Errno::EIO);
        assert_eq!(own.find(at(1), failed), None);
        assert_eq!(own.find(at(1), || Ok(None)), None);
        assert_eq!(own.find(at(2), || Ok(Some(me.clone()))), Some(me.clone()));
        assert_eq!(own.find(at(61), unasked), Some(me.clone()));
        assert_eq!(own.find(at(62), failed), Some(me), "the last answer serves on");
        assert_eq!(own.find(at(62), || Ok(None)), None, "removed meanwhile");
    }
}
