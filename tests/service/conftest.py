"""What the tests of the service share."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from tests.service.running import FREE, in_process
from tests.service.small_reader import SmallReader
from vitreous.service.limits import Limits


@pytest.fixture
def reader() -> SmallReader:
    return SmallReader()


@pytest.fixture
def client(reader: SmallReader) -> Iterator[TestClient]:
    """A service in this process, which is ready."""
    with in_process(reader, limits=Limits(**FREE)) as ready:
        yield ready
