import pytest

from webrl_lite.update_batches import Order, split


def epochs(order: Order, number: int) -> list[list[list[int]]]:
    found = []
    for epoch in range(number):
        order.set_epoch(epoch)
        found.append(list(order))
    return found


def test_every_epoch_has_every_row_once_and_the_last_batch_is_as_small_as_it_comes() -> None:
    first, second = epochs(Order(rows=11, batch_size=4, seed=0), 2)
    for epoch in (first, second):
        assert [len(batch) for batch in epoch] == [4, 4, 3]
        assert sorted(row for batch in epoch for row in batch) == list(range(11))
    assert first != second


def test_the_order_depends_on_seed_and_epoch_only() -> None:
    assert epochs(Order(11, 4, seed=1), 3) == epochs(Order(11, 4, seed=1), 3)
    assert epochs(Order(11, 4, seed=1), 3) != epochs(Order(11, 4, seed=2), 3)
    again = Order(11, 4, seed=1)
    again.set_epoch(2)
    assert list(again) == epochs(Order(11, 4, seed=1), 3)[2]


@pytest.mark.parametrize(("rows", "batch_size", "updates"), [(1, 32, 1), (32, 32, 1), (33, 32, 2), (5, 1, 5)])
def test_the_number_of_updates_of_an_epoch_is_rounded_up(rows: int, batch_size: int, updates: int) -> None:
    assert len(Order(rows, batch_size, 0)) == updates == len(list(Order(rows, batch_size, 0)))


@pytest.mark.parametrize("processes", [1, 2, 3, 8])
def test_every_row_goes_to_exactly_one_process(processes: int) -> None:
    lengths = [5, 90, 12, 7, 33, 33, 1]
    shares = [split(lengths, 60, process, processes) for process in range(processes)]
    assert sorted(row for share in shares for group in share for row in group) == list(range(7))


def test_a_process_may_get_no_row() -> None:
    assert split([10], 60, 0, 2) == [[0]]
    assert split([10], 60, 1, 2) == []


def test_shares_are_of_like_length_and_micro_batches_within_the_budget() -> None:
    """Sorted 9, 8, 7, 6, 5: one process has 9, 7, 5, the other 8 and 6; 7 and 5 padded to 7 are 14 tokens."""
    assert split([5, 6, 7, 8, 9], 14, 0, 2) == [[4], [2, 0]]
    assert split([5, 6, 7, 8, 9], 14, 1, 2) == [[3], [1]]
