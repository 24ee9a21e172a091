"""Models to report on, and a real browser for the page, driven over plain HTTP."""

import json
import re
import shutil
import subprocess
from urllib.request import Request, urlopen

import jax
import jax.numpy as jnp
import pytest

from fenchel.build import build_model
from fenchel.config import Config
from fenchel.data import Samples, Standardiser
from fenchel.result import Fit

SMALL = {
    "potential": {"kind": "gaussian"},
    "start": {"kind": "deep-latent", "width": 8, "depth": 1},
    "dynamics": {"steps": 2},
    "training": {"steps": 20},
}


@pytest.fixture(scope="session")
def untrained():
    """A model as it is before its first iteration: enough to be drawn, and quickly made."""

    def make(x, columns, **changes):
        config = Config.from_dict(SMALL).with_values(**changes)
        model = build_model(config, x.shape[1])
        counting = config.potential.kind == "ising"
        scaling = Standardiser.coding(x, (-1.0, 1.0)) if counting else Standardiser.of(x)
        points = jnp.asarray(scaling.forward(x), jnp.result_type(float))
        state = model.sampler.init(points, jax.random.key(0))
        fit = Fit(model.potential, model.sampler, state, points, scaling, config, columns, "table")
        return fit, Samples(x, "table", None, columns)

    return make


@pytest.fixture(scope="module")
def few_dots():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fenchel.report.page.draws.DRAWS", 128)
        patch.setattr("fenchel.report.page.trajectories.PARTICLES", 32)
        yield


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
        self._post("/url", {"url": "about:blank"})
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
