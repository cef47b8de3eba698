"""Which rows make up each update of a training run, which of them a process takes, and how gradients come together.

Used by ``role_trainer``. Order and split depend on nothing but their arguments, so a run that goes on sees the rows
that it would have seen, and two processes see the same ones. No equation of the paper; the released code deals its
loader out to processes, which repeats rows to make the shares even, and does not shuffle.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from torch import nn
from torch.utils.data import DataLoader

from webrl_lite.batching import micro_batches


class Order:
    """Which rows make up each update of an epoch: shuffled by seed and epoch, the last batch as small as it comes."""

    def __init__(self, rows: int, batch_size: int, seed: int) -> None:
        """Take the number of rows, of rows in a batch, and the seed."""
        self.rows, self.batch_size, self.seed, self.epoch = rows, batch_size, seed, 0

    def __len__(self) -> int:
        return math.ceil(self.rows / self.batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch)
        order = torch.randperm(self.rows, generator=generator).tolist()
        return iter([order[first : first + self.batch_size] for first in range(0, self.rows, self.batch_size)])

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch; transformers does before each."""
        self.epoch = epoch


class UpdateLoader(DataLoader):
    """A loader of whole updates that passes on which epoch it is; every process has the same."""

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch; transformers does before each."""
        self.batch_sampler.set_epoch(epoch)


def split(lengths: Sequence[int], tokens: int, process: int, processes: int) -> list[list[int]]:
    """Return the micro-batches that one process takes of an update.

    Rows are dealt out in the order of their length, so shares are of like size; every row goes to exactly one process,
    and a process may get none.

    Args:
        lengths: tokens of each row of the update.
        tokens: most tokens of a micro-batch, padding included.
        process: which process, from 0.
        processes: how many there are.
    """
    mine = sorted(range(len(lengths)), key=lambda row: (-lengths[row], row))[process::processes]
    return [[mine[place] for place in group] for group in micro_batches([lengths[row] for row in mine], tokens)]


def sum_gradients(accelerator: Accelerator, parameters: Sequence[nn.Parameter]) -> None:
    """Put the sum of all processes' gradients into each; a process that had no rows in this update adds zeros.

    Args:
        accelerator: knows the processes.
        parameters: the same, in the same order, in every process.
    """
    own = [p.grad if p.grad is not None else torch.zeros_like(p) for p in parameters]
    summed = accelerator.reduce(torch.cat([gradient.flatten() for gradient in own]), reduction="sum")
    for parameter, gradient in zip(parameters, summed.split([p.numel() for p in parameters]), strict=True):
        parameter.grad = gradient.view_as(parameter)


def leave_group() -> None:
    """End this process's part in a group of processes, so that it can begin another run, alone or with others."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    AcceleratorState._reset_state(reset_partial_state=True)
