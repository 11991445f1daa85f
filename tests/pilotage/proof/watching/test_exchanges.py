from types import SimpleNamespace

from pilotage.proof.watching.exchanges import ExchangeWatch
from pilotage.proof.watching.settings import WatchSettings
from pilotage.proof.watching.watch import Watch


def test_sums_after_backward_are_exchanges_and_all_collectives_are_counted(tmp_path):
    watch = Watch(WatchSettings(folder=str(tmp_path)))
    distributed = SimpleNamespace(all_reduce=lambda tensor: tensor, broadcast=lambda tensor: tensor)
    ExchangeWatch(watch).install(distributed)
    distributed.all_reduce(1)
    assert watch.pending.exchanges == 0
    watch.pending.backwards = 1
    assert distributed.all_reduce(2) == 2
    distributed.broadcast(3)
    assert watch.pending.exchanges == 1
    assert watch.summaries[0]() == {"collectives": {"all_reduce": 2, "broadcast": 1}}
