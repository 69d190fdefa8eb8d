#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Shows pages of `flexmem map` in Chromium at two widths, light and dark, and uses them as a reader does. Prints TAP.

It needs the packages chromium, chromium-driver and python3-selenium, and is in the long runs only. The screenshots are
in $PICTURES, or beside the programs of the tests.
"""

import contextlib
import os
import subprocess
import sys

sys.dont_write_bytecode = True
try:
    from selenium import webdriver
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
    from selenium.webdriver.common.by import By
    from selenium.webdriver.chrome.service import Service
except ImportError:
    webdriver = None
from test_tool_map import GIB, HERE, Tracing, Tree, charge, event, page_of_device, region
from tool import BUILD, HEADER, good, main, tmp, trace

DRIVER = "/usr/bin/chromedriver"
WIDTHS = (400, 1280)
BACKGROUNDS = {"light": "rgb(255, 255, 255)", "dark": "rgb(24, 24, 24)"}
PICTURES = os.environ.get("PICTURES", os.path.join(BUILD, "pictures"))

tests = []


def test(function):
    tests.append(function)
    return function


@contextlib.contextmanager
def browser():
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp.name}/profile"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(service=Service(DRIVER), options=options)
    try:
        yield driver
    finally:
        driver.quit()


def show(driver, path, width=1280, scheme="light"):
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                           {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    driver.get("file://" + path)


def page_of_trace(path, name):
    output = os.path.join(tmp.name, name + ".html")
    good("map", "--trace", path, output)
    return output


def pages():
    """Returns {name: path}: of a replay, of a record of three processes, of a device, and of names that are long."""
    found = {"resnet50": page_of_trace(os.path.join(HERE, "../traces/resnet50-train.trace.gz"), "resnet50")}
    folder = os.path.join(tmp.name, "recorded")
    os.makedirs(folder, exist_ok=True)
    subprocess.run([os.path.join(BUILD, "recorded"), "3", "300", "", folder], check=True, timeout=300)
    recorded = os.path.join(tmp.name, "recorded.trace")
    good("record", "--output", recorded, *(os.path.join(folder, f"{number}.json") for number in (1, 2, 3)))
    found["recorded"] = page_of_trace(recorded, "recorded")
    found["device"] = os.path.join(tmp.name, "device.html")
    with open(found["device"], "w", encoding="utf-8") as file:
        file.write(device())
    return found


def device():
    lines = []
    for number in range(60):
        lines.append(event("alloc", 1, (number * 37 % 48) * (GIB >> 3), GIB >> 4, handle=number + 1))
        if number > 20:
            lines.append(event("end", 1, ((number - 20) * 37 % 48) * (GIB >> 3), GIB >> 4, handle=number - 19))
        if number % 20 == 10:
            lines.append(charge(1 if number < 40 else 77, 3 << 30, 8))
    name = "/kubepods.slice/kubepods-burstable.slice/" + "cri-containerd-" + "0123456789abcdef" * 4 + ".scope"
    with Tree(name) as tree, Tracing(*lines, region("add", 5), event("alloc", 1, 0, GIB >> 1, slot=5, handle=99)) as tracing:
        return page_of_device("--seconds", "3", before="alloc 5G\n", FAKE_MOUNTS=tree.mounts, FAKE_UID=tree.id(name),
                              FAKE_FAILS=1, **tracing.env)


@test
def two_widths_light_and_dark():
    os.makedirs(PICTURES, exist_ok=True)
    with browser() as driver:
        for name, path in pages().items():
            for width in WIDTHS:
                for scheme, background in BACKGROUNDS.items():
                    show(driver, path, width, scheme)
                    where = (name, width, scheme)
                    driver.save_screenshot(os.path.join(PICTURES, f"{name}-{width}-{scheme}.png"))
                    assert driver.execute_script("return document.documentElement.scrollWidth") <= width, where
                    assert driver.execute_script("return getComputedStyle(document.body).backgroundColor") == background, where
                    # Something is drawn, and nothing is loaded.
                    colours = driver.execute_script("""
                        const c = document.getElementById('map'), data = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
                        return [new Set(new Uint32Array(data.buffer)).size, c.width, performance.getEntriesByType('resource').length];""")
                    assert colours[0] > 4 and width * 0.9 < colours[1] <= width and not colours[2], (where, colours)
                    assert driver.get_log("browser") == [], where


def place(driver, x, y):
    """Moves the pointer to a place of the picture, in events and bytes. Returns what the page then tells."""
    canvas = driver.find_element(By.ID, "map")
    left, top = driver.execute_script("return [(arguments[0] - view.x) / view.w, 1 - (arguments[1] - view.y) / view.h]", x, y)
    size = canvas.size
    ActionChains(driver, duration=0).move_to_element_with_offset(
        canvas, round((left - 0.5) * size["width"]), round((top - 0.5) * size["height"])).perform()
    return driver.find_element(By.ID, "about").text


def view(driver):
    return driver.execute_script("return [view.x, view.y, view.w, view.h]")


@test
def the_pointer_tells_about_an_allocation():
    path = os.path.join(tmp.name, "small.html")
    good("map", "--addresses", "4M", "--trace", trace(HEADER + "0 a 1 1048576 0\n1 a 2 2097152 7\n2 f 1\n3 a 3 99999999 7\n4 f 2\n"), path)
    with browser() as driver:
        show(driver, path)
        text = place(driver, 1.5, 500000)
        assert text == "Event 1: 1.0 MiB at 0x0, stream 0, line 3, live from event 0 to 2", text
        text = place(driver, 2.5, 1 << 21)
        assert "Event 2: 2.0 MiB at 0x" in text and "stream 7, line 4, live from event 1 to 4" in text, text
        assert place(driver, 4.5, 500000) == "Event 4, nothing allocated here"
        # The mark of a failure, at the top.
        height = view(driver)[3]
        text = place(driver, 3, height * 0.999)
        assert text.startswith("Event 3: 95.4 MiB failed, stream 7, line 6: "), text
        assert driver.get_log("browser") == []


@test
def the_wheel_zooms_and_the_pointer_drags():
    with browser() as driver:
        show(driver, page_of_trace(os.path.join(HERE, "../traces/resnet50-train.trace.gz"), "resnet50"))
        canvas = driver.find_element(By.ID, "map")
        whole = view(driver)
        origin = ScrollOrigin.from_element(canvas, -100, 50)
        ActionChains(driver).scroll_from_origin(origin, 0, -120).perform()
        zoomed = view(driver)
        assert zoomed[2] < whole[2] and zoomed[3] < whole[3] and zoomed[0] > 0, (whole, zoomed)
        # What was below the pointer still is.
        place(driver, zoomed[0] + zoomed[2] / 2, zoomed[1] + zoomed[3] / 2)
        ActionChains(driver).click_and_hold(canvas).move_by_offset(80, 40).release().perform()
        moved = view(driver)
        assert moved[0] < zoomed[0] and moved[1] > zoomed[1] and moved[2:] == zoomed[2:], (zoomed, moved)
        ActionChains(driver).double_click(canvas).perform()
        assert view(driver) == whole
        # With shift only sideways, and some browsers turn the wheel then.
        for delta in ("deltaY", "deltaX"):
            before = view(driver)
            driver.execute_script(
                f"canvas.dispatchEvent(new WheelEvent('wheel', {{{delta}: -1, shiftKey: true, clientX: 300, clientY: 300}}))")
            assert view(driver)[2] < before[2] and view(driver)[3] == whole[3], (delta, view(driver))
        for _ in range(9):
            ActionChains(driver).scroll_from_origin(origin, 0, 120).perform()
        assert view(driver) == whole and driver.get_log("browser") == []


if __name__ == "__main__":
    if not webdriver or not os.path.exists(DRIVER):
        print("1..0 # SKIP chromium, chromium-driver or python3-selenium is not installed")
        sys.exit(0)
    sys.exit(main(tests))
