"""The families of tasks on Forgeworks."""

from webrl_lite.envs.embedded.gitlab import changes, questions

FAMILIES = [*questions.FAMILIES, *changes.FAMILIES]
"""All families of the site."""
