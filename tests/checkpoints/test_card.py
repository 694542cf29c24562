"""A model card says what was measured, and nothing else."""

import json
from pathlib import Path

import pytest

from vitreous.checkpoints.card import BEGIN, CARD, END, NOTHING, Measured, rewrite_results
from vitreous.checkpoints.card import write_card as write
from vitreous.checkpoints.store import CONFIG, described, save
from vitreous.config import ViTConfig
from vitreous.models.classifier import build

SMALL = ViTConfig(image_size=8, patch_size=4, width=8, depth=1, heads=2, classes=3)
MEASURED = Measured("97 of 100 | seed 3", "mnist", {"test accuracy": 0.97, "test loss": 0.25})


def front(folder: Path):
    """What the hub's own client reads in the front matter."""
    hub = pytest.importorskip("huggingface_hub", reason="the extra vitreous[hub]")
    return hub.ModelCard.load(folder / CARD).data


def measured_card(folder: Path) -> Path:
    config = described(build(SMALL))
    write(folder, config, parameters=1234, measured=MEASURED)
    return folder / CARD


def test_a_bare_model_says_that_it_has_no_results_and_gives_the_hub_none(tmp_path: Path):
    save(build(SMALL), tmp_path)
    data = front(tmp_path)
    assert NOTHING in (tmp_path / CARD).read_text()
    assert data.eval_results is None
    assert data.library_name == "vitreous"
    assert data.pipeline_tag == "image-classification"
    assert data.license is None


def test_a_licence_is_there_only_where_it_was_given(tmp_path: Path):
    save(build(SMALL), tmp_path, licence="cc-by-4.0")
    assert front(tmp_path).license == "cc-by-4.0"


def test_the_hubs_index_holds_the_measured_figures_to_the_last_bit(tmp_path: Path):
    measured_card(tmp_path)
    found = {r.metric_name: (r.metric_type, r.metric_value) for r in front(tmp_path).eval_results}
    assert found == {"test accuracy": ("accuracy", 0.97), "test loss": ("loss", 0.25)}
    assert {r.dataset_name for r in front(tmp_path).eval_results} == {"mnist"}


def test_a_readme_that_is_not_ours_is_left_alone(tmp_path: Path):
    (tmp_path / CARD).write_text("# mine\n")
    save(build(SMALL), tmp_path)
    assert (tmp_path / CARD).read_text() == "# mine\n"


def test_saving_another_model_over_a_card_takes_its_results_away(tmp_path: Path):
    measured_card(tmp_path)
    save(build(SMALL), tmp_path)
    text = (tmp_path / CARD).read_text()
    assert "97 of 100" not in text
    assert "0.97" not in text


def test_results_are_renewed_between_their_marks_and_what_people_wrote_stays(tmp_path: Path):
    path = measured_card(tmp_path)
    path.write_text("first words\n" + path.read_text() + "last words\n")
    rewrite_results(tmp_path, "98 of 100")
    text = path.read_text()
    assert text.startswith("first words\n")
    assert text.endswith("last words\n")
    assert text.count(BEGIN) == text.count(END) == 1
    assert "98 of 100" in text
    assert "97 of 100" not in text


def test_results_are_not_put_where_there_are_no_marks(tmp_path: Path):
    (tmp_path / CARD).write_text("# mine\n")
    rewrite_results(tmp_path, "98 of 100")
    assert (tmp_path / CARD).read_text() == "# mine\n"


@pytest.mark.parametrize("name", ["\u00e9t\u00e9: 'a' # \"b\"", "- x", "{a}"])
def test_a_folder_of_any_name_has_a_front_matter_that_is_yaml(name: str, tmp_path: Path):
    (tmp_path / name).mkdir()
    measured_card(tmp_path / name)
    assert front(tmp_path / name).model_name == name
    assert f"# {name}\n" in (tmp_path / name / CARD).read_text()


def test_the_card_names_classes_input_and_size(tmp_path: Path):
    model = build(SMALL)
    model.class_names = ["none", "one", "two"]
    save(model, tmp_path)
    text = (tmp_path / CARD).read_text()
    assert "Classes: none, one, two." in text
    assert "(b, 1, 8, 8) -> (b, 3)" in text
    assert json.loads((tmp_path / CONFIG).read_text())["library_name"] == "vitreous"
    assert f"{sum(p.numel() for p in model.parameters()):,} parameters" in text
