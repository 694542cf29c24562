import json
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import example, given, settings

import vitreous
from tests.models.drawn import configs
from vitreous import ConfigError, ViTConfig, count_parameters, plan, preset, recipe
from vitreous.cost.changes import changes
from vitreous.cost.explain import explain
from vitreous.cost.fits import fits
from vitreous.cost.sizes import parse_bytes
from vitreous.cost.sweep import parse_axis, sweep

SMALL = ViTConfig(image_size=8, patch_size=2, width=16, depth=2, heads=2)
BARE = replace(SMALL, class_token=False, pooling="mean")


def test_a_plan_is_of_the_model_and_cannot_be_changed():
    b16 = plan("b16", batch=64)
    assert isinstance(b16, vitreous.Plan)
    assert (b16.tokens, b16.parameters, b16.batch) == (197, 86_567_656, 64)
    assert (b16.multiply_adds, b16.flops) == (17_563_828_224, 35_127_656_448)
    with pytest.raises(FrozenInstanceError):
        b16.tokens = 196


def test_the_batch_is_the_recipes_unless_given():
    assert plan(SMALL, recipe="published").batch == recipe("published").batch_size
    assert plan(SMALL, recipe="published", batch=3).batch == 3


def test_the_work_of_an_image_does_not_depend_on_how_many_there_are():
    one, many = plan(SMALL, batch=1), plan(SMALL, batch=100)
    assert (one.by_part, one.parameters) == (many.by_part, many.parameters)
    assert many.memory.activations == 100 * one.memory.activations


def test_answering_keeps_no_gradient_and_its_total_is_the_inference_of_training():
    answers, trains = plan(SMALL, batch=8, train=False), plan(SMALL, batch=8)
    assert answers.memory.gradients == answers.memory.optimizer == 0
    assert answers.memory.weights == 4 * count_parameters(SMALL)
    assert answers.memory.total == answers.memory.inference == trains.memory.inference


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: plan("b61"), "no preset is called 'b61'; did you mean 'b16'?"),
        (lambda: plan(SMALL, recipe="fats"), "no recipe is called 'fats'; did you mean 'fast'?"),
        (lambda: plan(SMALL, batch=0), "batch_size=0 must be at least 1"),
    ],
)
def test_what_cannot_be_planned_is_answered_with_a_sentence(call, sentence):
    with pytest.raises(ConfigError) as refused:
        call()
    assert sentence in str(refused.value)


def test_everything_goes_into_json_and_comes_back():
    given = plan("s16", batch=2).to_dict()
    assert json.loads(json.dumps(given, allow_nan=False)) == given
    assert given["tokens"] == given["patch_tokens"] + given["prefix_tokens"]
    assert given["flops"] == 2 * given["multiply_adds"]
    assert sum(given["multiply_adds_by_part"].values()) == given["multiply_adds"]
    assert set(given["memory"]) >= {"weights", "gradients", "optimizer", "activations", "total"}
    assert given["settings"]["width"] == 384


def test_a_notebook_shows_what_the_terminal_shows():
    b16 = plan("b16")
    text, page = str(b16), b16._repr_html_()
    for figure in ("17.564 G", "35.128 G", "86,567,656", "4.1%"):
        assert figure in text
        assert figure in page
    assert page.count("<table>") == text.count("\n\n") + 1


# half the patch, double the image


def test_half_the_patch_and_double_the_image_are_four_times_the_tokens():
    """Without prefix tokens exactly; products grow with the square; a patch is a quarter."""
    half, double = changes(BARE, recipe("fast"))
    wanted = {
        "tokens": 4,
        "attention_projections": 4,
        "attention_products": 16,
        "mlp": 4,
        "head": 1,
    }
    for change in (half, double):
        assert change.factors is not None
        assert {name: change.factors[name] for name in wanted} == wanted
    assert (half.factors["patch_embedding"], double.factors["patch_embedding"]) == (1, 4)


def test_prefix_tokens_stay_as_many():
    half, _ = changes(preset("b16"), recipe("fast"))
    assert half.factors["patch_tokens"] == 4
    assert half.factors["tokens"] == 785 / 197
    assert half.factors["attention_products"] == (785 / 197) ** 2
    assert "(1 prefix stay 1)" in str(plan("b16"))
    assert "prefix stay" not in str(plan(BARE))


def test_a_patch_without_a_half_says_so_and_the_other_change_stands():
    half, double = changes(preset("digits-small"), recipe("fast"))
    assert half.factors is None
    assert half.sentence == "half the patch: a patch of 7 pixels has no half"
    assert double.tokens == 65
    assert half.sentence in str(plan("digits-small"))


@given(config=configs())
@settings(deadline=None, max_examples=50)
def test_a_change_is_the_plan_of_the_changed_model(config):
    for change in changes(config, recipe("fast")):
        if change.factors is None:
            assert change.refused
            continue
        other = plan(replace(config, **{change.setting: change.after}))
        assert other.tokens == change.tokens
        assert other.multiply_adds == pytest.approx(
            change.factors["multiply_adds"] * plan(config).multiply_adds
        )


# how many fit


@given(config=configs())
@example(config=SMALL)
@settings(deadline=None, max_examples=30)
def test_the_largest_batch_fits_and_one_more_does_not(config):
    found = fits(config, recipe("fast"), limit := 500_000_000)
    for purpose, train in (("training", True), ("inference", False)):
        batch = getattr(found, purpose)
        assert plan(config, batch=batch, train=train).memory.total <= limit
        assert plan(config, batch=batch + 1, train=train).memory.total > limit


def test_nothing_fits_into_too_little():
    assert fits(preset("h14"), recipe("fast"), 1_000_000_000)[1:] == (0, 0)


@pytest.mark.parametrize(
    ("text", "size"),
    [("24GB", 24 * 10**9), ("24 GiB", 24 << 30), ("512mb", 512 * 10**6), ("100B", 100)],
)
def test_a_size_of_memory_is_read_with_its_unit(text, size):
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["24", "GB", "24 apples", "-3GB", "0GB", "1e9B", "nanGB", ""])
def test_what_is_no_size_of_memory_is_refused(text):
    with pytest.raises(ConfigError, match="write it as 24GB"):
        parse_bytes(text)


# many at once


def test_a_sweep_has_every_combination_and_one_that_cannot_be_built_says_so():
    axes = dict(map(parse_axis, ["patch_size=2,3,4", "batch_size=1,2"]))
    rows = list(sweep(SMALL, recipe("fast"), axes))
    assert [tuple(row.values.values()) for row in rows] == [
        (2, 1),
        (2, 2),
        (3, 1),
        (3, 2),
        (4, 1),
        (4, 2),
    ]
    for row in rows:
        if row.values["patch_size"] == 3:
            assert row.plan is None
            assert row.refused is not None
            assert "2 of 8 pixels are left over" in row.refused
        else:
            alone = plan(replace(SMALL, patch_size=row.values["patch_size"]), batch=row.plan.batch)
            assert (row.plan, row.plan.batch) == (alone, row.values["batch_size"])


def test_settings_that_only_fit_together_are_set_together():
    """Width 12 does not split over 8 heads, which the base has; over 4 it does."""
    axes = {"width": [12], "heads": [4]}
    (row,) = sweep(replace(SMALL, width=16, heads=8), recipe("fast"), axes)
    assert row.plan is not None


@pytest.mark.parametrize(
    ("text", "axis"),
    [
        ("image_size=224,[32,48]", ("image_size", [224, (32, 48)])),
        ("positions=none,rotary", ("positions", ["none", "rotary"])),
        ("layer_scale=none,0.1", ("layer_scale", [None, 0.1])),
    ],
)
def test_values_of_a_sweep_are_typed_by_their_setting(text, axis):
    assert parse_axis(text) == axis


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("pach_size=8", "did you mean 'patch_size'?"),
        ("patch_size=eight", "patch_size=eight is not a whole number"),
        ("patch_size", "name=value,value,..."),
        ("patch_size=", "name=value,value,..."),
        ("patch_size=8,", "patch_size= is not"),
    ],
)
def test_a_sweep_that_cannot_be_read_is_answered_with_a_sentence(text, sentence):
    with pytest.raises(ConfigError) as refused:
        parse_axis(text)
    assert sentence in str(refused.value)


def test_a_convolution_stem_without_blocks_costs_its_stem_and_head():
    config = replace(
        preset("digits-fast"), depth=0, positions="none", patch_size=8, width=124, heads=4
    )
    planned = plan(config, batch=64)
    parts = planned.by_part
    assert (parts.attention_projections, parts.attention_products, parts.mlp) == (0, 0, 0)
    assert parts.total == parts.patch_embedding + parts.head
    whole = plan(replace(config, depth=1), batch=64)
    assert 0 < planned.memory.activations < whole.memory.activations
    assert str(planned)
    assert explain(planned)
