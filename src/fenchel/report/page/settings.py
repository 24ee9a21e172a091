"""How the run was made: what differs from the defaults, all settings, the data, the versions."""

from typing import Any

from fenchel.config import Config
from fenchel.report.page.elements import section, table
from fenchel.report.page.markup import Markup, tag

Settings = dict[str, Any]  # by full names, such as training.steps


def settings_section(record: dict[str, Any], same: bool) -> Markup:
    """`same` says whether the report is about the data of the fit."""
    settings, defaults = flat(record["config"]), flat(Config().to_dict())
    changed = {name: value for name, value in settings.items() if value != defaults.get(name)}
    lead = "What this run depended on: its settings, its data and its versions."
    return section(
        "settings",
        "Settings and data",
        lead,
        tag("div", _changed(changed, defaults), _data(record, same), class_="pair"),
        _all(record["config"], changed),
    )


def flat(values: dict[str, Any], where: str = "") -> Settings:
    settings: Settings = {}
    for name, value in values.items():
        inner = flat(value, f"{where}{name}.") if isinstance(value, dict) else None
        settings.update({where + name: value} if inner is None else inner)
    return settings


def in_words(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _changed(changed: Settings, defaults: Settings) -> Markup:
    heading = tag("h3", "What differs from the defaults")
    if not changed:
        return tag("div", heading, tag("p", "Nothing: every setting has its default."))
    rows = [
        (tag("code", name), in_words(value), in_words(defaults.get(name)))
        for name, value in changed.items()
    ]
    return tag("div", heading, table(("setting", "here", "default"), rows, "facts"))


def _data(record: dict[str, Any], same: bool) -> Markup:
    data = record["data"].items()
    rows = [
        *((name.replace("_", " "), _fact(name, value)) for name, value in data),
        ("shown in this report", "the same data" if same else "other data than the fit's"),
        ("Fenchel", record.get("version", "")),
        ("Python", record.get("python", "")),
        *record.get("packages", {}).items(),
        ("trained on", record.get("device", "")),
        *(("continued with", _sitting(each)) for each in record.get("sittings", [])),
    ]
    heading = tag("h3", "Data and versions")
    return tag("div", heading, table(("what", "value"), rows, "facts"))


def _sitting(circumstances: dict[str, Any]) -> str:
    jax = circumstances["packages"].get("jax", "")
    versions = f"Fenchel {circumstances['version']}, JAX {jax}, Python {circumstances['python']}"
    return f"{versions}, on {circumstances['device']}"


def _fact(name: str, value: Any) -> str:
    if name == "columns":
        return f"{len(value)}: {in_words(value)}"
    return f"{value:,}" if isinstance(value, int) else in_words(value)


def _all(config: dict[str, Any], changed: Settings) -> Markup:
    """Every setting by its section, those that differ in bold."""
    general = {name: value for name, value in config.items() if not isinstance(value, dict)}
    parts = {name: value for name, value in config.items() if isinstance(value, dict)}
    groups = [
        tag("div", tag("h3", name), _listed(values, prefix, changed))
        for name, prefix, values in [
            ("run", "", general),
            *((name, f"{name}.", values) for name, values in parts.items()),
        ]
    ]
    summary = tag("summary", "All settings")
    return tag("details", summary, tag("div", *groups, class_="columns"))


def _listed(values: dict[str, Any], prefix: str, changed: Settings) -> Markup:
    def shown(name: str, value: Any) -> Markup | str:
        return tag("strong", in_words(value)) if prefix + name in changed else in_words(value)

    rows = [(tag("code", name), shown(name, value)) for name, value in values.items()]
    return table(("setting", "value"), rows, "facts")
