"""Where chunks of editions end: the rule of the server (src/base/edition/cut.ts)."""

from __future__ import annotations

import json
import re
import zlib

# A chunk ends at this many targets, whatever its ids.
_MOST_TARGETS = 8
_MASK = 0xFFFFFFFF
# Most ids are texts or numbers. Another one is read as JSON.
_PLAIN = re.compile(rb'\{"(?:[^"\\]|\\.)*":("(?:[^"\\]|\\.)*"|[^\s,{}\[\]"]+)[,}]')
_NAME = re.compile(r'\{"(?:[^"\\]|\\.)*":')
_DECODER = json.JSONDecoder()


class Cutter:
    """Cuts rows into chunks. `target`: bytes of a chunk, at least 1."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._bytes = 0

    def ends_behind(self, line: bytes) -> bool:
        """Whether a chunk ends behind a line, which has its LF."""
        self._bytes += len(line)
        is_bound = _mix(zlib.crc32(_id_of(line))) / 2**32 < len(line) / self._target
        if not is_bound and self._bytes < _MOST_TARGETS * self._target:
            return False
        self._bytes = 0
        return True


def _id_of(line: bytes) -> bytes:
    """The JSON text of the first member."""
    plain = _PLAIN.match(line)
    if plain is not None:
        return plain[1]
    text = line.decode()
    name = _NAME.match(text)
    if name is None:
        raise ValueError("a line is no row")
    return text[name.end() : _DECODER.raw_decode(text, name.end())[1]].encode()


def _mix(value: int) -> int:
    """fmix32 of MurmurHash3."""
    value = ((value ^ (value >> 16)) * 0x85EBCA6B) & _MASK
    value = ((value ^ (value >> 13)) * 0xC2B2AE35) & _MASK
    return value ^ (value >> 16)
