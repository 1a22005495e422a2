"""The Dockerfile of a recipe, as plain text: stages for docker 20.10 and BuildKit alike.

No `# syntax` line (it would need Docker Hub), no network, no time stamps, always the same order.
"""

from tetraspark.images.manifest import Archive, Recipe
from tetraspark.images.recipe import RECIPES, Contents

HOME = "/opt/tetraspark"
VENV = f"{HOME}/venv"
ENGINE_TREE = "/sgl-workspace/sglang/python"
"""Where SGLang's own images have the tree their `sglang` is imported from."""
PIP = """\
install --no-index --no-deps --require-hashes --force-reinstall \\
    --no-cache-dir --disable-pip-version-check --root-user-action=ignore"""
# Ubuntu marks its Python as managed by apt; an image has one owner.
PIP_ENV = "SOURCE_DATE_EPOCH=315532800 PIP_BREAK_SYSTEM_PACKAGES=1"

HEAD = """\
# tetraspark image {recipe}: {summary}.
# Written by tetraspark, not by hand. Everything under files/ was hashed on its way here.

# Stage 1: hash it again, and see whether the base has what this recipe stands on.
FROM {base} AS verified
COPY files/ /verified/
RUN cd /verified && sha256sum --check --strict --quiet SHA256SUMS
RUN python3 /verified/base_check.py{wants}
"""
BRANCH = """
# The engine's branch; only its Python tree is used.
FROM verified AS branch
RUN mkdir /branch && tar --extract --gzip --no-same-owner --strip-components=1 \\
    --directory=/branch --file=/verified/sources/{file}
"""
ENVIRONMENT = """
# The engine and all it needs, from verified wheels only; nothing of the base's packages.
FROM verified AS environment
RUN python3 -m venv --without-pip {venv}
RUN {env} \\
    python3 -m pip --python {venv}/bin/python {pip} \\
    --find-links=/verified/wheels -r /verified/requirements.txt
RUN python3 -m pip --disable-pip-version-check --python {venv}/bin/python check
"""
FINAL = """
# The image.
FROM {base}
# The engine would otherwise look for a Rust toolchain at start-up, and wait.
ENV SGLANG_RUST_BUILD_MODE=never
COPY --from=verified /verified/SHA256SUMS /verified/requirements.txt \\
    /verified/health.py /verified/receipt.py {home}/
"""
USE_BRANCH = """\
RUN rm -rf {tree}
COPY --from=branch /branch/python {tree}
"""
USE_WHEELS = """\
# The wheels stay in the image: mounting another stage for one step needs BuildKit.
COPY --from=verified /verified/wheels/ {home}/wheels/
RUN {env} \\
    python3 -m pip {pip} \\
    --find-links={home}/wheels -r {home}/requirements.txt
"""
USE_ENVIRONMENT = """\
COPY --from=environment {venv}/ {venv}/
ENV PATH={venv}/bin:$PATH PYTHONPATH=
"""
CHECK_ENGINE = """
# Checks: the engine imports without a GPU.
RUN python3 -c "import torch, sglang.srt.server_args"
"""
CHECK_PLUGIN = """\
# The plugin knows this engine, and the collectives compute right.
RUN python3 -m tetraspark.engine.check
RUN python3 -m tetraspark.measure.selftest
"""
TAIL = """
# What is in here, for comparing nodes; with the plugin its C libraries are compiled first.
RUN python3 {home}/receipt.py {recipe} {home}{proxy}
# One rank's own health; loading takes long, and that is not illness.
HEALTHCHECK --interval=60s --timeout=40s --start-period=90m --retries=3 \\
    CMD ["python3", "-S", "{home}/health.py"]
# The base's entry point, if any, would print before the engine does.
ENTRYPOINT []
"""


def render(recipe: Recipe, base: str, archive: Archive | None) -> str:
    """Return the Dockerfile of a recipe on a base reference with its digest.

    `archive` is the engine's branch, for recipes that have one.
    """
    contents = RECIPES[recipe]
    words = {"home": HOME, "venv": VENV, "pip": PIP, "env": PIP_ENV, "tree": ENGINE_TREE}
    words |= {"recipe": recipe, "base": base, "summary": contents.summary}
    words |= {"wants": "".join(f" \\\n    {one}" for one in _wants(contents))}
    words |= {"file": archive.file if archive else "", "proxy": " --proxy" * contents.plugin}
    return "".join(part.format(**words) for part in _parts(contents))


def _parts(contents: Contents) -> list[str]:
    """Return the templates of a recipe, in order."""
    wheels = contents.branch or contents.plugin
    return [
        HEAD,
        *([BRANCH] if contents.branch else []),
        *([ENVIRONMENT] if contents.environment else []),
        FINAL,
        *([USE_BRANCH] if contents.branch else []),
        *([USE_ENVIRONMENT] if contents.environment else [USE_WHEELS] if wheels else []),
        CHECK_ENGINE,
        *([CHECK_PLUGIN] if contents.plugin else []),
        TAIL,
    ]


def _wants(contents: Contents) -> list[str]:
    """Return what the base must have, as arguments of base_check.py."""
    wants = ["--pip=22.3"] if contents.branch or contents.plugin else []
    if contents.environment:
        wants += ["--machine=aarch64", "--python=3.12", "--libc=2.34"]
    if contents.branch:
        wants += ["--command=tar", f"--file={ENGINE_TREE}"]
    if contents.plugin:
        wants += ["--command=cc", "--file=/usr/include/infiniband/verbs.h"]
    return wants
