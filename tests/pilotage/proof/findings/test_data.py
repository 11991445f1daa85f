from pilotage.proof.findings import data


def load(indices=None, epoch=0, samples=4, content=None):
    return {"loader": 0, "epoch": epoch, "samples": samples, "indices": indices, "content": content}


def loader(**changes):
    plain = {"event": "loader", "number": 0, "line": "port.py:7", "batch_size": 4, "drop_last": False, "dataset": 40}
    return plain | {"drawn": 40, "batches": 10, "sampler": "RandomSampler", "replacement": False} | changes


def with_loader(process, **changes):
    made = process()
    return type(made)(**{**vars(made), "events": (loader(**changes),)})


def names(rule, after, before=None):
    return [(each.name, each.where) for each in rule(after, before)]


def test_the_whole_data_set_gives_no_finding(process, run_of):
    assert not names(data.samples_dropped, run_of(process()))
    assert not names(data.samples_dropped, run_of(process()), run_of(process()))


def test_a_last_batch_of_a_port_that_is_dropped_is_a_finding_if_the_original_keeps_it(process, run_of):
    after = run_of(with_loader(process, drop_last=True, batches=8))
    assert names(data.samples_dropped, after, run_of(process())) == [("samples-dropped", "port.py:7")]
    assert not names(data.samples_dropped, after, after)


def test_one_incomplete_batch_may_be_dropped_in_an_audit(process, run_of):
    assert not names(data.samples_dropped, run_of(with_loader(process, drop_last=True, dataset=43, drawn=43)))
    dropped = run_of(with_loader(process, drop_last=True, batches=5))
    assert names(data.samples_dropped, dropped) == [("samples-dropped", "port.py:7")]


def test_an_epoch_that_was_seen_counts_more_than_the_loaders_length(process, run_of):
    """The script leaves its loop early."""
    after = run_of(process(each=lambda number: {"loads": [load([number], epoch=number // 6)]}))
    assert names(data.samples_dropped, after, run_of(process())) == [("samples-dropped", "train.py:7")]


def test_batches_that_no_backward_pass_follows_are_dropped(process, run_of):
    after = run_of(process(each=lambda number: {"skipped": 4}))
    assert names(data.samples_dropped, after) == [("samples-dropped", "train.py:7")]


def test_processes_that_read_the_same_samples_repeat_them(process, run_of):
    after = run_of(process(rank=0, size=2), process(rank=1, size=2))
    assert names(data.samples_repeated, after) == [("samples-repeated", "train.py:7")]


def test_processes_that_share_the_samples_repeat_none(process, run_of):
    other = process(rank=1, size=2, each=lambda number: {"loads": [load([100 + 4 * number + k for k in range(4)])]})
    assert not names(data.samples_repeated, run_of(process(rank=0, size=2), other))


def test_equal_indices_of_data_sets_with_other_content_are_other_samples(process, run_of):
    def reading(value):
        return lambda number: {"loads": [load([number], content=[value])]}

    after = run_of(process(size=2, each=reading(1.0)), process(rank=1, size=2, each=reading(2.0)))
    assert not names(data.samples_repeated, after)


def test_one_batch_over_and_over_is_repeated(process, run_of):
    after = run_of(process(each=lambda number: {"loads": [load([0, 1, 2, 3])]}))
    assert names(data.samples_repeated, after) == [("samples-repeated", "train.py:7")]
    assert not names(data.samples_repeated, after, after)


def test_drawing_with_replacement_is_not_repeating(process, run_of):
    made = with_loader(process, replacement=True)
    after = run_of(type(made)(**{**vars(made), "updates": made.updates * 2}))
    assert not names(data.samples_repeated, after)
