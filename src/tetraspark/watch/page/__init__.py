"""The status page: what people look at, rendered here, without a build step or a network."""
