"""The speed summary at the end of a run."""

from cosmictagger.records.throughput import Throughput


def test_the_figure_of_merit_leaves_out_two_iterations_and_all_compilation():
    throughput = Throughput(4)
    throughput.add(30.0, 20.0)
    for seconds in (5.0, 2.0, 2.0):
        throughput.add(seconds)
    assert throughput.figure_of_merit == 2.0
    lines = list(throughput.lines())
    assert lines[0] == "Time to compile, not counted below: 20.000"
    assert lines[1] == "Total time to batch_process: 19.0000"
    assert lines[2].startswith("Total time to batch_process except first iteration: 9.0000, throughput: 1.3333")
    assert lines[3].startswith("Total time to batch_process except first two iterations: 4.0000, throughput: 2.0000")
    assert len(lines) == 4


def test_the_last_forty_are_listed_if_there_are_more():
    throughput = Throughput(1)
    for seconds in [9.0] * 10 + [0.5] * 40:
        throughput.add(seconds)
    assert list(throughput.lines())[-1].endswith("last 40 iterations: 20.0000, throughput: 2.0000")
    assert Throughput(1).figure_of_merit is None
