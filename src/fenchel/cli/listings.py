"""`fenchel datasets` and `fenchel methods`."""

from rich.table import Table

from fenchel.cli.console import escaped, out, print_json
from fenchel.cli.options import Json


def datasets(as_json: Json = False) -> None:
    """The toy data sets."""
    from fenchel.data import TOYS

    known = [
        {
            "name": toy.name,
            "description": toy.description,
            "density": "none (zero width)" if toy.thin else "known" if toy.log_density else "-",
        }
        for toy in TOYS.values()
    ]
    if as_json:
        print_json(known)
        return
    table = Table("name", "what it is", "true density", title="Toy data sets")
    for entry in known:
        table.add_row(entry["name"], entry["description"], entry["density"])
    out.print(table)


def methods(as_json: Json = False) -> None:
    """All methods: what each needs, what it gives, and what a step costs."""
    from dataclasses import asdict

    from fenchel.methods import METHODS

    if as_json:
        print_json([{"name": name, **asdict(method)} for name, method in METHODS.items()])
        return
    table = Table(title="Methods of `fit`", show_lines=True)
    # What it is stands beneath its name: beside it, no column would be as wide as its own words.
    table.add_column("method", width=max(map(len, METHODS)))
    for column in ("needs", "gives", "cost a datum"):
        table.add_column(column)
    for name, method in METHODS.items():
        too = "; for discrete data too" if method.discrete else ""
        called = f"[bold]{name}[/]\n{escaped(method.summary + too)}"
        table.add_row(called, method.needs, method.gives, method.cost)
    out.print(table)
