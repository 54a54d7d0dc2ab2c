"""Snapshots of AML: the parties of a tenant and the ids it has used, written in front of what rules count.

A snapshot is a row of pieces: one letter for what it belongs to, 4 bytes of length, and bytes. First come
those of the book, sealed as the frames of `state.snapshot`, then those of the velocity engine as they are.
"""

import struct
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, Final

import msgspec

from vettance.aml.graph import GraphNode
from vettance.aml.parties import OwnCustomer, Parties, PartiesState
from vettance.aml.peers import PeerGroup
from vettance.aml.used_ids import UsedIds
from vettance.velocity.memory.snapshot_format import SnapshotRefused, sealed, unsealed

#: To be raised with any change of what is written of books, parties and transfers.
VERSION: Final = 2
_MAGIC: Final = "vettance aml"
_PIECE: Final = struct.Struct("<cI")
_BOOK: Final = b"b"
_VELOCITY: Final = b"v"
_AT_ONCE: Final = 1_000  # Parties in one frame: a millisecond or two of the thread that decides.

_nodes_of = msgspec.msgpack.Decoder(list[tuple[str, GraphNode]])
_own_of = msgspec.msgpack.Decoder(list[tuple[str, OwnCustomer]])
_peers_of = msgspec.msgpack.Decoder(list[tuple[str, PeerGroup]])
_alias_of = msgspec.msgpack.Decoder(list[tuple[str, str]])
_encode = msgspec.msgpack.Encoder().encode


def write_snapshot(
    held: PartiesState, known: list[tuple[int, int, bytes]], velocity: Iterator[bytes]
) -> Iterator[bytes]:
    """Give the pieces of a snapshot of a book, of the ids used, and of the velocity engine's own snapshot."""
    book = sealed(_book_payloads(held, known))
    for letter, pieces in ((_BOOK, book), (_VELOCITY, velocity)):
        for piece in pieces:
            yield _PIECE.pack(letter, len(piece)) + piece


def _book_payloads(held: PartiesState, known: list[tuple[int, int, bytes]]) -> Iterator[Any]:
    yield _MAGIC, VERSION, held.first_ms, held.high_ms
    for layer in known:
        yield "known", layer
    parts = (("alias", held.alias), ("own", held.own), ("node", held.nodes), ("peers", held.peers))
    for kind, items in parts:
        pairs = iter(items.items())
        while some := list(islice(pairs, _AT_ONCE)):
            # Encoded by itself, so that it is decoded into its own type.
            yield kind, _encode(some)
    yield "end", sum(len(items) for _, items in parts)


def read_snapshot(chunks: Iterable[bytes]) -> tuple[Parties, UsedIds, Iterator[bytes]]:
    """Read a book and the ids used from a snapshot, cut into whatever pieces; what is left is the velocity
    engine's. Raises `SnapshotRefused`.
    """
    pieces = _pieces(chunks)
    beyond: list[bytes] = []

    def of_book() -> Iterator[bytes]:
        for letter, piece in pieces:
            if letter != _BOOK:
                beyond.append(piece)
                return
            yield piece

    try:
        book, known = _read_book(unsealed(of_book()))
    except (TypeError, ValueError, KeyError, msgspec.MsgspecError) as fault:
        raise SnapshotRefused("The snapshot is not made as this version makes it.") from fault
    return book, known, chain(beyond, (piece for _, piece in pieces))


def _pieces(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    buffer = bytearray()
    for chunk in chunks:
        buffer += chunk
        while len(buffer) >= _PIECE.size:
            letter, length = _PIECE.unpack_from(buffer)
            end = _PIECE.size + length
            if letter not in (_BOOK, _VELOCITY):
                raise SnapshotRefused("The snapshot is damaged.")
            if len(buffer) < end:
                break
            yield letter, bytes(buffer[_PIECE.size : end])
            del buffer[:end]
    if buffer:
        raise SnapshotRefused("The snapshot is cut short.")


def _read_book(payloads: Iterator[Any]) -> tuple[Parties, UsedIds]:
    magic, version, first_ms, high_ms = next(payloads, ("", 0, 0, 0))
    if magic != _MAGIC or version != VERSION:
        raise SnapshotRefused("The snapshot is of another version.")
    book, layers = Parties(), []
    book.first_ms, book.high_ms = first_ms, high_ms
    for kind, payload in payloads:
        if kind == "known":
            layers.append(tuple(payload))
        elif kind == "alias":
            book.alias.update(_alias_of.decode(payload))
        elif kind == "own":
            for party, own in _own_of.decode(payload):
                book.put(party, own)
        elif kind == "node":
            for party, node in _nodes_of.decode(payload):
                book.graph.put(party, node)
        elif kind == "peers":
            book.peers.groups.update(_peers_of.decode(payload))
        elif kind == "end":
            count = len(book.alias) + len(book.own) + len(book.graph.nodes) + len(book.peers.groups)
            if payload != count or next(payloads, None):
                raise SnapshotRefused("The snapshot does not hold what its end says.")
            return book, UsedIds.load(layers)
        else:
            raise ValueError("an unknown frame")
    raise SnapshotRefused("The snapshot is cut short.")
