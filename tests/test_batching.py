import math

import pytest
import torch

from webrl_lite.batching import RuleError, micro_batches, pad, token_logprobs

CPU = torch.device("cpu")


def test_right_padding_stands_behind_a_row() -> None:
    batch = pad([(7, 8, 9), (5,)], CPU)
    assert batch.input_ids.tolist() == [[7, 8, 9], [5, 0, 0]]
    assert batch.attention_mask.tolist() == [[1, 1, 1], [1, 0, 0]]
    assert batch.starts == (0, 0)


def test_left_padding_stands_before_a_row_and_positions_begin_with_its_first_token() -> None:
    batch = pad([(7, 8, 9), (5,)], CPU, side="left")
    assert batch.input_ids.tolist() == [[7, 8, 9], [0, 0, 5]]
    assert batch.position_ids.tolist() == [[0, 1, 2], [0, 0, 0]]
    assert list(batch.columns(1, 0, 1)) == [2]


def test_a_real_token_equal_to_the_padding_token_is_not_padding() -> None:
    """TRN-01: what counts is the position, not the id."""
    batch = pad([(7, 1), (1,)], CPU, pad_id=1)
    assert batch.attention_mask.tolist() == [[1, 1], [1, 0]]


@pytest.mark.parametrize("rows", [[], [()], [(1, 2), ()]])
def test_an_empty_row_is_refused(rows: list[tuple[int, ...]]) -> None:
    with pytest.raises(RuleError, match="at least one token"):
        pad(rows, CPU)


def test_micro_batches_group_rows_of_similar_length_within_the_budget() -> None:
    """Budget 10: 7 alone, since 2 x 7 > 10; then 5 and 4 (2 x 5); then 3, 2 and 1 (3 x 3)."""
    assert micro_batches([3, 7, 1, 5, 2, 4], 10) == [[1], [3, 5], [0, 4, 2]]


def test_a_row_over_the_budget_is_a_group_of_its_own() -> None:
    assert micro_batches([50, 2], 10) == [[0], [1]]


def test_no_rows_are_no_groups() -> None:
    assert micro_batches([], 10) == []


def test_log_probabilities_of_large_logits_are_finite_and_right() -> None:
    """ORM-04: logits 100 and 99 or -200 and -201: the first has 1 / (1 + 1/e) = 0.731059."""
    logits = torch.tensor([[100.0, 99.0], [-200.0, -201.0]])
    probabilities = token_logprobs(logits, torch.tensor([0, 0])).exp()
    assert torch.allclose(probabilities, torch.tensor([0.7310586, 0.7310586]), atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_logits_are_taken_to_float32_first(dtype: torch.dtype) -> None:
    """TRN-13: 128,000 tokens at logit 0 and one at 12 (exact in both types): p = e^12 / (e^12 + 128,000) = 0.559767."""
    logits = torch.zeros(1, 128_001, dtype=dtype)
    logits[0, 5] = 12
    found = token_logprobs(logits, torch.tensor([5]))
    assert found.dtype == torch.float32
    assert abs(found.item() - math.log(0.559767)) < 1e-3  # float32 sums of 128,000 terms


def test_a_likely_and_an_unlikely_token_are_both_exact_in_half_precision() -> None:
    """TRN-13: logits 7, 0 and -7: p = 0.999088 and 0.000000831 (e^7 = 1096.633, sum 1097.634)."""
    found = token_logprobs(torch.tensor([[7.0, 0.0, -7.0]] * 2, dtype=torch.bfloat16), torch.tensor([0, 2]))
    assert torch.allclose(found, torch.tensor([-0.000912, -14.000912]), atol=1e-5)
