"""What can be counted while the service runs, for Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from vitreous.service.contract import Reading

__all__ = ["KIND", "Metrics"]

KIND = "text/plain; version=0.0.4; charset=utf-8"
METHODS = frozenset(("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"))
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
TENTHS = tuple(tenth / 10 for tenth in range(1, 11))


class Metrics:
    """The counters of one service; nothing in them names a client or an image."""

    def __init__(self) -> None:
        self.registry = each = CollectorRegistry()
        asked = ("method", "handler", "status")
        self.requests = Counter("http_requests", "Requests answered", asked, registry=each)
        self.seconds = Histogram(
            "http_request_duration_seconds",
            "From a request's first line to its answer",
            ("method", "handler"),
            buckets=SECONDS,
            registry=each,
        )
        self.batch = Histogram(
            "vitreous_batch_size",
            "Images in one pass of the model",
            buckets=(1, 2, 4, 8, 16, 32, 64, 128),
            registry=each,
        )
        self.queued = Histogram(
            "vitreous_queue_seconds", "Waiting for a pass", buckets=SECONDS, registry=each
        )
        self.model = Histogram(
            "vitreous_model_seconds", "One pass of the model", buckets=SECONDS, registry=each
        )
        self.images = Gauge("vitreous_images_inside", "Between arrival and answer", registry=each)
        self.held = Gauge("vitreous_held_bytes", "Bytes of uploads in memory", registry=each)
        self.digits = Counter("vitreous_digits", "Digits read", ("digit",), registry=each)
        self.rejected = Counter("vitreous_rejected", "Readings that were not sure", registry=each)
        self.confidence = Histogram(
            "vitreous_confidence", "Probability of a whole text", buckets=TENTHS, registry=each
        )

    def answered(self, method: str, handler: str, status: int, seconds: float) -> None:
        """One request. What is not known is counted under one name, so that names stay few."""
        method = method if method in METHODS else "other"
        self.requests.labels(method, handler, str(status)).inc()
        self.seconds.labels(method, handler).observe(seconds)

    def read(self, reading: Reading) -> None:
        """One reading."""
        for digit in reading.text:
            if digit.isdecimal():
                self.digits.labels(digit).inc()
        self.rejected.inc(int(reading.rejected))
        if reading.text:
            self.confidence.observe(reading.confidence)

    def text(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return generate_latest(self.registry)
