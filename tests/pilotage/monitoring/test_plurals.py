from pilotage.monitoring.plurals import pluralized


def test_only_one_is_singular():
    assert [pluralized(number, "card") for number in (0, 1, 2)] == ["0 cards", "1 card", "2 cards"]
