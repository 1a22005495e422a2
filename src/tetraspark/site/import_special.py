"""Variables of a profile that only make sense together: nodes, NFS, devices, image, ring."""

from tetraspark.site.finding import Finding
from tetraspark.site.hca import parse
from tetraspark.site.import_table import NotCarriedError, split_list
from tetraspark.site.machines import secret_argument
from tetraspark.site.modes import NFS_KEYS
from tetraspark.site.section import slug
from tetraspark.site.site_draft import Draft, Variable

_LAUNCHER = "not in the profile; the bash launcher's own default"
_RUST = "SGLANG_RUST_BUILD_MODE"


def import_special(variables: dict[str, Variable], draft: Draft, name: str) -> None:
    """Set what several variables decide together, and the launcher's defaults nothing set."""
    draft.add(("name",), slug(name), "from the name of the site file")
    draft.add(("kind",), "fleet", "the bash launchers serve a fleet")
    workers = _nodes(variables, draft)
    _worker_user(variables, draft, workers)
    _node_count(variables, draft, workers + 1)
    _weights(variables, draft, workers)
    _devices(variables, draft)
    _topology(variables, draft)
    _image(variables, draft)
    _defaults(draft)


def _nodes(variables: dict[str, Variable], draft: Draft) -> int:
    """Write [[nodes]]; return the number of workers."""
    head = variables.pop("HEAD_IP", None)
    if head is not None:
        draft.carry(head, ("nodes", 0, "host"), head.value)
    addresses = _worker_list(variables, draft, "WORKER_IPS", "WORKER{}_IP")
    names = _worker_list(variables, draft, "WORKER_HOSTS", "WORKER{}_HOST")
    if names and len(names) != len(addresses):
        for variable, _ in names:
            draft.drop(variable, f"{len(names)} names for {len(addresses)} worker addresses")
        names = []
    if head is not None or addresses:
        draft.add(("nodes", 0, "name"), "head", "a name for it; the profile has none")
    taken = {"head"}
    for index, (variable, address) in enumerate(addresses, 1):
        draft.carry(variable, ("nodes", index, "host"), address)
        alias = names[index - 1][1] if names else ""
        _worker_name(draft, index, alias, taken)
        if alias and alias != address:
            draft.carry(names[index - 1][0], ("nodes", index, "ssh_host"), alias)
    for variable, _ in names:
        if variable.label not in draft.entries:
            draft.drop(variable, "the same as the worker addresses")
    return len(addresses)


def _worker_name(draft: Draft, index: int, alias: str, taken: set[str]) -> None:
    name = slug(alias)
    if not alias or alias[0].isdigit() or name in taken:
        name = f"worker{index}"
    taken.add(name)
    draft.add(("nodes", index, "name"), name, "a name for it")


def _worker_list(
    variables: dict[str, Variable], draft: Draft, name: str, numbered: str
) -> list[tuple[Variable, str]]:
    """Return one item a worker, from the list or from the older numbered variables."""
    old = [numbered.format(index) for index in range(1, 64)]
    singles = [variables.pop(key) for key in old if key in variables]
    listed = variables.pop(name, None)
    if listed is None:
        return [(variable, variable.value) for variable in singles]
    for variable in singles:
        draft.drop(variable, f"{name} is used in its place")
    items = [(listed, item) for item in split_list(listed.value)]
    if not items:
        draft.drop(listed, "a list without items")
    return items


def _worker_user(variables: dict[str, Variable], draft: Draft, workers: int) -> None:
    user = variables.pop("WORKER_USER", None)
    if user is not None and not workers:
        draft.drop(user, "the profile names no workers")
        return
    for index in range(1, workers + 1):
        if user is not None:
            draft.carry(user, ("nodes", index, "user"), user.value)


def _node_count(variables: dict[str, Variable], draft: Draft, nodes: int) -> None:
    count = variables.pop("NNODES", None)
    if count is None:
        return
    if count.value == str(nodes):
        draft.say(count, ("nodes",), "as the number of [[nodes]]")
    else:
        seen = f"NNODES={count.value}, but the profile names {nodes} nodes"
        draft.drop(count, seen)
        fix = "add or remove [[nodes]]"
        draft.needed.append(Finding(("nodes",), seen, "one node a rank", fix))


def _weights(variables: dict[str, Variable], draft: Draft, workers: int) -> None:
    share = variables.pop("NFS_SHARE", None)
    mode = "local" if share is not None and share.value == "0" else "nfs"
    if share is None:
        draft.add(("weights", "mode"), mode, _LAUNCHER)
    elif share.value in ("0", "1"):
        draft.carry(share, ("weights", "mode"), mode)
    else:
        draft.drop(share, f"{share.value!r} is neither 0 nor 1")
    servers = variables.pop("NFS_SERVER_IPS", None)
    names = ("NFS_EXPORT_NAME", "NFS_VOLUME", "NFS_CLIENTS")
    for key, name in zip(NFS_KEYS[1:], names, strict=True):
        variable = variables.pop(name, None)
        if variable is not None and mode == "local":
            draft.drop(variable, "NFS_SHARE=0: the weights are on each node")
        elif variable is not None:
            listed = key == "nfs_clients"
            value = tuple(split_list(variable.value)) if listed else variable.value
            draft.carry(variable, ("weights", key), value)
    if servers is not None:
        _servers(servers, draft, mode, workers)


def _servers(servers: Variable, draft: Draft, mode: str, workers: int) -> None:
    items = split_list(servers.value)
    if mode == "local":
        draft.drop(servers, "NFS_SHARE=0: the weights are on each node")
    elif len(set(items)) == 1:
        draft.carry(servers, ("weights", "nfs_server"), items[0])
    elif items and len(items) == workers:
        for index, item in enumerate(items, 1):
            draft.carry(servers, ("nodes", index, "nfs_server"), item)
    else:
        draft.drop(servers, f"{len(items)} servers for {workers} workers")


def _devices(variables: dict[str, Variable], draft: Draft) -> None:
    variable = variables.pop("IB_HCA", None)
    if variable is None:
        return
    try:
        names, note = plain_devices(variable.value)
    except NotCarriedError as error:
        draft.drop(variable, str(error))
        return
    draft.carry(variable, ("fabric", "devices"), names, note)


def plain_devices(text: str) -> tuple[tuple[str, ...], str]:
    """Turn NCCL's device grammar into plain names, and say what was changed.

    The launchers also separate them by blanks. Raises NotCarriedError for what is no list, and
    for `^` (all devices but these): only the nodes know the others.
    """
    try:
        found = parse(",".join(split_list(text)))
    except ValueError as error:
        raise NotCarriedError(str(error)) from error
    if found.exclude:
        raise NotCarriedError("`^` leaves devices out; list the ones to use in `fabric.devices`")
    names = tuple(dict.fromkeys(item.name for item in found.items))
    plain = ",".join(names)
    note = "" if plain == text else f"written as plain names: {plain}"
    return names, note


def _topology(variables: dict[str, Variable], draft: Draft) -> None:
    ring = variables.pop("NCCL_SWITCHLESS_RING_ONLY", None)
    if ring is not None and ring.value == "1":
        draft.carry(ring, ("fabric", "topology"), "ring")
    elif ring is not None and ring.value == "0":
        draft.carry(ring, ("fabric", "topology"), "switch")
    else:
        if ring is not None:
            draft.drop(ring, f"{ring.value!r} is neither 0 nor 1")
        draft.add(("fabric", "topology"), "switch", _LAUNCHER)


def _image(variables: dict[str, Variable], draft: Draft) -> None:
    dockerfile = draft.settings.get(("image", "dockerfile"))
    file = str(dockerfile.value) if dockerfile else ""
    recipe = next((r for r in ("canary-roce", "canary") if file.endswith(r)), "base")
    why = "from BUILD_DOCKERFILE" if file else "the launcher's own Dockerfile"
    draft.add(("image", "recipe"), recipe, why)
    if _RUST not in variables:
        draft.add(("env", _RUST), "never", "that branch's engine looks for cargo at start-up")
    _build_args(variables.pop("BUILD_ARGS", None), file, draft)
    tag = variables.pop("IMAGE", None)
    if tag is not None:
        name, digest, _ = tag.value.partition("@")
        note = "without its digest, which only a build can give" if digest else ""
        draft.carry(tag, ("image", "tag"), name, note)


def _build_args(variable: Variable | None, dockerfile: str, draft: Draft) -> None:
    if variable is None:
        return
    words = [word.removeprefix("--build-arg=") for word in split_list(variable.value)]
    pairs = [word.partition("=") for word in words if word != "--build-arg"]
    if not pairs or not all(name.isidentifier() and value for name, _, value in pairs):
        draft.drop(variable, "not a list of NAME=value")
    elif not dockerfile:
        draft.drop(variable, "without BUILD_DOCKERFILE: the recipe's own takes no arguments")
    elif any(secret_argument(name) or draft.leaks(variable, value) for name, _, value in pairs):
        draft.drop(variable, "one of them is a secret, which would stay in the image's history")
    else:
        for name, _, value in pairs:
            draft.carry(variable, ("image", "build_args", name), value)


def _defaults(draft: Draft) -> None:
    tp = draft.settings.get(("engine", "tp"))
    if tp is not None:
        draft.add(("engine", "ep"), tp.value, f"{_LAUNCHER} is TP_SIZE")
    draft.add(("engine", "dist_port"), 20000, _LAUNCHER)
    draft.add(("speculative", "algorithm"), "DSPARK", _LAUNCHER)
    draft.add(("api", "port"), 8888, _LAUNCHER)
    draft.add(("api", "host"), "0.0.0.0", "the bash launcher listens on every address")
    draft.add(("model", "served_name"), "deepseek-v4.1-flash", _LAUNCHER)
    draft.add(("model", "canary", "prompt"), "What is 19 + 23?", "the launcher's smoke test")
    draft.add(("model", "canary", "expect"), "42", "the launcher's smoke test")
