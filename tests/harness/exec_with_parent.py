"""A launcher: become the given command, in such a way that it is killed when the starting process dies.

Called as `python exec_with_parent.py PARENT_PID COMMAND ARGS...`. It replaces itself by the command, so the process
id stays. On Linux the kernel then ends the process with its parent (more exactly: with the thread that started it);
elsewhere the command runs without that guard.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Set the guard, look whether the parent is still there, and become the command."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit(1)
    try:
        os.execvp(command[0], command)  # noqa: S606  # becoming the command is what this file is for
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
