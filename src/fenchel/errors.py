"""What goes wrong, in words. Each message is one sentence or two: the cause, then the cure."""


class FenchelError(Exception):
    """Anything that this library raises on purpose."""


class InputError(FenchelError, ValueError):
    """What the user gave cannot be used; the command line prints it and exits with code 2."""


class DivergenceError(FenchelError, RuntimeError):
    """Training was stopped because too many of its steps were not finite."""
