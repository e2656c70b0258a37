#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The report page in a real browser: headless Chromium, driven through chromedriver.

Usage: cli_page_test.py PROGRAM [FOLDER]   (FOLDER: keep pages and screenshots there)
A missing browser is a failure.
"""
import base64
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
from pathlib import Path

PROGRAM = os.path.abspath(sys.argv[1])
KEPT = Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--window-size=1280,900"]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Browser:
    """The few words of the WebDriver protocol the tests need."""

    def __init__(self, folder):
        port = free_port()
        self.driver = subprocess.Popen(["chromedriver", f"--port={port}"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.base, self.session = f"http://127.0.0.1:{port}", ""
        options = {"args": FLAGS + [f"--user-data-dir={folder}/profile"]}
        wanted = {"goog:chromeOptions": options,
                  "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        deadline = time.time() + 60
        while True:
            try:
                made = self.post("/session", {"capabilities": {"alwaysMatch": wanted}})
                break
            except OSError:
                if time.time() > deadline:
                    self.driver.kill()
                    raise
                time.sleep(0.2)
        self.session = "/session/" + made["sessionId"]

    def post(self, path, body):
        request = urllib.request.Request(self.base + path, json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)["value"]

    def open(self, address):
        self.post(self.session + "/url", {"url": address})

    def run(self, script, *arguments):
        return self.post(self.session + "/execute/sync",
                         {"script": script, "args": list(arguments)})

    def log(self, kind):
        return self.post(self.session + "/se/log", {"type": kind})

    def command(self, name, **parameters):
        return self.post(self.session + "/goog/cdp/execute",
                         {"cmd": name, "params": parameters})

    def screenshot(self, file):
        data = self.command("Page.captureScreenshot", format="png")["data"]
        Path(file).write_bytes(base64.b64decode(data))

    def close(self):
        try:
            urllib.request.urlopen(urllib.request.Request(
                self.base + self.session, method="DELETE"), timeout=30)
        finally:
            self.driver.terminate()
            self.driver.wait()


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = KEPT or Path(cls.temporary.name)
        cls.folder.mkdir(parents=True, exist_ok=True)
        run = ["--task", "delayed_match", "--model", "lif", "--algorithm", "pp_prop",
               "--hidden", "24", "--batch", "8", "--samples", "64", "--epochs", "3",
               "--test-samples", "32", "--quiet"]
        cls.page = cls.folder / "report.html"
        subprocess.run([PROGRAM, "train", *run, "--report", str(cls.page)], check=True)
        cls.graph = cls.folder / "graph.html"
        subprocess.run([PROGRAM, "show", "--model", "two_layer_gru", "--format", "html",
                        "--out", str(cls.graph)], check=True)
        cls.browser = Browser(cls.temporary.name)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.temporary.cleanup()

    def open(self, page, fragment=""):
        # about:blank first: a change of the fragment alone would not load the page anew.
        self.browser.open("about:blank")
        self.browser.log("browser")
        self.browser.log("performance")
        self.browser.open(page.as_uri() + fragment)

    def tab(self, name):
        self.browser.run("document.querySelector(`.tabs button[data-tab=${arguments[0]}]`)"
                         ".click()", name)

    def shown_tabs(self):
        return self.browser.run("return Array.from(document.querySelectorAll('.tab'))"
                                ".filter((t) => !t.hidden).map((t) => t.id)")

    def test_loads_without_errors_and_asks_for_nothing(self):
        for page in (self.page, self.graph):
            self.open(page)
            self.assertEqual(self.browser.log("browser"), [])
            asked = []
            for entry in self.browser.log("performance"):
                message = json.loads(entry["message"])["message"]
                if message["method"] == "Network.requestWillBeSent":
                    asked.append(message["params"]["request"]["url"].split("#")[0])
            own = {page.as_uri(), "data:,"}
            self.assertEqual([a for a in asked if a not in own], [])
            self.assertIn(page.as_uri(), asked)

    def test_the_log_would_tell_of_errors(self):
        self.open(self.page)
        self.browser.run("setTimeout(() => { throw new Error('seeded') }, 0)")
        time.sleep(0.3)
        self.assertIn("seeded", json.dumps(self.browser.log("browser")))

    def test_one_tab_is_shown_at_a_time(self):
        self.open(self.page)
        names = self.browser.run("return Array.from(document.querySelectorAll("
                                 "'.tabs button')).map((b) => b.dataset.tab)")
        self.assertEqual(names, ["run", "model", "rule", "memory", "certificate", "records",
                                 "step"])
        self.assertEqual(self.shown_tabs(), ["tab-run"])
        for name in names:
            self.tab(name)
            self.assertEqual(self.shown_tabs(), ["tab-" + name])
            self.assertGreater(self.browser.run(
                "return document.getElementById(arguments[0]).getBoundingClientRect().height",
                "tab-" + name), 50)
        self.open(self.page, "#memory")
        self.assertEqual(self.shown_tabs(), ["tab-memory"])

    def test_curves_and_spikes_are_drawn(self):
        self.open(self.page)
        self.assertGreaterEqual(self.browser.run(
            "return document.querySelectorAll('#tab-run svg.chart').length"), 4)
        self.assertGreater(self.browser.run(
            "return document.querySelectorAll('#tab-run .spikes rect').length"), 10)
        self.assertIn("best constant", self.browser.run(
            "return document.querySelector('#tab-run').textContent"))

    def test_equations_memory_and_certificate_are_told(self):
        self.open(self.page)
        text = self.browser.run("return document.body.textContent")
        for part in ("X_t = 0.9 X_{t-1} + x_t", "Memory plan: pp_prop keeps", "neu/V",
                     "against back-propagation through 80 steps", "lin/weight/weight",
                     "delayed_match: 80 steps"):
            self.assertIn(part, text)

    def test_the_pointer_shows_equation_and_trace_size(self):
        self.open(self.page, "#model")
        titles = self.browser.run(
            "return Array.from(document.querySelectorAll('#graph .relation a'))"
            ".map((a) => a.getAttribute('title') || "
            "a.getAttributeNS('http://www.w3.org/1999/xlink', 'title'))")
        self.assertTrue(titles)
        for title in titles:
            self.assertIn("gradient: ", title)
            self.assertIn("traces: ", title)

    def rest(self):
        """Waits until the page has drawn twice, so that observers of sizes have been called."""
        self.browser.post(self.browser.session + "/execute/async", {
            "script": "const done = arguments[0];"
                      "requestAnimationFrame(() => requestAnimationFrame(() => done()));",
            "args": []})

    def view_box(self):
        return [float(x) for x in self.browser.run(
            "return document.querySelector('#graph svg').getAttribute('viewBox')").split()]

    def test_the_picture_zooms_and_moves(self):
        self.open(self.page, "#model")
        press = ("document.querySelector(`button[data-for=graph][value=${arguments[0]}]`)"
                 ".click()")
        start = self.view_box()
        self.browser.run(press, "in")
        near = self.view_box()
        self.assertAlmostEqual(near[2], start[2] / 1.4, places=3)
        self.browser.run("document.getElementById('graph').style.width = '70%'")
        self.rest()
        self.assertEqual(self.view_box(), near, "what was zoomed stays when the page changes")
        self.browser.run("document.getElementById('graph').style.width = ''")
        self.rest()
        self.browser.run(
            "const s = document.getElementById('graph'), b = s.getBoundingClientRect();"
            "s.setPointerCapture = () => {};"
            "const at = (k, x) => s.dispatchEvent(new PointerEvent(k, {clientX: b.x + x,"
            "clientY: b.y + 50, bubbles: true}));"
            "at('pointerdown', 100); at('pointermove', 160); at('pointerup', 160);")
        self.assertLess(self.view_box()[0], near[0])
        self.browser.run(press, "start")
        self.assertEqual(self.view_box(), start)

    def test_diagnostics_are_filtered(self):
        self.open(self.graph, "#records")
        count = "return document.getElementById('count').textContent"
        shown = ("return Array.from(document.querySelectorAll('tr[data-kind]'))"
                 ".filter((r) => !r.hidden).map((r) => r.dataset.kind)")
        every = self.browser.run(shown)
        self.assertEqual(self.browser.run(count), f"{len(every)} of {len(every)}")
        self.browser.run("const k = document.getElementById('kind'); k.value = arguments[0];"
                         "k.dispatchEvent(new Event('input'))", "history_cut")
        cut = self.browser.run(shown)
        self.assertEqual(set(cut), {"history_cut"})
        self.assertEqual(self.browser.run(count), f"{len(cut)} of {len(every)}")
        self.browser.run("const f = document.getElementById('find'); f.value = 'no such word';"
                         "f.dispatchEvent(new Event('input'))")
        self.assertEqual(self.browser.run(shown), [])

    def test_light_and_dark(self):
        found = {}
        for mode in ("light", "dark"):
            self.browser.command("Emulation.setEmulatedMedia", features=[
                {"name": "prefers-color-scheme", "value": mode}])
            for name in ("run", "model", "rule", "memory", "certificate"):
                self.open(self.page, "#" + name)
                self.browser.screenshot(self.folder / f"{name}_{mode}.png")
            found[mode] = self.browser.run(
                "return getComputedStyle(document.body).backgroundColor")
            self.assertEqual(self.browser.run(
                "return document.documentElement.scrollWidth <= innerWidth"), True)
        self.assertNotEqual(found["light"], found["dark"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
