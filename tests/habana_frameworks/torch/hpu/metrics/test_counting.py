"""Metrics from what lazy mode counts, the tool that finds recompiling modules, and the older package of the device."""

import csv
import json

import pytest

pytestmark = pytest.mark.slow


def test_metrics_count_graphs_and_find_the_modules_that_recompile(alone, tmp_path):
    def program():
        import json
        import pathlib

        import pytest
        import torch
        from torch import nn

        import habana_frameworks.torch.core as htcore
        from habana_frameworks.torch.hpu import metrics
        from habana_frameworks.torch.utils.event_dispatcher import EventDispatcher, EventId
        from habana_frameworks.torch.utils.experimental import (
            const_shape_dataloader,
            data_dynamicity,
            detect_recompilation_auto_model,
        )

        marks = []
        handle = EventDispatcher.instance().subscribe(EventId.MARK_STEP, lambda moment, params: marks.append(moment))
        with metrics.metric_localcontext("graph_compilation") as local:
            for rows in (2, 2, 3):
                torch.ones(rows, 4, device="hpu").add_(1)
                htcore.mark_step()
        assert dict(local.stats())["TotalNumber"] == 2
        assert len(marks) == 3
        EventDispatcher.instance().unsubscribe(handle)
        htcore.mark_step()
        assert len(marks) == 3
        overall = metrics.metric_global("graph_compilation")
        assert dict(overall.stats())["TotalNumber"] >= 2
        cache = dict(metrics.metric_global("recipe_cache").stats())
        assert (cache["TotalHit"], cache["TotalMiss"]) == (1, 2)
        assert metrics.metric_global("nothing") is None
        with pytest.raises(metrics.MetricNotFound, match="graph_compilation"), metrics.metric_localcontext("nothing"):
            pass
        overall.reset()
        assert dict(overall.stats())["TotalNumber"] == 0
        metrics.metrics_dump("asked.json")
        metrics.metrics_dump("asked.json")
        assert len(json.loads(pathlib.Path("asked.json").read_text())) == 8

        network = nn.Sequential(nn.Linear(4, 8), nn.ReLU()).to("hpu")
        followed = detect_recompilation_auto_model(network, "Net", waittime=0, csv_out="found")
        with torch.no_grad():
            for rows in (2, 2, 3):
                followed(torch.ones(rows, 4, device="hpu"))
        followed.analyse_dynamicity()
        assert len(followed.raw_logs()) == 9
        with pytest.raises(RuntimeError, match="already being observed"):
            detect_recompilation_auto_model(network)

        samples = [torch.arange(length) for length in (2, 3, 2)]
        assert data_dynamicity(torch.utils.data.DataLoader(samples, batch_size=None)) == {((2,),): 2, ((3,),): 1}
        padded = const_shape_dataloader(torch.utils.data.DataLoader(samples, batch_size=3), 4)
        assert [batch.tolist() for batch in padded] == [[[0, 1, 0, 0], [0, 1, 2, 0], [0, 1, 0, 0]]]

        import torch_hpu

        with pytest.warns(DeprecationWarning, match=r"Use torch\.hpu\.device_count"):
            assert torch_hpu.device_count() == 1

    environment = {"PT_HPU_LAZY_MODE": "1", "PT_HPU_ENABLE_CACHE_METRICS": "1", "PT_HPU_METRICS_FILE": "all.json"}
    alone(program, **environment, RANK="0")
    with (tmp_path / "found_1.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(row["Step"], row["Recompiling modules"]) for row in rows} == {
        (step, name) for step in ("0", "2") for name in ("Net", "Net.0", "Net.1")
    }
    assert all(row["Comment"] == "new shapes of its inputs" for row in rows)
    written = json.loads((tmp_path / "all-rank0.json").read_text())
    assert {each["triggered_by"] for each in written} == {"process_exit"}
    assert "graph_compilation" in {each["metric_name"] for each in written}
