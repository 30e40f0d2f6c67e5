"""What is shown of the settings of several runs: those that differ, by path."""

from types import SimpleNamespace

from mesascope.records import differing_settings


def rows(*specs, kind="train"):
    return [SimpleNamespace(kind=kind, spec=spec) for spec in specs]


def test_fields_of_tables_in_lists_are_named_by_their_number():
    def spec(rule, rate):
        return {
            "seed": 0,
            "model": {"layers": [{"kind": "mlp"}, {"kind": "memory", "rule": {"kind": rule, "rate": rate}}]},
        }

    found = differing_settings(rows(spec("delta-net", 0.1), spec("titans", 0.1)))
    assert found == [{"model.layers.1.rule.kind": "delta-net"}, {"model.layers.1.rule.kind": "titans"}]


def test_lists_of_numbers_are_one_value():
    found = differing_settings(rows({"weights": [1, 2]}, {"weights": [1, 3]}))
    assert found == [{"weights": [1, 2]}, {"weights": [1, 3]}]


def test_runs_of_other_kinds_are_not_compared():
    both = rows({"seed": 0}) + rows({"seed": 1}, kind="flow")
    assert differing_settings(both) == [{}, {}]
