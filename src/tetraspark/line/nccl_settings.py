"""Settings of a plan that follow from its NCCL profile: the same for every rank, each with why."""

from tetraspark.fabric.nccl_profile import Name, NcclProfile, Variable
from tetraspark.fabric.nccl_site import own_value
from tetraspark.fabric.nccl_variables import variables
from tetraspark.line.plan import Setting
from tetraspark.site.load import LoadedSite
from tetraspark.site.origin import Origin


def nccl_settings(profile: NcclProfile) -> list[Setting]:
    """Return the variables that a profile sets; those that the site sets are in the plan already.

    Raises RunError for a profile that is refused.
    """
    profile.require()
    return [Setting("env", one.name, one.value, _origin(profile, one)) for one in profile.variables]


def nccl_names(loaded: LoadedSite) -> list[str]:
    """Return the variables whose values a site gets from its profile, which a launch chooses."""
    fabric = loaded.site.fabric
    if fabric is None:
        return []
    ring = fabric.ring if fabric.topology == "ring" else None
    name: Name = "switch"
    if fabric.topology == "ring":
        name = "patched" if ring and ring.nccl_library_dir else "stock-merged"
    found = variables(name, ring, "advertise-2", lambda key: "")
    return [one.name for one in found if own_value(loaded, one.name) is None]


def _origin(profile: NcclProfile, one: Variable) -> Origin:
    if one.where:
        return Origin("file", one.where)
    return Origin("derived", f"NCCL profile {profile.name}: {one.reason}")
