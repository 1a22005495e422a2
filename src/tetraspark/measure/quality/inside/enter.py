"""Process 1 of new namespaces: builds what the sandbox shows, and runs one program in it.

Started by `tetraspark.measure.quality.sandbox` with a description as its argument. Ends with 96,
and the reason on stderr, when the sandbox cannot be built: the program has not run then.
"""

import ctypes
import errno
import json
import os
import resource
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

UNBUILT = 96
LATE = 97
# mount(2), mount_setattr(2), umount2(2), keyctl(2) and prctl(2), as in the kernel's headers.
MS_REC_BIND = 0x4000 | 0x1000
MNT_DETACH = 2
SYS_MOUNT_SETATTR = 442
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
RDONLY_NOSUID_NODEV = 1 | 2 | 4
# Memory that no limit of a process counts: shmget(2) and memfd_create(2), and the queues and
# semaphores of System V, whose objects outlive who made them.
REFUSED_CALLS = {
    "x86_64": (0xC000003E, (29, 319, 68, 64)),
    "aarch64": (0xC00000B7, (194, 279, 186, 190)),
}
"""Architecture of audit.h, and the numbers of shmget, memfd_create, msgget and semget."""
X32_CALLS = 0x40000000
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
SECCOMP_ALLOW, SECCOMP_ERRNO = 0x7FFF0000, 0x00050000
BPF_LOAD, BPF_EQUAL, BPF_AT_LEAST, BPF_RETURN = 0x20, 0x15, 0x35, 0x06
SYS_KEYCTL = {"x86_64": 250, "aarch64": 219}
KEYCTL_JOIN_SESSION_KEYRING = 1
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
NUMBERED_CAPABILITIES = 64
LIBC = ctypes.CDLL(None, use_errno=True)


class MountAttributes(ctypes.Structure):
    """`struct mount_attr` of mount_setattr(2)."""

    _fields_ = tuple((name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "user"))


def check(result: int, what: str) -> None:
    """Raise OSError when a call of the C library failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None) -> None:
    """Mount; the texts are as in mount(2)."""
    texts = [None if text is None else text.encode() for text in (source, target, kind)]
    data = None if options is None else options.encode()
    check(LIBC.mount(*texts, ctypes.c_ulong(flags), data), f"mount {target}")


def lock(path: str) -> None:
    """Make a mount and all below it read-only, without devices and setuid programs."""
    wanted = MountAttributes(set=RDONLY_NOSUID_NODEV)
    arguments = (AT_FDCWD, path.encode(), AT_RECURSIVE, ctypes.byref(wanted))
    size = ctypes.c_size_t(ctypes.sizeof(wanted))
    check(LIBC.syscall(SYS_MOUNT_SETATTR, *arguments, size), f"mount_setattr {path}")


def build(place: str, shown: Sequence[str], room: int) -> None:
    """Make a root of its own in which nothing but the shown folders and /tmp is, and go there."""
    os.umask(0o022)  # whatever the caller's is: the program must be able to look into folders
    view = f"{place}/view"
    mount("sandbox", place, "tmpfs", 0, "mode=755,size=1m")
    Path(view, "tmp").mkdir(parents=True)
    Path(place, "old").mkdir()
    for path in shown:
        show(Path(path), Path(view + path))
    lock(place)
    mount("sandbox", f"{view}/tmp", "tmpfs", 2 | 4, f"mode=777,size={room}")
    check(LIBC.pivot_root(place.encode(), f"{place}/old".encode()), "pivot_root")
    os.chdir("/view")
    check(LIBC.umount2(b"/old", MNT_DETACH), "umount /old")
    # Within a chroot the kernel makes no user namespace, in which it would give powers back.
    os.chroot(".")
    os.chdir("/tmp")


def show(path: Path, target: Path) -> None:
    """Show a folder or file of the host, or a link such as /lib -> usr/lib."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        target.symlink_to(path.readlink())
        return
    if path.is_dir():
        target.mkdir(exist_ok=True)
    else:
        target.touch()
    mount(str(path), str(target), None, MS_REC_BIND, None)


def leave_keys() -> None:
    """Get a session keyring of its own: the caller's may hold tickets, and is inherited."""
    number = SYS_KEYCTL.get(os.uname().machine)
    if number is None:
        raise OSError(errno.ENOSYS, f"keyctl on {os.uname().machine}: not known here")
    joined = LIBC.syscall(number, KEYCTL_JOIN_SESSION_KEYRING, None)
    # A kernel without keys, or one that refuses them to us, gives none to the program either.
    if joined < 0 and ctypes.get_errno() not in (errno.ENOSYS, errno.EPERM):
        check(joined, "keyctl")


class Instruction(ctypes.Structure):
    """`struct sock_filter` of the kernel's headers."""

    _fields_ = (
        ("code", ctypes.c_uint16),
        ("then", ctypes.c_uint8),
        ("otherwise", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    )


class Filter(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("first", ctypes.POINTER(Instruction)))


def refuse_calls() -> None:
    """Refuse REFUSED_CALLS for good with EPERM, and every call by another architecture's table."""
    machine = os.uname().machine
    if machine not in REFUSED_CALLS:
        raise OSError(errno.ENOSYS, f"seccomp on {machine}: not known here")
    architecture, calls = REFUSED_CALLS[machine]
    tests = [(BPF_AT_LEAST, X32_CALLS), *((BPF_EQUAL, call) for call in calls)]
    refusal = len(tests) + 1
    program = [
        (BPF_LOAD, 0, 0, 4),
        (BPF_EQUAL, 0, refusal + 1, architecture),
        (BPF_LOAD, 0, 0, 0),
        *((code, refusal - 1 - place, 0, value) for place, (code, value) in enumerate(tests)),
        (BPF_RETURN, 0, 0, SECCOMP_ALLOW),
        (BPF_RETURN, 0, 0, SECCOMP_ERRNO | errno.EPERM),
    ]
    filled = (Instruction * len(program))(*(Instruction(*one) for one in program))
    told = Filter(len(program), filled)
    check(LIBC.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(told), 0, 0), "seccomp")


def become(uid: int | None, limits: Mapping[str, int]) -> None:
    """Give up every power; `uid` is None in a user namespace, whose own root has none outside."""
    leave_keys()
    for name, most in limits.items():
        resource.setrlimit(getattr(resource, name), (most, most))
    for capability in range(NUMBERED_CAPABILITIES):
        LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    check(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    refuse_calls()


def start(told: Mapping[str, Any], failed: int) -> None:
    """Become the program. What prevents that is written to the pipe `failed`."""
    try:
        become(told["uid"], told["limits"])
        argv = [told["python"], "-I", "-S", "-c", told["program"]]
        os.execve(told["python"], argv, {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"})
    except BaseException as error:
        os.write(failed, str(error).encode())
        os._exit(UNBUILT)


def main(told: Mapping[str, Any]) -> None:
    """Build, start the program, wait for it; the end of process 1 ends all that it started."""
    build(told["place"], told["shown"], told["room"])
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        start(told, writer)
    os.close(writer)
    signal.signal(signal.SIGALRM, lambda number, frame: os._exit(LATE))
    signal.setitimer(signal.ITIMER_REAL, told["seconds"])
    reason = os.read(reader, 1000)
    if reason:
        raise OSError(reason.decode(errors="replace"))
    os.waitpid(child, 0)


if __name__ == "__main__":
    try:
        main(json.loads(sys.argv[1]))
    except Exception as error:
        sys.stderr.write(f"{error}\n")
        sys.stderr.flush()
        os._exit(UNBUILT)
