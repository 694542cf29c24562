"""The queue: whole batches, each answer to who asked, and nothing done for nobody."""

import asyncio
import threading

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vitreous.service.queue import Batcher


def run(work, items, *, size=4, wait=0.001):
    """What each item is answered, in order; an error is an answer here."""

    async def all_of_them():
        batches = Batcher(work, size=size, wait=wait)
        batches.start()
        try:
            asked = (batches.submit(item) for item in items)
            return await asyncio.gather(*asked, return_exceptions=True)
        finally:
            await batches.close()

    return asyncio.run(all_of_them())


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(), max_size=40), st.integers(1, 9))
@example([3, 1, 2, 5, 4], 2)
def test_each_answer_belongs_to_its_question(items, size):
    assert run(lambda batch: [-item for item in batch], items, size=size) == [-i for i in items]


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 40), st.integers(1, 9))
@example(10, 4)
def test_what_is_there_is_taken_together_and_never_more_than_the_size(count, size):
    sizes = []

    def work(batch):
        sizes.append(len(batch))
        return batch

    run(work, range(count), size=size, wait=0.05)
    assert sum(sizes) == count
    assert max(sizes) == min(size, count)
    assert len(sizes) == -(-count // size)


def test_one_alone_does_not_wait_for_a_full_batch():
    assert run(lambda batch: batch, [1], size=100, wait=0.001) == [1]


def test_work_is_done_off_the_event_loop():
    threads = []

    def work(batch):
        threads.append(threading.current_thread())
        return batch

    run(work, [1])
    assert threads != [threading.main_thread()]
    assert threads[0].name.startswith("model")


def test_one_bad_item_costs_the_others_nothing():
    def work(batch):
        if "bad" in batch:
            raise ValueError("bad")
        return batch

    answers = run(work, ["a", "bad", "b"], size=3)
    assert answers[::2] == ["a", "b"]
    assert isinstance(answers[1], ValueError)


@pytest.mark.parametrize("wrong", [[], [1, 2, 3]])
def test_too_few_answers_are_an_error_and_never_somebody_elses(wrong):
    answers = run(lambda _: wrong, ["a", "b"], size=2)
    assert all(isinstance(answer, ValueError) for answer in answers)


def test_what_nobody_waits_for_is_not_worked_on():
    seen, begun, go_on = [], threading.Event(), threading.Event()

    def work(batch):
        seen.extend(batch)
        begun.set()
        assert go_on.wait(60)
        return batch

    async def scene():
        batches = Batcher(work, size=1, wait=0.0)
        batches.start()
        first = asyncio.create_task(batches.submit("first"))
        await asyncio.to_thread(begun.wait, 60)
        left = asyncio.create_task(batches.submit("left"))
        stays = asyncio.create_task(batches.submit("stays"))
        await asyncio.sleep(0)
        left.cancel()
        await asyncio.sleep(0)
        go_on.set()
        assert await first == "first"
        assert await stays == "stays"
        await batches.close()

    asyncio.run(scene())
    assert seen == ["first", "stays"]


def test_the_end_of_the_queue_is_told_to_those_who_wait():
    begun, go_on = threading.Event(), threading.Event()

    def work(batch):
        begun.set()
        assert go_on.wait(60)
        return batch

    async def scene():
        batches = Batcher(work, size=1, wait=0.0)
        batches.start()
        first = asyncio.create_task(batches.submit(1))
        await asyncio.to_thread(begun.wait, 60)
        second = asyncio.create_task(batches.submit(2))
        await asyncio.sleep(0)
        await batches.close()
        go_on.set()
        return await asyncio.gather(first, second, return_exceptions=True)

    answers = asyncio.run(scene())
    assert all(isinstance(answer, asyncio.CancelledError) for answer in answers)
