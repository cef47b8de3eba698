"""Which packages of other people's tasks are installed beside the tests."""

from importlib import metadata

import pytest


def installed(name: str) -> bool:
    """Return whether a package is installed, without importing it."""
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


needs_pages = pytest.mark.skipif(
    not installed("miniwob"), reason="the pages are not installed: pip install --no-deps miniwob"
)
