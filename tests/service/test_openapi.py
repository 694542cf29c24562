"""The service keeps to its own description, whatever schemathesis thinks of."""

from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, settings

from tests.service.running import FREE, served
from vitreous.service.limits import Limits


@pytest.fixture(scope="module")
def description() -> Iterator[schemathesis.BaseSchema]:
    with served(limits=Limits(**FREE, max_pixels=1_000_000)) as address:
        yield schemathesis.openapi.from_url(f"{address}/openapi.json")


schema = schemathesis.pytest.from_fixture("description")


@schema.parametrize()
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_service_answers_as_its_description_says(case):
    case.call_and_validate(timeout=120)
