"""What the four trainers share: ``transformers.Trainer``, taught to train one role of a shared base.

``sft``, ``orm``, ``critic`` and ``actor`` each add a class of arguments and a ``compute_loss``; the loop, callbacks,
schedules, optimizers and trackers are those of transformers, and what differs is here, in the order in which it comes:

* **rows, not tensors.** A batch is a list of rows, and ``SharedBase`` makes the tensors;
* **a batch is one update.** ``batch_size`` actions over all processes, split by ``tokens_per_micro_batch`` into groups
  of similar length. Every row weighs the same however the batch is split, so memory has no say in the result;
* **the role guard.** Each group's forward and backward pass run inside ``with shared.role(..., train=True):``;
* **several processes.** The passes do not go through the forward of a wrapped model, so no hook would see them: every
  process reads the same batch, takes every n-th row of it, and the gradients are summed before the step;
* **going on.** A run that was killed goes on from its newest complete checkpoint to the same weights, bit for bit.

Updates: ``ceil(rows / batch_size)`` an epoch, the last batch smaller and its mean taken over its own rows; of a
fraction of an epoch, that fraction of the updates, rounded up. The order of the rows depends on seed and epoch only.

Differs from the released code: it divides by the number of micro-batches, so short ones weigh more; it steps AdamW on
batches whose gradient is zero (``trainer.py:205``); it never shuffles (``trainer.py:237``).
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

import torch
from accelerate.utils import gather_object
from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers import PrinterCallback, ProgressCallback, Trainer, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_utils import TrainOutput

from webrl_lite import checkpoints
from webrl_lite.batching import RuleError
from webrl_lite.model import SharedBase
from webrl_lite.role_arguments import DECISIVE, RoleArguments
from webrl_lite.update_batches import Order, UpdateLoader, split, sum_gradients

Row = TypeVar("Row")

FINAL = "final"
"""Folder, in a run's output folder, of the trained role."""
METRICS = "metrics.jsonl"
"""File, in a run's output folder, with one line for each time that numbers were logged."""


@dataclass(frozen=True)
class Trained:
    """What a training run left."""

    folder: Path
    """The role's files, for ``SharedBase.load_role`` or ``PeftModel.from_pretrained``."""
    steps: int
    """Updates, those before a kill included."""
    metrics: Mapping[str, float]
    """Numbers of the last logged update."""


class RoleTrainer(Trainer, Generic[Row]):
    """Trains one role of a shared base; the others and the base keep every bit.

    Logged by every trainer, in ``metrics.jsonl`` behind the trainer's name and a slash (but for the first two):

    * ``step``: updates so far; ``epoch``: passes over the rows so far.
    * ``loss``: mean over the updates since the last line; of an update it is the mean over its rows.
    * ``clipped``: share of updates whose gradient was scaled down to ``max_grad_norm``; ``skipped``: share of those
      whose gradient was exactly zero, where no weight is moved, neither by momentum nor by decay.
    * ``grad_norm``, ``learning_rate``: length of the last gradient before clipping, and step size of the last update.
    * ``tokens_per_second``: tokens trained on, padding not counted.
    """

    name: ClassVar[str]
    """Name of the trainer, in logs and messages."""
    role: ClassVar[str]
    """Role that it trains."""
    args: RoleArguments

    def __init__(self, model: SharedBase, args: RoleArguments, train_dataset: Sequence[Row]) -> None:
        """Check the rows and set up the parts; nothing is trained yet.

        Args:
            model: the shared base.
            args: how to train.
            train_dataset: rows; which kind is said in the subclass.

        Raises:
            ValueError: there are no rows, or one that cannot be trained on (the first few are named).
            RuleError: ``args`` would train on another device than the base is on, or in another precision.
        """
        self.shared = model
        rows = list(train_dataset)
        if not rows:
            raise ValueError(f"`train_dataset` of {self.name} must have at least one row, got none. Was it filtered?")
        self._lengths, limit = [self.length(row) for row in rows], model.max_length
        long = {i: f"it has {n} tokens, the model takes {limit}" for i, n in enumerate(self._lengths) if n > limit}
        faults = [f"row {i}: {fault}" for i, row in enumerate(rows) if (fault := self.fault(row) or long.get(i))]
        if faults:
            shown = "; ".join(faults[:3])
            raise ValueError(f"`train_dataset` of {self.name} has {len(faults)} rows that cannot be used. {shown}.")
        own = model.model.device
        if (args.device.type, args.device.index or 0) != (own.type, own.index or 0):
            raise RuleError(f"`model` is on {own}, but training would be on {args.device}. Load it with device='...'.")
        args._n_gpu = min(args.n_gpu, 1)  # else several cards would be filled with copies of the model
        parameters = nn.ParameterList(model.trainable_parameters(self.role))
        super().__init__(model=parameters, args=args, train_dataset=rows, data_collator=list)
        if self.accelerator.mixed_precision != "no":
            raise RuleError("`mixed_precision` must be no: under autocast the log ratio of equal weights is not 0.")
        if self.is_fsdp_enabled or self.is_deepspeed_enabled:
            raise RuleError("`accelerate launch` must start plain processes: every one holds the base and its roles.")
        self.remove_callback(PrinterCallback)
        if any(type(callback) is ProgressCallback for callback in self.callback_handler.callbacks):
            self.remove_callback(ProgressCallback)
            self.add_callback(_Bar(self.name))
        self._sums: dict[str, float] = {}
        self._clock = 0.0
        self._written_to: Path | None = None

    # For subclasses ---------------------------------------------------------------------------------------

    def length(self, row: Row) -> int:
        """Return the tokens of a row, prompt and action together."""
        raise NotImplementedError

    def items(self, row: Row) -> int:
        """Return over how many items of a row the loss is a mean: 1, unless it is one over tokens."""
        return 1

    def fault(self, row: Row) -> str | None:
        """Return why a row cannot be trained on, None if it can."""
        return None if self.length(row) else "it has no tokens"

    def compute_loss(
        self,
        model: nn.Module,
        inputs: Sequence[Row],
        return_outputs: bool = False,
        num_items_in_batch: int | None = None,
    ) -> Tensor | tuple[Tensor, dict[str, Tensor]]:
        """Return the mean loss of a micro-batch, with ``return_outputs`` also numbers to log, means as well.

        Args:
            model: not used, for the passes are ``self.shared``'s.
            inputs: rows; runs inside a training block of the role.
            return_outputs: as in transformers.
            num_items_in_batch: not used, for ``training_step`` weighs.
        """
        raise NotImplementedError

    @functools.cached_property
    def settings(self) -> dict[str, str]:
        """What two runs must have in common to end in the same weights."""
        args, common = self.args, {field.name for field in dataclasses.fields(RoleArguments)}
        own = [field.name for field in dataclasses.fields(args) if field.name not in common]
        chosen = {name: getattr(args, name) for name in (*DECISIVE, *own)}
        base = self.shared.model.get_base_model()
        held = [p for name, p in base.named_parameters() if "lora_" not in name and p.is_floating_point()]
        return (
            {name: str(value).removesuffix(".0") for name, value in chosen.items()}
            | {  # 3 and 3.0 are one
                "trainer": self.name,
                "schedule": args.lr_scheduler_type.value,
                "optimizer": args.optim.value,
                # a few numbers of every tensor; one that is quantized is missing, so that is another base too
                "base": _digest(type(base).__name__, *((p.dtype, p.detach().flatten()[:16].tolist()) for p in held)),
                "tokenizer": _digest(*sorted(self.shared.tokenizer.get_vocab().items())),
                "rows": str(len(self.train_dataset)),
                "data": _digest(*self.train_dataset),
            }
        )

    # Training ---------------------------------------------------------------------------------------------------

    def fit(self) -> Trained:
        """Train to the end, from the newest complete checkpoint if there is one, and write the role to ``final``.

        Raises:
            RuleError: the checkpoint was made with other settings or data, or none of several is complete.
        """
        checkpoint = checkpoints.newest(Path(self.args.output_dir))
        self.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        self.save_model()
        if self.is_world_process_zero():
            checkpoints.prune(Path(self.args.output_dir), keep=1)  # enough to know that this run is done
        logged = [line for line in self.state.log_history if "loss" in line]
        return Trained(Path(self.args.output_dir) / FINAL, self.state.global_step, logged[-1] if logged else {})

    def train(
        self,
        resume_from_checkpoint: str | bool | None = None,
        trial: None = None,
        ignore_keys_for_eval: list[str] | None = None,
    ) -> TrainOutput:
        """Train as ``Trainer.train`` does; ``trial`` and ``ignore_keys_for_eval`` are not used.

        Args:
            resume_from_checkpoint: a checkpoint; True: the newest complete one of the output folder.
            trial: not used.
            ignore_keys_for_eval: not used.

        Raises:
            RuleError: the checkpoint does not fit; the folder has checkpoints of another run; processes differ.
            FloatingPointError: a loss or a gradient is not finite; no weight has been changed by that update.
            OSError: a checkpoint could not be written; the one before it is still there.
        """
        folder = Path(self.args.output_dir)
        found = checkpoints.newest(folder)
        if resume_from_checkpoint is True and found is None:
            raise RuleError(f"`{folder}` has no checkpoint to go on from.")
        if not resume_from_checkpoint and found is not None:
            raise RuleError(f"`{folder}` has checkpoints of an earlier run. Go on from them, or use another folder.")
        checkpoint = found if resume_from_checkpoint is True else Path(resume_from_checkpoint or "")
        state = TrainerState()
        if resume_from_checkpoint:
            checkpoints.check_settings(checkpoint, self.settings)
            state = TrainerState.load_from_json(str(checkpoint / "trainer_state.json"))
        self._check_processes(new=not resume_from_checkpoint)
        size = sum(p.numel() * p.element_size() for p in self.model.parameters())
        checkpoints.check_space(folder, 3 * size * ((self.args.save_total_limit or 1) + 1))  # with AdamW's two moments
        if self.is_world_process_zero():
            checkpoints.trim_log(folder / METRICS, state.global_step)
        if resume_from_checkpoint and state.global_step >= state.max_steps:  # transformers would take one step more
            self._load_from_checkpoint(str(checkpoint))
            self.state = state
            return TrainOutput(state.global_step, math.nan, {})
        self._clock = time.perf_counter()
        return super().train(str(checkpoint) if resume_from_checkpoint else None)

    def training_step(
        self, model: nn.Module, inputs: list[tuple[int, Row]], num_items_in_batch: int | None = None
    ) -> Tensor:
        """Leave the gradient of one whole update in the parameters and return its loss.

        Args:
            model: the role's parameters.
            inputs: the update's rows, each with its place in the data.
            num_items_in_batch: not used: rows are counted here.
        """
        total = sum(self.items(row) for _, row in inputs)
        loss = torch.zeros((), device=self.args.device)
        lengths = [self._lengths[number] for number, _ in inputs]
        for group in split(lengths, self.args.tokens_per_micro_batch, self.args.process_index, self.args.world_size):
            numbers, rows = zip(*(inputs[place] for place in group), strict=True)
            share = sum(map(self.items, rows)) / total
            try:
                with self.shared.role(self.role, train=True):
                    part, metrics = self.compute_loss(model, rows, return_outputs=True)
                    self._require_finite(part.detach(), "loss", numbers)
                    (part * share).backward()
            except (MemoryError, torch.OutOfMemoryError) as error:
                error.add_note(f"In rows {_listed(numbers)} of {self.name}. Use a lower `tokens_per_micro_batch`.")
                raise
            self._require_finite(self._norm(), "gradient", numbers)
            loss += part.detach() * share
            self._count({name: float(value) * share for name, value in metrics.items()})
        if self.args.world_size > 1:
            sum_gradients(self.accelerator, list(model.parameters()))
        norm = self._norm()
        self._require_finite(norm, "gradient", [i for i, _ in inputs])
        if not norm > 0:
            model.zero_grad()  # without a gradient AdamW leaves a weight as it is
        if self.is_world_process_zero():
            clipped = 0 < self.args.max_grad_norm < norm
            skipped = float(not norm > 0)
            self._count({"updates": 1, "clipped": float(clipped), "skipped": skipped, "tokens": sum(lengths)})
        return loss * self.args.world_size  # transformers takes the mean over processes

    def _norm(self) -> Tensor:
        return nn.utils.get_total_norm([p.grad for p in self.model.parameters() if p.grad is not None])

    def _require_finite(self, value: Tensor, what: str, rows: Sequence[int]) -> None:
        if not torch.isfinite(value):
            self.model.zero_grad()
            raise FloatingPointError(
                f"the {what} of {self.name} must be finite, got {value.item()} at update {self.state.global_step + 1} "
                f"in rows {_listed(rows)} of `train_dataset`. No weight was changed. Look at them, or use a lower "
                "`learning_rate`."
            )

    def _wrap_model(self, model: nn.Module, training: bool = True, dataloader: DataLoader | None = None) -> nn.Module:
        """Return the parameters as another object, for transformers gives the same one to DDP, which finds no hooks."""
        return nn.ParameterList(self.model.parameters())

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        """Return the optimizer of ``args.optim`` over the role's parameters and no others."""
        if self.optimizer is None:
            kind, options = self.get_optimizer_cls_and_kwargs(self.args)
            self.optimizer = kind(list(self.model.parameters()), weight_decay=self.args.weight_decay, **options)
        return self.optimizer

    def get_train_dataloader(self) -> DataLoader:
        """Return whole updates as lists of (place in the data, row); the same in every process."""
        order = Order(len(self.train_dataset), self.args.batch_size, self.args.seed)
        return UpdateLoader(list(enumerate(self.train_dataset)), batch_sampler=order, collate_fn=list)

    def _check_processes(self, new: bool) -> None:
        """Refuse processes that hold other rows, or begin with other weights: their sum would be no gradient."""
        held = (self.settings, self.shared.role_version(self.role) if new else "")
        if any(other != held for other in gather_object([held])):
            raise RuleError("`model`, `args` and `train_dataset` must be the same in every process. Share them first.")

    # Numbers ----------------------------------------------------------------------------------------------------

    def _count(self, numbers: Mapping[str, float]) -> None:
        for name, number in numbers.items():
            self._sums[name] = self._sums.get(name, 0.0) + number

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Give numbers to the trackers and, those of updates, to ``metrics.jsonl``."""
        if "loss" not in logs:  # the summary at the end
            super().log(logs, start_time)
            return
        sums: dict[str, float] = {}
        for part in gather_object([self._sums]):
            for name, number in part.items():
                sums[name] = sums.get(name, 0.0) + number
        updates, now = sums.pop("updates"), time.perf_counter()
        logs["tokens_per_second"] = sums.pop("tokens") / (now - self._clock)
        logs |= {name: number / updates for name, number in sums.items()}
        self._sums, self._clock = {}, now
        super().log(logs, start_time)
        if self.is_world_process_zero():
            line = {"step": self.state.global_step, "epoch": logs["epoch"]}
            line |= {f"{self.name}/{name}": number for name, number in logs.items() if name != "epoch"}
            with (Path(self.args.output_dir) / METRICS).open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    # Files ------------------------------------------------------------------------------------------------------

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Write the role, the value head with it, to a folder that PEFT and vLLM load; by default ``final``."""
        if self.args.should_save:
            self.shared.save_role(self.role, output_dir or Path(self.args.output_dir) / FINAL)
        self.accelerator.wait_for_everyone()  # the folder is replaced; what others write to it must come later

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        self.shared.load_role(self.role, resume_from_checkpoint)

    def _get_output_dir(self, trial: None) -> str:
        return str(self._written_to or self.args.output_dir)

    def _save_checkpoint(self, model: nn.Module, trial: None) -> None:
        """Write a checkpoint beside the others, and give it its name when it is complete."""
        folder, first = Path(self.args.output_dir), self.is_world_process_zero()
        name = f"checkpoint-{self.state.global_step}"
        self._written_to = partial = folder / checkpoints.PARTIAL
        if first:
            checkpoints.remove(partial)
        self.accelerator.wait_for_everyone()
        try:
            super()._save_checkpoint(model, trial)
            self.accelerator.wait_for_everyone()
            if first:
                checkpoints.publish(partial / name, folder / name, self.settings)
                checkpoints.prune(folder, self.args.save_total_limit)
        except RuleError:
            raise
        except (OSError, RuntimeError) as error:  # torch has a RuntimeError for a full disk
            raise OSError(f"`{folder / name}` was not written: {error}. The checkpoint before it is intact.") from error
        finally:
            self._written_to = None
            if first:
                shutil.rmtree(partial, ignore_errors=True)
        self.accelerator.wait_for_everyone()


class _Bar(ProgressCallback):
    """The progress bar of transformers, with the loss beside it instead of a line of numbers for each update."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, float] | None = None,
        **kwargs: object,
    ) -> None:
        if self.training_bar is not None and logs and "loss" in logs:
            self.training_bar.set_description(self.name, refresh=False)
            self.training_bar.set_postfix(loss=f"{logs['loss']:.4g}")


def _listed(rows: Sequence[int]) -> str:
    return ", ".join(map(str, sorted(rows)[:8])) + (", ..." if len(rows) > 8 else "")


def _digest(*values: object) -> str:
    digest = hashlib.sha256()
    for value in values:
        digest.update(repr(value).encode())
    return digest.hexdigest()[:12]
