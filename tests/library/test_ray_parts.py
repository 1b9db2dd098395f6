"""Resources by which Ray distributes parts."""

import pytest

from narrlit.library.ray_parts import _resources_of_reader, _resources_of_worker


@pytest.mark.parametrize("workers", [1, 2, 3, 7, 16])
@pytest.mark.parametrize("processors", [1, 2, 4, 8, 17])
def test_reader_and_workers_fit_a_cluster_and_ray_does_not_join_them(processors, workers):
    """Ray runs a task and the workers after it as one where both have the same resources."""
    worker = _resources_of_worker({"CPU": processors}, workers)["num_cpus"]
    reader = _resources_of_reader({"num_cpus": worker})["num_cpus"]

    assert reader != worker
    assert reader <= 1
    if processors > 1:
        assert reader + workers * worker <= max(processors, 1 + 0.1 * workers) + 1e-9  # sums of thirds


def test_a_worker_has_a_gpu_where_there_are_any():
    assert _resources_of_worker({"CPU": 8, "GPU": 2}, 2) == {"num_gpus": 1}
