#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests the CDI files of `flexmem cdi`, and the hook that sets a container's limits. Prints TAP."""

import glob
import json
import os
import shutil
import subprocess
import sys

import jsonschema

sys.dont_write_bytecode = True
from tool import BUILD, GIB, HERE, Tree, error_of, good, main, report, run, test, tests, tmp

FOLDER = os.path.join(os.path.realpath(BUILD), "cdi")
ETC, RUN, USES = (os.path.join(FOLDER, name) for name in ("etc", "run", "flexmem/share"))
HOOK = os.path.join(BUILD, "hook-fake")
ONE, OTHER = "pci-0000:03:00.0", "pci-0000:03:00.1"
TWO = {"FAKE_SECOND": "1", "FAKE_PCI": "1"}


def clean():
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(FOLDER)


def load(name, folder=ETC, kind="share"):
    with open(f"{folder}/flexmem.org-{kind}-{name}.json", encoding="ascii") as file:
        return json.load(file)


def device(found):
    one, = found["devices"]
    return one


def arguments(found):
    hook, = device(found)["containerEdits"]["hooks"]
    return hook["args"]


@test
def a_share_is_a_file():
    clean()
    out = good("cdi", "--share", f"job:{ONE}:8G:4:1000", FAKE_GROUP=77, **TWO)
    path = f"{ETC}/flexmem.org-share-job.json"
    assert out == f"flexmem.org/share=job  {path}\n", out
    found = load("job")
    # podman 4.3.1 refuses a file with any other key. A number of a node goes stale.
    assert found == {
        "cdiVersion": "0.5.0", "kind": "flexmem.org/share", "devices": [{"name": "job", "containerEdits": {
            "deviceNodes": [{"path": "/dev/flexmem0", "hostPath": "/dev/flexmem0", "permissions": "rw", "gid": 77,
                             "fileMode": 0o660}],
            "hooks": [{"hookName": "createRuntime",
                       "path": os.path.join(os.path.dirname(os.path.realpath(BUILD)), "libexec/flexmem/flexmem-cdi-hook"),
                       "args": ["flexmem-cdi-hook", "--share", "job", "--function", ONE, "--node", "/dev/flexmem0",
                                "--bytes", str(8 * GIB), "--regions", "4", "--handles", "1000"],
                       "env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"], "timeout": 10}]}}]}, found
    assert os.stat(path).st_mode & 0o777 == 0o644 and os.listdir(ETC) == ["flexmem.org-share-job.json"]
    assert report("cdi", "--share", f"job:{ONE}:8G:4:1000", FAKE_GROUP=77, **TWO) == {"devices": [
        {"device": "flexmem.org/share=job", "file": path, "function": ONE, "node": "/dev/flexmem0"}]}


@test
def names_of_shares_and_functions():
    clean()
    for text, name, function in (("a:0:1G", "a", ONE), ("a:b:1:1G", "a:b", OTHER), ("0a.b_c-d:0000:03:00.1:1G", "0a.b_c-d", OTHER),
                                 (f"9:{ONE}:1G:0:0", "9", ONE),
                                 # 1 and 0 are indices, too.
                                 (f"9a:{OTHER}:1:1:0", "9a", OTHER), ("9b:0000:03:00.0:1:0:1", "9b", ONE),
                                 ("x" * 128 + ":1:1G", "x" * 128, OTHER)):
        good("cdi", "--share", text, "--transient", **TWO)
        args = arguments(load(name, RUN))
        assert args[2] == name and args[4] == function and "--bytes" in args, args
    for text in ("a", "a:0", "a:2:1G", ":0:1G", ".a:0:1G", "-a:0:1G", "a/b:0:1G", "a b:0:1G", "ä:0:1G", "x" * 129 + ":0:1G",
                 "a:0:1X", "a:0:0", "a:0:1G:1", "a:0:1G:1:x", f"a:{ONE}0:1G", "a:0:none"):
        status, out, err = run("cdi", "--share", text, **TWO)
        assert (status, out) == (2, "") and "is not NAME:FUNCTION:BYTES" in err, (text, err)
    status, _, err = run("cdi", "--share", "a:0:1:1:1:1", **TWO)
    assert status == 2 and "can be read in several ways" in err, err
    assert not os.path.exists(ETC)
    for args in ((), ("--share", "a:0:1G", "--remove", "a"), ("--refresh", "--transient"), ("--remove", "a", "--pod"),
                 ("--remove", "../x"), ("x",), ("--share", "a:0:1G", "--device", "VF")):
        assert run("cdi", *args, **TWO)[:2] == (2, ""), args


@test
def files_can_be_written_and_removed_twice():
    clean()
    for _ in range(2):
        good("cdi", "--share", "a:0:1G", **TWO)
    for args in (("--share", "a:0:2G"), ("--share", "a:1:1G"), ("--share", "a:0:1G", "--pod"),
                 ("--share", "a:0:1G", "--transient")):
        assert error_of(("cdi", *args, "--json"), **TWO)["name"] == "EEXIST"
    assert arguments(load("a"))[-1] == str(GIB) and not os.path.exists(RUN + "/flexmem.org-share-a.json")
    with open(ETC + "/other.json", "w", encoding="ascii") as file:
        file.write("{")
    for _ in range(2):
        good("cdi", "--remove", "a", **TWO)
        assert os.listdir(ETC) == ["other.json"]
    good("cdi", "--share", "a:0:1G", "--transient", **TWO)
    assert run("cdi", "--share", "a:0:1G", **TWO)[0] == 1
    assert report("cdi", "--remove", "a") == {"removed": "a"} and not os.listdir(RUN)


@test
def a_killed_command_leaves_nothing_for_long():
    clean()
    os.mkdir(ETC)
    left = ETC + "/.flexmem.org-share-a.json"
    for args in (("--share", "a:0:1G"), ("--remove", "a")):
        with open(left, "w", encoding="ascii") as file:
            file.write("x" * 9999)
        good("cdi", *args, **TWO)
        assert os.listdir(ETC) == (["flexmem.org-share-a.json"] if args[0] == "--share" else []), args
        assert args[0] == "--remove" or load("a")


@test
def without_a_limit():
    clean()
    assert good("cdi", "--unlimited", "all:0", **TWO).startswith("flexmem.org/vf=all ")
    found = load("all", kind="vf")
    assert found["kind"] == "flexmem.org/vf" and arguments(found)[-1] == "--unlimited", found
    good("cdi", "--share", "b:1:1G", **TWO)
    status, _, err = run("cdi", "--share", "a:0:1G", **TWO)
    assert status == 0 and err == f"flexmem: warning: {ONE} has a share and an unlimited device: flexmem.org/vf=all\n", err
    status, _, err = run("cdi", "--unlimited", "b:1", **TWO)
    assert status == 0 and err.endswith("unlimited device: flexmem.org/share=b\n"), err
    good("cdi", "--remove", "all")
    assert glob.glob(ETC + "/*-all.json") == []


@test
def refresh_finds_the_new_nodes():
    """Two functions were bound again in the other order. A third is gone, and one file is not flexmem's."""
    clean()
    good("cdi", "--share", "a:0:1G:2:3", "--pod", **TWO)
    good("cdi", "--share", "b:1:1G", "--transient", **TWO)
    with open(ETC + "/flexmem.org-share-copy.json", "w", encoding="ascii") as file:
        json.dump(load("a"), file)
    for name, text in (("bad", "{"), ("empty", "{}"), ("list", "[1]"), ("args", '{"devices": [{"containerEdits": {"hooks": [{"args": [1, 2]}]}}]}')):
        with open(f"{ETC}/flexmem.org-share-{name}.json", "w", encoding="ascii") as file:
            file.write(text)
    before = {path: open(path, "rb").read() for path in glob.glob(ETC + "/*") if not path.endswith("-a.json")}
    out = good("cdi", "--refresh", FAKE_SECOND=1, FAKE_PCI=2)
    assert out.count("\n") == 2, out
    for name, folder, node in (("a", ETC, "/dev/flexmem1"), ("b", RUN, "/dev/flexmem0")):
        found = load(name, folder)
        assert device(found)["containerEdits"]["deviceNodes"][0]["hostPath"] == node, found
        assert arguments(found)[arguments(found).index("--node") + 1] == node, found
    assert arguments(load("a"))[7:] == ["--pod", "--bytes", str(GIB), "--regions", "2", "--handles", "3"]
    assert before == {path: open(path, "rb").read() for path in before}
    good("cdi", "--refresh", FAKE_NODE=0)
    assert arguments(load("a"))[6] == "/dev/flexmem1"


@test
def refresh_leaves_files_of_others_alone():
    """Files with the name of one of flexmem's, in which some part is missing or is another one."""
    clean()
    good("cdi", "--share", "a:0:1G:2:3", **TWO)
    path = f"{ETC}/flexmem.org-share-a.json"
    mine = load("a")
    hook = ("devices", 0, "containerEdits", "hooks", 0)
    # A node that has changed is what --refresh is for.
    changes = [((*hook, "args", at), value) for at in range(len(arguments(mine))) for value in (7, "x", None)
               if (at, value) != (6, "x")]
    changes += [(place, value) for place in (("devices",), (*hook[:2], "name"), hook[:3], hook[:4], hook, (*hook, "hookName"),
                                             (*hook, "path"), (*hook, "args"))
                for value in (7, "x", [], {}, ["x"], [None], None)]
    changes += [(("devices",), mine["devices"] * 2), (hook[:4], [mine["devices"][0]["containerEdits"]["hooks"][0]] * 2),
                ((*hook, "args"), ["flexmem-cdi-hook"]), ((*hook, "args"), arguments(mine) + ["--pod", 1]),
                ((*hook, "args"), arguments(mine) + ["--unlimited"])]
    for place, value in changes:
        theirs = json.loads(json.dumps(mine))
        inner = theirs
        for key in place[:-1]:
            inner = inner[key]
        if value is None:
            del inner[place[-1]]
        else:
            inner[place[-1]] = value
        text = json.dumps(theirs)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        assert good("cdi", "--refresh", FAKE_SECOND=1, FAKE_PCI=2) == "", (place, value)
        assert open(path, encoding="ascii").read() == text, (place, value)
    with open(path, "w", encoding="ascii") as file:
        json.dump(mine, file)
    assert good("cdi", "--refresh", FAKE_SECOND=1, FAKE_PCI=2).count("\n") == 1


@test
def the_schema_takes_the_file():
    clean()
    good("cdi", "--share", "a:0:1G:2:3", "--unlimited", "b:1", **TWO)
    path = subprocess.check_output([os.path.join(HERE, "cdi_schema.sh")], text=True).strip()
    with open(path, encoding="utf-8") as file:
        schema = json.load(file)
    resolver = jsonschema.RefResolver("file://" + path, schema)
    for found in (load("a"), load("b", kind="vf")):
        jsonschema.Draft7Validator(schema, resolver=resolver).validate(found)


class Container:
    """A process, and the cgroup that the hook reads for it."""

    def __init__(self, tree, path):
        self.tree = tree
        self.folder = os.path.join(tmp.name, "proc")
        os.makedirs(self.folder, exist_ok=True)
        self.process = subprocess.Popen(["sleep", "1000"])
        self.move(path)
        self.write("self", "0::/system.slice/podman.service\n")
        self.log = os.path.join(tmp.name, "log")
        if os.path.exists(self.log):
            os.unlink(self.log)

    def write(self, name, text):
        with open(os.path.join(self.folder, str(name)), "w", encoding="ascii") as file:
            file.write(text)

    def move(self, path):
        self.write(self.process.pid, f"12:cpu:/x\n0::{path}\n")

    def hook(self, args, state=None, **env):
        state = json.dumps({"ociVersion": "1.0", "id": "x", "pid": self.process.pid}) if state is None else state
        env = {**os.environ, "FAKE_PROC": self.folder, "FAKE_MOUNTS": self.tree.mounts, "FAKE_LOG": self.log, **TWO, **env}
        done = subprocess.run([HOOK, *args[1:]], input=state if isinstance(state, bytes) else state.encode(), env=env,
                              capture_output=True, timeout=300, check=False)
        assert b"Sanitizer" not in done.stderr and b"runtime error" not in done.stderr, done.stderr
        return done.returncode, done.stderr.decode()

    def limits(self):
        if not os.path.exists(self.log):
            return []
        with open(self.log, encoding="ascii") as file:
            return [(row[0], *map(int, row[3:])) for row in map(str.split, file)]

    def refused(self, args, text, **env):
        status, err = self.hook(args, **env)
        assert status == 1 and text in err, (text, err)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def share(text, *args, **env):
    good("cdi", "--share", text, *args, **{**TWO, **env})
    return arguments(load(text.split(":")[0]))


@test
def the_hook_sets_the_limits():
    clean()
    path = "/machine.slice/libpod-1.scope/container"
    with Tree(path) as tree, Container(tree, path) as container:
        args = share("a:1:8G:4:100")
        assert container.hook(args) == (0, "")
        cgroup = tree.id(path)
        assert container.limits() == [("1", cgroup, 0, 8 * GIB), ("1", cgroup, 1, 4), ("1", cgroup, 2, 100)], container.limits()
        # The same hook may run twice.
        assert container.hook(args) == (0, "")
        # A function without a limit is checked, and nothing is set.
        os.unlink(container.log)
        good("cdi", "--unlimited", "all:0", **TWO)
        assert container.hook(arguments(load("all", kind="vf"))) == (0, "") and not container.limits()


@test
def two_functions_in_one_container():
    clean()
    with Tree("/libpod_parent/libpod-1") as tree, Container(tree, "/libpod_parent/libpod-1") as container:
        for text in ("a:0:1G", "b:1:2G"):
            assert container.hook(share(text)) == (0, "")
        assert [row[0] for row in container.limits()] == ["0", "1"]
        container.refused(share("c:0:3G"), f"the container has another share of the function {ONE}: a")


@test
def a_stale_file_starts_no_container():
    clean()
    with Tree("/c/1") as tree, Container(tree, "/c/1") as container:
        args = share("a:0:1G")
        container.refused(args, f"/dev/flexmem0 is not the function {ONE}, which is /dev/flexmem1: the CDI file is out of date",
                          FAKE_PCI="2")
        container.refused(args, f"there is no function {ONE}", FAKE_NODE="0")
        container.refused([*args[:6], "/dev/null", *args[7:]], "/dev/null is not the function")
        container.refused([*args[:6], "/dev/flexmem9", *args[7:]], "/dev/flexmem9 is not the function")
        assert not container.limits()
        good("cdi", "--refresh", FAKE_SECOND=1, FAKE_PCI=2)
        assert container.hook(arguments(load("a")), FAKE_PCI="2") == (0, "")
        assert container.limits() == [("1", tree.id("/c/1"), 0, GIB)]


@test
def a_share_is_for_one_container():
    clean()
    with Tree("/c/1", "/c/2") as tree, Container(tree, "/c/1") as container:
        args = share("a:0:1G")
        assert container.hook(args) == (0, "")
        container.move("/c/2")
        container.refused(args, "the share a is in use by /c/1")
        os.rmdir(tree.root + "/c/1")
        assert container.hook(args) == (0, "")
        assert os.listdir(USES) == ["a"]


@test
def a_use_that_cannot_be_read_counts():
    """Whatever keeps the hook from finding out whether a share is in use, no second container gets it."""
    clean()
    with Tree("/c/1", "/c/2") as tree, Container(tree, "/c/1") as container:
        args = share("a:0:1G")
        assert container.hook(args) == (0, "")
        container.move("/c/2")
        use = os.path.join(USES, "a")
        with open(use, encoding="ascii") as file:
            text = file.read()
        for name in ("a", "b"):
            path = os.path.join(USES, name)
            for bad in ("", "\n", "x", "1", f"1 {ONE}", f"1 {ONE} ", f"1 {ONE} c/1\n", f"x {ONE} /c/1\n", f"1 {ONE} /{'x' * 256}\n"):
                with open(path, "w", encoding="ascii") as file:
                    file.write(bad)
                container.refused(args, f"whether the share {name} is in use cannot be found out: ")
            os.unlink(path)
            os.mkdir(path)
            container.refused(args, f"whether the share {name} is in use cannot be found out: Is a directory")
            os.rmdir(path)
            os.symlink("/dev/null", path)
            container.refused(args, f"whether the share {name} is in use cannot be found out: Too many levels")
            os.unlink(path)
        with open(use, "w", encoding="ascii") as file:
            file.write(text)
        container.refused(args, "cannot be found", FAKE_MOUNTS="/dev/null")
        container.refused(args, "the share a is in use by /c/1")
        # These say that the container is gone.
        for gone in ("1 x /gone\n", "1 x /gone/child\n", "1 x /c/1\n"):
            with open(use, "w", encoding="ascii") as file:
                file.write(gone)
            assert container.hook(args) == (0, ""), gone


@test
def containers_of_a_pod_have_one_share():
    clean()
    pods = {"/machine.slice/machine-libpod_pod_1.slice": "/libpod-{}.scope/container", "/libpod_parent/" + "a" * 64: "/libpod-{}",
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice": "/cri-containerd-{}.scope",
            "/kubepods/besteffort/pod1": "/{}"}
    for number, (pod, child) in enumerate(pods.items()):
        with Tree(*(pod + child.format(i) for i in "12"), "/machine.slice/machine-libpod_pod_2.slice/libpod-3.scope") as tree, \
                Container(tree, pod + child.format(1)) as container:
            args = share(f"pod{number}:0:1G", "--pod")
            assert container.hook(args) == (0, "")
            container.move(pod + child.format(2))
            assert container.hook(args) == (0, "")
            assert container.limits() == [("0", tree.id(pod), 0, GIB)] * 2, container.limits()
            container.move("/machine.slice/machine-libpod_pod_2.slice/libpod-3.scope")
            container.refused(args, f"the share pod{number} is in use by {pod}")
    with Tree("/machine.slice/libpod-1.scope/container", "/libpod_parent/libpod-1", "/docker/1", "/1", "/kubepods/besteffort/1") as tree:
        for path in ("/machine.slice/libpod-1.scope/container", "/libpod_parent/libpod-1", "/docker/1", "/1",
                     "/kubepods/besteffort/1"):
            with Container(tree, path) as container:
                container.refused(share("pod:0:1G", "--pod"), f"the container's cgroup {path} is in no pod")


@test
def the_hook_refuses():
    clean()
    with Tree("/c/1", "/system.slice/podman.service") as tree, Container(tree, "/c/1") as container:
        args = share("a:0:1G")
        for state in ("", "{", "[]", "{}", '{"pid": 0}', '{"pid": -1}', '{"pid": "1"}', '{"pid": 1.5}', '{"pid": 4294967297}',
                      '{"pid": 99999999999999999999}', '{"pid": 1, "pid": 2}', b'{"pid": 1}\0', b'{"pid": 1, "id": "\xff"}',
                      "[" * 60000):
            container.refused(args, "the state of the container has no process", state=state)
        huge = json.dumps({"pid": container.process.pid, "annotations": "x" * (64 << 10)})
        container.refused(args, "longer than 65536 bytes", state=huge)
        # What the state says of limits and functions counts for nothing.
        lie = json.dumps({"pid": container.process.pid, "annotations": {"bytes": "1"}, "bytes": 1, "args": ["--bytes", "1"]})
        assert container.hook(args, lie) == (0, "") and container.limits()[-1][-1] == GIB
        for path, text in (("/", "root cgroup"), ("/..", "outside the hook's cgroups"), ("/../x", "outside the hook's cgroups"),
                           ("/system.slice/podman.service", "no cgroup of its own (--cgroups=disabled)"),
                           ("/gone", "the cgroup /gone is gone"), ("/c\x1b/x", "the cgroup /c\\x1b/x is gone")):
            container.move(path)
            container.refused(args, text)
        container.write(container.process.pid, "12:cpu:/x\n")
        container.refused(args, "has no cgroup of version 2")
        container.move("/c/1")
        container.refused(args, "run podman as root, or limit the slice of the user", FAKE_ADMIN="0")
        container.refused(args, "does not have the limits that were set", FAKE_KEEPS_LIMITS="1")
        # The process leaves, ends or is gone while the hook runs.
        container.write(f"{container.process.pid}.moved", "0::/c/2\n")
        container.refused(args, f"the container's process {container.process.pid} has moved to another cgroup", FAKE_MOVES="1")
        container.process.kill()
        os.waitid(os.P_PID, container.process.pid, os.WEXITED | os.WNOWAIT)
        container.refused(args, f"the container's process {container.process.pid} has ended")
        container.process.wait()
        container.refused(args, f"the container's process {container.process.pid} is gone")
    for args in (["x"], ["x", "--share", "a"], ["x", "--nonsense"], ["x", "y"], ["x", "--bytes", "-1"], ["x", "--bytes", "none"],
                 ["x", "--share", "../a", "--function", ONE, "--node", "/dev/flexmem0", "--bytes", "1"],
                 ["x", "--share", "a", "--function", ONE, "--node", "/dev/flexmem0"],
                 ["x", "--share", "a", "--function", ONE, "--node", "/dev/flexmem0", "--bytes", "1", "--unlimited"]):
        done = subprocess.run([HOOK, *args[1:]], stdin=subprocess.DEVNULL, capture_output=True, check=False)
        assert done.returncode == 1 and b"argument" in done.stderr, done.stderr


@test
def the_hook_reads_whole_lines():
    clean()
    longest = os.pathconf("/", "PC_PATH_MAX") - 1
    with Tree("/c/1", "/c/2") as tree, Container(tree, "/c/1") as container:
        args = share("a:0:1G")
        # The file of version 1 has a long path, whose end looks like the line of version 2.
        for length in range(longest - 10, longest + 16):
            first = "1:name=x:/"
            first += "x" * (length - len(first))
            container.write(container.process.pid, f"{first}0::/c/2\n0::/c/1\n")
            assert container.hook(args) == (0, ""), length
            assert {row[1] for row in container.limits()} == {tree.id("/c/1")}, length
        # The kernel writes " (deleted)" after a path of any length.
        for length in range(longest - 10, longest + 16):
            path = "/" + "x" * (length - 1)
            text = "cgroup cannot be found: File name too long: /x" if length <= longest else "has no cgroup of version 2 whose path has less than 4096 bytes"
            container.move(path)
            container.refused(args, text)
            container.move("/c/1")
            container.write("self", f"0::{path}\n")
            if length <= longest:
                assert container.hook(args) == (0, ""), length
            else:
                container.refused(args, "the hook has no cgroup of version 2")
            container.write("self", "0::/own\n")


@test
def release_waits():
    with Tree("/a") as tree:
        held = {"FAKE_HELD": tree.id("/a"), "FAKE_MOUNTS": tree.mounts, **TWO}
        assert good("release", "--cgroup", "/a", FAKE_HELD_FOR=9, **held) == ""
        for _ in range(2):
            assert report("release", "--cgroup", "/a", "--timeout", "100", FAKE_HELD_FOR=4, **held) == {
                "cgroup": tree.id("/a"), "path": "/a", "released": True, "functions": []}
        # Nobody else's memory counts, and a cgroup that is not known holds nothing.
        assert good("release", "--cgroup", str(tree.id("/")), "--timeout", "0", FAKE_HELD_FOR=1000000, **held) == ""
        status, out, err = run("release", "--cgroup", "/a", "--timeout", "0", "--json", FAKE_HELD_FOR=1000000, **held)
        assert status == 1 and json.loads(out) == {
            "cgroup": tree.id("/a"), "path": "/a", "released": False, "functions": [
                {"function": name, "node": node, "bytes": GIB, "handles": 1, "files": 1}
                for name, node in ((ONE, "/dev/flexmem0"), (OTHER, "/dev/flexmem1"))]}, out
        assert err.startswith(f"flexmem: release: cgroup /a still holds 1.0 GiB, 1 allocations and 1 open files on {ONE}\n"), err
        assert run("release", "--cgroup", "/a", "--timeout", "1", FAKE_HELD_FOR=1000000, **held)[0] == 1
    status, _, err = run("release", "--cgroup", "7", FAKE_SNAPSHOT_AT=1, FAKE_SNAPSHOT_ERROR=5)
    assert status == 1 and err.startswith("flexmem: release: "), err
    for args in ((), ("--cgroup", "x"), ("--cgroup", "7", "--timeout", "x"), ("--cgroup", "7", "x"),
                 ("--cgroup", "7", "--device", "VF")):
        assert run("release", *args)[0] == 2, args


if __name__ == "__main__":
    sys.exit(main(tests))
