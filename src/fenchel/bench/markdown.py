"""Tables in Markdown."""


def number(value: float | None, digits: int) -> str:
    """A dash for what is not known, or not finite."""
    return "-" if value is None else f"{value:.{digits}f}"


def table(header: list[str], lines: list[list[str]]) -> str:
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
