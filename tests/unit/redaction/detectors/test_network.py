from ipaddress import ip_address

import pytest

from tests.unit.redaction.detectors.finding import check, only
from tidegate.redaction.detectors.network import is_private, spells_ipv6

IP, MAC = "[REDACTED_IP]", "[REDACTED_MAC]"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("93.184.216.34", IP),
        ("(8.8.8.8), 1.1.1.1.", f"({IP}), {IP}."),
        ("http://93.184.216.34:8080/x", f"http://{IP}:8080/x"),
        ("8.8.8.0/24", f"{IP}/24"),
        ("2001:db8::1", IP),
        ("2001:0db8:85a3:0000:0000:8a2e:0370:7334", IP),
        ("a 2a00:1450:4001:81b::200e b", f"a {IP} b"),
        ("[2001:db8::8a2e:370:7334]:443", f"[{IP}]:443"),
        ("::ffff:93.184.216.34", IP),
        ("2001:db8::1.", f"{IP}."),
        ("host: 2001:db8::1: up", f"host: {IP}: up"),
    ],
)
def test_public_addresses_are_masked(text: str, shown: str) -> None:
    check(only("ip"), text, shown)


@pytest.mark.parametrize(
    "text",
    [
        "256.1.1.1",
        "1.2.3",
        "1.2.3.4.5",
        "01.02.03.04",
        "v1.2.3.4",
        "version 1.2.3.4 build: 10.0.19045.1",
        "see section 1.2.3.4",
        "Chrome/120.0.0.0 Safari/537.36",
        "lib-1.2.3.4.tar.gz",
        "1.2.3.4-beta",
        "127.0.0.1 10.0.0.1 192.168.1.1 172.16.0.1 169.254.1.1 100.64.0.1 0.0.0.0 224.0.0.1",
        "::1 fe80::1 fc00::1 ff02::1 ::",
        "std::vector::x Foo::Bar a::b dead::beef",
        "x[::2] x[1::2] x[::-1]",
        "12:30:45 12:30",
        "{'a': 1, 'b': {'c': 2}}",
        "aa:bb:cc:dd:ee:ff:00:11:22:33:44:55:66:77:88:99",
        "2001:db8::1::2",
        "2001:db8::12345",
        "2001:db8::1x",
        ":",
        "e:",
        "fade: yes",
    ],
)
def test_other_numbers_times_and_names_of_code_are_left_alone(text: str) -> None:
    check(only("ip"), text, text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("127.0.0.1", IP),
        ("10.1.2.3, 192.168.0.1", f"{IP}, {IP}"),
        ("http://[::1]:80", f"http://[{IP}]:80"),
        ("fe80::1%eth0", f"{IP}%eth0"),
        ("93.184.216.34 2001:db8::1", "93.184.216.34 2001:db8::1"),
    ],
)
def test_private_addresses_are_masked_where_they_are_asked_for(text: str, shown: str) -> None:
    check(only("ip_private"), text, shown)


@pytest.mark.parametrize(
    ("address", "private"),
    [
        ("::ffff:10.0.0.1", True),
        ("::ffff:8.8.8.8", False),
        ("255.255.255.255", True),
        ("240.0.0.1", True),
        ("172.32.0.1", False),
        ("100.128.0.1", False),
        ("2001:db8::1", False),
    ],
)
def test_what_counts_as_private(address: str, private: bool) -> None:  # noqa: FBT001
    assert is_private(ip_address(address)) is private


def test_short_forms_need_something_of_an_address() -> None:
    assert spells_ipv6("::1")
    assert not spells_ipv6("a::b")
    assert spells_ipv6("1:2:3::4")
    assert not spells_ipv6("1:2:3:4:5:6")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("00:1A:2B:3C:4D:5E", MAC),
        ("is 00:1a:2b:3c:4d:5e.", f"is {MAC}."),
        ("00-1A-2B-3C-4D-5E", MAC),
        ("001a.2b3c.4d5e", MAC),
        ("mac:00:1A:2B:3C:4D:5E", f"mac:{MAC}"),
    ],
)
def test_mac_addresses_are_masked(text: str, shown: str) -> None:
    check(only("mac"), text, shown)


@pytest.mark.parametrize(
    "text",
    [
        "00:00:00:00:00:00 ff:ff:ff:ff:ff:ff FF-FF-FF-FF-FF-FF",
        "00:1A:2B:3C:4D",
        "00:1A:2B:3C:4D:5E:6F",
        "00:1A:2B:3C:4D:5G",
        "12:30:45",
        "00-1A-2B-3C-4D-5E-6F",
        "x00:1A:2B:3C:4D:5E",
        "00:1A-2B:3C:4D:5E",
        "2026-11-30-12-30-45",
    ],
)
def test_times_finger_prints_and_nobodys_addresses_are_left_alone(text: str) -> None:
    check(only("mac"), text, text)
