"""The shop's families of tasks."""

from webrl_lite.envs.embedded.families import Family
from webrl_lite.envs.embedded.shopping.changes import CHANGES
from webrl_lite.envs.embedded.shopping.questions import QUESTIONS

FAMILIES: list[Family] = [*QUESTIONS, *CHANGES]
