"""WebRL (arXiv 2411.02337) as a kit that one person runs on one machine.

Read the modules in the order of the data:

1. ``trajectory``   what is passed between the parts: Task, Step, Trajectory, Verdict, StopReason
2. ``actions``      the agent's replies: grammar, parser, formatter
3. ``observation``  a page becomes text with element ids (modes ``webrl`` and ``lite``)
4. ``evaluators``   WebArena's graders in three named modes (``vab``, ``webarena``, ``strict``)
5. ``browser``      Chromium: pool, executor, settling, network gate
6. ``envs``         the gymnasium environment and the five embedded sites

Letters used in docstrings: ``T`` steps of a trajectory, ``N`` environments stepped at once.
"""

__version__ = "0.1.0"
