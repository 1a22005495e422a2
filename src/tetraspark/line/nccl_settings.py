"""Settings of a plan that follow from its NCCL profile: the same for every rank, each with why."""

from tetraspark.fabric.nccl_profile import NcclProfile, Variable
from tetraspark.line.plan import Setting
from tetraspark.site.origin import Origin


def nccl_settings(profile: NcclProfile) -> list[Setting]:
    """Return the variables that a profile sets; those that the site sets are in the plan already.

    Raises RunError for a profile that is refused.
    """
    profile.require()
    return [Setting("env", one.name, one.value, _origin(profile, one)) for one in profile.variables]


def _origin(profile: NcclProfile, one: Variable) -> Origin:
    if one.where:
        return Origin("file", one.where)
    return Origin("derived", f"NCCL profile {profile.name}: {one.reason}")
