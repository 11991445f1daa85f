"""Reading ahead in a thread."""

from __future__ import annotations

import threading

from pilotage.data.reading_ahead import read_ahead


def test_items_come_in_order_and_are_read_before_they_are_asked_for():
    room, read = threading.Event(), []

    def source():
        for number in range(5):
            read.append(number)
            if number == 2:
                room.set()
            yield number

    items = read_ahead(source(), 2)
    assert next(items) == 0
    assert room.wait(10)
    assert list(items) == [1, 2, 3, 4]


def test_no_more_is_read_than_there_is_room_for():
    read = []

    def source():
        for number in range(100):
            read.append(number)
            yield number

    items = read_ahead(source(), 3)
    next(items)
    items.close()
    assert len(read) <= 6
