"""Wrong calls, ranks that do not join, and aborted groups."""

from __future__ import annotations

from pathlib import Path

from distributed import behaviour
from distributed.marks import needs_kernel, tells_of_the_hosts_failures
from distributed.ranks import Ranks

pytestmark = tells_of_the_hosts_failures


def test_wrong_arguments_are_refused_by_the_call(pair: Ranks) -> None:
    says = [
        "the list of outputs has 1 tensors, but the group has 2 ranks",
        "a tensor of the list has the shape",
        "must be 2 times as many",
        "must be 2 times as many",
        "3 rows cannot be divided among 2 ranks: give split sizes",
        "split sizes have the sum 2, but the tensor has 3 rows",
        "not contiguous: pass tensor.contiguous()",
        "there is no rank 5 in a group of 2",
        "a bitwise reduction needs integers or bool",
        "AVG needs a floating point type",
        "move it there first",
    ]
    for answers in pair.call(behaviour.wrong_arguments):
        assert len(answers) == len(says)
        assert not [pair for pair in zip(answers, says, strict=True) if pair[1] not in pair[0]]


def test_a_timeout_names_rank_and_collective(pair: Ranks, tmp_path: Path) -> None:
    answer, _ = pair.call(behaviour.time_out_without_partner, str(tmp_path / "rank"))
    first, second, completed, success, record, dumped = answer
    assert first.startswith("DistBackendError: all_reduce 1 (float32, 10 elements) on rank 0 of 2")
    assert "1000ms" in first
    assert second == ""
    assert (completed, success) == (True, False)
    assert record == dumped
    assert (record["name"], record["state"], record["number"]) == ("all_reduce", "failed", 1)


def test_a_failure_affects_only_its_group(pair: Ranks) -> None:
    stranger, first, second, after = pair.call(behaviour.fail_one_of_two_groups)[0]
    assert stranger == ""
    assert first.startswith("DistBackendError: all_reduce 1")
    assert second == first
    assert after == ""


def test_calls_that_differ_between_ranks_raise(pair: Ranks) -> None:
    tensors = "give all ranks tensors of the same size and type"
    root = "name the same one on all ranks"
    says = [tensors, tensors, "reduces by another operation", tensors, root, tensors, tensors]
    says += ["which expects", root]
    expected = [*says, *says, *[tensors] * 4 * 5]
    for answers in pair.call(behaviour.differing):
        assert len(answers) == len(expected)
        assert not [pair for pair in zip(answers, expected, strict=True) if pair[1] not in pair[0]]


@needs_kernel("aten::_sparse_coo_tensor_with_dims_and_tensors", "SparsePrivateUse1")
def test_sparse_tensors_are_refused(pair: Ranks) -> None:
    for answers in pair.call(behaviour.sparse):
        for answer in answers:
            assert "do not support sparse or nested tensors: use .to_dense()" in answer


def test_an_aborted_group_ends_pending_calls_and_refuses_new_ones(pair: Ranks) -> None:
    answers = pair.call(behaviour.aborted)[0]
    assert len(answers) == 4
    for first, second in zip(answers[::2], answers[1::2], strict=True):
        assert "the group was aborted" in first
        assert "this group was aborted: destroy it, and make a new one" in second


def test_wait_raises_after_the_given_timeout(pair: Ranks) -> None:
    answer, _ = pair.call(behaviour.wait_with_short_timeout)
    assert answer.startswith("DistBackendError: recv")
    assert "from rank 1) on rank 0 of 2" in answer
    assert answer.endswith("was not done after 50 ms")
