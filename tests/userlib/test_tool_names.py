#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests that names which tenants choose spoil no output of the flexmem command, and stay different. Prints TAP."""

import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
from tool import HEADER, SMALL, TOOL, main, on_terminal, test, tests, tmp

# A quote, a backslash, ESC, HTML, a byte that is no UTF-8, a full name, line ends, a C1 control, reversed text.
NAMES = (b'"', b"\\", b"\\x1b", b"\x1b[2J", b"<b>", b"\xff", b"\xff" * 255, b"a\nb", b"</script>", b"\xc2\x9b2J",
         b"\xe2\x80\xae", b"\xe2\x80\xa8", b"\xc3\xa4\xf0\x9f\x98\x80", b"\xed\xa0\x80", b"\xe2\x82")


def run_bytes(*args, **env):
    done = subprocess.run([TOOL, *args], env={**os.environ, **env}, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert b"Sanitizer" not in done.stderr and b"runtime error" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


def original(escaped):
    """Reverses the escapes, as flexmem(1) says it."""
    return re.sub(rb"\\(\\|x[0-9a-f]{2})", lambda match: bytes([int(match[1][1:], 16)]) if match[1] != b"\\" else b"\\",
                  escaped.encode())


def expect_printable(output):
    text = output.decode()
    bad = [character for character in text if not (character.isprintable() or character == "\n")]
    assert not bad, bad
    return text


@test
def names_in_errors():
    seen = set()
    for name in NAMES:
        status, out, err = run_bytes("limit", "--cgroup", name, "--json")
        assert status == 2, err
        text = expect_printable(err)
        found = json.loads(out)["error"]["text"]
        assert text.startswith(f"flexmem limit: {found}\n") and text.count("\n") == 2, (text, found)
        name_in_text = re.fullmatch("'(.*)' is no cgroup", found)[1]
        assert original(name_in_text) == name, (name, found)
        seen.add(name_in_text)
    assert len(seen) == len(NAMES), seen


@test
def names_of_files():
    for name in NAMES:
        if b"/" in name:
            continue
        path = os.path.join(os.fsencode(tmp.name), name)
        with open(path, "w", encoding="ascii") as file:
            file.write(SMALL)
        status, out, err = run_bytes("replay", path)
        assert (status, err) == (0, b""), (name, err)
        text = expect_printable(out)
        status, out, _ = run_bytes("replay", "--json", path)
        found = json.loads(out)
        assert status == 0 and original(found["file"]) == path, found
        assert original(text.split("\n", 1)[0]) == name, text
        os.unlink(path)


@test
def names_on_a_terminal():
    """The progress bar has the name of the file, and is as wide as with any other name."""
    for name in NAMES:
        if b"/" in name:
            continue
        path = os.path.join(os.fsencode(tmp.name), name)
        with open(path, "w", encoding="ascii") as file:
            file.write(HEADER + "".join(f"0 a {i} 128 0\n1 f {i}\n" for i in range(500)))
        status, out = on_terminal("replay", path, columns=80, FAKE_TICK=1000000)
        assert status == 0, out
        expect_printable(out.replace("\r", "").encode())
        bars = [bar for bar in out.split("\r") if re.fullmatch(r".* \[[#.-]+\] +\d+%", bar)]
        shown = {original(bar.split(" [#")[0].split(" [.")[0]) for bar in bars if not bar.startswith("reading ")}
        # A name that leaves no room for the bar is not shown.
        assert len(bars) > 50 and shown == {b"" if len(name) > 15 else name}, (name, shown)
        assert {len(bar) for bar in bars} == {79}, (name, bars[-1])
        os.unlink(path)


@test
def names_of_commands():
    """A process chooses its name, of at most 15 bytes. The figures beside it, and the columns, stay as they are."""
    with open("/proc/self/comm", "rb") as file:
        own = file.read()[:-1]
    seen = set()
    try:
        for name in (*NAMES, b"a", b"\n", b"  "):
            with open("/proc/self/comm", "wb") as file:
                file.write(name)
            name = name[:15]
            opener = {"FAKE_OPENER": str(os.getpid())}
            status, out, err = run_bytes("owners", "--json", **opener)
            assert (status, err) == (0, b""), err
            last = json.loads(out)["owners"][-1]
            assert original(last["process"]) == name and last["pid"] == os.getpid(), (name, last)
            seen.add(last["process"])
            status, out, err = run_bytes("owners", COLUMNS="200", **opener)
            text = expect_printable(out)
            heading, row = [line for line in text.split("\n") if "process" in line or line.startswith("client 1 ")]
            assert f"  {os.getpid()}  {last['process']} " in row, row
            # Each character is one column wide.
            assert row[:heading.index("bytes") + len("bytes")].endswith(" B"), (heading, row)
    finally:
        with open("/proc/self/comm", "wb") as file:
            file.write(own)
    assert len(seen) == len(NAMES) + 3, seen


if __name__ == "__main__":
    sys.exit(main(tests))
