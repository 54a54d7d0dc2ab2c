"""Runs a command in which the system refuses some system calls, as `SystemCallFilter` of a unit has it.

    python tests/deploy/refusing_calls.py 141,144 COMMAND…

The numbers are those of x86-64; a refused call fails with EPERM (seccomp(2), mode 2).
"""

import ctypes
import os
import struct
import sys

_LOAD_NUMBER = (0x20, 0, 0, 0)  # BPF_LD | BPF_W | BPF_ABS: the number of the call
_ALLOW = (0x06, 0, 0, 0x7FFF0000)
_REFUSE = (0x06, 0, 0, 0x00050000 | 1)  # EPERM
_IS_EQUAL = 0x15
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2


def refuse(numbers: list[int]) -> None:
    """Refuse these calls to this process and all that come from it."""
    code = [_LOAD_NUMBER]
    for number in numbers:
        code += [(_IS_EQUAL, 0, 1, number), _REFUSE]
    program = b"".join(struct.pack("<HBBI", *one) for one in [*code, _ALLOW])
    kept = ctypes.create_string_buffer(program)
    described = struct.pack("<HxxxxxxQ", len(code) + 1, ctypes.addressof(kept))
    libc = ctypes.CDLL(None, use_errno=True)
    for call in ((_NO_NEW_PRIVILEGES, 1, 0, 0, 0), (_SECCOMP, _FILTER, described, 0, 0)):
        if libc.prctl(*call):
            raise OSError(ctypes.get_errno(), "seccomp")


if __name__ == "__main__":
    refuse([int(one) for one in sys.argv[1].split(",")])
    os.execvp(sys.argv[2], sys.argv[2:])
