"""Settings that every test shares: 64-bit arithmetic and one hypothesis profile."""

import jax
from hypothesis import HealthCheck, settings

# The library never touches jax's configuration; whoever runs it does, here as in the command line.
jax.config.update("jax_enable_x64", True)

# No deadline: the first call of a jitted function compiles. print_blob: a failure shows how to repeat it.
settings.register_profile(
    "mesascope", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("mesascope")
