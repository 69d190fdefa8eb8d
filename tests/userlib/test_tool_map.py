#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests `flexmem map`, the picture of a device or of a trace. Prints TAP."""

import contextlib
import html.parser
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree

sys.dont_write_bytecode = True
from tool import BUILD, GIB, HEADER, HERE, SMALL, TOOL, Tree, good, main, on_terminal, run, test, tests, tmp, trace

# Names of files that would end a tag, an attribute, a comment or the script.
NAMES = ('"><script>alert(1)</script>', "a'&lt;<b>", "</title></script>", "<!--", "\x1b[2J\n", os.fsdecode(b"\xff"), "\u2028]]>", "\ufffe\uffff")
OUTPUT = os.path.join(tmp.name, "map.html")


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.texts = [], {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, tuple(attrs)))

    def handle_data(self, data):
        self.texts.setdefault(self.tags[-1][0] if self.tags else "", []).append(data)


def drawn(path, *args, output=OUTPUT):
    assert good("map", "--trace", path, *args, output) == ""
    with open(output, encoding="utf-8") as file:
        return file.read()


def data_of(text):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1])


def expect_no_overlap(data):
    """No two allocations have the same byte at the same time."""
    live, events = {}, []
    for number, (begin, end, place, size, _, _) in enumerate(data["boxes"]):
        assert 0 <= begin < end <= data["events"] and size > 0 and place + size <= data["height"], data["boxes"][number]
        events += [(end, 0, number), (begin, 1, number)]
    for _, begins, number in sorted(events):
        if not begins:
            del live[number]
            continue
        _, _, place, size, _, _ = data["boxes"][number]
        assert all(place + size <= at or at + length <= place for at, length in live.values()), data["boxes"][number]
        live[number] = (place, size)


@test
def boxes_of_a_small_trace():
    data = data_of(drawn(trace(SMALL)))
    assert [(box[0], box[1], box[4], box[5]) for box in data["boxes"]] == [(0, 2, 0, 3), (1, 4, 0, 4), (3, 5, 0, 6)], data
    assert all(box[3] >= size for box, size in zip(data["boxes"], (1000, 2000, 500))), data
    assert data["events"] == 6 and data["groups"] == ["stream 0"] and data["failures"] == [], data
    expect_no_overlap(data)


@test
def boxes_of_a_recorded_trace():
    path = os.path.join(HERE, "../traces/llama-decode.trace.gz")
    data = data_of(drawn(path))
    allocs = json.loads(good("--json", "replay", "--cache", "--provider", "flat", path))["allocs"]
    assert len(data["boxes"]) == allocs > 1000, allocs
    expect_no_overlap(data)
    # The picture leaves out what is not used.
    assert data["height"] < 64 << 30 and data["ranges"][0][1] == 0, data["ranges"]


@test
def reasons_of_failures():
    path = trace(HEADER + "0 a 1 1000 0\n1 a 2 99999999 7\n2 a 3 99999999 7\n")
    text = drawn(path, "--addresses", "4M")
    data = data_of(text)
    assert [failure[:4] for failure in data["failures"]] == [[1, 99999999, 1, 4], [2, 99999999, 1, 5]], data
    # The replay knows the reason of the first one.
    assert re.search(r"\w", data["failures"][0][4]) and data["failures"][1][4] == "" and len(data["boxes"]) == 1, data
    assert data["groups"] == ["stream 0", "stream 7"], data
    assert re.search(r'<p id="failed">2 failed, the first at event 1, of 95.4 MiB: .*\w.*</p>', text), text
    image = xml.etree.ElementTree.fromstring(drawn(path, "--addresses", "4M", "--svg"))
    names = [element.text for element in image.iter("{http://www.w3.org/2000/svg}title")]
    assert re.fullmatch(r"95.4 MiB, stream 7, line 4: .*\w.*", names[1]) and names[2:] == ["95.4 MiB, stream 7, line 5"], names
    texts = [element.text for element in image.iter("{http://www.w3.org/2000/svg}text")]
    assert re.search(r"event 1, of 95.4 MiB: .*\w", texts[1]), texts


@test
def addresses_that_were_recorded():
    """They are those of the trace, and no others: a replay would not have them."""
    path = trace("# flexmem-trace 2\n# setting 1 expandable_segments:True\n0 a 1 1000 5 1 2 3 4096 1024 0\n"
                 "1 a 2 1000 5 2 2 3 5120 1024 0\n2 a 3 100 0 1 3 9 4096 128 0\n2 x 5000 5 2 3 0\n3 f 1 1 4\n4 a 4 512 5 1 5 3 4096 512 0\n")
    data = data_of(drawn(path))
    assert data["groups"] == ["process 1, stream 0", "process 1, stream 5", "process 2, stream 5"], data
    assert data["boxes"] == [[0, 4, 0, 1024, 1, 3], [1, 6, 1024, 1024, 2, 4], [2, 6, 2048, 128, 0, 5], [5, 6, 0, 512, 1, 8]], data
    assert data["ranges"] == [["4096", 0, " of region 0x3"], ["4096", 2048, " of region 0x9"]], data
    assert data["failures"] == [[3, 5000, 2, 6, ""]] and (data["events"], data["height"]) == (6, 2176), data
    assert "1 failed, the first at event 3, of 4.9 KiB</p>" in drawn(path)
    for option in ("--config", "--addresses"):
        status, _, err = run("map", "--trace", path, option, "128", OUTPUT)
        assert status == 1 and "the trace has addresses" in err, err


@test
def tags_that_were_recorded():
    tags = ("weights", '</script>"\\', "\u00e4&<b>")
    text = "# flexmem-trace 2\n" + "".join(f"# tag {i} {tag}\n" for i, tag in enumerate(tags, 1))
    path = trace(text + "".join(f"0 a {i} 1 5 1 {i} 3 {4096 * i} 128 {i}\n" for i in range(4)) + "1 x 9 5 1 5 2\n")
    page = drawn(path)
    assert data_of(page)["groups"] == ["no tag", *tags] and [box[4] for box in data_of(page)["boxes"]] == [0, 1, 2, 3], page
    assert data_of(drawn(path, "--by", "stream"))["groups"] == ["stream 5"] and page.count("</script>") == 2, page
    image = xml.etree.ElementTree.fromstring(drawn(path, "--svg"))
    assert [element.text for element in image.iter("{http://www.w3.org/2000/svg}title")][1:] == [f"9 B, {tags[1]}, line 9"]
    assert keys_of(image) == [("s0", "no tag"), ("s1", tags[0]), ("s2", tags[1]), ("s3", tags[2])], keys_of(image)
    assert data_of(drawn(trace(SMALL), "--by", "tag"))["groups"] == ["stream 0"]
    assert run("map", "--trace", path, "--by", "name", OUTPUT)[0] == 2


def keys_of(image):
    """What an image says about its colours: pairs of the class of a mark and the text beside it."""
    below = [element for element in image if int(float(element.get("y", "0"))) >= 500]
    bottom = int(image.get("viewBox").split()[3])
    assert all(int(element.get("y")) < bottom for element in below), image.get("viewBox")
    return [(mark.get("class"), text.text) for mark, text in zip(below, below[1:]) if mark.tag.endswith("}rect")]


@test
def colours_of_an_image():
    """They are named below it: sixteen at most, and none if there is only one."""
    for streams, rest in ((1, 0), (2, 0), (16, 0), (17, 1), (40, 24)):
        image = xml.etree.ElementTree.fromstring(
            drawn(trace("# flexmem-trace 1\n" + "".join(f"{i} a {i} 1000 {i}\n" for i in range(streams))), "--svg"))
        keys = [(f"s{i % 8}", f"stream {i}") for i in range(min(streams, 16))]
        assert keys_of(image) == (keys if streams > 1 else []), keys_of(image)
        texts = [element.text for element in image.iter("{http://www.w3.org/2000/svg}text")]
        assert (f"and {rest} more" in texts) == bool(rest) and ("more" in "".join(texts)) == bool(rest), texts


@test
def names_spoil_nothing():
    plain = Page(drawn(trace(SMALL, name="t")))
    for name in NAMES:
        name = name.replace("/", "\\")
        path = trace(SMALL, name=name)
        page = Page(drawn(path))
        assert page.tags == plain.tags, (name, page.tags)
        escaped = re.sub(r"\\", r"\\\\", name).replace("\x1b", "\\x1b").replace("\n", "\\x0a").replace(os.fsdecode(b"\xff"), "\\xff")
        for character in "\u2028\ufffe\uffff":
            escaped = escaped.replace(character, "".join(f"\\x{byte:02x}" for byte in character.encode()))
        assert "".join(page.texts["title"]) == "".join(page.texts["h1"]).strip("\n") == escaped, (name, page.texts["h1"])
        assert page.texts["script"] == plain.texts["script"] and page.texts["style"] == plain.texts["style"], name
        image = xml.etree.ElementTree.fromstring(drawn(path, "--svg"))
        assert image[0].text == escaped and len(image) == len(xml.etree.ElementTree.fromstring(drawn(trace(SMALL), "--svg"))), name


@test
def a_page_loads_nothing():
    text = drawn(trace(SMALL))
    assert "default-src 'none'" in text and not re.search(r"https?://|\bsrc=|url\(|@import|fetch\(", text), text
    script, = re.findall(r"<script>\n(.*?)</script>", text, re.S)
    assert shutil.which("node"), "the package nodejs lacks: tests/setup.sh check"
    path = os.path.join(tmp.name, "page.js")
    with open(path, "w", encoding="utf-8") as file:
        file.write(script)
    subprocess.run(["node", "--check", path], check=True, capture_output=True)


def expect_shown(name, image):
    """A page shows what the command draws. The file also has a line with the licence."""
    with open(os.path.join(HERE, "../../Documentation/images", name), encoding="utf-8") as file:
        lines = file.readlines()
    assert "SPDX" in lines.pop(1) and image == "".join(lines), name


@test
def the_pictures_of_the_pages():
    """tasks/replay.rst shows what its commands draw."""
    requests = trace("arrival,input_tokens,output_tokens\n0.0,374,44\n4.3,396,109\n4.5,879,55\n", "requests.csv")
    path = os.path.join(tmp.name, "requests.trace")
    good("convert", "--bytes-per-token", "512K", "--output", path, requests)
    expect_shown("requests.svg", drawn(path, "--svg"))
    for name in ("resnet50-train", "gpt2-train"):
        expect_shown(name + ".svg", drawn(os.path.join(HERE, "../traces", name + ".trace.gz"), "--svg"))


@test
def boxes_of_an_image():
    """An image has all allocations that can be seen, and says how many others there are."""
    image = drawn(trace(SMALL), "--svg")
    assert sum(path.count("M") for path in re.findall(r'<path class="s\d t\d" d="([^"]*)"', image)) == 3 and "too small" not in image
    image = drawn(os.path.join(HERE, "../traces/resnet50-train.trace.gz"), "--svg")
    shown = sum(path.count("M") for path in re.findall(r'<path class="s\d t\d" d="([^"]*)"', image))
    left_out = int(re.search("without ([0-9]+) allocations that are too small to be seen", image)[1])
    allocs = len(data_of(drawn(os.path.join(HERE, "../traces/resnet50-train.trace.gz")))["boxes"])
    assert shown > 1000 and shown + left_out == allocs, (shown, left_out, allocs)


# ---- a device ----

INSTANCE = os.path.join(os.path.realpath(BUILD), "tracing", "instances", "flexmem-map")
EVENTS = ("alloc", "end", "charge", "region_add", "region_remove")


class Tracing:
    """The files of an instance of the kernel's tracing, with these lines of events."""

    def __init__(self, *lines, left_over=False):
        self.path = INSTANCE if left_over else os.path.join(tmp.name, "tracing")
        self.env = {"FAKE_TRACING": os.path.join(tmp.name, "tracing"), "FAKE_TICK": 1000000}
        shutil.rmtree(os.path.dirname(INSTANCE), ignore_errors=True)
        os.makedirs(os.path.dirname(INSTANCE))
        for folder in ("options", *(f"events/flexmem/flexmem_{name}" for name in EVENTS)):
            os.makedirs(os.path.join(self.path, folder))
        # This kernel has no option fields.
        for name in ("options/context-info", "options/raw", "options/overwrite", "events/flexmem/filter",
                     "events/flexmem/enable", *(f"events/flexmem/flexmem_{name}/enable" for name in EVENTS)):
            self.write(name, "")
        self.write("trace_pipe", "".join(line + "\n" for line in lines))
        self.path = self.env["FAKE_TRACING"]

    def write(self, name, text):
        with open(os.path.join(self.path, name), "w", encoding="ascii") as file:
            file.write(text)

    def read(self, name, path=None):
        with open(os.path.join(path or self.path, name), encoding="ascii") as file:
            return file.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """The instance is gone. It was of one function, and what it is left with is no longer enabled."""
        assert not os.path.exists(INSTANCE)
        assert [self.read("options/" + name) for name in ("context-info", "raw", "overwrite")] == ["0", "0", "1"]
        assert self.read("events/flexmem/filter") == "minor == 0"
        assert {self.read(f"events/flexmem/flexmem_{name}/enable") for name in EVENTS} == {"1"}
        assert set(self.read("events/flexmem/enable")) == {"0"}
        shutil.rmtree(self.path)


def event(name, client, offset, size, slot=0, chunks=1, handle=3):
    return f"flexmem_{name}: minor=0 client={client} handle={handle} flags=0x0 slot={slot} offset={offset:#x} size={size} chunks={chunks}"


def charge(client, size, reason):
    return f"flexmem_charge: minor=0 client={client} size={size} handles=1 reason={reason}"


def region(name, slot, size=GIB, number=None):
    return f"flexmem_region_{name}: minor=0 slot={slot} region={slot if number is None else number:#x} domain=0 size={size}"


def page_of_device(*args, before="", **env):
    """Returns the page that a shell makes, whose open file has allocations."""
    out = good("shell", stdin=f"{before}map {' '.join(args)} {OUTPUT}\n", **env)
    assert "map" not in out, out
    with open(OUTPUT, encoding="utf-8") as file:
        return file.read()


def notes_of(text):
    return [re.sub("<.*?>", "", line) for line in text.splitlines() if line.startswith("<li>")]


@test
def a_device():
    lines = (charge(1, 4096, 0), event("alloc", 1, 6 * GIB, 4096), "flexmem_command: minor=0 operation=acquire rc=0",
             event("end", 1, 0, 1 << 20), charge(1, 99999, 8), event("alloc", 1, 7 * GIB, 8192, chunks=2), region("add", 5),
             event("alloc", 77, 0, 512, slot=5), event("alloc", 1, 512, 512, slot=5), event("free", 77, 0, 512, slot=5),
             event("alloc", 1, 7 * GIB, 128), event("end", 1, 7 * GIB, 128), charge(77, 5, 6), "CPU:1 [LOST 12 EVENTS]",
             region("remove", 5), "flexmem_alloc: minor=0 client=1", "nonsense", event("alloc", 1, 0, 128, slot=4))
    with Tree("/t/a") as tree, Tracing(*lines) as tracing:
        text = page_of_device("--seconds", "3", before="alloc 5G\n", FAKE_MOUNTS=tree.mounts, FAKE_UID=tree.id("/t/a"),
                              FAKE_PARENT=tree.id("/t"), **tracing.env)
    data = data_of(text)
    here, other = data["groups"].index("/t/a"), data["groups"].index("files that were closed")
    left = 5 * GIB - 4096
    # The removed region keeps its place, and the memory without an address is above all regions.
    above = 13 * GIB
    assert data["boxes"] == [[0, 2, 0, 1 << 20, here, 1], [0, 10, above, left, here, 1], [1, 10, 6 * GIB, 4096, here, 1],
                             [4, 9, 12 * GIB, 512, other, 77], [5, 9, 12 * GIB + 512, 512, here, 1],
                             [6, 7, 7 * GIB, 128, here, 1]], data["boxes"]
    assert [failure[:4] for failure in data["failures"]] == [[3, 99999, here, 1], [8, 5, other, 77]], data["failures"]
    assert "limit" in data["failures"][0][4] and "as many allocations" in data["failures"][1][4], data["failures"]
    assert data["ranges"] == [["0", 0, " of region 0x0"], ["0", 12 * GIB, " of region 0x5"], [None, above, "an address that is not known"]], data
    assert (data["events"], data["height"], data["source"], len(data["groups"])) == (10, above + left, "client", 2), data
    assert notes_of(text) == [
        "5.0 GiB are drawn at the top, because the driver has told no address of them", "After the recording: 5.0 GiB of 12.0 GiB in use",
        "Events that were lost, because there were too many: 12",
        "Region 0x0: 12.0 GiB, of which 7.0 GiB are free, up to 7.0 GiB in one piece; blocks in use: 1"], notes_of(text)
    assert "2 failed, the first at event 3, of 97.7 KiB: a limit of the cgroup, or of one above it</p>" in text, text
    assert "<title>/dev/flexmem0</title>" in text, text


@test
def a_file_that_is_open_for_a_moment():
    """Its cgroup is looked up when an event names it. At the end it has nothing."""
    with Tree("/t/a") as tree:
        for guest, name in ((1, "/t/a"), (99, "files that were closed")):
            with Tracing(event("alloc", 77, 6 * GIB, 4096)) as tracing:
                data = data_of(page_of_device("--seconds", "3", before="alloc 1\n", FAKE_MOUNTS=tree.mounts, FAKE_UID=tree.id("/t/a"),
                                              FAKE_GUEST=guest, **tracing.env))
            assert [(data["groups"][box[4]], box[3]) for box in data["boxes"] if box[5] == 77] == [(name, 4096)], data


@test
def walks_through_the_cgroups():
    """Each snapshot has a file of another cgroup. Paths are looked up once a second, and at the end."""
    # After so many bytes there is another snapshot, for which an event of an unknown client asks.
    lines = (charge(999, 1, 8), *("nonsense " * 10,) * 3000) * 20
    log = os.path.join(tmp.name, "walks")
    with Tree("/t/a") as tree, Tracing(*lines) as tracing:
        data = data_of(page_of_device("--seconds", "3", before="alloc 1\n", FAKE_MOUNTS=tree.mounts, FAKE_UID=tree.id("/t/a"),
                                      FAKE_GUESTS=1, FAKE_WALKS=log, **{**tracing.env, "FAKE_TICK": 250000}))
    with open(log, encoding="ascii") as file:
        assert file.read() == "walk\n" * 4
    os.unlink(log)
    assert "/t/a" in data["groups"] and any(re.fullmatch(r"cgroup 1099511627\d\d\d removed", name) for name in data["groups"]), data["groups"]


@test
def ends_that_come_late():
    """A reset takes the region of an allocation, whose end comes when its slot has another region."""
    lines = (event("alloc", 1, 6 * GIB, 4096), region("remove", 0), event("end", 1, 5 * GIB, 128), region("add", 0, 12 * GIB),
             event("alloc", 1, 6 * GIB, 512, handle=4), event("end", 77, 6 * GIB, 4096), event("end", 1, 6 * GIB, 4096),
             event("end", 1, GIB, 256), event("alloc", 1, 0, 128, handle=5), event("end", 1, 0, 1024, handle=5))
    with Tree("/t/a") as tree, Tracing(*lines) as tracing:
        data = data_of(page_of_device("--seconds", "3", before="alloc 5G\n", FAKE_MOUNTS=tree.mounts, FAKE_UID=tree.id("/t/a"),
                                      FAKE_PARENT=tree.id("/t"), **tracing.env))
    # The last one was resized.
    assert sorted(box[2:4] for box in data["boxes"]) == [[0, 1024], [6 * GIB, 512], [6 * GIB, 4096], [12 * GIB, 5 * GIB - 512]], data
    found = {box[3]: (box[0], box[1]) for box in data["boxes"]}
    assert found[4096][1] == found[4096][0] + 1 and found[512][1] == data["events"], data


@test
def a_look_that_is_newer_than_the_events():
    """When a file of another client comes, a snapshot shows a region whose events are not read yet."""
    # More than is read before a look.
    later = ("nonsense " * 10,) * 4000
    for lost in ((), ("CPU:1 [LOST 1 EVENTS]",)):
        lines = (event("alloc", 1, 6 * GIB, 4096), event("alloc", 77, GIB, 512), *lost, *later,
                 event("end", 1, 5 * GIB, 128), region("remove", 0, number=0), region("add", 0, number=16), event("alloc", 1, 0, 256))
        with Tree("/t/a") as tree, Tracing(*lines) as tracing:
            data = data_of(page_of_device("--seconds", "9", before="alloc 5G\n", FAKE_MOUNTS=tree.mounts, FAKE_UID=tree.id("/t/a"),
                                          FAKE_MOVED=1, **tracing.env))
        known = {box[3]: (box[0], box[1], box[2] // (12 * GIB)) for box in data["boxes"] if box[3] < GIB}
        # The region that is removed takes its memory along, and none of it is in the other one.
        wanted = {4096: (1, 4, 0), 512: (2, 4, 0), 128: (0, 3, 0), 256: (5, 6, 1)}
        if lost:
            # The snapshot is all that is known, and what ends in a slot is in the region that it shows there.
            wanted[128] = (0, 3, 1)
        assert known == wanted and data["events"] == 6, (lost, data)


@test
def events_without_an_end():
    """A tenant makes events that count for nothing faster than they are read."""
    with Tracing() as tracing:
        pipe = os.path.join(tracing.path, "trace_pipe")
        os.unlink(pipe)
        os.symlink("/dev/zero", pipe)
        text = page_of_device("--seconds", "3", **tracing.env)
    assert "The recording ended early, because there were too many events" in notes_of(text), notes_of(text)


@test
def failures_of_cgroups():
    """The driver counts what fails, by cgroup and reason. A cgroup counts what is below it, which is not told twice."""
    lines = charge(1, 99999, 8), "CPU:1 [LOST 12 EVENTS]", region("add", 5)
    with Tree('/t/<a>\\') as tree:
        ids = {"FAKE_MOUNTS": tree.mounts, "FAKE_UID": tree.id('/t/<a>\\'), "FAKE_PARENT": tree.id("/t"), "FAKE_FAILS": 1}
        # The second snapshot is because of the lost events, the third one at the end.
        before = "alloc 5G\nowners\n"
        notes = ["Allocations that failed, for whatever reason: 6", "Allocations of /t/&#60;a&#62;\\\\ that failed: 4 (capacity), 2 (cgroup_limit)",
                 "Events that were lost, because there were too many: 12"]
        with Tracing(*lines) as tracing:
            assert notes_of(page_of_device("--seconds", "1", before=before, **ids, **tracing.env))[2:5] == notes
        with Tracing(*lines) as tracing:
            image = xml.etree.ElementTree.fromstring(page_of_device("--svg", "--seconds", "1", before=before, **ids, **tracing.env))
        assert not any("failed" in note for note in notes_of(page_of_device("--seconds", "0", before=before, **ids)))
    texts = [element.text for element in image.iter("{http://www.w3.org/2000/svg}text")]
    notes[1] = notes[1].replace("&#60;", "<").replace("&#62;", ">")
    assert texts[4:7] == notes and texts[2].startswith("5.0 GiB are drawn at the top"), texts
    titles = [element.text for element in image.iter("{http://www.w3.org/2000/svg}title")]
    assert titles[1:] == ["97.7 KiB, /t/<a>\\\\, client 1: a limit of the cgroup, or of one above it"], titles
    # All notes are inside of the image.
    bottom = int(image.get("viewBox").split()[3])
    assert max(int(element.get("y")) for element in image.iter("{http://www.w3.org/2000/svg}text")) < bottom


@test
def long_names():
    """Cgroups whose names are the same for longer than a tag may be, and a character where such a name would be cut."""
    path, texts = "/t" + 2 * ("/" + "x" * 250), []
    names = [path + "\u00e4", path + "\u00e5"]
    for name in names:
        with Tree(name) as tree, Tracing(charge(1, 99999, 8)) as tracing:
            ids = {"FAKE_MOUNTS": tree.mounts, "FAKE_UID": tree.id(name)}
            data = data_of(page_of_device("--seconds", "3", before="alloc 5G\n", **ids, **tracing.env))
            assert data["groups"] == [name], data
        with Tree(name) as tree, Tracing(charge(1, 99999, 8)) as tracing:
            ids = {"FAKE_MOUNTS": tree.mounts, "FAKE_UID": tree.id(name)}
            image = xml.etree.ElementTree.fromstring(page_of_device("--svg", "--seconds", "3", before="alloc 5G\n", **ids, **tracing.env))
            texts.append([element.text for element in image.iter("{http://www.w3.org/2000/svg}title")][1])
    assert all(name in text for name, text in zip(names, texts)), texts


@test
def a_device_now():
    """Without seconds nothing is traced, and all memory is drawn at no address."""
    with Tree("/t/a") as tree:
        ids = {"FAKE_MOUNTS": tree.mounts, "FAKE_UID": tree.id("/t/a"), "FAKE_PARENT": tree.id("/t")}
        data = data_of(page_of_device("--seconds", "0", before="alloc 5G\n", **ids))
        assert data["boxes"] == [[0, 1, 12 * GIB, 5 * GIB, 0, 1]] and data["groups"] == ["/t/a"], data
        image = xml.etree.ElementTree.fromstring(page_of_device("--svg", "--seconds", "0", before="alloc 5G\n", **ids))
        path, = image.iter("{http://www.w3.org/2000/svg}path")
        assert path.get("class") == "s0 t0 n" and path.get("d").count("M") == 1, path.attrib
        # A cgroup that was removed has no path.
        gone = tree.id("/t/a")
        os.rmdir(tree.root + "/t/a")
        assert data_of(page_of_device("--seconds", "0", before="alloc 5G\n", **ids))["groups"] == [f"cgroup {gone}"]
        assert data_of(page_of_device("--seconds", "0", before="alloc 5G\n", FAKE_REMOVED=gone, **ids))["groups"] == [f"cgroup {gone} removed"]
    # Another user sees what it has itself.
    with Tree("/t/a") as tree:
        text = page_of_device("--seconds", "0", before="alloc 5G\n", FAKE_ADMIN=0, FAKE_REGION_FLAGS=2,
                              FAKE_MOUNTS=tree.mounts, FAKE_UID=tree.id("/t/a"))
    assert notes_of(text)[2:] == ["Region 0x0: 12.0 GiB"] and len(data_of(text)["boxes"]) == 1, text
    assert data_of(text)["groups"] == ["/t/a"], text
    assert data_of(page_of_device("--seconds", "0"))["boxes"] == []


@test
def names_of_a_device_spoil_nothing():
    pages = []
    for name in ("plain", '</script>"\\<!--', "\x1b&'", os.fsdecode(b"\xff")):
        with Tree("/t/" + name) as tree:
            pages.append(page_of_device("--seconds", "0", before="alloc 5G\n", FAKE_MOUNTS=tree.mounts, FAKE_UID=tree.id("/t/" + name)))
        escaped = name.replace("\\", "\\\\").replace("\x1b", "\\x1b").replace(os.fsdecode(b"\xff"), "\\xff")
        assert data_of(pages[-1])["groups"] == ["/t/" + escaped], data_of(pages[-1])
        assert Page(pages[-1]).tags == Page(pages[0]).tags and pages[-1].count("</script>") == 2, name


@test
def too_many_events():
    with Tracing(*(charge(1, 1, 8) for _ in range(250000))) as tracing:
        text = page_of_device("--seconds", "3", **tracing.env)
    assert 200000 <= data_of(text)["events"] < 200100 and "The recording ended early, because there were too many events" in notes_of(text)


@test
def progress_on_a_terminal():
    path = trace(HEADER + "".join(f"0 a {i} 128 0\n1 f {i}\n" for i in range(2000)), "long.trace")
    for args in (("--trace", path), ("--seconds", "9")):
        for tick in (1000000, 0 if path in args else 4500000):
            with (Tracing() if "--seconds" in args else contextlib.nullcontext()) as tracing:
                env = {**(tracing.env if tracing else {}), "FAKE_TICK": tick}
                status, out = on_terminal("map", *args, OUTPUT, columns=60, **env)
            assert status == 0 and bool(re.search(r"\rmap \[[#.-]+\] +\d+%", out)) == bool(tick), (args, tick, out)


@test
def an_instance_that_was_left_over():
    with Tracing(event("alloc", 1, 6 * GIB, 4096), left_over=True) as tracing:
        assert len(data_of(page_of_device("--seconds", "1", before="alloc 5G\n", **tracing.env))["boxes"]) == 2
    tracing = Tracing(left_over=True)
    status, _, err = run("map", OUTPUT, FAKE_TRACING_BUSY=1, **tracing.env)
    assert status == 1 and "another 'flexmem map'" in err, err
    os.rename(INSTANCE, tracing.path)
    # A file of the instance is missing.
    os.unlink(tracing.path + "/events/flexmem/filter")
    status, _, err = run("map", OUTPUT, **tracing.env)
    assert status == 1 and "--seconds 0" in err and not os.path.exists(INSTANCE), err
    shutil.rmtree(tracing.path)
    status, _, err = run("map", OUTPUT)
    assert (status, err) == (1, "flexmem: map: the driver's trace events cannot be read: No such file or directory; --seconds 0 needs none\n")
    # What fails later is an error of the device.
    tracing = Tracing()
    status, _, err = run("map", OUTPUT, FAKE_SNAPSHOT_AT=1, FAKE_SNAPSHOT_ERROR=5, **tracing.env)
    shutil.rmtree(tracing.path)
    assert not os.path.exists(INSTANCE) and status == 1 and err.startswith("flexmem: map: ") and "trace events" not in err, err


@test
def a_file_that_cannot_be_written():
    """The command says so before it records. If it cannot record, the file stays as it was, and nothing is left beside it."""
    tracing = Tracing(event("alloc", 1, 6 * GIB, 4096))
    status, _, err = run("map", "--seconds", "86400", os.path.join(tmp.name, "no", "map.html"), **tracing.env)
    assert status == 1 and "map.html" in err and tracing.read("events/flexmem/filter") == "", err
    shutil.rmtree(tracing.path)
    folder = os.path.join(tmp.name, "kept")
    os.mkdir(folder)
    path = os.path.join(folder, "map.html")
    with open(path, "w", encoding="ascii") as file:
        file.write("before")
    assert run("map", path)[0] == 1 and os.listdir(folder) == ["map.html"]
    with open(path, encoding="ascii") as file:
        assert file.read() == "before"


@test
def a_signal_ends_the_recording():
    """Neither the events are lost nor the instance stays."""
    signals = signal.SIGINT, signal.SIGTERM, signal.SIGHUP

    def heed():
        """A shell makes what it begins in the background ignore SIGINT, nohup SIGHUP; and the map then ignores it, too."""
        for number in signals:
            signal.signal(number, signal.SIG_DFL)

    for number in signals:
        with Tracing(region("add", 0), event("alloc", 1, 0, 512), event("end", 1, 0, 512)) as tracing:
            env = {**os.environ, "FAKE_TRACING": tracing.path}
            with subprocess.Popen([TOOL, "map", "--seconds", "86400", OUTPUT], env=env, preexec_fn=heed) as process:
                # Only a hang takes so long.
                for _ in range(30000):
                    if os.path.exists(INSTANCE) and tracing.read("events/flexmem/flexmem_region_remove/enable", INSTANCE) == "1":
                        break
                    assert process.poll() is None
                    time.sleep(0.01)
                else:
                    process.kill()
                    raise AssertionError("the recording does not begin")
                # Both have come before it sees the first: a signal that comes later ends it while it writes the page.
                process.send_signal(signal.SIGSTOP)
                os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
                process.send_signal(number)
                process.send_signal(signal.SIGINT)
                process.send_signal(signal.SIGCONT)
                assert process.wait(300) == 0
        with open(OUTPUT, encoding="utf-8") as file:
            assert [box[:4] for box in data_of(file.read())["boxes"]] == [[1, 2, 0, 512]]


@test
def errors():
    path = trace(SMALL)
    for args in ((), ("--trace", path), ("--trace", path, OUTPUT, OUTPUT), ("--json", "--trace", path, OUTPUT), ("--json", OUTPUT),
                 ("--trace", path, "--addresses", "0", OUTPUT), ("--trace", path, "--addresses", "100", OUTPUT),
                 ("--trace", path, "--seconds", "1", OUTPUT), ("--trace", path, "--device", "/dev/flexmem0", OUTPUT),
                 ("--seconds", "86401", OUTPUT), ("--seconds", "-1", OUTPUT), ("--by", "tag", OUTPUT), ("--config", "", OUTPUT),
                 ("--addresses", "1G", OUTPUT)):
        assert run("map", *args)[0] == 2, args
    for source, output in ((path + "no", OUTPUT), (path, os.path.join(tmp.name, "no", "map.html")), (trace("wrong"), OUTPUT)):
        status, out, err = run("map", "--trace", source, output)
        assert (status, out) == (1, "") and err.startswith("flexmem: "), err


if __name__ == "__main__":
    sys.exit(main(tests))
