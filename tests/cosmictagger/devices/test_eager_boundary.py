"""When collected operations are run; whole runs on Gaudi are in ``test_command_devices.py``."""


def test_a_boundary_follows_each_backward_and_each_update(small):
    marks = []
    device = small.plain(boundary=lambda: marks.append(device._updates))
    device.train([small.batch(0), small.batch(1)], 1e-3)
    assert len(marks) == 3
    device.evaluate(small.batch(0))
    assert len(marks) == 4
