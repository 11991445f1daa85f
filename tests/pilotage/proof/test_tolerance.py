from pilotage.proof.tolerance import Tolerance, unit_of


def test_the_tolerance_grows_with_the_updates():
    plain = Tolerance("float32")
    assert plain.of_loss(1) < plain.of_loss(50) < 1e-3
    assert plain.of_weights(1) < plain.of_weights(50)


def test_what_a_run_with_rounding_errors_shows_is_tolerated_from_then_on():
    shaken = Tolerance("float32", [0.0, 0.01, 0.0], {10: 0.2})
    assert shaken.of_loss(1) < 1e-4
    assert shaken.of_loss(2) == shaken.of_loss(3) == 0.1
    assert shaken.of_weights(9) < 0.01
    assert shaken.of_weights(10) == 2.0


def test_the_narrowest_type_decides():
    assert unit_of(["float32", "bfloat16"]) == "bfloat16"
    assert unit_of(["float32", "float16"]) == "float16"
    assert unit_of([]) == "float32"
