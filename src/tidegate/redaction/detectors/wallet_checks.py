"""Does the check sum of this wallet address or wallet key come out right?

Lives here: Base58Check, Bech32 and Bech32m, the mixed case of Ethereum addresses. Does not live
here: what an address looks like (wallets). Sources: BIP 13, 173, 350; ERC-55; the Keccak
submission of 2011, whose padding SHA-3 later changed, so that hashlib has no such function.
"""

import hashlib

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_GENERATORS = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_CONSTANTS = (1, 0x2BC830A3)  # Bech32, Bech32m


def base58check(text: str) -> bool:
    """The last four bytes are the head of the doubled SHA-256 of the bytes before them."""
    number = 0
    for char in text:
        digit = _BASE58.find(char)
        if digit < 0:
            return False
        number = number * 58 + digit
    raw = number.to_bytes((number.bit_length() + 7) // 8, "big")
    raw = bytes(len(text) - len(text.lstrip("1"))) + raw
    body, tail = raw[:-4], raw[-4:]
    return bool(body) and hashlib.sha256(hashlib.sha256(body).digest()).digest()[:4] == tail


def bech32(text: str) -> bool:
    """The six check characters of BIP 173 or BIP 350 are right; mixed case is not."""
    if text not in (text.lower(), text.upper()):
        return False
    prefix, mark, data = text.lower().rpartition("1")
    values = [_BECH32.find(char) for char in data]
    if not mark or not prefix or len(data) < 6 or min(values) < 0:
        return False
    expanded = [ord(char) >> 5 for char in prefix] + [0] + [ord(char) & 31 for char in prefix]
    state = 1
    for value in (*expanded, *values):
        top = state >> 25
        state = (state & 0x1FFFFFF) << 5 ^ value
        for bit, generator in enumerate(_GENERATORS):
            state ^= generator if top >> bit & 1 else 0
    return state in _CONSTANTS


def eip55(address: str) -> bool:
    """The case of the letters in `0x` and forty hexadecimal digits follows the hash of ERC-55."""
    digits = address[2:]
    hashed = keccak256(digits.lower().encode()).hex()
    return all(
        char == (char.upper() if int(nibble, 16) >= 8 else char.lower())
        for char, nibble in zip(digits, hashed, strict=False)
    )


_MASK = (1 << 64) - 1
_RATE = 136


def _rotated(word: int, by: int) -> int:
    return (word << by | word >> 64 - by) & _MASK if by else word


def _round_constants() -> list[int]:
    constants, register = [], 1
    for _ in range(24):
        constant = 0
        for power in range(7):
            constant |= (register & 1) << (1 << power) - 1
            register = register << 1 ^ (0x171 if register & 0x80 else 0)
        constants.append(constant)
    return constants


def _permuted(lanes: list[int]) -> list[int]:
    """Keccak-f[1600] of 25 words; the word of column x and row y stands at 5 * y + x."""
    for constant in _round_constants():
        parity = [
            lanes[x] ^ lanes[x + 5] ^ lanes[x + 10] ^ lanes[x + 15] ^ lanes[x + 20]
            for x in range(5)
        ]
        mixed = [parity[x - 1] ^ _rotated(parity[(x + 1) % 5], 1) for x in range(5)]
        lanes = [lane ^ mixed[place % 5] for place, lane in enumerate(lanes)]
        moved, x, y, current, turn = list(lanes), 1, 0, lanes[1], 0
        for step in range(24):
            x, y = y, (2 * x + 3 * y) % 5
            turn = (turn + step + 1) % 64
            current, moved[5 * y + x] = lanes[5 * y + x], _rotated(current, turn)
        lanes = [
            moved[place]
            ^ (
                ~moved[place - place % 5 + (place + 1) % 5]
                & moved[place - place % 5 + (place + 2) % 5]
            )
            for place in range(25)
        ]
        lanes[0] ^= constant
    return lanes


def keccak256(message: bytes) -> bytes:
    """The Keccak hash of 256 bits, with the padding of the submission. About 0.5 ms a block."""
    padded = bytearray(message) + b"\x01" + bytes(-(len(message) + 1) % _RATE)
    padded[-1] |= 0x80
    lanes = [0] * 25
    for start in range(0, len(padded), _RATE):
        block = padded[start : start + _RATE]
        for place in range(_RATE // 8):
            lanes[place] ^= int.from_bytes(block[8 * place : 8 * place + 8], "little")
        lanes = _permuted(lanes)
    return b"".join(lane.to_bytes(8, "little") for lane in lanes[:4])
