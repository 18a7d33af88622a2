# SPDX-License-Identifier: Apache-2.0
"""A process whose metrics find no room goes on, and is seen again when there is room."""

import resource
from contextlib import contextmanager

import pytest
from prometheus_client import mmap_dict, values
from prometheus_client.mmap_dict import MmapedDict

from treeclaim import metrics
from treeclaim.metrics_files import AllocatedFile


@contextmanager
def no_room():
    """No file of this process can grow in a block."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def seen(path):
    """What others read of a file, None if there is none."""
    if not path.exists():
        return None
    return {key: value for key, value, *_ in MmapedDict.read_all_values_from_file(path)}


def blocks(path):
    """How many bytes of a file are on its disk."""
    return path.stat().st_blocks * 512


def write(file, first, count):
    """Set so many numbers, each as long as a usual one."""
    for number in range(first, first + count):
        file.write_value(f"{number}" + " " * 200, float(number), 0.0)


def test_metrics_are_kept_in_such_files():
    metrics.REQUESTS.labels("GET", "/metrics-files", "200").inc()
    assert vars(values)["MmapedDict"] is AllocatedFile
    assert issubclass(AllocatedFile, mmap_dict.MmapedDict)


@pytest.mark.parametrize("count", [1, 1_000])
def test_what_is_mapped_has_its_blocks(tmp_path, count):
    """A page without one ends the process where the disk is full."""
    path = tmp_path / "counter_1.db"
    file = AllocatedFile(str(path))
    write(file, 0, count)
    assert blocks(path) >= path.stat().st_size >= 65536
    assert len(seen(path)) == count
    file.close()


def test_without_room_at_the_beginning_it_counts_for_itself(tmp_path, caplog):
    path = tmp_path / "counter_1.db"
    with no_room():
        file = AllocatedFile(str(path))
        write(file, 0, 1_000)
        assert seen(path) is None
        assert list(tmp_path.iterdir()) == []
    assert caplog.text.count("Metrics of this process are not shown") == 1
    assert file.read_value("7" + " " * 200)[0] == 7
    file._again = 0.0
    write(file, 1_000, 1)
    assert seen(path) == {f"{number}" + " " * 200: float(number) for number in range(1_001)}
    file.close()


def test_without_room_to_grow_it_counts_for_itself(tmp_path):
    path = tmp_path / "counter_1.db"
    file = AllocatedFile(str(path))
    write(file, 0, 100)
    with no_room():
        write(file, 100, 900)
        assert seen(path) is None, "no half of the numbers is shown"
        file._again = 0.0
        write(file, 1_000, 1)
        assert seen(path) is None
    file._again = 0.0
    write(file, 1_001, 1)
    assert seen(path) == {f"{number}" + " " * 200: float(number) for number in range(1_002)}
    write(file, 1_002, 1_000)
    assert len(seen(path)) == 2_002
    file.close()


def test_a_file_of_a_former_process_with_the_same_number_is_continued(tmp_path):
    path = tmp_path / "counter_1.db"
    former = AllocatedFile(str(path))
    write(former, 0, 3)
    former.close()
    file = AllocatedFile(str(path))
    write(file, 3, 1)
    assert len(seen(path)) == 4
    file.close()
