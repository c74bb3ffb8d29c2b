"""How do model providers fail, and can each failure be had on command?

Lives here: two OpenAI style providers, `/primary/v1` and `/backup/v1`, whose behavior is set by
`POST /_set?provider=primary&behaviour=429` while they run. What they send names hosts, an account
and a key on purpose: nothing of that may pass the gateway. Does not live here: what each behavior
is (faults), what the gateway makes of it (routing).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from tidegate.demo.exchange import Exchange, Receive, Scope, Send
from tidegate.demo.faults import FAULTS, OPTIONS
from tidegate.demo.faults_act import USAGE, Act, Order
from tidegate.demo.faults_answers import FORMS
from tidegate.demo.faults_refusals import SHAPES
from tidegate.demo.faults_wire import NoSocket
from tidegate.demo.leaks import LEAKS

Changed = Callable[[str], Awaitable[None]]
"""Hears the name of a provider."""

NAMES = ("primary", "backup")
_MAX_TIMES, _MAX_WAIT_S = 1_000_000, 3_600.0
# Its `times` is the length of a phase, not an end.
_ENDLESS = frozenset({"flap"})
# Whom its own port turns away, the provider does not hear of.
_UNHEARD = frozenset({"refused", "no-accept"})


@dataclass(slots=True)
class Switch:
    """What one provider does with its next requests.

    The behaviors `names` in their order, each for `times` requests, then `ok`; with `times` None
    the only one for ever.
    """

    names: tuple[str, ...] = ("ok",)
    times: int | None = None
    wait_s: float | None = None
    status: int = 500
    form: str = ""
    seen: int = 0

    @property
    def name(self) -> str:
        """The behavior that the next request meets."""
        place = self._place
        return self.names[place] if place < len(self.names) else "ok"

    @property
    def left(self) -> int | None:
        """For how many requests it is not `ok` yet; None: for all."""
        if self.times is None or self.name in _ENDLESS:
            return None
        return max(0, len(self.names) * self.times - self.seen)

    def next(self) -> Order:
        """The order for one request; counts it."""
        name = self.name
        usual_s = FAULTS[name].wait_s or 0.0
        wait_s = usual_s if self.wait_s is None else self.wait_s
        order = Order(name, wait_s, self.status, self.form, self.seen, self.times)
        self.seen += 1
        return order

    @property
    def _place(self) -> int:
        if self.times is None or self.names[0] in _ENDLESS:
            return 0
        return self.seen // self.times


class Unknown(ValueError):
    """A provider, behavior or option that does not exist; the text names what does."""


class Providers:
    """Both providers and their switch, as one ASGI application.

    `POST /_set?provider=P&behaviour=B` changes a behavior, `GET /_state` shows the behaviors and
    counts `calls` and `gone` (clients that left before the answer was complete). `changed` is
    awaited with the name of a provider whose behavior was set over HTTP.
    """

    def __init__(self) -> None:
        self.switches = {name: Switch() for name in NAMES}
        self.calls = dict.fromkeys(NAMES, 0)
        self.gone = dict.fromkeys(NAMES, 0)
        self.changed: Changed | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI entry."""
        if scope["type"] != "http":
            return
        async with Exchange(scope, receive, send) as exchange:
            name = exchange.path.split("/")[1]
            if exchange.path == "/_set" and exchange.method == "POST":
                await self._set(exchange)
            elif exchange.path == "/_state" and exchange.method == "GET":
                await exchange.json(200, self.state())
            elif name in NAMES and exchange.path == f"/{name}/v1/chat/completions":
                await self._chat(exchange, name)
            else:
                await exchange.json(404, {"error": {"message": "no such path", "type": "demo"}})

    def state(self) -> dict[str, dict[str, object]]:
        """Behavior and counts of each provider; `left` while the behavior is not for ever."""
        states: dict[str, dict[str, object]] = {}
        for name, switch in self.switches.items():
            states[name] = {
                "behaviour": switch.name,
                "calls": self.calls[name],
                "gone": self.gone[name],
            }
            if switch.left:
                states[name]["left"] = switch.left
        return states

    def set(self, provider: str, *behaviors: str, times: int | None = None, **more: object) -> None:
        """Order `behaviors` one after the other; `more`: wait_s, status and form of Switch.

        Raises Unknown for a provider or behavior that does not exist.
        """
        if provider not in NAMES:
            raise Unknown(_usage(f"provider: {' or '.join(NAMES)}"))
        if not behaviors or not set(behaviors) <= FAULTS.keys():
            raise Unknown(_usage("behaviour: one of the names below, or several with commas"))
        if len(behaviors) > 1 and times is None:
            times = 1
        if times is not None and not _UNHEARD.isdisjoint(behaviors):
            raise Unknown(f"{' and '.join(sorted(_UNHEARD))} cannot be counted: nobody hears them")
        if len(behaviors) > 1 and not _ENDLESS.isdisjoint(behaviors):
            raise Unknown("flap never ends: nothing can come before or after it")
        self.switches[provider] = replace(Switch(behaviors, times), **more)  # type: ignore[arg-type]

    async def _set(self, exchange: Exchange) -> None:
        await exchange.body()
        query = exchange.query
        name, names = query.get("provider", ""), query.get("behaviour", "").split(",")
        try:
            self.set(name, *names, **_options(query, names))  # type: ignore[arg-type]
            if self.changed is not None:
                await self.changed(name)
        except Unknown as error:
            await exchange.json(400, {"error": str(error)})
        except OSError as error:
            await exchange.json(409, {"error": f"the port of {name}: {error.strerror}"})
        else:
            await exchange.json(200, self.state())

    async def _chat(self, exchange: Exchange, name: str) -> None:
        self.calls[name] += 1
        order = self.switches[name].next()
        act = Act(exchange, name, await exchange.request(), order)
        try:
            await FAULTS[order.name].play(act)
        except NoSocket:
            await act.document({"error": "this listener hands out no socket"}, 501)
        if act.left:
            self.gone[name] += 1


def _options(query: dict[str, str], names: list[str]) -> dict[str, object]:
    """The options of a query about the behaviors `names`; raises Unknown for an odd one."""
    if odd := query.keys() - {"provider", "behaviour", *OPTIONS}:
        # A typo would play something else than was asked for.
        raise Unknown(_usage(f"there is no {' or '.join(map(ascii, sorted(odd)))}"))
    options: dict[str, object] = {}
    if "times" in query:
        options["times"] = int(_number(query, "times", int, 1, _MAX_TIMES))
    if "wait" in query:
        options["wait_s"] = _number(query, "wait", float, 0, _MAX_WAIT_S)
    if "status" in query:
        options["status"] = int(_number(query, "status", int, 400, 599))
    if "form" in query:
        if query["form"] not in (FORMS if "429-retry-after" in names else SHAPES):
            raise Unknown(f"form: {OPTIONS['form']}")
        options["form"] = query["form"]
    return options


def _number(
    query: dict[str, str], name: str, kind: Callable[[str], float], least: float, most: float
) -> float:
    wrong = Unknown(_usage(f"{name}: a number from {least:g} to {most:g}"))
    try:
        value = kind(query[name])
    except ValueError:
        raise wrong from None
    # Written so that what is no number is refused, too.
    if not least <= value <= most:
        raise wrong
    return value


def _usage(wrong: str) -> str:
    options = "".join(f"[&{name}=...]" for name in OPTIONS)
    names = "|".join(FAULTS)
    return f"{wrong}. POST /_set?provider={'|'.join(NAMES)}&behaviour={names}{options}"


__all__ = ["LEAKS", "NAMES", "USAGE", "Providers", "Switch", "Unknown"]
