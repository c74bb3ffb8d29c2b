"""Which policy applies to the text of this tenant?

Lives here: the choice between policies that are ready. Does not live here: how they come about
(config), the policy itself (policy).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.redaction.policy import RedactionPolicy


@dataclass(frozen=True, slots=True)
class TenantPolicies:
    """A policy for everybody, and others for tenants with known values of their own."""

    everybody: RedactionPolicy
    tenants: Mapping[str, RedactionPolicy] = field(default_factory=dict)

    def for_tenant(self, tenant: str) -> RedactionPolicy:
        """The policy of `tenant`. Costs a look-up; the first use of a policy a millisecond."""
        return self.tenants.get(tenant, self.everybody)
