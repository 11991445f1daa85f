import json

from pilotage.proof.records import read_run


def write(folder, name, *lines):
    (folder / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))


def line(event, **fields):
    return json.dumps({"event": event, **fields})


def updates(*loads):
    """A line with one update."""
    row = [1, [2.0, 1.0], 0, 0.5, loads, 3, {"device": "cpu"}]
    return line("updates", common={"mode": "eager", "device": "hpu"}, epoch=100.0, rows=[row])


def test_a_record_that_was_cut_in_its_last_line_is_read_up_to_there(tmp_path):
    write(
        tmp_path,
        "1",
        line("process", rank=0),
        updates(),
        updates()[:20],
    )
    run = read_run(tmp_path)
    assert run.steps == 1
    assert run.first.updates[0].losses == [2.0, 1.0]
    assert run.first.end is None


def test_processes_that_trained_come_in_the_order_of_their_ranks(tmp_path):
    write(tmp_path, "1", line("process", rank=1), updates())
    write(tmp_path, "2", line("process", rank=0), updates())
    write(tmp_path, "3", line("process", rank=2))
    run = read_run(tmp_path)
    assert [each.rank for each in run.trained] == [0, 1]
    assert [each.rank for each in run.others] == [2]


def test_processes_that_a_script_starts_itself_have_the_ranks_of_the_group_that_they_join(tmp_path):
    for rank in (1, 0):
        write(tmp_path, f"{2 - rank}", line("process", rank=0, size=1), line("group", rank=rank, size=2), updates())
    write(tmp_path, "3", line("process", rank=2, size=3), line("group", rank=0, size=1), updates())
    found = [(each.rank, each.header["size"]) for each in read_run(tmp_path).trained]
    assert found == [(0, 2), (1, 2), (2, 3)]


def test_the_rates_of_an_update_are_those_of_all_optimizers_that_made_it(tmp_path):
    rates = line("joined", step=1, rates=[0.2]), line("joined", step=1, rates=[0.3]), line("joined", step=2, rates=[1])
    write(tmp_path, "1", line("process", rank=0), updates(), *rates)
    (update,) = read_run(tmp_path).first.updates
    assert update.rates == [0.2, 0.3]


def test_the_samples_of_an_update_are_those_of_all_its_batches(tmp_path):
    load = [0, 1, 2, [3, 4], None]
    write(tmp_path, "1", line("process", rank=0), updates(load, load))
    (update,) = read_run(tmp_path).first.updates
    assert update.samples == 4
    assert update.indices == [3, 4, 3, 4]


def test_an_update_has_its_own_fields_and_those_of_its_neighbours(tmp_path):
    write(tmp_path, "1", line("process", rank=0), updates())
    (update,) = read_run(tmp_path).first.updates
    assert (update.step, update.is_eager, update.device) == (1, True, "cpu")
    assert (update.fields["time"], update.fields["skipped"]) == (100.5, 3)


def test_the_last_summary_counts(tmp_path):
    write(tmp_path, "1", line("process", rank=0), line("summary", updates=1), line("summary", updates=2))
    assert read_run(tmp_path).others[0].summary["updates"] == 2


def test_a_long_error_is_one_line_with_its_beginning_and_its_end(tmp_path):
    error = f"RuntimeError: Caught\n{'x' * 500}\nValueError: the last one"
    write(tmp_path, "1", line("process", rank=0), line("end", how="failed", error=error))
    (process,) = read_run(tmp_path).others
    assert process.error.startswith("RuntimeError: Caught xxx")
    assert process.error.endswith("xxx ValueError: the last one")
    assert len(process.error) < 310


def test_scripts_that_are_stopped_or_finish_have_no_error(tmp_path):
    for number, how in enumerate(("stopped", "finished")):
        write(tmp_path, how, line("process", rank=number), line("end", how=how, error=None))
    found = read_run(tmp_path).others
    assert [each.error for each in found] == [None, None]
    assert sorted(each.was_stopped for each in found) == [False, True]
