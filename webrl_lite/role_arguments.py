"""How a role is trained: ``TrainingArguments`` of transformers, with a batch counted in actions and split by tokens.

Read by ``role_trainer``; made from the settings of ``config`` by ``RoleArguments.from_settings``. No equation of the
paper; its constants, and what the released code has instead, stand in ``config``.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch
from transformers import SchedulerType, TrainingArguments

from webrl_lite.config import TrainConfig

RENAMED = {"schedule": "lr_scheduler_type", "warmup": "warmup_steps", "epochs": "num_train_epochs"}
"""Settings whose name in transformers is another."""
WITHOUT_EFFECT = (
    *("bf16", "fp16", "fsdp", "deepspeed", "torch_compile", "use_liger_kernel", "auto_find_batch_size", "do_eval"),
    *("activation_checkpointing", "neftune_noise_alpha", "label_smoothing_factor", "dataloader_drop_last"),
    *("load_best_model_at_end", "push_to_hub", "ignore_data_skip", "save_only_model", "eval_on_start", "data_seed"),
)
"""Arguments of transformers that would do nothing here, or break what this file promises."""


DECISIVE = (
    *("batch_size", "learning_rate", "warmup_steps", "num_train_epochs", "max_steps", "max_grad_norm", "weight_decay"),
    *("adam_beta1", "adam_beta2", "adam_epsilon", "seed", "lr_scheduler_kwargs", "optim_args"),
)
"""Arguments that two runs must share to end in the same weights, beside those that a trainer adds."""


@dataclass
class RoleArguments(TrainingArguments):
    """``TrainingArguments`` with a batch that is counted in actions and split by tokens.

    Defaults that differ: AdamW without weight decay at 1e-4 and a constant step size, numbers logged at every update, a
    checkpoint at every tenth of the run, of which the last two are kept.
    """

    learning_rate: float = 1e-4
    lr_scheduler_type: str = "constant"
    optim: str = "adamw_torch"
    num_train_epochs: float = 1.0
    logging_steps: float = 1
    save_steps: float = 0.1
    save_total_limit: int | None = 2
    seed: int = 0
    batch_size: int | None = None
    """Rows an update, over all processes; None: ``per_device_train_batch_size`` x ``gradient_accumulation_steps`` x
    processes."""
    tokens_per_micro_batch: int = 8192
    """Most tokens, padding included, that go through the model at once; a longer row goes alone."""

    def __post_init__(self) -> None:
        super().__post_init__()
        idle = [name for name in WITHOUT_EFFECT if getattr(self, name)]
        if idle:
            raise ValueError(
                f"`{idle[0]}` must be left off, got {getattr(self, idle[0])!r}. Precision, quantization and activation "
                "checkpointing are chosen in SharedBase.load; the rest is not used here."
            )
        if self.batch_size is None:
            self.batch_size = self.per_device_train_batch_size * self.gradient_accumulation_steps * self.world_size
        self.gradient_accumulation_steps = 1  # one batch is one update; it is split inside `training_step`
        for name in ("batch_size", "tokens_per_micro_batch"):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be at least 1, got {getattr(self, name)}. Use e.g. 32 and 8192.")
        if self.lr_scheduler_type is SchedulerType.CONSTANT and self.warmup_steps:
            self.lr_scheduler_type = SchedulerType.CONSTANT_WITH_WARMUP  # plain `constant` would leave the warm-up out

    @classmethod
    def from_settings(
        cls, settings: TrainConfig, folder: str | Path, *, device: torch.device, seed: int = 0, report_to: str = "none"
    ) -> Self:
        """Return the arguments for a group of settings of a run, e.g. ``config.actor``.

        Args:
            settings: every one goes to the argument of its name (``RENAMED`` has the exceptions), or nowhere.
            folder: output folder of this training run.
            device: where the shared base is.
            seed: of the order of the rows.
            report_to: ``none``, ``tensorboard``, ``trackio`` or ``wandb``.
        """
        known = {field.name for field in dataclasses.fields(cls)}
        named = {RENAMED.get(name, name): value for name, value in dataclasses.asdict(settings).items()}
        chosen = {name: value for name, value in named.items() if name in known}
        return cls(output_dir=str(folder), seed=seed, report_to=report_to, use_cpu=device.type == "cpu", **chosen)
