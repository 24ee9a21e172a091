"""The paper's Table 2: MMD × 1e3 of 1,000 samples against 1,000 held-out points, best epoch."""

COLUMNS = ("SM", "NF", "CD-15", "ADE")

TABLE_2: dict[str, dict[str, float]] = {
    name: dict(zip(COLUMNS, row, strict=True))
    for name, row in {
        "2spirals": (5.09, 0.69, -0.45, -0.61),
        "Banana": (8.10, 0.88, -0.31, -0.99),
        "circles": (4.90, 0.76, -0.83, -1.13),
        "cos": (10.36, 0.91, 7.15, -0.55),
        "Cosine": (8.34, 2.15, 0.78, -1.09),
        "Funnel": (13.07, -0.92, -0.38, -0.75),
        "swissroll": (19.93, 1.97, 0.20, -0.36),
        "line": (10.28, 0.39, 10.5, -1.30),
        "moons": (41.34, 0.80, 2.21, -1.10),
        "Multiring": (2.01, 0.30, -0.38, -1.02),
        "pinwheel": (18.41, 3.01, -1.03, -0.95),
        "Ring": (9.22, 161.89, 0.12, -0.91),
        "Spiral": (9.48, 5.96, -0.41, -0.81),
        "Uniform": (5.88, 0.00, -1.17, -0.94),
    }.items()
}
