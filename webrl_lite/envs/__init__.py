"""The environments: a gymnasium face on web tasks that run in a real browser.

``WebEnv`` plays one task at a time, ``WebEnvBatch`` steps several at once, ``make_env`` builds either. A backend
supplies the tasks, the sites and the state to grade: ``embedded`` (five small sites that this package serves),
``webarena`` (sites that a user hosts) or ``miniwob`` (pages of MiniWoB++).

Importing this package registers ``webrl_lite/train-v0``, ``webrl_lite/test-v0`` and
``webrl_lite/test_families-v0`` with gymnasium.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import gymnasium

if TYPE_CHECKING:
    from webrl_lite.envs.web_env import WebEnv, WebEnvBatch, make_env

__all__ = ["WebEnv", "WebEnvBatch", "make_env"]

for _split in ("train", "test", "test_families"):
    gymnasium.register(
        id=f"webrl_lite/{_split}-v0", entry_point="webrl_lite.envs.web_env:make_env", kwargs={"split": _split}
    )


def __getattr__(name: str) -> object:
    """Load the environment classes on first use: the site server imports this package without a browser."""
    if name in __all__:
        from webrl_lite.envs import web_env

        return getattr(web_env, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
