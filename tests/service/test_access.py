"""Who is let in: the token, the count, and where the service may listen at all."""

import pytest
from starlette.requests import Request

from tests.service.number_images import png
from tests.service.running import FREE, in_process
from vitreous.errors import ConfigError
from vitreous.service import access
from vitreous.service.access import RateLimit, is_loopback, peer, read_token
from vitreous.service.guard import names_loopback
from vitreous.service.limits import Limits, RefusalError
from vitreous.service.server import require_token

TOKEN = "sixteen-characters-and-more"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
WRONG = [
    {},
    {"Authorization": TOKEN},
    {"Authorization": f"Basic {TOKEN}"},
    {"Authorization": "Bearer "},
    {"Authorization": f"Bearer {TOKEN[:-1]}"},
    {"Authorization": f"Bearer {TOKEN}x"},
    {"Authorization": f"Bearer {TOKEN.upper()}"},
    {"Authorization": "Bearer \u00fcber".encode()},
]


@pytest.fixture(scope="module")
def guarded():
    with in_process(limits=Limits(**FREE), token=TOKEN) as client:
        yield client


@pytest.mark.parametrize("headers", WRONG)
@pytest.mark.parametrize(
    ("method", "address"),
    [
        ("POST", "/v1/read"),
        ("POST", "/v2/models/reader/infer"),
        ("GET", "/v2/models/reader"),
        ("GET", "/metrics"),
    ],
)
def test_without_the_token_nothing_is_said(guarded, method, address, headers):
    answer = guarded.request(method, address, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert TOKEN not in answer.text


def test_with_the_token_images_are_read(guarded):
    assert guarded.post("/v1/read", content=png("407"), headers=BEARER).json()["text"] == "407"
    assert guarded.get("/metrics", headers=BEARER).status_code == 200


def test_a_token_in_the_address_opens_nothing(guarded):
    for name in ("token", "access_token", "authorization"):
        answer = guarded.post(f"/v1/read?{name}={TOKEN}", content=png("4"))
        assert answer.status_code == 401


def test_health_and_the_page_are_open(guarded):
    for address in ("/", "/docs", "/openapi.json", "/v2/health/live", "/v2/health/ready"):
        assert guarded.get(address).status_code == 200


@pytest.mark.parametrize("given", ["x" + TOKEN[1:], TOKEN[:-1] + "x", "x", TOKEN + "x"])
def test_tokens_are_compared_whole_by_a_comparison_of_constant_time(guarded, given, monkeypatch):
    compared = []

    def spy(one: bytes, other: bytes) -> bool:
        compared.append({one, other})
        return one == other

    monkeypatch.setattr(access, "compare_digest", spy)
    headers = {"Authorization": f"Bearer {given}"}
    assert guarded.get("/metrics", headers=headers).status_code == 401
    assert compared == [{given.encode(), TOKEN.encode()}]


def test_the_comparison_is_the_standard_librarys():
    import secrets

    assert access.compare_digest is secrets.compare_digest


def test_a_token_comes_from_a_file_or_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("VITREOUS_TOKEN", raising=False)
    assert read_token(None) is None
    monkeypatch.setenv("VITREOUS_TOKEN", TOKEN)
    assert read_token(None) == TOKEN
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}-from-file\n")
    assert read_token(file) == f"{TOKEN}-from-file"


@pytest.mark.parametrize("text", ["", "short", "with a space in the middle", "\u00fc" * 20])
def test_a_token_that_is_no_secret_is_refused(text, tmp_path):
    file = tmp_path / "token"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="token in"):
        read_token(file)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_token(tmp_path / "none")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org"])
def test_others_may_reach_it_only_with_a_token(host):
    with pytest.raises(ConfigError, match="a token is needed"):
        require_token(host, None)
    require_token(host, TOKEN)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_this_machine_needs_no_token(host):
    require_token(host, None)
    assert is_loopback(host)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_fills_with_time_and_no_higher_than_two_seconds():
    clock = Clock()
    limit = RateLimit(5.0, clock)
    for _ in range(10):
        limit.take("a")
    with pytest.raises(RefusalError) as refused:
        limit.take("a")
    assert refused.value.status == 429
    assert refused.value.headers == {"Retry-After": "1"}
    limit.take("b")
    clock.now += 0.2
    limit.take("a")
    with pytest.raises(RefusalError):
        limit.take("a")
    clock.now += 1000
    for _ in range(10):
        limit.take("a")
    with pytest.raises(RefusalError):
        limit.take("a")


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("testclient", "testclient"),
    ],
)
def test_a_customer_is_counted_once_however_many_addresses_there_are(host, name):
    assert peer(Request({"type": "http", "client": (host, 1), "headers": []})) == name
    assert peer(Request({"type": "http", "client": None, "headers": []})) == ""


def test_names_that_are_counted_stay_few():
    limit = RateLimit(1.0, Clock())
    for name in range(limit.NAMES + 50):
        limit.take(str(name))
    assert len(limit.buckets) == limit.NAMES


def test_too_many_requests_are_told_when_to_come_back():
    with in_process(limits=Limits(rate=1.0)) as client:
        answers = [client.post("/v1/read", content=b"x") for _ in range(3)]
        assert [answer.status_code for answer in answers] == [415, 415, 429]
        assert answers[-1].headers["retry-after"] == "1"
        assert client.get("/v2/health/live").status_code == 200


def test_who_guesses_tokens_is_counted_and_who_has_it_is_not_locked_out():
    with in_process(limits=Limits(rate=1.0), token=TOKEN) as client:
        for status in (401, 401, 429):
            headers = {"Authorization": "Bearer wrong"}
            assert client.get("/metrics", headers=headers).status_code == status
        assert client.get("/metrics", headers=BEARER).status_code == 200


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        ("localhost", True),
        ("LOCALHOST:8000", True),
        ("127.0.0.1:8000", True),
        ("[::1]:8000", True),
        ("[::1]", True),
        ("attacker.example", False),
        ("localhost.attacker.example", False),
        ("192.168.1.5:8000", False),
        ("", False),
    ],
)
def test_without_a_token_it_answers_to_its_own_names_alone(host, ours):
    """Else any page could point a name of its own here and read the answers."""
    assert names_loopback(host) is ours


def test_a_foreign_name_is_misdirected():
    with in_process(base_url="http://localhost", limits=Limits(**FREE), local_only=True) as client:
        assert client.get("/").status_code == 200
        answer = client.get("/", headers={"Host": "attacker.example"})
        assert answer.status_code == 421
        assert "localhost" in answer.json()["error"]
