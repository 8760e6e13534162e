"""Servers that lie, stall or flood. A client holds at most one piece and ends by its own time limit."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable

import pytest

import sluice_client as sluice

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nConnection: close\r\n\r\n"
ROW = b'{"id":1,"a":2}\n'


def end(rows: int, data: bytes, crc: int | None = None) -> bytes:
    value = zlib.crc32(data) if crc is None else crc
    return b'{"end":{"cursor":"c","rows":%d,"bytes":%d,"crc32":"%08x"}}\n' % (rows, len(data), value)


def read(url: str, retry_for: float = 0, timeout: float = 5) -> list[dict[str, object]]:
    return list(sluice.rows(f"{url}/items", retry_for=retry_for, timeout=timeout))


def test_a_proved_answer_is_taken(answers: Callable[..., str]) -> None:
    assert read(answers(HEAD + ROW + end(1, ROW))) == [{"id": 1, "a": 2}]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        ROW,
        ROW[:-1],
        ROW + end(1, ROW)[:-1],
        ROW + end(2, ROW),
        ROW + end(1, ROW, crc=1),
        ROW + b'{"checkpoint":{}}\n',
        ROW + b'{"end":[]}\n',
        ROW + b"nonsense\n",
        b'{"error":{"status":503,"detail":"the store is away"}}\n',
    ],
)
def test_rows_without_a_right_proof_are_never_given(answers: Callable[..., str], body: bytes) -> None:
    rows = iter(sluice.rows(f"{answers(HEAD + body)}/items", retry_for=0, timeout=5))
    with pytest.raises(sluice.Interrupted):
        next(rows)


def test_a_stream_that_the_server_gives_up_for_good_is_not_requested_again(answers: Callable[..., str]) -> None:
    url = answers(HEAD + ROW + b'{"error":{"status":410,"detail":"the snapshot is gone"}}\n', HEAD)
    with pytest.raises(sluice.Gone, match="snapshot is gone"):
        read(url, retry_for=60)


def test_busy_servers_are_asked_again_after_their_time(answers: Callable[..., str]) -> None:
    busy = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
    began = time.monotonic()
    assert len(read(answers(busy, HEAD + ROW + end(1, ROW)), retry_for=10)) == 1
    assert time.monotonic() - began >= 1


def test_redirects_are_refused(answers: Callable[..., str]) -> None:
    url = answers(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")
    with pytest.raises(sluice.Refused, match="redirects"):
        read(url)


def test_another_kind_of_answer_is_refused(answers: Callable[..., str]) -> None:
    with pytest.raises(sluice.Refused, match="text/html"):
        read(answers(HEAD.replace(b"application/x-ndjson", b"text/html") + b"<html>"))


def test_a_silent_server_is_left_after_the_timeout(answers: Callable[..., str]) -> None:
    for text in (b"", b"HTTP/1.1 200 OK\r\n", HEAD + ROW):
        with pytest.raises(sluice.Interrupted, match="in time"):
            read(answers(text, hold=True), timeout=0.3)


def test_a_gzip_bomb_is_refused_before_it_fills_the_memory(answers: Callable[..., str]) -> None:
    packer = zlib.compressobj(wbits=31)
    bomb = packer.compress(b'{"id":"')
    for _ in range(200):
        bomb += packer.compress(b"a" * (1 << 20))
    head = HEAD.replace(b"Connection: close", b"Connection: close\r\nContent-Encoding: gzip")
    with pytest.raises(sluice.Refused, match="100 MiB"):
        read(answers(head + bomb + packer.flush()), timeout=60)


def gzipped(*parts: bytes) -> bytes:
    """Each part as a member of its own."""
    packed = b""
    for part in parts:
        packer = zlib.compressobj(wbits=31)
        packed += packer.compress(part) + packer.flush()
    return packed


def test_all_members_of_gzip_are_read_and_nothing_else_may_lie_between(answers: Callable[..., str]) -> None:
    head = HEAD.replace(b"Connection: close", b"Connection: close\r\nContent-Encoding: gzip")
    rows, proof = gzipped(ROW), gzipped(end(1, ROW))
    assert read(answers(head + rows + proof)) == [{"id": 1, "a": 2}]
    # A cut behind the deflated end line, in the trailer of its member, leaves the proof whole.
    cuts = [(rows + proof)[:at] for at in range(len(rows + proof) - 8)]
    odd = [rows + between + proof for between in (b"\0", b"x", b"\x1f\x8b", ROW, rows[:-1])]
    for body in cuts + odd:
        try:
            assert read(answers(head + body)) == [{"id": 1, "a": 2}]
            assert body in cuts[-4:]
        except sluice.Interrupted:
            pass


def test_an_answer_that_is_cut_in_its_head_is_requested_again(answers: Callable[..., str]) -> None:
    assert len(read(answers(b"HTTP/1.1 200 OK\r\nDate: x\r\n", HEAD + ROW + end(1, ROW)), retry_for=10)) == 1


def test_a_head_that_comes_byte_by_byte_ends_with_the_time_limit(answers: Callable[..., str]) -> None:
    began = time.monotonic()
    with pytest.raises(sluice.Interrupted, match="in time"):
        read(answers(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 40, drip=0.1), timeout=0.5)
    assert time.monotonic() - began < 3


def test_an_unknown_coding_is_refused(answers: Callable[..., str]) -> None:
    head = HEAD.replace(b"Connection: close", b"Connection: close\r\nContent-Encoding: br")
    with pytest.raises(sluice.Refused, match="coding"):
        read(answers(head + b"xyz"))


def test_a_stream_that_never_goes_on_ends(answers: Callable[..., str]) -> None:
    empty = b'{"end":{"cursor":"c","rows":0,"bytes":0,"crc32":"00000000","more":true}}\n'
    with pytest.raises(sluice.Interrupted):
        read(answers(HEAD + empty), retry_for=0.5)


def checkpoint(rows: int, data: bytes, cursor: str = "c") -> bytes:
    return (
        end(rows, data).replace(b'"end"', b'"checkpoint"').replace(b'"rows"', b'"cursor":"%s","rows"' % cursor.encode())
    )


def test_checkpoints_without_rows_for_ever_end_with_the_time_limit(answers: Callable[..., str]) -> None:
    body = HEAD + ROW + checkpoint(1, ROW) * 10_000
    with pytest.raises(sluice.Interrupted, match=r"in time|no row was proved"):
        read(answers(body, drip_lines=0.02), timeout=0.5, retry_for=0.5)


def test_places_without_changes_for_ever_end_with_the_time_limit(answers: Callable[..., str]) -> None:
    places = b"".join(
        b'{"checkpoint":{"cursor":"c%d","rows":0,"removed":0,"bytes":0,"crc32":"00000000"}}\n' % n
        for n in range(10_000)
    )
    changes = sluice.changes(f"{answers(HEAD + places, drip_lines=0.02)}/items", "b", timeout=0.5, retry_for=0.5)
    with pytest.raises(sluice.Interrupted, match=r"in time|no row was proved"):
        list(changes)


def test_a_server_that_begins_anew_behind_a_cursor_is_refused(answers: Callable[..., str]) -> None:
    rows = iter(sluice.rows(f"{answers(*[HEAD + ROW + checkpoint(1, ROW)] * 2)}/items", retry_for=60, timeout=5))
    assert next(rows) == {"id": 1, "a": 2}
    with pytest.raises(sluice.Refused, match="started over"):
        next(rows)
