from pilotage.monitoring.plurals import pluralized


def test_one_is_one_and_everything_else_is_several():
    assert [pluralized(number, "card") for number in (0, 1, 2)] == ["0 cards", "1 card", "2 cards"]
