#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests `flexmem map`, the picture of a trace. Prints TAP."""

import html.parser
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

sys.dont_write_bytecode = True
from tool import HEADER, HERE, SMALL, good, main, run, test, tests, tmp, trace

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
    assert data["failures"] == [[1, 99999999, 1, 4], [2, 99999999, 1, 5]] and len(data["boxes"]) == 1, data
    assert data["groups"] == ["stream 0", "stream 7"], data
    assert re.search(r'<p id="failed">2 failed, the first at event 1, of 95.4 MiB: .*\w.*</p>', text), text
    image = xml.etree.ElementTree.fromstring(drawn(path, "--addresses", "4M", "--svg"))
    names = [element.text for element in image.iter("{http://www.w3.org/2000/svg}title")]
    assert names[1:] == ["95.4 MiB, stream 7, line 4", "95.4 MiB, stream 7, line 5"], names
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
    assert data["failures"] == [[3, 5000, 2, 6]] and (data["events"], data["height"]) == (6, 2176), data
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
    assert data_of(drawn(trace(SMALL), "--by", "tag"))["groups"] == ["stream 0"]
    assert run("map", "--trace", path, "--by", "name", OUTPUT)[0] == 2


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
    if not shutil.which("node"):
        print("# not tried: no node")
        return
    path = os.path.join(tmp.name, "page.js")
    with open(path, "w", encoding="utf-8") as file:
        file.write(script)
    subprocess.run(["node", "--check", path], check=True, capture_output=True)


@test
def the_picture_of_the_page():
    """tasks/replay.rst shows what its commands draw. The file also has a line with the licence."""
    requests = trace("arrival,input_tokens,output_tokens\n0.0,374,44\n4.3,396,109\n4.5,879,55\n", "requests.csv")
    path = os.path.join(tmp.name, "requests.trace")
    good("convert", "--bytes-per-token", "512K", "--output", path, requests)
    with open(os.path.join(HERE, "../../Documentation/images/requests.svg"), encoding="utf-8") as file:
        lines = file.readlines()
    assert "SPDX" in lines.pop(1) and drawn(path, "--svg") == "".join(lines)


@test
def errors():
    path = trace(SMALL)
    for args in ((), (OUTPUT,), ("--trace", path), ("--trace", path, OUTPUT, OUTPUT), ("--json", "--trace", path, OUTPUT),
                 ("--trace", path, "--addresses", "0", OUTPUT), ("--trace", path, "--addresses", "100", OUTPUT)):
        assert run("map", *args)[0] == 2, args
    for source, output in ((path + "no", OUTPUT), (path, os.path.join(tmp.name, "no", "map.html")), (trace("wrong"), OUTPUT)):
        status, out, err = run("map", "--trace", source, output)
        assert (status, out) == (1, "") and err.startswith("flexmem: "), err


if __name__ == "__main__":
    sys.exit(main(tests))
