"""The variables that a fleet's plan gives the container of a rank."""

from tetraspark.line.plan import Plan


def env_of(plan: Plan, rank: int) -> dict[str, str]:
    """Return the variables of a rank's docker command; none may be there twice."""
    argv = plan.ranks[rank].argv
    pairs = [argv[i + 1] for i, word in enumerate(argv) if word == "--env"]
    found = dict(pair.split("=", 1) for pair in pairs)
    assert len(found) == len(pairs)
    return found
