"""The shipped demonstrations are solved episodes of exactly the train tasks as they are today."""

from webrl_lite.actions import parse
from webrl_lite.envs.embedded.backend import EmbeddedSites
from webrl_lite.envs.embedded.demonstrations import DEMONSTRATIONS, demonstrations
from webrl_lite.trajectory import StopReason


def test_there_is_one_solved_episode_for_every_train_task(sites: EmbeddedSites):
    shown = demonstrations()
    assert [t.task for t in shown] == [task for task in sites.tasks if task.split == "train"]
    assert len(shown) == 517
    assert all(t.verdict is not None and t.verdict.success and t.stop is StopReason.EXIT for t in shown)


def test_every_reply_names_an_element_that_its_page_shows():
    """Nothing in a demonstration teaches a mistake."""
    for trajectory in demonstrations():
        for step in trajectory.steps:
            action = parse(step.reply).action
            assert action.element is None or f"[{action.element}]" in step.observation


def test_they_are_small_enough_to_ship():
    assert DEMONSTRATIONS.stat().st_size < 1_000_000
