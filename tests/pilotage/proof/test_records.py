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


def typed(number, product, weights=("float32",), mode="eager", **facts):
    """A line with one update whose types are known."""
    common = {"mode": mode, "device": "cpu", "product": product, "weights": list(weights)}
    return line("updates", common=common, epoch=0.0, rows=[[number, [1.0], 0, 0.5, [], 0, facts]])


def types(folder, *lines):
    write(folder, "1", line("process", rank=0), *lines)
    return list(read_run(folder).first.types)


def test_updates_are_computed_as_the_one_whose_products_were_looked_at(tmp_path):
    looked = typed(2, "float32", computed_in={"float32": 1, "bfloat16": 5})
    found = types(tmp_path, typed(1, "float32"), looked, typed(3, "float32"), typed(4, "float16"))
    assert found == ["bfloat16", "bfloat16", "bfloat16", "float16"]


def test_compiled_updates_are_computed_as_the_one_that_ran_eagerly(tmp_path):
    looked = typed(2, "bfloat16", computed_in={"bfloat16": 5})
    assert types(tmp_path, typed(1, None), looked, typed(3, None)) == ["bfloat16"] * 3


def test_without_any_product_the_type_of_the_weights_counts(tmp_path):
    found = types(tmp_path, typed(1, None), typed(2, None, ["float64"]), typed(3, None, ["float32", "float16"]))
    assert found == ["float32", "float64", None]


def test_updates_of_programs_have_the_types_of_their_program(tmp_path):
    program = [
        typed(number, None, mode="program", computed_in={kind: 3}) for number, kind in ((1, "float16"), (2, "float32"))
    ]
    assert types(tmp_path, *program, typed(3, None, mode="program", computed_in={})) == ["float16", "float32", None]
