"""The reader's model: any width, and padding that nobody notices."""

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.models.tiny_reader import TINY, some_lines, tiny_reader
from vitreous.errors import ConfigError, ShapeError
from vitreous.models.decoding import prefixes
from vitreous.models.reader import ReaderConfig, build_reader


@pytest.fixture(scope="module")
def reader():
    return tiny_reader().double()


@settings(deadline=None, max_examples=6)
@given(
    width=st.integers(1, 12).map(lambda n: 4 * n), extra=st.integers(1, 5), dirt=st.floats(-9, 9)
)
@example(width=4, extra=1, dirt=1.0)
@example(width=40, extra=3, dirt=1.0)
def test_what_is_behind_a_lines_end_changes_nothing(width: int, extra: int, dirt: float):
    reader = tiny_reader().double()
    images, _ = some_lines(2, width)
    images = images.double()
    real = torch.full((2,), width)
    before = prefixes(["12", "7"])
    padded = torch.cat([images, torch.full((2, 1, 32, 4 * extra), dirt).double()], dim=3)
    with torch.no_grad():
        written, columns, _ = reader(images, real, before)
        more, wide, marks = reader(padded, real, before)
    torch.testing.assert_close(more, written)
    torch.testing.assert_close(wide[:, : width // 4], columns)
    assert marks.sum(dim=1).tolist() == [width // 4] * 2


def test_lines_of_a_batch_do_not_see_each_other(reader):
    images, widths = some_lines(4)
    before = prefixes(["1", "23", "", "4"])
    with torch.no_grad():
        together = reader(images.double(), widths, before)[0]
        for row in range(4):
            cut = images[row : row + 1, :, :, : widths[row]].double()
            alone = reader(cut, widths[row : row + 1], before[row : row + 1])[0]
            torch.testing.assert_close(together[row], alone[0])


@pytest.mark.parametrize("shape", [(1, 1, 28, 40), (1, 3, 32, 40), (1, 1, 32, 42)])
def test_lines_of_another_shape_are_refused_with_the_shape(reader, shape):
    with pytest.raises(ShapeError, match=str(list(shape)[-1])):
        reader.see(torch.zeros(shape).double(), torch.tensor([shape[3]]))


@pytest.mark.parametrize(
    "change", [{"width": 15}, {"heads": 0}, {"patch_width": 8}, {"stem": (8, 8)}, {"height": 30}]
)
def test_a_config_that_cannot_work_is_refused(change):
    with pytest.raises(ConfigError):
        ReaderConfig(**change)


def test_the_default_reader_fits_into_eight_megabytes():
    assert sum(p.numel() for p in build_reader(ReaderConfig()).parameters()) * 4 < 8e6


def test_the_reader_is_longer_than_twelve_digits():
    assert ReaderConfig().longest >= 12
    assert TINY.longest == 6
