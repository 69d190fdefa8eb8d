# SPDX-License-Identifier: GPL-2.0
"""Helpers for the tests of the flexmem command: they run the command and print TAP."""

import errno
import fcntl
import gzip
import json
import os
import pty
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import traceback

BUILD = os.environ.get("BUILD", os.path.join(os.path.dirname(__file__), "../../build/tests/userlib"))
TOOL = os.path.join(BUILD, "flexmem-fake")
HERE = os.path.dirname(os.path.abspath(__file__))
MAN = os.path.join(HERE, "../../Documentation/man/flexmem.1")
GIB = 1 << 30
HEADER = "# flexmem-trace 1\n# made up\n"
SMALL = HEADER + "0 a 1 1000 0\n1 a 2 2000 0\n2 f 1\n3 a 3 500 0\n4 f 2\n5 f 3\n"

tests = []
tmp = tempfile.TemporaryDirectory(prefix="flexmem-test-")


def test(function):
    tests.append(function)
    return function


def run(*args, stdin="", **env):
    env = {**os.environ, **{key: str(value) for key, value in env.items()}}
    done = subprocess.run([TOOL, *args], input=stdin, env=env, capture_output=True, text=True,
                          timeout=300, check=False)
    assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


def good(*args, **kwargs):
    status, out, err = run(*args, **kwargs)
    assert (status, err) == (0, ""), (status, out, err)
    return out


def report(*args, **kwargs):
    return json.loads(good("--json", *args, **kwargs))


def error_of(args, **kwargs):
    """Runs a command that must fail with --json. Returns the error, which must be all that it prints on stdout."""
    status, out, err = run(*args, **kwargs)
    found = json.loads(out)
    assert status in (1, 2) and list(found) == ["error"], (args, status, out, err)
    found = found["error"]
    assert found["errno"] < 0 and found["name"] == errno.errorcode[-found["errno"]], found
    # The text on stderr is the text of the report.
    assert err.startswith(("flexmem: ", "flexmem " + args[0])) and found["text"] in err, (found, err)
    assert status == 1 or found["name"] == "EINVAL", found
    return found


class Tree:
    """Directories in place of a mounted cgroup file system. The number of a cgroup is its directory's inode number."""

    def __init__(self, *paths, kind="cgroup2"):
        self.root = tempfile.mkdtemp(dir=tmp.name, prefix="cgroup ")
        for path in paths:
            os.makedirs(self.root + path)
        self.mounts = self.root + ".mounts"
        with open(self.mounts, "w", encoding="ascii") as file:
            name = self.root.replace(" ", "\\040")
            file.write(f"proc /proc proc rw 0 0\n{kind} {name} {kind} rw 0 0\nother /nowhere cgroup2 rw 0 0\n")

    def id(self, path):
        return os.stat(self.root + path).st_ino

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root)


def six_digits(number):
    """Returns a computed number with the precision with which the command prints it."""
    return float(f"{number:.6g}")


def trace(text, name="t.trace", compress=False):
    path = os.path.join(tmp.name, name)
    data = text.encode()
    with open(path, "wb") as file:
        file.write(gzip.compress(data) if compress else data)
    return path


def on_terminal(*args, columns, stdin_lines=b"", **env):
    """Runs the command on a pty with the given number of columns. Returns its status and its output."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    attributes = termios.tcgetattr(slave)
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
    env = {**os.environ, **{key: str(value) for key, value in env.items()}}
    with subprocess.Popen([TOOL, *args], stdin=slave, stdout=slave, stderr=slave, env=env) as process:
        os.close(slave)
        os.write(master, stdin_lines)
        output = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:
                break
            if not part:
                break
            output += part
    os.close(master)
    return process.returncode, output.decode().replace("\r\n", "\n")


def main(functions):
    failed = 0
    print(f"1..{len(functions)}")
    for number, function in enumerate(functions, 1):
        try:
            function()
            print(f"ok {number} - {function.__name__}")
        except Exception:  # pylint: disable=broad-except
            failed += 1
            print(f"not ok {number} - {function.__name__}")
            print("".join("# " + line + "\n" for line in traceback.format_exc().splitlines()))
        sys.stdout.flush()
    return 1 if failed else 0
