#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Scrapes the figures of a VF while processes in eight cgroups allocate and free; see scrapes.sh.

The sums hold in each scrape. Only cgroups that exist at that time have a series, whatever names tenants chose for them.
"""

import os
import random
import signal
import subprocess
import sys

import flexmem
from test_tool_export import add_up, parse

ROOT = b"/sys/fs/cgroup"
PARENT = "/scraped"
# What each tenant calls its cgroups, with a number after it. The kernel refuses a line feed.
NAMES = (b"plain", b'quote"', b"back\\slash", b'"} 7', b"\xff", b"\x1b[2J", "\u00e4 b".encode(), b"x" * 200)
LIMIT = 96 << 20


def allocate_and_free(seed, ready):
    """Does so until it is killed. Each second process keeps most of what it gets, so that it fails at its limit."""
    draw = random.Random(seed)
    device = flexmem.Device()
    kept = device.alloc(4096)  # pylint: disable=unused-variable
    os.write(ready, b".")
    live = []
    while True:
        if live and draw.random() < (0.5 if seed % 2 else 0.2):
            live.pop(draw.randrange(len(live))).close()
        try:
            live.append(device.alloc(draw.choice((4096, 65536, 1 << 20, 12 << 20)) + 128 * draw.randrange(100)))
        except flexmem.OutOfMemory:
            for allocation in live[:len(live) // 2]:
                allocation.close()
            del live[:len(live) // 2]


class Tenant:
    def __init__(self, number):
        self.number, self.generation = number, 0
        self.begin()

    def begin(self):
        self.generation += 1
        self.name = NAMES[self.number] + b"-%d" % self.generation
        self.path = ROOT + PARENT.encode() + b"/" + self.name
        os.mkdir(self.path)
        subprocess.run(["flexmem", "limit", "--cgroup", self.path[len(ROOT):], "--bytes", str(LIMIT)], check=True,
                       stdout=subprocess.DEVNULL)
        is_ready, ready = os.pipe()
        self.process = os.fork()
        if not self.process:
            move(self.path, os.getpid())
            # The scrapes come first.
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            try:
                allocate_and_free(self.number + 100 * self.generation, ready)
            finally:
                os._exit(1)
        os.close(ready)
        assert os.read(is_ready, 1), f"the process in {self.name} has ended"
        os.close(is_ready)

    def label(self):
        """As the label of the series is read."""
        text = self.name.replace(b"\\", b"\\\\").replace(b"\xff", b"\\xff").replace(b"\x1b", b"\\x1b")
        return PARENT + "/" + text.decode()

    def end_cgroup(self):
        """The process and its open file live on without the cgroup."""
        move(ROOT, self.process)
        os.rmdir(self.path)

    def end_process(self):
        os.kill(self.process, signal.SIGKILL)
        _, status = os.waitpid(self.process, 0)
        assert os.WIFSIGNALED(status), f"the process in {self.name} has ended by itself: {status}"


def move(path, process):
    with open(path + b"/cgroup.procs", "w", encoding="ascii") as file:
        file.write(str(process))


def scrape(tenants):
    """Returns the number of cgroups that are shown, and the bytes of those that were removed."""
    text = subprocess.run(["flexmem", "export", "--show", PARENT], check=True, capture_output=True).stdout.decode()
    found = parse(text)
    # One function after the other.
    for function in {labels["function"] for labels, _ in found["flexmem_acquired_bytes"]}:
        add_up({name: [sample for sample in samples if sample[0].get("function") == function]
                for name, samples in found.items()})
    shown = [(labels["cgroup"], number) for labels, number in found["flexmem_cgroup_own_bytes"]]
    names = {tenant.label() for tenant in tenants}
    unknown = {label for label, _ in shown} - names - {PARENT, "other", "removed"}
    assert not unknown, unknown
    assert all(number <= LIMIT for label, number in shown if label in names), shown
    return len({label for label, _ in shown} & names), sum(number for label, number in shown if label == "removed")


def main(count):
    os.mkdir(ROOT + PARENT.encode())
    tenants = [Tenant(number) for number in range(len(NAMES))]
    most = removed = scrapes = 0
    while scrapes < count:
        series, _ = scrape(tenants)
        scrapes, most = scrapes + 1, max(most, series)
        if scrapes % 5:
            continue
        tenant = tenants[scrapes // 5 % len(tenants)]
        tenant.end_cgroup()
        removed = max(removed, scrape([other for other in tenants if other is not tenant])[1])
        scrapes += 1
        tenant.end_process()
        tenant.begin()
    print(f"{scrapes} scrapes, up to {most} cgroups, up to {removed} bytes of removed cgroups")
    for tenant in tenants:
        tenant.end_cgroup()
        tenant.end_process()
    os.rmdir(ROOT + PARENT.encode())
    assert most == len(NAMES) and removed, (most, removed)


if __name__ == "__main__":
    main(int(sys.argv[1]))
