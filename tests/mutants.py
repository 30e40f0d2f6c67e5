"""Mutants of files: bytes that are flipped, lost, moved and mixed, and values of JSON that are changed under a new checksum."""

import hashlib
import json

from mesascope.records._dataset import _SEAL, _SEAL_LENGTH

BLOCK = 512
VALUES = (
    None, True, 0, -1, 1e308, 10**30, float("nan"), "", "x", "٣", "../../etc/passwd", "$\\input{x}$", "\x1b[31m", "a" * 5000,
    [], [[]], {}, {"a": 1}, [1, "a"],
)  # fmt: skip


def damaged(random, content, others):
    """The bytes of a file after an accident."""
    b = bytearray(content)
    at = random.randrange(len(b)) if b else 0
    length = min(random.choice((1, 2, 8, 64, BLOCK)), len(b))
    match random.randrange(9):
        case 0 | 1 | 2 if b:
            for _ in range(random.choice((1, 1, 1, 2, 16))):
                b[random.randrange(len(b))] ^= 1 << random.randrange(8)
        case 3:
            del b[at:]
        case 4:
            del b[at : at + length]
        case 5:
            b[at : at + length] = bytes(length)
        case 6:
            b[at:at] = random.choice(
                (random.randbytes(length), b[at : at + length], b"[" * 3000, b"\0", b"9" * 5000)
            )
        case 7 if b:
            to = random.randrange(len(b))
            b[at : at + length], b[to : to + length] = b[to : to + length], b[at : at + length]
        case _:
            other = random.choice(others)
            cut = random.randrange(len(other) + 1)
            b[at:] = other[cut:]
    return bytes(b)


def changed(random, value):
    """A JSON value with one to three changes: a field lost, renamed, moved, of another type or nested deeply."""
    value = json.loads(json.dumps(value))
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        places = list(_places(value))
        if not places:
            return random.choice(VALUES)
        holder, key = random.choice(places)
        match random.randrange(8):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[random.choice((key + "x", key.upper(), "", "kind"))] = holder.pop(key)
            case 2:
                other, there = random.choice(places)
                holder[key], other[there] = json.loads(json.dumps([other[there], holder[key]]))
            case 3:
                holder[key] = _deep(random.choice((10, 60, 70, 150)))
            case 4 if isinstance(holder[key], str):
                holder[key] = random.choice(
                    (holder[key] + " ", holder[key][1:], holder[key] * 2, f" {holder[key]}")
                )
            case 5 if isinstance(holder[key], int | float) and not isinstance(holder[key], bool):
                holder[key] = random.choice(
                    (str(holder[key]), -holder[key], holder[key] * 1.5, [holder[key]])
                )
            case 6 if isinstance(holder[key], list):
                holder[key] = random.choice(
                    (holder[key][1:], holder[key] * 2, holder[key][::-1], dict.fromkeys("ab", 1))
                )
            case _:
                holder[key] = random.choice(VALUES)
    return value


def _places(value):
    """Every place in a value, as its holder and its key there."""
    held = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in list(held):
        yield value, key
        yield from _places(one)


def _deep(levels):
    value = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


# Checksums that are computed again: the checks behind them are reached.


def sealed(content):
    """The text of a sealed record with this content."""
    text = json.dumps(content["content"], sort_keys=True, separators=(",", ":"))
    return json.dumps({**content, "sha256": hashlib.sha256(text.encode()).hexdigest()}).encode()


def resealed_record(random, content, others):
    """A sealed record with another content."""
    document = json.loads(content)
    return sealed(document | {"content": changed(random, document["content"])})


def resealed_checkpoint(random, content, others):
    """A checkpoint with another header or other arrays."""
    seal, header, payload = content.split(b"\n", 2)
    if random.random() < 0.7:
        header = json.dumps(changed(random, json.loads(header))).encode()
    else:
        payload = damaged(random, payload, [other.split(b"\n", 2)[2] for other in others])
    body = header + b"\n" + payload
    new = json.loads(seal) | {"bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}
    return json.dumps(new).encode() + b"\n" + body


def resealed_data(random, content, others):
    """Labelled arrays that were changed in any byte of their NetCDF."""
    body = damaged(random, content[:-_SEAL_LENGTH], [other[:-_SEAL_LENGTH] for other in others])
    return body + _SEAL + hashlib.sha256(body).hexdigest().encode()


def changed_json(random, content, others):
    """A JSON file without a checksum, with another value."""
    return json.dumps(changed(random, json.loads(content))).encode()


def changed_tensors(random, content, others):
    """A file of safetensors with another header of its length, or other bytes behind it."""
    size = int.from_bytes(content[:8], "little")
    header, arrays = content[8 : 8 + size], content[8 + size :]
    if random.random() < 0.7:
        header = changed_json(random, header, others)
    else:
        arrays = damaged(random, arrays, [arrays])
    return len(header).to_bytes(8, "little") + header + arrays


def changed_lines(random, content, others):
    """A file with a JSON value in every line, with other values in one of them."""
    lines = content.splitlines()
    at = random.randrange(len(lines))
    lines[at] = json.dumps(changed(random, json.loads(lines[at]))).encode()
    return b"\n".join(lines) + b"\n"
