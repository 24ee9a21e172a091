"""Does f tell other pictures from those that it was fitted to?

    python -m benchmarks.outsiders RUN [RUN ...] --data mnist.npz --against FOLDER [--against ...]
                                   [--out benchmarks/results] [--name outsiders-mnist]

What `fenchel score RUN DATA --against OTHER` prints, of several models in one table: for the test
part of the data and of every other source the mean of f, and how often f is larger at a picture of
the data than at one of the others (AUROC: a half is a guess, 1 is never wrong).
"""

import argparse
from pathlib import Path
from typing import Any

from benchmarks.record import RESULTS, in_words, provenance, write
from fenchel.report.findings import sentence
from fenchel.report.pictures.outsiders import load_scores, table_of
from fenchel.saving import load


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--data", required=True)
    parser.add_argument("--against", action="append", required=True)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--name", default="outsiders-mnist")
    arguments = parser.parse_args()
    result: dict[str, Any] = {"runs": {}, "provenance": provenance()}
    for run in arguments.runs:
        fit = load(run)
        scores = load_scores(fit, arguments.data, arguments.against, None)
        named = {Path(source).name: values for source, values in scores.items()}
        rows = table_of(named, Path(arguments.data).name)
        result["runs"][run.name] = {"config": fit.config.to_dict(), "rows": rows}
    write(arguments.name, result, as_markdown(result), arguments.out)
    print(as_markdown(result))


def as_markdown(result: dict[str, Any]) -> str:
    lines = [
        "# Other pictures, told from a model's own",
        "",
        "f is the unnormalised log density. AUROC is how often it is larger at a picture of the "
        "kind that was fitted, and held out, than at one of the others.",
        "",
        "| model | pictures | how many | mean of f | AUROC |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, run in result["runs"].items():
        for source, row in run["rows"].items():
            told = "-" if row["auroc"] is None else f"{row['auroc']:.3f}"
            cells = (name, source, f"{row['pictures']:,}", f"{row['mean']:.2f}", told)
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", sentence(in_words(result["provenance"])), ""])


if __name__ == "__main__":
    main()
