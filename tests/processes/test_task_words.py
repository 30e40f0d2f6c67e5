"""What a task says of its loss."""

import pytest

import mesascope as ms


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (ms.NextToken(20), "sum over 18 context lengths"),
        (ms.NextToken(10**12), "sum over 999999999998 context lengths"),  # no array of them is made
        (ms.NextToken.last(20), ""),
        (ms.NextToken(5, [1e-9, 2e-9, 1]), "weighted sum over 3 context lengths"),
        (ms.NextToken(5, {2: 1, 4: 2}), "weighted sum over 2 context lengths"),
        (ms.NextToken(6, [0.25] * 4), "mean over 4 context lengths"),
        (ms.NextToken(5, {3: 2}), "2 × that of one context length"),
        (ms.FewShot(4), ""),
        (ms.FewShot.every(4), "sum over 5 example counts"),
    ],
)
def test_a_loss_is_a_sum_or_a_mean(task, said):
    assert task.loss_meaning == said
