"""Bytes of protocol buffers by hand, for messages that no class of protobuf writes."""

from __future__ import annotations


def varint(value: int) -> bytes:
    """A number on the wire; negative ones as 64 bits of two's complement."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def delimited(number: int, content: bytes) -> bytes:
    """A field of bytes, text or a message."""
    return varint(number << 3 | 2) + varint(len(content)) + content
