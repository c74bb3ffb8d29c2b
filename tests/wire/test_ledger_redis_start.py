"""Which servers may keep the books, and what is said of those that may not."""

import asyncio
import logging
import re
import ssl
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.contract.ledger.ledgers import opened
from tests.logged import logged
from tests.redis_server import RedisServer, redis_server
from tests.wire.ledger_process import SCOPE, limit
from tidegate.clock import SystemClock
from tidegate.config import load_config_text
from tidegate.errors import StoreUnavailable
from tidegate.gateway.app import Gateway
from tidegate.limits import Charge, Granted, Limit, Need
from tidegate.limits.redis import RedisLedger

BOOKS = "tidegate.limits.redis"
ASKED = (Charge(limit(100), SCOPE, 10),)


def serves(url: str) -> None:
    """It opens, grants and closes."""

    async def body() -> None:
        async with opened(RedisLedger(url, SystemClock(), deadline_s=30.0)) as ledger:
            assert isinstance(await ledger.reserve("a", "me", ASKED, lease_s=30.0), Granted)

    asyncio.run(body())


def refuses(url: str) -> str:
    """Why it does not open."""

    async def body() -> str:
        ledger = RedisLedger(url, SystemClock(), deadline_s=30.0)
        with pytest.raises(StoreUnavailable) as refused:
            await ledger.open()
        await ledger.close()
        assert ledger.degraded
        return refused.value.detail

    return asyncio.run(body())


def address(server: RedisServer, user: str = "") -> str:
    return server.url.replace("redis://", f"redis://{user}")


def test_a_server_that_forgets_at_a_restart_is_refused(tmp_path: Path) -> None:
    """Without append-only persistence a restart would hand out every quota again."""
    with redis_server(tmp_path, {"appendonly": "no"}) as server:
        assert "appendonly yes" in refuses(server.url)
    with redis_server(tmp_path, {"appendonly": "yes"}) as server:
        serves(server.url)


def test_a_server_that_does_not_tell_its_settings_is_only_warned_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with redis_server(tmp_path) as server:
        client = server.client()
        secret = "".join(("s3", "cret"))
        client.acl_setuser(
            "gate", enabled=True, passwords=[f"+{secret}"], keys="*", commands=["+@all", "-config"]
        )
        client.close()
        serves(address(server, f"gate:{secret}@"))
    assert logged(caplog, BOOKS) == ["store_persistence_unknown"]


def test_a_user_needs_no_more_rights_than_the_docs_say(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    docs = Path(__file__).parents[2] / "docs" / "limits.md"
    rights = re.findall(r"^user gate on (.*)$", docs.read_text(), re.MULTILINE)
    secret = "".join(("s3", "cret"))

    async def body(url: str) -> None:
        charges = (Charge(limit(20), SCOPE, 10), Charge(Limit("slots", "concurrent", 9), SCOPE, 1))
        ledger = RedisLedger(url, SystemClock(), deadline_s=30.0)
        async with opened(ledger):
            for turn in range(3):
                await ledger.reserve(f"r{turn}", "me", charges, lease_s=0.001 * turn)
            assert await ledger.settle("r1", "me", Need(1, 1))
            assert await ledger.scopes([charge.limit for charge in charges])
            asking = asyncio.ensure_future(ledger.reserve("x", "me", charges, lease_s=30.0))
            while not asking.done():
                asking.cancel()
                await asyncio.wait((asking,), timeout=0.01)
            assert (await ledger.usage(charges[0].limit, SCOPE)).used >= 2

    with redis_server(tmp_path) as server:
        client = server.client()
        for words in rights:
            client.execute_command("ACL", "SETUSER", "gate", "on", f">{secret}", *words.split()[1:])
        client.close()
        asyncio.run(body(address(server, f"gate:{secret}@")))
    assert len(rights) == 1
    assert logged(caplog, BOOKS) == []


def test_a_server_that_may_drop_keys_is_warned_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"maxmemory": "100mb", "maxmemory-policy": "volatile-lru"}
    with redis_server(tmp_path, options) as server:
        serves(server.url)
        assert logged(caplog, BOOKS) == ["store_may_evict"]
        caplog.clear()
        client = server.client()
        client.config_set("maxmemory-policy", "noeviction")
        client.close()
        serves(server.url)
    assert logged(caplog, BOOKS) == []


def test_a_password_is_used_and_never_repeated(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    right, wrong = "".join(("ri", "ght")), "".join(("wr", "ong"))
    with redis_server(tmp_path, {"requirepass": right}) as server:
        serves(address(server, f":{right}@"))
        assert refuses(server.url) == "it asks for a password, and the address has none"
        assert refuses(address(server, f":{wrong}@")) == "it refuses this user and password"
        config = load_config_text(
            f"store: {{ url: '{address(server, f':{wrong}@')}' }}\n"
            f"records: {{ path: '{tmp_path / 'records.db'}' }}\n",
            {},
        )

        async def body() -> str:
            gateway = Gateway(config)
            with pytest.raises(StoreUnavailable) as refused:
                await gateway.open()
            return refused.value.detail

        said = asyncio.run(body())
        assert said.endswith(": it refuses this user and password")
        assert wrong not in said
    assert wrong not in caplog.text
    assert right not in caplog.text


def test_a_replica_and_a_cluster_are_refused(tmp_path: Path) -> None:
    (tmp_path / "replica").mkdir()
    (tmp_path / "cluster").mkdir()
    with redis_server(tmp_path) as primary:
        options = {"replicaof": f"127.0.0.1 {primary.port}"}
        with redis_server(tmp_path / "replica", options) as replica:
            assert refuses(replica.url) == "it is a replica; name the primary"
    with redis_server(tmp_path / "cluster", {"cluster-enabled": "yes"}) as cluster:
        assert "cluster" in refuses(cluster.url)


def test_a_fault_of_the_address_is_said_in_words(tmp_path: Path) -> None:
    with redis_server(tmp_path) as server:
        url = server.url
        other = url.removesuffix("/0") + "/99"
        assert refuses(other) == "it refuses the database number of the address"
    assert refuses(url) == "nothing listens there"


@asynccontextmanager
async def scripted(replies: Mapping[bytes, bytes]) -> AsyncIterator[str]:
    """A server that answers each command by its first word; OK to all others."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                words = []
                for _ in range(int(line[1:])):
                    size = int((await reader.readline())[1:])
                    words.append((await reader.readexactly(size + 2))[:-2])
                writer.write(replies.get(words[0], b"+OK\r\n"))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        yield f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}/0"


def bulk(text: str) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(text), text.encode())


@pytest.mark.parametrize(
    ("replies", "said"),
    [
        (
            {b"INFO": bulk("redis_version:6.0.16\r\nrole:master\r\n")},
            "it is Redis 6.0.16; tidegate needs 6.2 or newer",
        ),
        ({b"INFO": b"-LOADING Redis is loading\r\n"}, "it is still reading its data"),
        ({b"SCRIPT": b"-NOPERM no\r\n"}, "this user may not run the commands that limits need"),
        ({b"EVALSHA": b"-OOM command not allowed\r\n"}, "its memory is full"),
        ({b"EVALSHA": b"+OK\r\n"}, "UnknownAnswer"),
        ({b"INFO": b"HTTP/1.1 400 Bad Request\r\n"}, "InvalidReply"),
        ({b"INFO": b"$x\r\n"}, "InvalidReply"),
    ],
    ids=lambda value: "" if isinstance(value, str) else b",".join(value).decode(),
)
def test_what_cannot_keep_the_books_is_refused(replies: dict[bytes, bytes], said: str) -> None:
    sound = {
        b"INFO": bulk("redis_version:7.2.4\r\nredis_mode:standalone\r\nrole:master\r\n"),
        b"CONFIG": b"*2\r\n$10\r\nappendonly\r\n$3\r\nyes\r\n",
    }

    async def body() -> None:
        async with scripted(sound | replies) as url:
            ledger = RedisLedger(url, SystemClock())
            with pytest.raises(StoreUnavailable) as refused:
                await ledger.open()
            assert refused.value.detail == said

    asyncio.run(body())


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A key and a certificate of its own for `localhost`, made for this test."""
    path = tmp_path / "both.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    out = ["-days", "2", "-keyout", str(path), "-out", f"{path}c"]
    subprocess.run(["openssl", "req", "-x509", *curve, *subject, *out], check=True)
    path.write_bytes(path.read_bytes() + Path(f"{path}c").read_bytes())
    return path


def test_a_connection_may_be_encrypted_and_strangers_are_not_trusted(
    tmp_path: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`rediss://` asks for a certificate of a known authority, and for its host name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    async def body(server: RedisServer) -> None:
        async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            back, out = await asyncio.open_connection("127.0.0.1", server.port)
            await asyncio.gather(pump(reader, out), pump(back, writer))

        async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                while data := await reader.read(65_536):
                    writer.write(data)
            except OSError:
                pass
            finally:
                writer.close()

        tunnel = await asyncio.start_server(forward, "127.0.0.1", 0, ssl=context)
        async with tunnel:
            port = tunnel.sockets[0].getsockname()[1]
            ledger = RedisLedger(f"rediss://localhost:{port}/0", SystemClock(), deadline_s=30.0)
            with pytest.raises(StoreUnavailable) as refused:
                await ledger.open()
            assert refused.value.detail == "its certificate is not trusted here"
            monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}c")
            async with opened(ledger):
                assert isinstance(await ledger.reserve("a", "me", ASKED, lease_s=30.0), Granted)
            other = RedisLedger(f"rediss://127.0.0.1:{port}/0", SystemClock(), deadline_s=30.0)
            with pytest.raises(StoreUnavailable):
                await other.open()

    with redis_server(tmp_path) as server:
        asyncio.run(body(server))
