"""systemd units of a line: one that serves it, and one that watches it. Pure.

The service of the line is `oneshot`: `serve` returns when the line has proven itself, and leaves
ranks on other machines, which systemd could not hold anyway. It remains active until `stop`. A
`notify` service would need a program of ours to stay for nothing but that.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tetraspark.line.unit_words import command, raw, word
from tetraspark.site.key_file import CREDENTIAL
from tetraspark.site.load import LoadedSite

HEADER = "# Written by `tetraspark units`; changes belong in a drop-in: systemctl edit"
STARTS = 3
RESTART_SECONDS = 30
LOOKING_SECONDS = 300
"""What a start may take beside its phases: looks at the nodes, page cache given back."""
WATCHED_BY = "TETRASPARK_WATCHED_BY"
"""Names the unit that watches the line, to a `serve` that would else start a watch of its own."""
WATCH_STARTS = 5
WATCH_RESTART_SECONDS = 10
WATCH_INTERVAL_SECONDS = 600
# What breaks neither ssh, nor a CPU line's shared memory and compiler, nor Docker's client.
HARDENING = (
    "NoNewPrivileges=yes",
    "RestrictSUIDSGID=yes",
    "LockPersonality=yes",
    "SystemCallArchitectures=native",
    "UMask=0077",
)
# These need a manager with privileges: the system's.
SYSTEM_HARDENING = (
    "ProtectSystem=full",
    "ProtectKernelTunables=yes",
    "ProtectKernelModules=yes",
    "ProtectControlGroups=yes",
    "ProtectHostname=yes",
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
)


@dataclass(frozen=True)
class UnitFile:
    """A unit: the name of its file, and its text."""

    name: str
    text: str


@dataclass(frozen=True)
class Service:
    """What both units run: `program` is argv of tetraspark, `environment` what it needs of ours.

    `login` is who runs it, None for units of a user's own manager.
    """

    program: tuple[str, ...]
    environment: Mapping[str, str]
    login: str | None


def units_of(loaded: LoadedSite, service: Service) -> tuple[UnitFile, UnitFile]:
    """Return the units of the line and of its watch.

    Raises UsageError for a path that no unit file can hold.
    """
    name = f"tetraspark-{loaded.site.name}"
    line, watch = f"{name}.service", f"{name}-watch.service"
    return (
        UnitFile(line, _text(_line(loaded, service, watch))),
        UnitFile(watch, _text(_watch(loaded, service, line, watch))),
    )


def start_seconds(loaded: LoadedSite) -> int:
    """Return how long a start may take: its phases end it themselves before."""
    limits = loaded.site.deadlines
    phases = (limits.import_seconds, limits.load_seconds, limits.warmup_seconds)
    return LOOKING_SECONDS + sum(phases) + limits.canary_seconds + limits.stop_seconds


def _line(loaded: LoadedSite, service: Service, watch: str) -> list[str]:
    start, stop = start_seconds(loaded), loaded.site.deadlines.stop_seconds + LOOKING_SECONDS
    # Longer than all starts it allows can take, or the limit would never be reached.
    interval = STARTS * (start + stop + RESTART_SECONDS) + LOOKING_SECONDS
    online = ["Wants=network-online.target", "After=network-online.target"]
    return [
        "[Unit]",
        f"Description=tetraspark line {loaded.site.name}",
        *(online if service.login else ()),
        f"Wants={watch}",
        f"StartLimitIntervalSec={interval}",
        f"StartLimitBurst={STARTS}",
        "",
        "[Service]",
        "Type=oneshot",
        "RemainAfterExit=yes",
        f"ExecStart={_command(loaded, service, 'serve', '--replace')}",
        f"Environment={WATCHED_BY}={watch}",
        f"ExecStop={_command(loaded, service, 'stop')}",
        f"TimeoutStartSec={start}",
        f"TimeoutStopSec={stop}",
        "Restart=on-failure",
        f"RestartSec={RESTART_SECONDS}",
        # Bad usage or a bad site file: no start will mend it.
        "RestartPreventExitStatus=2",
        *_common(loaded, service),
        "",
        "[Install]",
        f"WantedBy={'multi-user.target' if service.login else 'default.target'}",
    ]


def _watch(loaded: LoadedSite, service: Service, line: str, own: str) -> list[str]:
    return [
        "[Unit]",
        f"Description=watch of tetraspark line {loaded.site.name}",
        f"BindsTo={line}",
        f"After={line}",
        f"StartLimitIntervalSec={WATCH_INTERVAL_SECONDS}",
        f"StartLimitBurst={WATCH_STARTS}",
        "",
        "[Service]",
        "Type=exec",
        f"Environment={WATCHED_BY}={own}",
        f"ExecStart={_command(loaded, service, 'watch')}",
        # A watch that has started the line again ends; ranks of this machine must outlive it.
        "Restart=always",
        "KillMode=process",
        f"RestartSec={WATCH_RESTART_SECONDS}",
        "RestartPreventExitStatus=2",
        *_common(loaded, service),
    ]


def _command(loaded: LoadedSite, service: Service, *words: str) -> str:
    return command((*service.program, *words, "--site", str(loaded.path.resolve())))


def _common(loaded: LoadedSite, service: Service) -> list[str]:
    found = [f"User={raw(service.login)}"] if service.login else []
    found += [
        f"Environment={word(f'{name}={value}')}" for name, value in service.environment.items()
    ]
    key_file = loaded.site.api.key_file
    if key_file is not None:
        path: Path = loaded.resolve(key_file, "api.key_file")
        found.append(f"LoadCredential={CREDENTIAL}:{raw(str(path))}")
    return [*found, *HARDENING, *(SYSTEM_HARDENING if service.login else ())]


def _text(lines: list[str]) -> str:
    return "\n".join((HEADER, *lines, ""))
