"""The page in a real browser: it loads alone, moves when asked, and keeps wicked names as text."""

import json
import time

import numpy as np
import pytest

from fenchel.report.lines import Evaluation, Line
from fenchel.report.page import html_report

EVIL = "</script><img src=x onerror=document.title=1>"
STEPS = 2

METRICS = [{"iteration": step, "loss": 3.0 / step, "ess": 0.5, "events": []} for step in (10, 20)]


EVALUATION = Evaluation(
    Line("verdict", EVIL, "caution", f"Usable with care: see {EVIL}."),
    [Line(EVIL, EVIL, verdict, EVIL) for verdict in ("good", "caution", "bad", "", EVIL)],
    {},
)


@pytest.fixture(scope="module")
def page(tmp_path_factory, untrained, few_draws, few_dots):
    """The report of a run that has a wicked name wherever one can be."""
    x = np.random.default_rng(0).normal(size=(300, 2))
    fit, samples = untrained(x, ("a", EVIL))
    record = {"data": samples.fingerprint(), "config": fit.config.to_dict()}
    record |= {"version": EVIL, "python": EVIL, "packages": {EVIL: EVIL, "jax": EVIL}}
    record |= {"device": EVIL, "sittings": [dict.fromkeys(("version", "python", "device"), EVIL)]}
    record["sittings"][0]["packages"] = {"jax": EVIL}
    text = html_report(fit, samples, record, METRICS, EVALUATION, source=EVIL)
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def opened(browser, page):
    browser.resize(1280)
    browser.prefer(prefers_color_scheme="light", prefers_reduced_motion="no-preference")
    browser.open(page)
    return browser


def until(browser, script, seconds=20.0):
    """Wait for a script to return something true."""
    end = time.monotonic() + seconds
    while not browser.run(script):
        assert time.monotonic() < end, script
        time.sleep(0.02)


def frame(browser):
    return int(browser.run("return document.querySelector('#player canvas').dataset.frame"))


def pixels(browser):
    return browser.run("return document.querySelector('#player canvas').toDataURL()")


def complaints(browser):
    """All that the console was told, up to what is said here."""
    browser.run("console.info('all said')")
    said = []
    while not said or "all said" not in said[-1]:
        said += [entry["message"] for entry in browser.logged("browser")]
    return said[:-1]


def requests(browser):
    """The addresses of all that was asked for."""
    events = [json.loads(entry["message"])["message"] for entry in browser.logged("performance")]
    sent = [e["params"] for e in events if e["method"] == "Network.requestWillBeSent"]
    return [each["request"]["url"] for each in sent]


def test_the_file_is_small_and_names_no_address(page):
    text = page.read_text(encoding="utf-8")
    assert len(text.encode()) < 500_000
    assert "http://" not in text
    assert "https://" not in text
    assert text.count("default-src 'none'") == 1
    assert "unsafe" not in text.split("</head>")[0]


def test_a_wicked_name_stays_text_in_the_file(page):
    assert "<img" not in page.read_text(encoding="utf-8")


def test_it_loads_without_a_complaint_or_a_request(opened, page):
    assert complaints(opened) == []
    assert [url for url in requests(opened) if not url.startswith("data:")] == [page.as_uri()]


def test_a_page_that_complains_and_asks_would_be_seen(browser, tmp_path):
    """The negative control."""
    bad = tmp_path / "bad.html"
    bad.write_text("<script>throw Error('no')</script><img src='http://127.0.0.1:9/x.png'>")
    browser.open(bad)
    assert any("no" in message for message in complaints(browser))
    assert "http://127.0.0.1:9/x.png" in requests(browser)


def test_a_wicked_name_is_shown_and_does_nothing(opened):
    shown, images, title = opened.run(
        "return [document.body.innerText, document.images.length, document.title]"
    )
    assert EVIL in shown
    assert images == 0
    assert title.startswith("table")


def test_the_arrow_keys_move_the_frame(opened):
    opened.run("document.getElementById('step').focus()")
    before = pixels(opened)
    for kind in ("keyDown", "keyUp"):
        opened.command(
            "Input.dispatchKeyEvent", type=kind, key="ArrowRight", windowsVirtualKeyCode=39
        )
    assert frame(opened) == 1
    assert pixels(opened) != before
    assert opened.run("return document.getElementById('step-name').textContent") == (
        f"step 1 of {STEPS}"
    )


def test_play_runs_to_the_end_and_pause_stops(opened):
    name = "document.getElementById('play').textContent"
    opened.run("document.getElementById('play').click()")
    assert opened.run(f"return {name}") == "Pause"
    until(opened, "return document.querySelector('#player canvas').dataset.frame > 0")
    opened.run("document.getElementById('play').click()")
    assert opened.run(f"return {name}") == "Play"
    held = frame(opened)
    time.sleep(0.2)
    assert frame(opened) == held
    opened.run("document.getElementById('play').click()")
    until(opened, f"return {name} === 'Play'")
    assert frame(opened) == STEPS


def test_without_motion_only_whole_steps_are_shown(opened):
    opened.prefer(prefers_reduced_motion="reduce")
    seen = opened.run(
        """
        const canvas = document.querySelector('#player canvas');
        window.seen = new Set();
        const look = () => { seen.add(canvas.toDataURL()); requestAnimationFrame(look); };
        document.getElementById('play').click();
        look();
        """
    )
    assert seen is None
    until(opened, "return document.getElementById('play').textContent === 'Play'")
    assert 2 <= opened.run("return window.seen.size") <= STEPS + 1


def test_the_density_is_told_under_the_pointer(opened):
    x, y = opened.run(
        "const map = document.getElementById('map'); "
        "map.scrollIntoView({block: 'center', behavior: 'instant'});"
        "const box = map.getBoundingClientRect();"
        "return [box.left + box.width / 2, box.top + box.height / 2]"
    )
    opened.command("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    until(opened, "return document.getElementById('map-readout').textContent")
    told = opened.run("return document.getElementById('map-readout').textContent")
    assert told.startswith("a ")
    assert f", {EVIL} " in told
    assert "density" in told


def test_the_commands_can_be_copied(opened):
    opened.run("document.getElementById('copy').click()")
    until(
        opened,
        "return ['Copied', 'Selected'].includes(document.getElementById('copy').textContent)",
    )


def brightness(browser, of):
    colour = browser.run(f"return getComputedStyle(document.body).{of}")
    return sum(map(int, colour.strip("rgb()").split(",")))


def test_it_is_dark_where_dark_is_preferred(opened):
    assert brightness(opened, "backgroundColor") > brightness(opened, "color") + 400
    before = pixels(opened)
    opened.prefer(prefers_color_scheme="dark")
    until(opened, "return matchMedia('(prefers-color-scheme: dark)').matches")
    assert brightness(opened, "color") > brightness(opened, "backgroundColor") + 400
    until(opened, f"return document.querySelector('#player canvas').toDataURL() !== '{before}'")


@pytest.mark.parametrize("width", [360, 768, 1920])
def test_nothing_sticks_out_sideways(opened, width):
    opened.resize(width)
    wide, room = opened.run(
        "const page = document.documentElement; return [page.scrollWidth, page.clientWidth]"
    )
    assert wide <= room <= width
