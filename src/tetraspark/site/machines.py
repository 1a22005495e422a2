"""Sections of a site file that describe the machines: nodes, image, weights, fabric, ssh."""

import ipaddress
import re
from collections.abc import Mapping
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from tetraspark.site.host import host_fault
from tetraspark.site.reference import is_pinned, is_tagged
from tetraspark.site.secret import names_secret
from tetraspark.site.section import Devices, Host, Name, PathText, Section, User, refusal

_GRAMMAR = "lower-case [REGISTRY[:PORT]/]NAME, then `:` and a tag"
_URL_PATH = re.compile(r"[A-Za-z0-9._~/+-]*")
_SECRET_ARGUMENT = re.compile(r"TOKEN|KEY|PASSW|SECRET|CREDENTIAL")
OWN_ARGUMENTS = {"BASE_IMAGE": "image.base", "PIP_INDEX_URL": "image.pip_index"}
"""Build arguments that a key of [image] sets for a Dockerfile of the user's own."""


def _base(text: str) -> str:
    if not is_pinned(text):
        wanted = "an image with its digest, `name:tag@sha256:` and 64 hex digits: tags move"
        name = text.split("@", 1)[0]
        fix = f"docker buildx imagetools inspect {name}" if is_tagged(name) else _GRAMMAR
        raise refusal(f"base image {text!r}", wanted, fix)
    return text


def _tag(text: str) -> str:
    name = text.split("@", 1)[0]
    if name != text and is_tagged(name):
        wanted = "a tag without a digest: a build gives the digest, it cannot be asked for"
        fix = f'tag = "{name}"; the digest belongs to `image.base`'
        raise refusal(f"image tag {text!r}", wanted, fix)
    if not is_tagged(text):
        wanted = "a docker image name such as dsv41-4x-spark:local"
        raise refusal(f"image tag {text!r}", wanted, _GRAMMAR)
    return text


def secret_argument(name: str) -> bool:
    """Say whether a build argument of this name is taken for a secret: `HF_TOKEN`, `SSH_KEY`."""
    return names_secret(name) or _SECRET_ARGUMENT.search(name.upper()) is not None


def _index(text: str) -> str:
    """Check a package index; its text is not shown, because a part may be a credential."""
    fix = "write https://HOST/simple, or https://HOST:PORT/simple"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise refusal("a package index whose port or host is none", "a URL", fix) from None
    if parts.username or parts.password or parts.query or parts.fragment:
        wanted = "a URL without credentials, query and fragment: they stay in the image's history"
        raise refusal("a package index with more in its URL than a place", wanted, fix)
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise refusal("a package index that is no URL", "https://HOST/simple", fix)
    if host_fault(parts.hostname) is not None or not _URL_PATH.fullmatch(parts.path):
        raise refusal("a package index with odd characters", "https://HOST/simple", fix)
    return text


def _key_path(text: str) -> str:
    if "%" in text:
        wanted = "a path as it is: ssh would put something else in place of `%`"
        raise refusal(f"identity file {text!r}", wanted, "write the whole path, or `~/`")
    return text


def _export(text: str) -> str:
    if not re.fullmatch(r"/?[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*", text) or ".." in text:
        wanted = "a name, or the path on the server: letters, digits, `.`, `_`, `-` and `/`"
        fix = 'nfs_export = "weights"; the server mounts the checkpoint there'
        raise refusal(f"NFS export {text!r}", wanted, fix)
    return text


def _volume(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{1,62}", text):
        wanted = "the name of a docker volume: letters, digits, `.`, `_` and `-`"
        raise refusal(f"NFS volume {text!r}", wanted, 'nfs_volume = "weights"')
    return text


def _client(text: str) -> str:
    try:
        ipaddress.IPv4Network(text)
    except ValueError as error:
        wanted = "an IPv4 address or network, such as 10.0.22.0/24"
        raise refusal(f"NFS client {text!r}: {error}", wanted, "correct it") from None
    return text


class Node(Section):
    """One machine; rank r runs on the r-th node, and the first is the head."""

    name: Name = Field(description="short name in plans and logs")
    host: Host | None = Field(
        default=None, description="IPv4 address or name for the rendezvous and the fabric bootstrap"
    )
    ssh_host: Host | None = Field(default=None, description="where ssh connects; default `host`")
    user: User | None = Field(default=None, description="ssh login; default `ssh.user`")
    devices: Devices | None = Field(
        default=None, description="RDMA devices of this node, in place of `fabric.devices`"
    )
    nfs_server: Host | None = Field(
        default=None, description="NFS server of this node, in place of `weights.nfs_server`"
    )


class Image(Section):
    """The container image every node builds and must agree on."""

    recipe: Literal["base", "canary", "canary-roce", "release"] = Field(
        description="which image recipe to build"
    )
    base: Annotated[str, AfterValidator(_base)] | None = Field(
        default=None, description="image to build on, pinned by digest"
    )
    tag: Annotated[str, AfterValidator(_tag)] = Field(description="name of the built image")
    dockerfile: PathText | None = Field(
        default=None, description="in place of the recipe's own; inside the site's repository"
    )
    build_args: Mapping[str, str] = Field(
        default={}, description="docker build arguments of that Dockerfile"
    )
    pip_index: Annotated[str, AfterValidator(_index)] | None = Field(
        default=None, description="package index for that Dockerfile, as PIP_INDEX_URL"
    )


class Weights(Section):
    """How the checkpoint reaches the workers."""

    mode: Literal["local", "nfs", "copy"] = Field(
        description="already on each node, mounted from a server, or copied from the head"
    )
    nfs_server: Host | None = Field(default=None, description="address workers mount from")
    nfs_export: Annotated[str, AfterValidator(_export)] | None = Field(
        default=None, description="path on the server, or a name below /srv/nfs; default the line's"
    )
    nfs_volume: Annotated[str, AfterValidator(_volume)] | None = Field(
        default=None, description="docker volume on workers; default `tetraspark-LINE-weights`"
    )
    nfs_clients: tuple[Annotated[str, AfterValidator(_client)], ...] | None = Field(
        default=None,
        description="addresses or networks the server admits; default the workers' `host`",
    )


class Nccl(Section):
    """NCCL settings of a line; an absent key leaves NCCL's own default."""

    buffer_bytes: int | None = Field(
        default=None,
        ge=4096,
        le=1 << 30,
        description="NCCL_BUFFSIZE, bytes; GPU memory here",
    )
    ll128_buffer_bytes: int | None = Field(
        default=None, ge=4096, le=1 << 30, description="NCCL_LL128_BUFFSIZE, bytes"
    )
    protocols: str | None = Field(
        default=None,
        pattern=r"^\^?(LL|LL128|Simple)(,(LL|LL128|Simple))*$",
        description="NCCL_PROTO, such as `LL,Simple` or `^LL128`",
    )
    channels_min: int | None = Field(
        default=None, ge=1, le=64, description="NCCL_MIN_NCHANNELS; NCCL has at most 64"
    )
    channels_max: int | None = Field(
        default=None, ge=1, le=64, description="NCCL_MAX_NCHANNELS; NCCL has at most 64"
    )
    debug: Literal["VERSION", "WARN", "INFO", "TRACE"] | None = Field(
        default=None, description="NCCL_DEBUG"
    )
    debug_subsystems: tuple[str, ...] | None = Field(default=None, description="NCCL_DEBUG_SUBSYS")
    version: str | None = Field(
        default=None,
        pattern=r"^\d+\.\d+\.\d+$",
        description="what the image has, where its recipe does not tell",
    )


class Ring(Section):
    """A switchless ring; stock NCCL unless `nccl_library_dir` names a patched one."""

    channels_min: int = Field(default=4, ge=1, le=64, description="NCCL_MIN_NCHANNELS")
    channels_max: int = Field(
        default=4, ge=1, le=64, description="NCCL_MAX_NCHANNELS; each pins memory"
    )
    subnet_prefix: int = Field(
        default=24, ge=8, le=30, description="prefix length of one cable's network"
    )
    nccl_library_dir: PathText | None = Field(
        default=None, description="folder of a patched libnccl.so.2 on the head"
    )
    worker_nccl_library_dir: PathText | None = Field(
        default=None, description="the same on workers, if other"
    )
    nccl_target: PathText | None = Field(
        default=None, description="file in the image the patched library is mounted over"
    )
    nccl_patch: Literal["advertise-2", "dual-pci"] | None = Field(
        default=None, description="what the patched library does: sends two GIDs, or four"
    )


class Fabric(Section):
    """The RoCE network between the nodes."""

    topology: Literal["switch", "pair", "ring"] = Field(description="how the nodes are cabled")
    devices: Devices = Field(description="RDMA devices of every node, plain names")
    min_rdma_mtu: Literal[1024, 2048, 4096] = Field(
        default=4096, description="smallest active RDMA MTU, bytes; 4096 needs a netdev MTU of 4200"
    )
    traffic_class: int | None = Field(
        default=None, ge=0, le=255, description="NCCL_IB_TC, one byte of the IP header"
    )
    nccl: Nccl = Field(default=Nccl(), description="NCCL settings")
    ring: Ring | None = Field(default=None, description="only with topology `ring`")


class Ssh(Section):
    """How nodes are reached; host aliases of ~/.ssh/config work too."""

    user: User | None = Field(default=None, description="login on every node")
    identity_file: Annotated[PathText, AfterValidator(_key_path)] | None = Field(
        default=None, description="private key"
    )
