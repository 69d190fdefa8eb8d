#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests the files that commands write: a file is whole, or as it was. Prints TAP."""

import os
import resource
import signal
import stat
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
from tool import BUILD, SMALL, TOOL, good, main, run, test, tests, tmp, trace

BEFORE = "before"


def writers():
    """Returns commands that write a file of more than 4096 bytes: the words before and after its name."""
    directory = os.path.join(tmp.name, "recorded")
    if not os.path.exists(directory):
        os.mkdir(directory)
        subprocess.run([os.path.join(BUILD, "recorded"), "1", "2000", "", directory], check=True, timeout=300)
    snapshot = os.path.join(directory, "1.json")
    return (("record", "--output"), (snapshot,)), (("convert", "--output"), (snapshot,)), (("map", "--trace", trace(SMALL)), ())


def folder(name):
    path = os.path.join(tmp.name, name)
    os.makedirs(path, exist_ok=True)
    for each in os.listdir(path):
        os.unlink(os.path.join(path, each))
    return path


def content(path):
    with open(path, "rb") as file:
        return file.read()


def put(path, mode=0o600):
    with open(path, "w", encoding="ascii") as file:
        file.write(BEFORE)
    os.chmod(path, mode)


def limited(command, killed):
    """Runs a command that can write 4096 bytes to a file, and then gets an error, or is killed by a signal."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL if killed else signal.SIG_IGN)

    done = subprocess.run([TOOL, *command], capture_output=True, text=True, check=False, timeout=300, preexec_fn=limit,
                          restore_signals=False)
    assert "Sanitizer" not in done.stderr, done.stderr
    return done.returncode, done.stderr


@test
def files_are_whole_or_as_they_were():
    for first, last in writers():
        for name in ("out", "out.gz"):
            directory = folder("whole")
            path = os.path.join(directory, name)
            for there in (False, True):
                if there:
                    put(path)
                status, err = limited((*first, path, *last), False)
                assert status == 1 and "File too large" in err and path in err, (first, status, err)
                status, err = limited((*first, path, *last), True)
                assert (status, err) == (-signal.SIGXFSZ, ""), (first, status, err)
                assert os.listdir(directory) == ([name] if there else []), (first, os.listdir(directory))
                assert not there or content(path) == BEFORE.encode(), first
            good(*first, path, *last)
            assert os.listdir(directory) == [name] and len(content(path)) > 4096, first


@test
def signals_that_are_ignored_stay_ignored():
    """As below nohup: the command carries on."""
    first, last = writers()[0]
    path = os.path.join(folder("ignored"), "out")
    done = subprocess.run([TOOL, *first, path, *last], capture_output=True, check=False, timeout=300,
                          preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    assert done.returncode == 0 and os.path.exists(path), done.stderr


@test
def modes_and_links_are_kept():
    old = os.umask(0o027)
    try:
        for first, last in writers():
            directory = folder("modes")
            path, link = os.path.join(directory, "out"), os.path.join(directory, "link")
            good(*first, path, *last)
            assert stat.S_IMODE(os.stat(path).st_mode) == 0o640, first
            put(path, 0o604)
            os.symlink("out", link)
            good(*first, link, *last)
            assert os.path.islink(link) and len(content(path)) > 4096, first
            assert stat.S_IMODE(os.stat(path).st_mode) == 0o604, first
            assert sorted(os.listdir(directory)) == ["link", "out"], first
    finally:
        os.umask(old)


@test
def links_to_nothing_stay():
    for first, last in writers():
        directory = folder("nothing")
        link = os.path.join(directory, "link")
        os.symlink("gone", link)
        status, _, err = run(*first, link, *last)
        assert status == 1 and err.endswith("link: No such file or directory\n"), err
        assert os.path.islink(link) and os.listdir(directory) == ["link"], first


@test
def pipes_are_written_in_place():
    for first, last in writers():
        directory = folder("pipes")
        path, plain = os.path.join(directory, "pipe"), os.path.join(directory, "plain")
        good(*first, plain, *last)
        os.mkfifo(path)
        found = []
        reader = threading.Thread(target=lambda path=path, found=found: found.append(content(path)))
        reader.start()
        good(*first, path, *last)
        reader.join()
        assert found == [content(plain)] and stat.S_ISFIFO(os.stat(path).st_mode), first
    assert good("map", "--trace", trace(SMALL), "-").encode() == content(plain)


@test
def export_replaces_only_files():
    """Others may write in the folder, so a link in it must not lead root elsewhere."""
    directory = folder("export")
    path, aim = os.path.join(directory, "flexmem.prom"), os.path.join(directory, "aim")
    put(aim)
    os.symlink("aim", path)
    status, _, err = run("export", "--output", path)
    assert status == 1 and err.endswith("flexmem.prom: File exists\n"), err
    os.unlink(path)
    os.mkfifo(path)
    assert run("export", "--output", path)[0] == 1
    assert stat.S_ISFIFO(os.stat(path).st_mode) and content(aim) == BEFORE.encode()
    assert sorted(os.listdir(directory)) == ["aim", "flexmem.prom"]


if __name__ == "__main__":
    sys.exit(main(tests))
