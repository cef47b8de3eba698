"""The memory planner: sizes from configurations, terms with literal numbers, refusals, and measured peaks."""

import gc
import json
import weakref
from dataclasses import replace

import pytest
import torch
from peft import LoraConfig, get_peft_model
from tiny_models import llama, save
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import (
    AutoModelForCausalLM,
    Glm4Config,
    GlmConfig,
    Lfm2Config,
    LlamaConfig,
    PreTrainedConfig,
    PreTrainedModel,
    Qwen3Config,
)

from webrl_lite import passes
from webrl_lite.config import LoraConfig as LoraSettings
from webrl_lite.config import ModelConfig, preset
from webrl_lite.memory import CARDS, GIB, Card, breaking_term, plan, plan_run, table, table_text
from webrl_lite.memory_terms import (
    HEAD_ROWS,
    STAGES,
    Estimate,
    Load,
    Setup,
    adapter_parameters,
    base_bytes,
    cache_bytes,
    estimate,
    nf4_bytes,
)
from webrl_lite.model import Sample, SharedBase, TrunkBudget
from webrl_lite.model_shape import SHAPES, ModelShape, PlanError

LLAMA = SHAPES["Llama-3.1-8B"]
LENGTHS = (4096, 8192, 16384)

# Sizes of models ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("Llama-3.1-8B", 8_030_261_248),
        ("GLM-4-9B", 9_399_951_360),
        ("Qwen3-8B", 8_190_735_360),
        ("Llama-3.1-70B", 70_553_706_496),
    ],
)
def test_shapes_have_as_many_weights_as_the_published_models(name, parameters):
    assert SHAPES[name].parameters == parameters


def test_weights_of_llama_are_in_linear_layers_and_embeddings():
    """32 layers of 2 * 4096^2 + 2 * 4096 * 1024 + 3 * 4096 * 14336; 2 * 128256 * 4096; 65 norms of 4096."""
    assert LLAMA.linear_weights == 6_979_321_856
    assert LLAMA.embedding_weights == 1_050_673_152
    assert LLAMA.other_weights == 266_240


SMALL = {
    "vocab_size": 256,
    "hidden_size": 64,
    "intermediate_size": 192,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
}


def small(kind: str, **changes: object) -> PreTrainedConfig:
    values = SMALL | changes
    if kind == "lfm2":
        values = {"layer_types": ["conv", "full_attention", "conv"], "block_auto_adjust_ff_dim": False} | values
        del values["head_dim"]
        return Lfm2Config(**values)
    if kind.startswith("glm"):
        values["pad_token_id"] = 0
    return {"llama": LlamaConfig, "qwen3": Qwen3Config, "glm": GlmConfig, "glm4": Glm4Config}[kind](**values)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("llama", {}),
        ("llama", {"tie_word_embeddings": True, "num_key_value_heads": 4}),
        ("llama", {"head_dim": 32}),
        ("qwen3", {}),
        ("glm", {"attention_bias": True}),
        ("glm4", {}),
        ("lfm2", {"tie_word_embeddings": True}),
        ("lfm2", {"block_auto_adjust_ff_dim": True, "block_multiple_of": 16, "block_ffn_dim_multiplier": 1.3}),
    ],
)
def test_weights_and_adapters_equal_those_of_the_model_that_transformers_builds(kind, changes):
    config = small(kind, **changes)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
        base = sum(p.numel() for p in model.parameters())
        adapted = get_peft_model(model, LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM"))
    shape = ModelShape.from_config(json.loads(config.to_json_string(use_diff=False)))
    assert shape.parameters == base
    adapters = sum(p.numel() for name, p in adapted.named_parameters() if "lora_" in name)
    assert adapter_parameters(shape, Setup(rank=4)) == adapters


def test_glm4_in_its_original_layout_is_the_same_size():
    """The keys of THUDM/glm-4-9b-chat; its code has one layer for all three projections of attention."""
    shape = ModelShape.from_config(
        {
            "model_type": "chatglm",
            "add_qkv_bias": True,
            "ffn_hidden_size": 13696,
            "hidden_size": 4096,
            "kv_channels": 128,
            "multi_query_group_num": 2,
            "num_attention_heads": 32,
            "num_layers": 40,
            "padded_vocab_size": 151552,
            "seq_length": 131072,
            "tie_word_embeddings": False,
        }
    )
    assert shape.parameters == 9_399_951_360
    assert (shape.layers, shape.keys, shape.max_length, shape.fused_qkv) == (40, 256, 131072, True)


def test_smollm2_is_a_tied_llama():
    config = {
        "model_type": "llama",
        "vocab_size": 49152,
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": True,
    }
    assert ModelShape.from_config(config, "SmolLM2-135M").parameters == 134_515_008


def test_lfm2_with_the_keys_of_its_first_release():
    """Width 6656 becomes 2/3 of it, 4437, rounded up to 4608; 6 of 16 layers have attention."""
    shape = ModelShape.from_config(
        {
            "model_type": "lfm2",
            "vocab_size": 65536,
            "hidden_size": 1024,
            "block_ff_dim": 6656,
            "block_auto_adjust_ff_dim": True,
            "block_ffn_dim_multiplier": 1.0,
            "block_multiple_of": 256,
            "num_hidden_layers": 16,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "full_attn_idxs": [2, 5, 8, 10, 12, 14],
            "conv_L_cache": 3,
            "max_position_embeddings": 128000,
            "tie_embedding": True,
        }
    )
    assert (shape.intermediate_size, shape.conv_layers, shape.parameters) == (4608, 10, 354_483_968)


def test_lfm2_is_tied_unless_it_says_otherwise_and_llama_is_not():
    """65536 * 64 weights once, and twice."""
    values = {key: value for key, value in SMALL.items() if key != "tie_word_embeddings"} | {"vocab_size": 65536}
    assert ModelShape.from_config(values | {"model_type": "lfm2"}).embedding_weights == 4_194_304
    assert ModelShape.from_config(values | {"model_type": "llama"}).embedding_weights == 8_388_608


def test_missing_key_value_heads_and_head_width_follow_from_the_heads():
    values = {key: value for key, value in SMALL.items() if key not in ("num_key_value_heads", "head_dim")}
    shape = ModelShape.from_config(values | {"head_dim": None})
    assert (shape.kv_heads, shape.head_dim) == (4, 16)


def test_the_text_part_of_a_model_with_images_is_taken():
    assert ModelShape.from_config({"model_type": "x", "text_config": SMALL}).hidden_size == 64


def test_configuration_is_read_from_a_file_or_a_folder(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(SMALL))
    assert ModelShape.read(tmp_path) == ModelShape.read(tmp_path / "config.json")
    assert ModelShape.read(tmp_path).name == tmp_path.name


@pytest.mark.parametrize("key", ["hidden_size", "num_hidden_layers", "intermediate_size", "num_attention_heads"])
@pytest.mark.parametrize("value", [None, "64", 0, -1, True])
def test_a_key_that_is_missing_or_wrong_is_named(key, value):
    with pytest.raises(PlanError, match=f"`{key}` must be a whole number of at least 1"):
        ModelShape.from_config(SMALL | {key: value})


def test_mixtures_of_experts_are_refused():
    with pytest.raises(PlanError, match="mixture of experts"):
        ModelShape.from_config(SMALL | {"num_local_experts": 8})


@pytest.mark.parametrize("content", ["", "[1]", "{"])
def test_a_file_that_is_no_configuration_is_refused(tmp_path, content):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(PlanError, match="config.json"):
        ModelShape.read(tmp_path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(PlanError, match="config.json"):
        ModelShape.read(tmp_path)


# Terms --------------------------------------------------------------------------------------------------------------


def test_nf4_weights_take_a_little_over_four_bits():
    """64 weights: 32 bytes, one scale of 1, one scale of scales of 4. 16384 weights: 8192 + 256 + 4."""
    assert nf4_bytes(64) == 37
    assert nf4_bytes(16384) == 8452
    assert nf4_bytes(16384 * 16384) * 8 / 16384**2 == pytest.approx(4.127, abs=1e-3)


def test_llama_in_four_bits_takes_five_gib():
    """Linear layers 3.35 GiB, embedding and output layer in bfloat16 1.96 GiB."""
    linears = sum(nf4_bytes(x.weights) for x in LLAMA.linears())
    assert linears / GIB == pytest.approx(3.35, abs=0.005)
    assert LLAMA.embedding_weights * 2 / GIB == pytest.approx(1.96, abs=0.005)
    assert base_bytes(LLAMA, Setup()) / GIB == pytest.approx(5.31, abs=0.005)


def test_llama_in_bfloat16_takes_fifteen_gib():
    assert base_bytes(LLAMA, Setup(nf4=False)) == 2 * 8_030_261_248


def test_adapters_of_llama():
    """32 layers of r * (8192 + 5120 + 5120 + 8192 + 3 * 18432): 41.9 million at 16, twice that at 32."""
    assert adapter_parameters(LLAMA, Setup(rank=16)) == 41_943_040
    assert adapter_parameters(LLAMA, Setup(rank=32)) == 83_886_080
    assert adapter_parameters(LLAMA, Setup(rank=16, top_layers=8)) == 10_485_760
    assert adapter_parameters(LLAMA, Setup(rank=16, targets=("q_proj", "v_proj"))) == 6_815_744


def test_a_role_in_training_takes_640_mib_and_one_at_rest_160():
    """41.9 million float32 weights are 160 MiB; gradient and two moments are three times as much."""
    load = Load(1, 4096, 256)
    training, at_rest = estimate(LLAMA, Setup(roles=1), "actor", load), estimate(LLAMA, Setup(roles=1), "scoring", load)
    assert training.adapters == at_rest.adapters == 160 * 2**20
    assert training.gradients + training.optimizer == 480 * 2**20
    assert at_rest.gradients == at_rest.optimizer == 0
    assert estimate(LLAMA, Setup(roles=4), "actor", load).adapters == 640 * 2**20


def test_the_critic_trains_its_value_head_too():
    """2 * 4096 + 2 weights of 4 bytes, once as weights, once as gradient, twice as moments."""
    load = Load(1, 4096, 256)
    critic, actor = estimate(LLAMA, Setup(), "critic", load), estimate(LLAMA, Setup(), "actor", load)
    assert critic.value_head == actor.value_head == 32_776
    assert critic.gradients - actor.gradients == 32_776
    assert critic.optimizer - actor.optimizer == 65_552


@pytest.mark.parametrize(("length", "gib"), [(4096, 1.0), (8192, 2.0), (16384, 4.0)])
def test_checkpoints_are_one_hidden_state_a_layer(length, gib):
    """32 layers * 4096 tokens * 4096 wide * 2 bytes = 1 GiB."""
    assert estimate(LLAMA, Setup(), "actor", Load(1, length, 256)).checkpoints == gib * GIB


def test_checkpoints_of_the_top_layers_only():
    assert estimate(LLAMA, Setup(top_layers=8), "actor", Load(1, 4096, 256)).checkpoints == GIB // 4


@pytest.mark.parametrize(("length", "gib"), [(4096, 0.5), (8192, 1.0), (16384, 2.0)])
def test_cache_of_one_stream(length, gib):
    """2 * 32 layers * 1024 wide * 2 bytes = 128 KiB a token."""
    assert cache_bytes(LLAMA, 2, 1, length) == gib * GIB
    assert estimate(LLAMA, Setup(), "rollout", Load(2, length, 256)).cache == 2 * gib * GIB


@pytest.mark.parametrize("stage", ["scoring", "sft", "orm", "critic", "actor"])
def test_only_rollouts_have_a_cache(stage):
    assert estimate(LLAMA, Setup(), stage, Load(1, 4096, 256)).cache == 0


def test_logits_grow_with_the_action_and_end_at_512_rows():
    """256 rows of 128256 float32 are 0.122 GiB; the log-softmax and its gradient hold three such tensors (PRF-01).

    All positions of a page of 16384 would be 7.8 GiB, three times.
    """

    def logits(action: int) -> int:
        return estimate(LLAMA, Setup(), "actor", Load(1, 16384, action)).logits

    assert (logits(257) - logits(1)) / GIB == pytest.approx(3 * 0.1223, abs=0.001)
    assert logits(HEAD_ROWS) == logits(4 * HEAD_ROWS)


def test_the_planner_counts_as_many_rows_as_the_code_sends():
    assert HEAD_ROWS == passes.HEAD_ROWS


def test_the_critic_needs_no_logits_and_the_orm_one_row_a_page():
    """128256 float32, three times, for each of two pages: 3.08 MB."""
    critic, orm = (estimate(LLAMA, Setup(), stage, Load(2, 4096, 256)).logits for stage in ("critic", "orm"))
    assert orm - critic == 3_078_144


def test_a_layer_under_recomputation_in_bfloat16():
    """Bytes a token that Llama-3.1-8B keeps in a layer, and what comes on top.

    Adapters' float32 copies 4 * (3 * 4096 + 4096 + 2 * 4096 + 14336) = 155,648 and 7 * 16 * 4 = 448; norms 2 * 4 * 4097
    and 2 * 4096 = 40,968; attention 4 * 32 + 2 * (2 * 4096 + 2 * 1024) = 20,608; MLP 2 * 3 * 14336 = 86,016: 303,688.
    On top 4 * 14336 + 8 * 4096 = 90,112; the gradient 8,192; ids and angles 24 + 512.
    """
    live = estimate(LLAMA, Setup(), "actor", Load(1, 4096, 256)).live_layer
    assert live == 4096 * (303_688 + 90_112 + 8_192 + 536)


def test_sixteen_thousand_tokens_fit_a_card_of_24_gb():
    """Base 5.31, unpacking .11, adapters .62, training .47, checkpoints 4, a layer 6.14: 16.66 GiB."""
    total = estimate(LLAMA, Setup(), "actor", Load(1, 16384, 256)).total
    assert total / GIB == pytest.approx(16.66, abs=0.02)


def test_layer_and_logits_are_not_there_at_the_same_time():
    """5 terms of 1, 10 and 4 at the end: the smaller of the last two does not count."""
    assert Estimate(1, 1, 1, 1, 1, 0, 0, 0, live_layer=10, logits=4).total == 15


def test_without_checkpointing_every_layer_keeps_what_its_backward_pass_needs():
    """32 layers of the 303,688 bytes above and their inputs, 8,192."""
    kept = estimate(LLAMA, Setup(checkpointing=False), "actor", Load(1, 4096, 256)).checkpoints
    assert kept == 32 * 4096 * (303_688 + 8_192)


def test_rows_of_different_lengths_need_a_mask_and_wide_keys():
    """Two rows: bytes a token, a mask of 1 + 2 for each of 4096 columns, and 2 * 2 * (4096 - 1024) for the heads."""
    one = estimate(LLAMA, Setup(), "actor", Load(1, 4096, 256)).live_layer
    two = estimate(LLAMA, Setup(), "actor", Load(2, 4096, 256)).live_layer
    assert two - 2 * one == 2 * 4096 * (3 * 4096 + 12_288)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("setup", [Setup(), Setup(nf4=False, dtype_bytes=4, checkpointing=False)])
@pytest.mark.parametrize("name", list(SHAPES))
def test_more_tokens_or_rows_never_need_less(stage, setup, name):
    shape = SHAPES[name]
    by_length = [estimate(shape, setup, stage, Load(1, n, 256)).total for n in (512, 1024, 4096, 16384)]
    by_rows = [estimate(shape, setup, stage, Load(n, 1024, 256)).total for n in (1, 2, 3, 8)]
    assert by_length == sorted(set(by_length))
    assert by_rows == sorted(set(by_rows))


@pytest.mark.parametrize(
    ("stage", "load", "top", "name"),
    [
        ("critique", Load(1, 64, 8), None, "stage"),
        ("actor", Load(0, 64, 8), None, "sequences"),
        ("actor", Load(1, 64, 64), None, "action"),
        ("actor", Load(1, 64, 0), None, "action"),
        ("actor", Load(1, 131_073, 8), None, "length"),
        ("actor", Load(1, 64, 8), 33, "top_layers"),
        ("actor", Load(1, 64, 8), 0, "top_layers"),
    ],
)
def test_loads_that_cannot_be_are_refused(stage, load, top, name):
    with pytest.raises(PlanError, match=f"`{name}` must be"):
        estimate(LLAMA, Setup(top_layers=top), stage, load)


def test_targets_that_the_model_does_not_have_are_refused():
    with pytest.raises(PlanError, match=r"`targets` must be all-linear or some of down_proj, .*got \('Wqkv',\)"):
        estimate(LLAMA, Setup(targets=("Wqkv",)), "actor", Load(1, 64, 8))


def test_a_single_target_may_be_a_name():
    """32 layers of 16 * (4096 + 4096)."""
    assert adapter_parameters(LLAMA, Setup(targets="o_proj")) == 4_194_304


def test_setup_of_a_run():
    """The preset for 24 GB is in 4 bits and bfloat16, and recomputes layers; without a GPU nothing is recomputed."""
    config = preset("gpu24")
    assert Setup.of(config) == Setup(nf4=True, dtype_bytes=2, rank=16, checkpointing=True)
    tiny = replace(preset("tiny"), lora=LoraSettings(rank=8, top_layers=2), model=ModelConfig(dtype="auto"))
    assert Setup.of(tiny, gpu=False) == Setup(nf4=False, dtype_bytes=4, rank=8, top_layers=2, checkpointing=False)
    assert Setup.of(tiny, gpu=True).dtype_bytes == 2


# Plans --------------------------------------------------------------------------------------------------------------


def test_a_plan_fills_the_card_and_one_row_more_does_not_fit():
    card = CARDS["24GB"]
    found = plan(LLAMA, Setup(), card, "actor", length=4096, max_sequences=64)
    more = Load(found.load.sequences + 1, 4096, 256)
    assert found.estimate.total <= card.budget < estimate(LLAMA, Setup(), "actor", more, context=card.context).total
    assert found.load.tokens == 4096 * found.load.sequences
    assert found.estimate.workspace == card.context + 4096 * 14336 * 2


def test_a_plan_takes_no_more_rows_than_are_of_use():
    assert plan(LLAMA, Setup(), CARDS["80GB"], "actor", length=4096, max_sequences=3).load.sequences == 3


def test_without_a_length_a_plan_takes_the_longest_row_that_fits():
    card = CARDS["24GB"]
    found = plan(LLAMA, Setup(), card, "actor", length=None).load
    assert (found.sequences, found.length % 256) == (1, 0)
    longer = Load(1, found.length + 256, 256)
    assert estimate(LLAMA, Setup(), "actor", longer, context=card.context).total > card.budget
    assert 20_000 < found.length < 30_000


def test_the_longest_row_ends_at_the_models_limit():
    assert plan(SHAPES["Qwen3-8B"], Setup(), CARDS["80GB"], "actor", length=None).load.length == 40_960


def test_a_refusal_names_the_term_and_what_would_fit():
    longest = plan(LLAMA, Setup(), CARDS["24GB"], "actor", length=None).load.length
    with pytest.raises(PlanError) as refusal:
        plan(LLAMA, Setup(), CARDS["24GB"], "actor", length=65_536)
    text = str(refusal.value)
    assert "`length`" in text and "got 65536" in text and "24GB" in text and "22.56" in text
    assert "breaks at `checkpoints`" in text
    assert f"A `length` of {longest} fits" in text
    assert "lora.top_layers" in text


@pytest.mark.parametrize("length", [8192, None])
def test_a_base_that_is_larger_than_the_card_is_said_to_be_the_reason(length):
    with pytest.raises(PlanError, match=r"breaks at `base` .*No length fits; use a smaller model or a larger card"):
        plan(SHAPES["Llama-3.1-70B"], Setup(), CARDS["24GB"], "actor", length=length)


def test_a_base_in_bfloat16_that_is_too_large_is_told_of_four_bits():
    with pytest.raises(PlanError, match=r"breaks at `base` .*model\.quantization"):
        plan(LLAMA, Setup(nf4=False), Card("12GB", 12 * GIB), "rollout", length=2048)


def test_what_is_kept_without_checkpointing_is_told_of_checkpointing():
    with pytest.raises(PlanError, match=r"breaks at `checkpoints` .*or use checkpointing"):
        plan(LLAMA, Setup(checkpointing=False), CARDS["24GB"], "actor", length=8192)


@pytest.mark.parametrize(
    ("budget", "term"),
    [
        (0, "base"),
        (10, "workspace"),
        (11, "adapters"),
        (17, "checkpoints"),
        (18, "live_layer"),
        (19, "live_layer"),
        (20, ""),
    ],
)
def test_the_breaking_term_is_where_the_sum_exceeds_the_budget(budget, term):
    """10, 1, 1, 1, 1, 1, 1, 2, 2 in order, and logits of 1 that do not count beside the layer: 20 in all."""
    assert breaking_term(Estimate(10, 1, 1, 1, 1, 1, 1, 2, live_layer=2, logits=1), budget) == term


def test_a_plan_for_no_rows_is_refused():
    with pytest.raises(PlanError, match="`max_sequences` must be at least 1, got 0"):
        plan(LLAMA, Setup(), CARDS["24GB"], "actor", length=4096, max_sequences=0)


def test_the_preset_for_24_gb_fits_a_card_of_24_gb_in_every_stage():
    config = preset("gpu24")
    plans = plan_run(LLAMA, config, CARDS["24GB"])
    assert tuple(p.stage for p in plans) == STAGES
    assert all(p.estimate.total <= CARDS["24GB"].budget and p.load.length == 8192 for p in plans)
    assert plans[0].stage == "rollout" and plans[0].load.sequences == config.rollout.environments == 5


def test_the_preset_for_80_gb_fits_a_card_of_80_gb_and_not_one_of_12():
    plans = plan_run(LLAMA, preset("gpu80"), CARDS["80GB"])
    assert len(plans) == 6 and plans[0].load.sequences == preset("gpu80").rollout.environments == 12
    with pytest.raises(PlanError, match="12GB"):
        plan_run(LLAMA, preset("gpu80"), Card("12GB", 12 * GIB))


# The table ----------------------------------------------------------------------------------------------------------


def test_the_table_has_every_model_length_and_card():
    rows = table()
    assert len(rows) == 4 * 3 * 3
    assert {(r.model, r.length, r.card) for r in rows} == {(m, n, c) for m in SHAPES for n in LENGTHS for c in CARDS}
    assert table_text(rows).count("\n") == 37


def test_the_table_says_what_does_not_fit_and_why():
    found = {(r.model, r.length, r.card): r for r in table()}
    fits = found["Llama-3.1-8B", 16384, "24GB"]
    assert (fits.actor, fits.breaks) == (1, "")
    large = found["Llama-3.1-70B", 4096, "24GB"]
    assert (large.actor, large.streams, large.breaks) == (0, 0, "base")
    assert found["Llama-3.1-70B", 4096, "80GB"].actor >= 1
    assert all((row.actor == 0) == (row.breaks != "") for row in found.values())


# Measured peaks -----------------------------------------------------------------------------------------------------


class LivePeak(TorchDispatchMode):
    """Counts the bytes of every tensor that an operation makes, until its memory is given back."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self._weights = {p.untyped_storage()._cdata for p in (*model.parameters(), *model.buffers())}
        self._sizes: dict[int, int] = {}
        self._live = 0
        self.peak = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self._add(tensor.untyped_storage())
        self.peak = max(self.peak, self._live)
        return result

    def _add(self, storage: torch.UntypedStorage) -> None:
        if storage._cdata in self._weights or storage._cdata in self._sizes:
            return
        self._sizes[storage._cdata] = storage.nbytes()
        self._live += storage.nbytes()
        weakref.finalize(storage, self._remove, storage._cdata)

    def _remove(self, key: int) -> None:
        self._live -= self._sizes.pop(key)


def measure(config: PreTrainedConfig, setup: Setup, stage: str, load: Load) -> int:
    """Return the peak of live bytes, weights left out, of one micro-batch as ``passes`` runs it."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).to({2: torch.bfloat16, 4: torch.float32}[setup.dtype_bytes])
    model.requires_grad_(False)
    targets = setup.targets if isinstance(setup.targets, str) else list(setup.targets)
    get_peft_model(model, LoraConfig(r=setup.rank, target_modules=targets, task_type="CAUSAL_LM"))
    if setup.checkpointing:
        model.activation_checkpointing_enable({"use_reentrant": False})
        model.enable_input_require_grads()
    model.train()
    ids = torch.randint(1, 200, (load.sequences, load.length))
    mask = torch.ones_like(ids)
    if load.sequences > 1:
        mask[0, -4:] = 0
    positions = torch.arange(load.length).expand_as(ids)
    inputs = {"input_ids": ids, "attention_mask": mask, "position_ids": positions}
    first = load.length - load.action

    def score() -> torch.Tensor:
        states = model.base_model(**inputs, use_cache=False).last_hidden_state[:, first - 1 : -1].flatten(0, 1).clone()
        logprobs = torch.log_softmax(model.get_output_embeddings()(states).float(), dim=-1)
        return logprobs.gather(-1, ids[:, first:].reshape(-1, 1)).sum()

    gc.collect()
    with LivePeak(model) as live:
        if stage == "actor":
            score().backward()
        else:
            with torch.inference_mode():
                if stage == "scoring":
                    score()
                else:
                    prompts = {name: value[:, :first] for name, value in inputs.items()}
                    model(**(prompts | {"attention_mask": mask.flip(1)[:, :first]}), use_cache=True, logits_to_keep=1)
    return live.peak


HALF, FULL = Setup(nf4=False, rank=4, roles=1), Setup(nf4=False, dtype_bytes=4, rank=4, roles=1)


@pytest.mark.parametrize(
    ("kind", "changes", "setup", "stage", "load"),
    [
        ("llama", {}, FULL, "actor", Load(1, 256, 8)),
        ("llama", {}, HALF, "actor", Load(1, 256, 8)),
        ("llama", {}, replace(FULL, checkpointing=False), "actor", Load(1, 256, 8)),
        ("llama", {}, replace(HALF, checkpointing=False), "actor", Load(2, 128, 8)),
        ("llama", {}, HALF, "actor", Load(3, 256, 8)),
        ("llama", {}, replace(HALF, targets=("q_proj", "v_proj")), "actor", Load(1, 256, 8)),
        ("llama", {"num_hidden_layers": 8}, HALF, "actor", Load(1, 256, 8)),
        ("llama", {"vocab_size": 4096}, FULL, "actor", Load(1, 128, 64)),
        ("llama", {}, FULL, "scoring", Load(1, 256, 8)),
        ("llama", {}, HALF, "scoring", Load(2, 256, 8)),
        ("llama", {}, HALF, "rollout", Load(2, 256, 8)),
        ("qwen3", {}, HALF, "actor", Load(1, 256, 8)),
        ("glm4", {}, HALF, "actor", Load(1, 256, 8)),
        ("lfm2", {}, FULL, "actor", Load(1, 256, 8)),
    ],
)
def test_estimates_are_within_15_percent_of_measured_peaks(kind, changes, setup, stage, load):
    """The weights are exact and left out; what is compared is all that a micro-batch adds to them."""
    config = small(kind, **changes)
    shape = ModelShape.from_config(json.loads(config.to_json_string(use_diff=False)))
    found = estimate(shape, setup, stage, load)
    weights = found.base + found.adapters + found.value_head + found.optimizer
    assert (found.total - weights) / measure(config, setup, stage, load) == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize(
    ("role", "quantization", "top_layers", "rows"),
    [("critic", "nf4", None, 1), ("actor", "nf4", None, 3), ("actor", "none", 2, 2)],
)
def test_estimates_are_within_15_percent_of_the_shared_base(tmp_path, role, quantization, top_layers, rows):
    """The code that a run uses, with four roles, adapters in float32 and, once, 4-bit weights."""
    folder = save(tmp_path, llama(width=128, layers=4))
    shared = SharedBase.load(
        ModelConfig(name=str(folder), quantization=quantization, dtype="bfloat16"),
        LoraSettings(rank=4, alpha=8, top_layers=top_layers),
        device="cpu",
        checkpointing=True,
        trunk=TrunkBudget(memory_bytes=0),
    )
    samples = [Sample(tuple(range(5, 253 - 7 * row)), tuple(range(5, 13))) for row in range(rows)]
    gc.collect()
    with shared.role(role, train=True), LivePeak(shared.model) as live:
        if role == "critic":
            shared.value_logits([sample.row for sample in samples]).sum().backward()
        else:
            shared.action_logprobs(samples).sum().backward()
    setup = Setup(nf4=quantization == "nf4", rank=4, top_layers=top_layers)
    found = estimate(ModelShape.read(folder), setup, role, Load(rows, 256, 8))
    weights = found.base + found.adapters + found.value_head + found.optimizer
    assert (found.total - weights) / live.peak == pytest.approx(1, abs=0.15)
