"""Shared by the test modules: one browser, one set of embedded sites."""

from collections.abc import Iterator

import pytest

from webrl_lite.browser import Browser
from webrl_lite.envs.embedded.backend import EmbeddedSites


@pytest.fixture(scope="session")
def shared_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(folder=tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture(scope="session")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedSites]:
    sites = EmbeddedSites(tmp_path_factory.mktemp("worlds"))
    yield sites
    sites.close()
