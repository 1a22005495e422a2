"""Stand-in for sgl_kernel.mamba: any name imports, calling one raises."""

from sgl_kernel import __getattr__ as __getattr__
