#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests `flexmem doctor`: a host on which nothing is wrong, and each thing that can be. Prints TAP."""

import json
import os
import re
import shutil
import sys

sys.dont_write_bytecode = True
from tool import BUILD, GIB, HERE, Tree, good, main, run, test, tests

HOST = os.path.join(os.path.realpath(BUILD), "host")
CDI = os.path.join(os.path.realpath(BUILD), "cdi")
RELEASE = os.uname().release
MODULES = f"/lib/modules/{RELEASE}"
ONE, OTHER = "pci-0000:03:00.0", "pci-0000:03:00.1"
MAGIC = "~Module signature appended~\n"
seen = set()


def write(path, text=""):
    os.makedirs(os.path.dirname(HOST + path), exist_ok=True)
    with open(HOST + path, "w", encoding="ascii") as file:
        file.write(text)


class Host:
    """A host on which nothing is wrong."""

    def __init__(self):
        shutil.rmtree(HOST, ignore_errors=True)
        shutil.rmtree(CDI, ignore_errors=True)
        os.makedirs(CDI)
        self.tree = Tree("/a")
        self.env = {"FAKE_PCI": 1, "FAKE_GROUP_ID": 77, "FAKE_GROUP": 77, "FAKE_MOUNTS": self.tree.mounts}
        os.makedirs(HOST + "/sys/module/flexmem")
        for folder in ("kernel", "build"):
            os.makedirs(f"{HOST}{MODULES}/{folder}")
        write(MODULES + "/modules.dep", "kernel/other.ko.xz:\nupdates/dkms/flexmem_sim.ko: updates/dkms/flexmem.ko\nupdates/dkms/flexmem.ko:\n")
        write(MODULES + "/updates/dkms/flexmem.ko", "elf")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.tree.root)
        shutil.rmtree(HOST)

    def names(self, **env):
        """Returns the names of what is found. The text has the same, line by line, and the status says whether it is an error."""
        env = {**self.env, **env}
        status, out, err = run("doctor", "--json", **env)
        found = json.loads(out)
        errors = [one for one in found["findings"] if one["severity"] == "error"]
        assert (status, err, found["healthy"]) == (1 if errors else 0, "", not errors), (status, err, out)
        status, text, err = run("doctor", **env)
        assert (status, err) == (1 if errors else 0, ""), (status, err)
        lines = text.splitlines()
        assert len(lines) == 2 * len(found["findings"]) + 1, text
        for at, one in enumerate(found["findings"]):
            about = one["about"] + ": " if one["about"] else ""
            assert lines[2 * at:2 * at + 2] == [f"{one['severity']}: {about}{one['text']}", "  " + one["remedy"]], lines
        if found["findings"]:
            count = {kind: sum(one["severity"] == kind for one in found["findings"]) for kind in ("error", "warning")}
        else:
            count = {"function": found["checked_functions"]}
        counts = ", ".join(f"{number} {name}{'' if number == 1 else 's'}" for name, number in count.items())
        assert lines[-1] == ("" if found["findings"] else "nothing is wrong; ") + counts, lines
        self.findings = found["findings"]
        names = [one["name"] for one in found["findings"]]
        seen.update(names)
        return names

    def text(self):
        one, = self.findings
        return one["text"], one["remedy"]


@test
def nothing_is_wrong():
    with Host() as host:
        assert host.names() == [] and host.names(FAKE_SECOND=1) == [] and host.names(FAKE_VERSION="0.3.7") == []
        assert good("doctor", **host.env) == "nothing is wrong; 1 function\n"
        assert run("doctor", "x")[0] == run("doctor", "--device", "VF")[0] == 2


@test
def modules():
    with Host() as host:
        env = {"FAKE_NO_MODULE": 1, "FAKE_NODE": 0}
        os.rmdir(HOST + "/sys/module/flexmem")
        assert host.names(**env) == ["module-not-loaded"] and "modprobe" in host.text()[1]
        for path, text in (("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n"),
                           ("/sys/kernel/security/lockdown", "none integrity [confidentiality]\n"),
                           ("/sys/module/module/parameters/sig_enforce", "Y\n")):
            write(path, text)
            assert host.names(**env) == ["module-not-signed"] and "mokutil" in host.text()[1], path
            write(MODULES + "/updates/dkms/flexmem.ko", "elf" + MAGIC)
            assert host.names(**env) == ["module-not-loaded"]
            write(MODULES + "/updates/dkms/flexmem.ko", "")
            assert host.names(**env) == ["module-not-signed"]
            os.unlink(HOST + path)
        write("/sys/kernel/security/lockdown", "[none] integrity confidentiality\n")
        write("/sys/module/module/parameters/sig_enforce", "N\n")
        assert host.names(**env) == ["module-not-loaded"]
        # The module is there for another kernel only.
        os.rename(HOST + MODULES, HOST + "/lib/modules/6.0-other")
        os.makedirs(HOST + MODULES + "/kernel")
        assert host.names(**env) == ["module-not-built"] and f"linux-headers-{RELEASE}" in host.text()[1]
        os.makedirs(HOST + MODULES + "/build")
        assert host.names(**env) == ["module-not-built"] and "dkms autoinstall" in host.text()[1]


@test
def versions():
    with Host() as host:
        assert host.names(FAKE_VERSION="0.2.0\n") == ["module-version"]
        assert host.text()[0].startswith("module 0.2.0, library "), host.text()
        assert host.names(FAKE_OPEN_ERROR=25) == ["old-abi"] and "reboot" in host.text()[1]


@test
def kernels():
    with Host() as host:
        os.makedirs(HOST + "/lib/modules/6.99-next/kernel")
        os.makedirs(HOST + "/lib/modules/6.98-removed")
        assert host.names() == ["kernel-without-module"] and "linux-headers-6.99-next" in host.text()[1]
        write("/lib/modules/6.99-next/modules.dep", "updates/dkms/flexmem.ko.xz:\n")
        assert host.names() == []


@test
def groups_and_nodes():
    with Host() as host:
        assert host.names(FAKE_GROUP_ID=0) == ["no-group"] and "systemd-sysusers" in host.text()[1]
        assert host.names(FAKE_GROUP=0) == ["node-for-root"] and "udevadm trigger" in host.text()[1]
        write("/etc/flexmem/limits.conf")
        assert host.names(FAKE_GROUP=0) == ["node-for-root"] and "flexmem-limits@flexmem0" in host.text()[1]
        assert host.names(FAKE_OPEN_ERROR=13) == ["no-permission"] and "usermod" in host.text()[1]
        assert host.names(FAKE_OPEN_ERROR=5) == ["not-usable"]
        # Only root opens a PF, and its node is root's.
        assert host.names(FAKE_MODE=0, FAKE_OPEN_ERROR=1, FAKE_GROUP=0) == []


@test
def cgroups_and_shares():
    with Host() as host:
        with Tree("/a", kind="cgroup") as old:
            with open(old.mounts, encoding="ascii") as file:
                text = file.read().replace("cgroup2", "tmpfs")
            with open(old.mounts, "w", encoding="ascii") as file:
                file.write(text)
            assert host.names(FAKE_MOUNTS=old.mounts) == ["cgroup-v1"] and "unified_cgroup_hierarchy" in host.text()[1]
        two = {**host.env, "FAKE_SECOND": 1}
        good("cdi", "--share", f"job:{ONE}:1G", **two)
        assert host.names(FAKE_SECOND=1) == []
        assert host.names(FAKE_SECOND=1, FAKE_PCI=2) == ["share-out-of-date"] and "--refresh" in host.text()[1]
        assert host.findings[0]["about"] == "job", host.findings
        assert host.names(FAKE_NODE=0, FAKE_SECOND=1) == ["share-without-function"] and ONE in host.text()[0]
        good("cdi", "--remove", "job", **two)


@test
def functions():
    with Host() as host:
        assert host.names(FAKE_NODE=0) == ["no-function"]
        for state, names in enumerate(([], ["unresponsive"], [], ["wedged"])):
            assert host.names(FAKE_STATE=state) == names, state
        assert host.names(FAKE_STATE=3) == ["wedged"] and "echo 0000:03:00.0" in host.text()[1], host.text()
        assert host.names(FAKE_EXHAUSTED=1) == ["no-capacity-left"] and "flexmem owners" in host.text()[1]
        assert host.names(FAKE_MAX_REGIONS=0) == ["no-slots-left"], host.findings
        assert host.names(FAKE_QUARANTINED=GIB) == ["quarantine"] and "1.0 GiB" in host.text()[0]
        assert host.names(FAKE_BROKEN=3) == ["reservation"] and "has 0 of its 3" in host.text()[0], host.text()


@test
def holders():
    with Host() as host:
        assert host.names(FAKE_LEAVING=GIB, FAKE_ORPHANED=GIB, FAKE_WAITS_MS=59999) == []
        assert host.names(FAKE_LEAVING=GIB, FAKE_ORPHANED=GIB, FAKE_WAITS_MS=61000) == ["held-by-programs"]
        assert "1.0 GiB" in host.text()[0] and "for 61 s" in host.text()[0], host.text()
        assert host.names(FAKE_OPENED_BYTES=GIB) == ["held-by-the-dead"] and "process 5000000 has ended" in host.text()[0]
        os.makedirs(HOST + "/proc/5000000")
        assert host.names(FAKE_OPENED_BYTES=GIB) == []


@test
def each_finding_has_a_test():
    names = set()
    for file in ("doctor_host.c", "doctor_function.c"):
        with open(os.path.join(HERE, "../../userlib/tools", file), encoding="ascii") as source:
            text = source.read()
        names |= set(re.findall(r'"([a-z]+(?:-[a-z0-9]+)+|wedged|unresponsive|quarantine|reservation)"', text))
    # /dev of the tests can always be listed.
    names -= {"no-list"}
    assert names == seen, names ^ seen


if __name__ == "__main__":
    sys.exit(main(tests))
