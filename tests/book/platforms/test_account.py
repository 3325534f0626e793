"""The account of a recording is a table, with each failure below its chapter."""

from __future__ import annotations

from executed_book.platforms.account import Account, Failed, table


def test_columns_are_as_wide_as_what_stands_in_them_and_add_up():
    accounts = [
        Account("a/long-name", recorded=12, same=3, different=4),
        Account("b", recorded=1, same=2, failed=[Failed(0, 7, "given up: it hangs")]),
    ]
    assert table(accounts).splitlines() == [
        "chapter      recorded  same as CPU  different  failed",
        "a/long-name        12            3          4       0",
        "b                   1            2          0       1",
        "    line 7: given up: it hangs",
        "total              13            5          4       1",
    ]


def test_nothing_recorded_is_a_table_of_zeros():
    assert table([]).splitlines()[1:] == [
        "total           0            0          0       0"
    ]


def test_what_was_expected_what_held_and_what_was_not_looked_at():
    account = Account(
        "a",
        failed=[Failed(2, 9, "raised")],
        expected=[Failed(3, 12, "no kernel")],
        held=[5, 6],
        needing=[4],
    )
    assert account.surprises == 1
    _, row, *notes, _ = table([account]).splitlines()
    assert row.split() == ["a", "0", "0", "0", "2"]
    assert notes == [
        "    cell 2, line 9: raised",
        "    cell 3, line 12: as expected: no kernel",
        "    not looked at, since they need one of these: cells 4",
        "    announced with :fails-on:, and do not fail here: cells 5, 6",
    ]
