"""The CRC-32 of joined pieces: crc32_combine of zlib 1.3.1, which Python's zlib does not offer."""

from __future__ import annotations

_POLYNOMIAL = 0xEDB88320


def crc32_combine(first: int, second: int, second_length: int) -> int:
    """The CRC-32 of A followed by B, from the CRC-32 of each and the length of B in bytes.

    A CRC is a polynomial over GF(2), with the lowest power in the highest bit. Each byte that follows multiplies it by
    x^8, modulo the CRC's own polynomial.
    """
    power = 1 << 31  # x^0
    k = 3
    while second_length > 0:
        if second_length & 1:
            power = _multiply(_SQUARES[k], power)
        second_length >>= 1
        k = (k + 1) & 31
    return _multiply(power, first) ^ second


def _multiply(a: int, b: int) -> int:
    """a * b modulo the polynomial."""
    product = 0
    mask = 1 << 31
    while mask:
        if a & mask:
            product ^= b
        b = (b >> 1) ^ _POLYNOMIAL if b & 1 else b >> 1
        mask >>= 1
    return product


def _squares() -> list[int]:
    """x^(2^n) modulo the polynomial, for n from 0 to 31. The powers repeat from there on."""
    table = [1 << 30]  # x^1
    while len(table) < 32:
        table.append(_multiply(table[-1], table[-1]))
    return table


_SQUARES = _squares()
