"""Metrics of the bridge: what lazy mode and torch.compile would have compiled, and what the cache would have saved.

Nothing is compiled here, so times are zero. The card's memory is never defragmented, and no operation falls back.
"""

from __future__ import annotations

from habana_frameworks.torch.hpu.metrics.counting import Metric as Metric
from habana_frameworks.torch.hpu.metrics.counting import MetricNotFound as MetricNotFound
from habana_frameworks.torch.hpu.metrics.counting import metric_global as metric_global
from habana_frameworks.torch.hpu.metrics.counting import metric_localcontext as metric_localcontext
from habana_frameworks.torch.hpu.metrics.dumping import InvalidMetricDumpFileFormat as InvalidMetricDumpFileFormat
from habana_frameworks.torch.hpu.metrics.dumping import InvalidMetricDumpTrigger as InvalidMetricDumpTrigger
from habana_frameworks.torch.hpu.metrics.dumping import MetricDumpFormat as MetricDumpFormat
from habana_frameworks.torch.hpu.metrics.dumping import dump_when_asked as dump_when_asked
from habana_frameworks.torch.hpu.metrics.dumping import metrics_dump as metrics_dump
