"""Studies that take too long for the test suite; each writes JSON and Markdown into `results/`."""
