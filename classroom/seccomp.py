"""A filter for system calls, for bubblewrap, built without libseccomp.

libseccomp could write it from names alone. Its own Python binding comes only with the Python of a Linux
distribution, not as a package for pip. The package that there is (pyseccomp, last released in 2021) looks for
a libseccomp on the machine. That may be missing, or too old to know the newest of these calls, which would
then not be filtered. bubblewrap wants the finished program, not the library. So the numbers are here, and
tests run the filter.

The kernel checks every system call against a classic BPF program (Linux, Documentation/userspace-api/
seccomp_filter.rst). Namespaces already keep a process from most of what is refused here; the filter keeps it
from the kernel's code behind these calls, too, and from kernel memory that no other limit counts.
Everything that is not named is allowed: Python and torch use several hundred calls.
"""

from __future__ import annotations

import platform
import struct

# name: (number on x86_64, number on aarch64); None where the processor has no such call.
REFUSED = {
    # other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    # mounts and namespaces: with a namespace of its own, a process has capabilities again
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "unshare": (272, 97),
    "setns": (308, 268),
    # keys, programs in the kernel, asynchronous calls that bypass a filter
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    # memory that belongs to no process and to no mounted file system, so that no watch would see it
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    # the machine
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
}
# These claim success, but do nothing. Device files are the machine's own, and belong to a superuser who
# grades. Programs change modes in passing (shutil.copy does), so they get no error.
IGNORED = {
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "setxattr": (188, 5),  # access control lists are modes, too
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "file_setattr": (469, 469),
}
CLONE, CLONE3, IOCTL, SOCKET = (56, 220), (435, 435), (16, 29), (41, 198)

# Machine's name: (its column above, AUDIT_ARCH_* of linux/audit.h).
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

NEW_NAMESPACE = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: typing into a terminal
SOCKETS = (1, 2, 10)  # AF_UNIX, AF_INET, AF_INET6: the network namespace is empty; AF_VSOCK has none
X32 = 0x40000000  # numbers of the x32 calls, a second table of x86_64

# struct seccomp_data: int nr; u32 arch; u64 instruction_pointer; u64 args[6]. Little-endian on both machines.
NUMBER, ARCH, FIRST, SECOND = 0, 4, 16, 24
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # BPF_LD|W|ABS, BPF_JMP|… |K, BPF_RET|K
ALLOW, KILL, ERROR = 0x7FFF0000, 0x80000000, 0x00050000  # SECCOMP_RET_ALLOW, _KILL_PROCESS, _ERRNO
EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97


def filter_for(machine: str | None = None) -> bytes:
    """The filter as an array of ``struct sock_filter``, what ``bwrap --seccomp`` reads; b"" if there is none.

    Args:
        machine: default ``platform.machine()``. There is a filter for x86_64 and aarch64.

    >>> len(filter_for("x86_64")) % 8, filter_for("riscv64")
    (0, b'')
    """
    machine = machine or platform.machine()
    if machine not in MACHINES:
        return b""
    column, arch = MACHINES[machine]
    # A 32-bit program has other numbers, so nothing below would hold for it.
    program = [(LOAD, 0, 0, ARCH), (EQUAL, 1, 0, arch), (RETURN, 0, 0, KILL), (LOAD, 0, 0, NUMBER)]
    program += _when((AT_LEAST, X32), ERROR | ENOSYS)
    for numbers in REFUSED.values():
        if numbers[column] is not None:
            program += _when((EQUAL, numbers[column]), ERROR | EPERM)
    for numbers in IGNORED.values():
        if numbers[column] is not None:
            program += _when((EQUAL, numbers[column]), ERROR)
    # clone3 has its flags in memory, where a filter cannot read. Without it, the C library uses clone.
    program += _when((EQUAL, CLONE3[column]), ERROR | ENOSYS)
    program += _on(CLONE[column], FIRST, _when((ANY_BIT, NEW_NAMESPACE), ERROR | EPERM))
    typing = [line for request in TERMINAL_INPUT for line in _when((EQUAL, request), ERROR | EPERM)]
    program += _on(IOCTL[column], SECOND, typing)
    known = [(EQUAL, len(SOCKETS) - at, 0, family) for at, family in enumerate(SOCKETS)]
    program += _on(SOCKET[column], FIRST, [*known, (RETURN, 0, 0, ERROR | EAFNOSUPPORT)])
    program.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("<HBBI", *line) for line in program)


def _when(condition, verdict):
    """End with `verdict` if the condition holds for what was loaded last."""
    code, value = condition
    return [(code, 0, 1, value), (RETURN, 0, 0, verdict)]


def _on(number, argument, lines):
    """`lines` look at the lower half of an argument of one system call; after them, all is allowed."""
    lines = [(LOAD, 0, 0, argument), *lines, (RETURN, 0, 0, ALLOW)]
    return [(EQUAL, 0, len(lines), number), *lines]
