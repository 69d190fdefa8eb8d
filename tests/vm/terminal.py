#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Types into the shell of `make vm`, on a terminal, and checks what comes back.

The commands contain sums, so that the echo of a command differs from its output.
"""
import contextlib
import fcntl
import os
import pty
import signal
import struct
import sys
import termios

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Each expected output, with the input that is typed after it.
TALK = ((b"# ", b"echo $((6 * 7))00 $(tty)\r"),
        (b"4200 /dev/ttyS1", b""),
        (b"# ", b"stty size\r"),
        (b"33 99", b""),
        (b"# ", b"flexmem info | head -n 1\r"),
        (b"/dev/flexmem", b""),
        # Once the command prints, it is in the foreground and gets the Ctrl-C. Before that, the shell would get the
        # Ctrl-C.
        (b"# ", b"sh -c 'echo n$((6 * 7)); exec sleep 1000'; echo $((1))on\r"),
        (b"n42", b"\x03"),
        (b"# ", b"exit 5\r"),
        (b"Error 5", b""))


def expect(master, text, said):
    """Reads until `text` comes. Removes it, and what precedes it, from `said`. Returns False at the end of the output,
    or if "1on" precedes the text: the echo in TALK that shows that the shell went on after the Ctrl-C."""
    while text not in said:
        try:
            part = os.read(master, 4096)
        except OSError:
            part = b""
        if not part:
            return False
        said += part
        os.write(1, part)
    went_on = b"1on" in said[:said.index(text)]
    del said[:said.index(text) + len(text)]
    return not went_on


def talk(process, master):
    said = bytearray()
    for text, line in TALK:
        if not expect(master, text, said):
            print(f"\nno {text!r}")
            return 1
        os.write(master, line)
    while expect(master, b"\n", said):
        pass
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    print(f"\nexit status {status} of make, wanted 2")
    return status != 2


def main():
    process, master = pty.fork()
    if not process:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 99, 0, 0))
        for name in [name for name in os.environ if name.startswith("MAKE") or name in ("CMD", "COLUMNS")]:
            del os.environ[name]
        os.environ["TERM"] = "dumb"
        os.execvp("make", ["make", "-C", TOP, "vm"])
    # The alarm ends a run that hangs. The machine ends with this process.
    for number in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(number, lambda number, _: sys.exit(f"signal {number}"))
    signal.alarm(1800)
    try:
        return talk(process, master)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process, signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
