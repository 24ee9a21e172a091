"""A real browser for the tests of the page, driven over plain HTTP."""

import json
import re
import shutil
import subprocess
from urllib.request import Request, urlopen

import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",  # which Chromium refuses to be without for root
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class Browser:
    """Chromium by the WebDriver protocol: JSON over HTTP."""

    def __init__(self, port, binary, profile):
        self._root = f"http://127.0.0.1:{port}/session"
        options = {"binary": binary, "args": [*FLAGS, f"--user-data-dir={profile}"]}
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        answer = self._post("", {"capabilities": {"alwaysMatch": wanted}})
        self._root += f"/{answer['sessionId']}"

    def open(self, path):
        """The page, and with it a fresh start of both logs."""
        self.logged("browser"), self.logged("performance")
        self._post("/url", {"url": path.as_uri()})

    def run(self, script, *arguments):
        """What the script returns in the page."""
        return self._post("/execute/sync", {"script": script, "args": list(arguments)})

    def command(self, name, **parameters):
        """A command of the DevTools protocol."""
        return self._post("/goog/cdp/execute", {"cmd": name, "params": parameters})

    def logged(self, kind):
        return self._post("/se/log", {"type": kind})

    def resize(self, width, height=900):
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def prefer(self, **features):
        """Media features, such as prefers_color_scheme="dark"; the others as they are."""
        pairs = [{"name": k.replace("_", "-"), "value": v} for k, v in features.items()]
        self.command("Emulation.setEmulatedMedia", features=pairs)

    def close(self):
        urlopen(Request(self._root, method="DELETE"), timeout=60).close()

    def _post(self, path, body):
        request = Request(self._root + path, json.dumps(body).encode(), method="POST")
        with urlopen(request, timeout=120) as answer:
            return json.load(answer)["value"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("Chromium and its driver are not installed: apt-get install chromium-driver")
    process = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, text=True)
    try:
        lines = iter(process.stdout.readline, "")
        port = next(m[1] for line in lines if (m := re.search(r"successfully on port (\d+)", line)))
        opened = Browser(port, chromium, tmp_path_factory.mktemp("profile"))
        yield opened
        opened.close()
    finally:
        process.terminate()
        process.wait(timeout=30)
        process.stdout.close()
