"""Profiles as numpy's structured arrays."""

import json

import numpy as np

from cosmictagger.records.profile import StepProfile


def test_a_profile_has_a_row_for_each_iteration_in_microseconds(tmp_path):
    profile = StepProfile()
    profile.add(0, 1.5, {"iteration": 0.25, "io": 0.001})
    profile.save(tmp_path, {"run": {"id": "x"}})
    rows = np.load(tmp_path / "profiling_info_rank_0.npy")
    assert rows["iteration"][0] == np.timedelta64(250_000, "us")
    assert rows["io"][0] == np.timedelta64(1_000, "us")
    assert rows["forward"][0] == np.timedelta64(0, "us")
    assert json.loads((tmp_path / "args.json").read_text()) == {"run": {"id": "x"}}
