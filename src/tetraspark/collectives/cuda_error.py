"""What CUDA refused."""


class CudaError(RuntimeError):
    """A call of the driver, or the run-time compiler, failed; says which and why."""
