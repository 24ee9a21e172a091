"""The paper's experiments as commands: `fenchel bench toys` and `fenchel bench gaussian`.

Every run of a method trains under one `vmap`, and all that takes long is written down on the way:
the same command goes on where it was stopped.
"""
