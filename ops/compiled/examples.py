"""Where the features of serialised examples are, and their values (see `ops.kernels.fast_examples`)."""

from __future__ import annotations

from numba import njit

from tfray.ops.compiled.vectors import Int, Longs, Octets


@njit(inline="always")
def _varint(data: Octets, at: Int, end: Int) -> tuple[Int, Int]:
    """The number at a position, and the position behind it: -1 where the number does not end in time."""
    value, shift, behind = 0, 0, -1
    while at < end and shift < 70:
        octet = data[at]
        at += 1
        value |= (octet & 0x7F) << shift
        shift += 7
        if octet < 0x80:
            behind = at
            break
    return value, behind


@njit(inline="always")
def _field(data: Octets, at: Int, end: Int) -> tuple[Int, Int, Int]:
    """The field at a position: its tag, and where its contents begin and end; -1 as the end of what is no field."""
    tag, start = _varint(data, at, end)
    wire = tag & 7
    size = -1
    if start >= 0 and tag >= 8:
        if wire == 2:
            size, start = _varint(data, start, end)
        elif wire == 0:
            size = _varint(data, start, end)[1] - start
        elif wire == 5:
            size = 4
        elif wire == 1:
            size = 8
    stop = -1
    if start >= 0 and 0 <= size <= end - start:
        stop = start + size
    return tag, start, stop


@njit(inline="always")
def _list_of(data: Octets, value: Int, end: Int, unusual: Longs) -> tuple[Int, Int, Int]:
    """Where the list of a feature begins and ends, and its tag: 0 for none."""
    found, start, stop = 0, value, value
    while value < end:
        tag, part, behind = _field(data, value, end)
        if behind < 0:
            unusual[0] = 1
            break
        value = behind
        if tag == 10 or tag == 18 or tag == 26:
            if found == tag:
                unusual[0] = 1
            found, start, stop = tag, part, behind
    return start, stop, found


@njit(inline="always")
def _counted(data: Octets, start: Int, stop: Int, kind: Int, unusual: Longs) -> tuple[Int, Int]:
    """Where the values of a list with this tag begin, and how many there are."""
    count, at = 0, start
    if kind == 10:
        while at < stop:
            tag, part, at = _field(data, at, stop)
            if at < 0:
                unusual[0] = 1
                break
            if tag == 10:
                count += 1
    elif start < stop:
        tag, part, behind = _field(data, start, stop)
        if tag != 10 or behind != stop or (kind == 18 and (stop - part) & 3):
            unusual[0] = 1
        else:
            start = part
            if kind == 18:
                count = (stop - start) >> 2
            else:
                length = 0
                for place in range(start, stop):
                    length += 1
                    if data[place] < 0x80:
                        count += 1
                        length = 0
                    elif length == 10:
                        unusual[0] = 1
                if length > 0:
                    unusual[0] = 1
    return start, count


@njit(inline="always")
def _is_name(data: Octets, key: Int, size: Int, names: Octets, name: Int, name_size: Int) -> bool:
    """Whether the key at a position is that name."""
    same = 0
    if size == name_size:
        while same < size and names[name + same] == data[key + same]:
            same += 1
    else:
        same = -1
    return same == size


def find(
    first: Int,
    last: Int,
    columns: Int,
    data: Octets,
    ends: Longs,
    keys: Octets,
    key_ends: Longs,
    kinds: Longs,
    starts: Longs,
    stops: Longs,
    counts: Longs,
    unusual: Longs,
) -> None:
    """Where each example has the list of each column, and how many values that has: -1 for none.

    `ends` is where examples end in `data`, `key_ends` where the names of columns end in `keys`. The list is where
    numbers lie packed, and what holds the fields of strings. What is malformed, of another kind, in several parts or
    not packed sets ``unusual[0]``.
    """
    for row in range(first, last):
        base = row * columns
        for column in range(columns):
            starts[base + column] = -1
        at = 0
        if row > 0:
            at = ends[row - 1]
        end = ends[row]
        while at < end:
            tag, entry, features_end = _field(data, at, end)
            if features_end < 0:
                unusual[0] = 1
                break
            at = features_end
            if tag == 10:
                while entry < features_end:
                    tag, part, entry_end = _field(data, entry, features_end)
                    if entry_end < 0:
                        unusual[0] = 1
                        break
                    entry = entry_end
                    if tag == 10:
                        key = key_end = value = value_end = part
                        while part < entry_end:
                            tag, start, stop = _field(data, part, entry_end)
                            if stop < 0:
                                unusual[0] = 1
                                break
                            part = stop
                            if tag == 10:
                                key, key_end = start, stop
                            elif tag == 18:
                                value, value_end = start, stop
                        name = 0
                        for column in range(columns):
                            if _is_name(data, key, key_end - key, keys, name, key_ends[column] - name):
                                starts[base + column] = value
                                stops[base + column] = value_end
                            name = key_ends[column]
        for column in range(columns):
            count = -1
            if starts[base + column] >= 0:
                start, stop, tag = _list_of(data, starts[base + column], stops[base + column], unusual)
                if tag > 0:
                    if tag != 8 * kinds[column] + 2:
                        unusual[0] = 1
                    start, count = _counted(data, start, stop, tag, unusual)
                    starts[base + column] = start
                    stops[base + column] = stop
            counts[base + column] = count


def copy_floats(
    first: Int,
    last: Int,
    column: Int,
    columns: Int,
    data: Octets,
    starts: Longs,
    stops: Longs,
    places: Longs,
    out: Octets,
) -> None:
    """The bytes of a column's numbers, those of example i from ``4 * places[i]`` on."""
    for row in range(first, last):
        start = starts[row * columns + column]
        to = 4 * places[row]
        for index in range(4 * (places[row + 1] - places[row])):
            out[to + index] = data[start + index]


def read_longs(
    first: Int,
    last: Int,
    column: Int,
    columns: Int,
    data: Octets,
    starts: Longs,
    stops: Longs,
    places: Longs,
    out: Longs,
) -> None:
    """The numbers of a column, those of example i from ``places[i]`` on."""
    for row in range(first, last):
        at, stop = starts[row * columns + column], stops[row * columns + column]
        for index in range(places[row], places[row + 1]):
            out[index], at = _varint(data, at, stop)


def find_strings(
    first: Int,
    last: Int,
    column: Int,
    columns: Int,
    data: Octets,
    starts: Longs,
    stops: Longs,
    places: Longs,
    out: Longs,
) -> None:
    """Where each string of a column begins and ends, those of example i from ``2 * places[i]`` on."""
    for row in range(first, last):
        at, stop = starts[row * columns + column], stops[row * columns + column]
        index = 2 * places[row]
        while index < 2 * places[row + 1]:
            tag, start, at = _field(data, at, stop)
            if tag == 10:
                out[index] = start
                out[index + 1] = at
                index += 2
