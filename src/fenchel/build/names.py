"""Names that are no part's own."""

CUSTOM = "custom"  # the kind of a part that the user built: it cannot be rebuilt from data
EMBEDDINGS = ("ade", "nf")  # the methods that learn their sampler
DISCRETE = ("ising", "potts", "rbm")  # potentials of discrete variables
