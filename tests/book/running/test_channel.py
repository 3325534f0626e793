"""Messages are whole, in order, and none comes from a fork."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from executed_book.running.channel import Channel


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    one, other = map(Channel, socket.socketpair())
    yield one, other
    one.close()
    other.close()


def test_messages_come_in_their_order_whatever_is_in_them(ends):
    one, other = ends
    assert other.arrived() == []
    one.send(at="text", text="\udc80 \n é")
    one.send(at="number", number=2)
    assert other.arrived() == [
        {"at": "text", "text": "\udc80 \n é"},
        {"at": "number", "number": 2},
    ]
    other.send(at="go")
    assert one.receive() == {"at": "go"}


def test_the_last_words_of_an_end_that_is_gone_are_heard(ends):
    one, other = ends
    one.send(at="end")
    one.close()
    assert other.arrived() == [{"at": "end"}]
    assert not other.is_open
    assert other.receive() is None


def test_an_end_that_is_stopped_or_killed_amid_its_words_keeps_nobody_waiting():
    one, other = socket.socketpair()
    heard = Channel(other)
    one.sendall(b'{"at": "end"}\n{"at": ')
    assert heard.arrived() == [{"at": "end"}]
    assert heard.is_open  # the rest is not waited for
    one.close()
    assert heard.arrived() == []
    assert not heard.is_open
    heard.close()


def test_a_fork_of_the_owner_says_nothing_and_ends():
    code = (
        "import os, socket\n"
        "from executed_book.running.channel import Channel\n"
        "one, other = map(Channel, socket.socketpair())\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    one.send(at='fork')\n"
        "    os._exit(7)\n"
        "print(os.waitpid(child, 0)[1], other.arrived())\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "0 []\n"
