"""Messages are whole, in order, and none comes from a fork."""

import socket
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
