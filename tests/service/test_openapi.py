"""The service keeps to its own description, whatever schemathesis thinks of."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

import vitreous
from tests.service.running import FREE, served
from tests.service.small_reader import SmallReader
from vitreous.service.app import create_app
from vitreous.service.limits import Limits
from vitreous.service.oip import MODEL

PATHS = create_app(SmallReader()).openapi()["paths"]
OPERATIONS = [(path, method) for path, methods in PATHS.items() for method in methods]


@pytest.fixture(scope="module")
def description() -> Iterator[Any]:
    with served(limits=Limits(**FREE, max_pixels=1_000_000)) as address:
        yield schemathesis.openapi.from_url(f"{address}/openapi.json")


UNDESCRIBED = [positive_data_acceptance]
"""No schema says which bytes are an image, or how many values a shape holds."""


def keeps_its_word(operation: Any, examples: int) -> None:
    """Ask in many ways, every other time for the model that is here; every answer is described."""
    asked = []

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy())
    def check(case: Any) -> None:
        if len(asked) % 2 and case.path_parameters:
            here = {"model": MODEL, "version": vitreous.__version__}
            case.path_parameters = {name: here[name] for name in case.path_parameters}
        asked.append(case.call_and_validate(excluded_checks=UNDESCRIBED, timeout=120))

    check()
    assert asked
    assert not {answer.status_code for answer in asked} & {500, 503}


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_the_service_answers_as_its_description_says(description, path, method):
    keeps_its_word(description[path][method], 10)


@pytest.mark.slow
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_the_service_answers_as_its_description_says_also_to_many(description, path, method):
    keeps_its_word(description[path][method], 200)
