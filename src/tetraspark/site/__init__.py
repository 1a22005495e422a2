"""The site file: one TOML that describes the machines and what is served on them."""

from tetraspark.site.environment import OWNED_ENV
from tetraspark.site.load import LoadedSite, Origin, Site, load_site

__all__ = ["OWNED_ENV", "LoadedSite", "Origin", "Site", "load_site"]
