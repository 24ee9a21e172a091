"""What numbers depend on besides code, settings and data: packages, Python and the machine."""

import platform
from importlib.metadata import PackageNotFoundError, version

import jax

PACKAGES = ("jax", "jaxlib", "equinox", "optax", "flowjax", "diffrax", "numpy")


def packages(names: tuple[str, ...] = PACKAGES) -> dict[str, str]:
    """The versions of those that are installed."""
    return {name: found for name in names if (found := _version(name))}


def python() -> str:
    return platform.python_version()


def device() -> str:
    """What JAX computes on."""
    first = jax.devices()[0]
    return f"{first.platform}: {first.device_kind}"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
