"""A served model in the curriculum: it invents tasks, and tells which can be done.

Reads failed tasks, gives new ones, as the offline generator of the embedded sites does. What is asked and how it is
read is in ``task_prompts``; how it is sent, in ``llm``, which writes down every prompt, reply and cost.

Source: WebRL Section 2.1; the released ``scripts/gen_task.py:115-161``.
"""

from __future__ import annotations

from collections.abc import Sequence

from webrl_lite import task_prompts
from webrl_lite.llm import Llm, LlmError
from webrl_lite.trajectory import JSON, Task


class ModelGenerator:
    """A served model that invents tasks; what it may write is in ``task_prompts``."""

    at_once = 10
    """Tasks that it is asked for. (ours: the release does not say how many it wants)"""

    def __init__(self, llm: Llm) -> None:
        """Take the model."""
        self.name = llm.config.model
        self._llm = llm

    def propose(self, sites: tuple[str, ...], failed: Sequence[Task], count: int, seed: str) -> list[Task]:
        """Ask for tasks; they start on the sites' front pages. The seed is not sent: few servers keep to one.

        Raises:
            LlmError: no answer of use came.
        """
        messages = task_prompts.generation_messages(_site(sites), [task.intent for task in failed], count)
        intents = self._llm.ask(messages, lambda text: task_prompts.parse_tasks(text) or None, purpose="generate")
        source: dict[str, JSON] = {"from": [task.task_id for task in failed], "how": self.name}
        start = " |AND| ".join(f"__{site.upper()}__/" for site in sites)
        return [Task("", sites, intent, start, extra={"evolved": source}) for intent in intents]


class ModelCheck:
    """A served model that tells what can be done; what the sites lack is in ``task_prompts.CANNOT``."""

    def __init__(self, llm: Llm) -> None:
        """Take the model."""
        self._llm = llm

    def __call__(self, task: Task) -> tuple[bool | None, str]:
        """Return whether a task can be done and why; None without a verdict after all tries.

        Raises:
            LlmError: every further question would fail too.
        """
        messages = task_prompts.feasibility_messages(_site(task.sites), task.intent)

        def read(text: str) -> tuple[bool, str] | None:
            verdict = task_prompts.parse_feasible(text)
            return None if verdict is None else (verdict, " ".join(text.split())[:300])

        try:
            return self._llm.ask(messages, read, purpose="feasible", temperature=0.0)
        except LlmError as error:
            if error.final:
                raise
            return None, str(error)


def _site(sites: tuple[str, ...]) -> str:
    """Return the key of a site, or the description of several."""
    if len(sites) == 1:
        return sites[0]
    return " and ".join(task_prompts.SITES.get(site, site) for site in sites)
