"""What an environment needs to know of a set of tasks and the sites they run on.

``embedded.backend.EmbeddedSites`` is the one that ships with the kit; sites that a user hosts have the same interface.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from webrl_lite.evaluators import Call
from webrl_lite.tabs import Limits
from webrl_lite.trajectory import JSON, Task


@dataclass(frozen=True)
class Start:
    """Where an episode begins."""

    urls: tuple[str, ...]
    """Address of each start tab; the first is active."""
    allowed: Mapping[str, str]
    """Sites that the agent's browser may reach: short name, as the agent sees it, to ``http://host:port``."""
    cookies: list[dict[str, str]]
    """Playwright cookies of the agent's context."""
    addresses: Mapping[str, str]
    """Placeholder to address, for example ``__SHOPPING__`` to ``http://shopping.w0.localhost:4711``."""
    grader_cookies: list[dict[str, str]] = field(default_factory=list)
    """Playwright cookies of the context in which graders read pages."""
    grader_allowed: tuple[str, ...] = ()
    """Origins that graders may read beside ``allowed``; opened only when the agent's tabs are closed."""
    geolocation: Mapping[str, float] | None = None
    """``latitude`` and ``longitude`` that pages may ask for."""
    limits: Limits | None = None
    """Time limits of the episode, where the usual ones are too short."""


class Backend(ABC):
    """A set of tasks and the sites they run on; what only some sites can do is left out by default."""

    name: str
    evaluator: str
    tasks: Sequence[Task]

    @abstractmethod
    def start(self, task: Task, worker: int) -> Start:
        """Put the sites into the task's initial state for one worker."""

    def ended(self, worker: int) -> dict[str, JSON] | None:
        """Return what the task's own page said when it ended the episode; None while it goes on.

        ``reward`` and ``reason``, see ``evaluators``. Always None where the agent's ``exit`` ends an episode.
        """
        return None

    def before(self, url: str) -> str | None:
        """Return the address that shows a page as it was before the episode, or None if there is none."""
        return None

    def call(self, call: Call, worker: int) -> str | None:
        """Run a named helper function of the graders; None if this backend does not have it."""
        return None

    def changes(self, worker: int) -> list[dict[str, JSON]] | None:
        """List the rows that the episode changed, or None where the state cannot be read."""
        return None

    def alive(self) -> bool:
        """Whether the sites answer; if not, the episode is an environment fault."""
        return True

    def close(self) -> None:  # noqa: B027  (nothing to release is the usual case)
        """Release everything; calling it again does nothing."""
