"""Who is asking, and what does a decision look like?

Lives here: the words every decision uses. Does not live here: how a credential becomes a
principal (identity), what the rules say (mcp.rules), what a client is told (gateway.respond).
"""

from dataclasses import dataclass

from msgspec import Struct


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller: `name` inside `tenant`, with `roles` in configuration order.

    `key_id` names the credential without giving it away: the first eight hex digits of its
    SHA-256, or "anonymous"; of a token, those of its issuer and client. `issuer` and `client` are
    who issued the token and to which program; empty for a key.
    """

    name: str
    tenant: str
    roles: tuple[str, ...]
    key_id: str
    issuer: str = ""
    client: str = ""

    @property
    def first_role(self) -> str | None:
        """The role a denial shows as `your_role`; None for a principal without roles."""
        return self.roles[0] if self.roles else None


class Allow(Struct, frozen=True):
    """The rule `rule` (its identifier, such as "rules[1]") lets the message pass."""

    rule: str


class Deny(Struct, frozen=True):
    """Rule `rule` refuses the message ("default" when nothing matched).

    `reason` is a word for records and metrics, never shown to a caller. `required_role` is the
    first role, in configuration order, that would have been allowed; None if none would.
    """

    rule: str
    reason: str
    required_role: str | None = None


Decision = Allow | Deny
