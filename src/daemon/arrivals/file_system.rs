//! What kind of file system a directory is on: whether changes of its files give events here, and
//! whether they are files at all.

use std::path::Path;

/// What matters of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileSystem {
    /// Every change gives an event.
    Local,
    /// Others change files without an event here, nor an error (known fault B161).
    Remote(&'static str),
    /// The kernel's own state in the shape of files, whose times mean nothing.
    Kernel(&'static str),
}

use FileSystem::{Kernel, Local, Remote};

/// By the numbers of `linux/magic.h` and, for what is not in the kernel, of coreutils' `stat`,
/// whose list of what is remote this is. Overlays are not in it: what changes through them, as in
/// a container, gives events.
const KINDS: [(u32, FileSystem); 36] = [
    (0x0000_6969, Remote("nfs")),
    (0x0000_517b, Remote("smb")),
    (0xff53_4d42, Remote("cifs")),
    (0xfe53_4d42, Remote("smb2")),
    (0x6573_5546, Remote("fuse")),
    (0x0102_1997, Remote("9p")),
    (0x00c3_6400, Remote("ceph")),
    (0x5346_414f, Remote("afs")),
    (0x6b41_4653, Remote("afs")),
    (0x0bd0_0bd0, Remote("lustre")),
    (0x4750_4653, Remote("gpfs")),
    (0x0116_1970, Remote("gfs")),
    (0x7461_636f, Remote("ocfs2")),
    (0x1983_0326, Remote("beegfs")),
    (0xaad7_aaea, Remote("panfs")),
    (0x7375_7245, Remote("coda")),
    (0x0000_564c, Remote("ncp")),
    (0x786f_4256, Remote("vboxsf")),
    (0xbacb_acbc, Remote("vmhgfs")),
    (0x7c7c_6673, Remote("prl_fs")),
    (0x0000_9fa0, Kernel("proc")),
    (0x6265_6572, Kernel("sysfs")),
    (0x0027_e0eb, Kernel("cgroup")),
    (0x6367_7270, Kernel("cgroup2")),
    (0x6462_6720, Kernel("debugfs")),
    (0x7472_6163, Kernel("tracefs")),
    (0x7363_6673, Kernel("securityfs")),
    (0x6265_6570, Kernel("configfs")),
    (0xcafe_4a11, Kernel("bpf")),
    (0xf97c_ff8c, Kernel("selinux")),
    (0xde5e_81e4, Kernel("efivarfs")),
    (0x6165_676c, Kernel("pstore")),
    (0x0000_1cd1, Kernel("devpts")),
    (0x4249_4e4d, Kernel("binfmt_misc")),
    (0x6e73_6673, Kernel("nsfs")),
    (0x6573_5543, Kernel("fusectl")),
];

/// The file system that a directory is on; local if it does not say. Blocking.
pub(super) fn file_system(dir: &Path) -> FileSystem {
    let Ok(fs) = nix::sys::statfs::statfs(dir) else { return Local };
    // The numbers have 32 bits; some are negative where the field is signed.
    kind(fs.filesystem_type().0 & 0xffff_ffff)
}

fn kind(magic: i64) -> FileSystem {
    let found = KINDS.iter().find(|(number, _)| i64::from(*number) == magic);
    found.map_or(Local, |(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_kernel_are_told_apart() {
        // linux/magic.h: EXT4, XFS, BTRFS, TMPFS, OVERLAYFS.
        for magic in [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630] {
            assert_eq!(kind(magic), Local, "{magic:x}");
        }
        // NFS, CIFS, FUSE; PROC.
        assert_eq!(kind(0x6969), Remote("nfs"));
        assert_eq!(kind(0xff53_4d42), Remote("cifs"));
        assert_eq!(kind(0x6573_5546), Remote("fuse"));
        assert_eq!(kind(0x9fa0), Kernel("proc"));
    }

    #[test]
    fn a_directory_says_what_it_is_on() {
        assert_eq!(file_system(Path::new("/proc/self")), Kernel("proc"));
        assert_eq!(file_system(Path::new("/nowhere/at/all")), Local);
    }
}
