"""Which detectors look at a text, and what happens to what they find?

Lives here: presets, actions per detector family, values that are never masked. Does not live
here: configuration files (config), the compiled form (program), the walk over the text (stream).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

from tidegate.redaction.cues import CUES
from tidegate.redaction.detectors import KNOWN_REGIONS
from tidegate.redaction.hits import AnyDetector
from tidegate.redaction.outlet import Replace
from tidegate.redaction.program import Program
from tidegate.redaction.spans import ACTIONS, Action, Numbers, Redacted, Span
from tidegate.redaction.stream import Redactor

_DEFAULT = (
    "email",
    "ssn",
    "card",
    "iban",
    "key",
    "jwt",
    "private_key",
    "url_credentials",
    "authorization",
    "keyword",
)
_OPT_IN = (
    "email_quoted",
    "email_international",
    "email_obfuscated",
    "phone",
    "ip",
    "ip_private",
    "mac",
    "national_id",
    "passport",
    "wallet",
)
# Rules of thumb, which no preset trusts.
_CUES = tuple(CUES)
FAMILIES = (*_DEFAULT, *_OPT_IN, *_CUES)
_PRESETS: dict[str, frozenset[str]] = {
    "default": frozenset(_DEFAULT),
    "strict": frozenset((*_DEFAULT, *_OPT_IN)),
    # Source code is full of addresses that are no secret: authors, packages, test data.
    "code": frozenset(_DEFAULT) - {"email"},
}


@dataclass(frozen=True)
class RedactionPolicy:
    """What to look for and what to do with it; immutable, shared by any number of redactors.

    `actions` maps a family (see `FAMILIES`) to what happens to its values (see `Action`); a family
    that is missing is not looked for. `extra` are detectors beside the built-in ones. "hash" needs
    a `hash_key` of up to 64 bytes. `allow` holds literals and globs of values that stay. With
    `strict_keywords` any word of four characters after `password:` and the like is a secret.
    `numbers` says what happens to a JSON number whose digits are a value. `regions` names countries
    for the families in KNOWN_REGIONS: only theirs are looked for, and more eagerly.
    """

    actions: Mapping[str, Action]
    allow: tuple[str, ...] = ()
    strict_keywords: bool = False
    numbers: Numbers = "mask"
    regions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    extra: tuple[AnyDetector, ...] = ()
    hash_key: bytes = field(default=b"", repr=False)
    name: str = field(default="custom", compare=False)

    @classmethod
    def preset(cls, name: str = "default") -> Self:
        """`default`, `strict` or `code`; ValueError for any other name."""
        families = _PRESETS.get(name)
        if families is None:
            raise ValueError(f"no preset {name!r}; there are {', '.join(sorted(_PRESETS))}")
        actions: dict[str, Action] = {family: "mask" for family in FAMILIES if family in families}
        return cls(actions, strict_keywords=name == "strict", name=name)

    def with_actions(self, actions: Mapping[str, Action | None]) -> Self:
        """The same policy with other actions; None switches a family off.

        ValueError for an unknown family or action.
        """
        merged = dict(self.actions)
        families = (*FAMILIES, *dict.fromkeys(detector.family for detector in self.extra))
        for family, action in actions.items():
            if family not in families:
                raise ValueError(f"no detector {family!r}; there are {', '.join(families)}")
            if action is None:
                merged.pop(family, None)
            elif action in ACTIONS:
                merged[family] = action
            else:
                raise ValueError(f"no action {action!r}; there are {', '.join(ACTIONS)}")
        return replace(self, actions=merged)

    def with_allow(self, *values: str) -> Self:
        """The same policy with more values that are never masked (literals or globs)."""
        return replace(self, allow=(*self.allow, *values))

    def with_detectors(self, *detectors: AnyDetector, action: Action = "mask") -> Self:
        """The same policy with more detectors; `action` is for families it does not know yet."""
        actions = {**dict.fromkeys((each.family for each in detectors), action), **self.actions}
        return replace(self, actions=actions, extra=(*self.extra, *detectors))

    def with_regions(self, family: str, *countries: str) -> Self:
        """The same policy, in which `family` knows only these countries; none: all it knows.

        ValueError for a family without regions and for a country that it does not know.
        """
        known = KNOWN_REGIONS.get(family)
        if known is None:
            raise ValueError(f"{family!r} has no regions; {', '.join(KNOWN_REGIONS)} have")
        for country in countries:
            if country not in known:
                raise ValueError(f"no region {country!r}; {family} knows {', '.join(known)}")
        return replace(self, regions={**self.regions, family: countries})

    def with_hash_key(self, key: bytes) -> Self:
        """The same policy with the key of the digests; one process or one tenant has one key."""
        return replace(self, hash_key=key)

    def with_numbers(self, numbers: Numbers) -> Self:
        """The same policy with another rule for JSON numbers."""
        return replace(self, numbers=numbers)

    def observing(self) -> Self:
        """The same detectors, every action "report": finds and counts, changes nothing."""
        return self._observing

    @cached_property
    def _observing(self) -> Self:
        return replace(self, actions=dict.fromkeys(self.actions, "report"))

    @cached_property
    def unbound(self) -> Self:
        """Every detector there is, nothing allowed, every action "report": for explanations."""
        actions: dict[str, Action] = dict.fromkeys((*FAMILIES, *self.actions), "report")
        return replace(self, actions=actions, allow=())

    @cached_property
    def refusing(self) -> Self:
        """The same detectors, but where this policy replaces a value, that one refuses."""
        refused: dict[str, Action] = {
            family: "report" if action == "report" else "block"
            for family, action in self.actions.items()
        }
        return replace(self, actions=refused)

    def redact(self, text: str, *, replace: Replace | None = None) -> Redacted:
        """`text` as a whole: the same function as the stream. Raises BlockedContent."""
        if self.program.clean(text):
            return Redacted(text, ())
        redactor = Redactor(self, replace=replace)
        return Redacted(redactor.feed(text) + redactor.flush(), redactor.spans)

    def scan(self, text: str) -> tuple[Span, ...]:
        """What is found in `text`, whatever its action; nothing is replaced, nothing refused."""
        return self.observing().redact(text).spans

    @cached_property
    def program(self) -> Program:
        """The compiled form, built at first use (about 20 ms the first time in a process)."""
        return Program(
            self.actions,
            allow=self.allow,
            strict_keywords=self.strict_keywords,
            extra=self.extra,
            hash_key=self.hash_key,
            regions=self.regions,
        )
