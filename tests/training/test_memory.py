import platform
import subprocess
import sys

import pytest

from vitreous.training.memory import hold_memory

FAULTS_PER_ROUND = """
import resource, torch
from vitreous.training.memory import hold_memory
if {hold}:
    assert hold_memory()
def fill():
    return [torch.ones(1 << 20) for _ in range(16)]
fill(), fill(), fill()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    fill()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(*, hold: bool) -> int:
    code = FAULTS_PER_ROUND.format(hold=hold)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(run.stdout)


def test_held_memory_is_not_asked_for_again():
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("the allocator is not glibc's, and nothing is promised")
    assert hold_memory()
    assert page_faults(hold=True) * 2 < page_faults(hold=False)
