import pytest


@pytest.fixture(scope="session", autouse=True)
def programs(tmp_path_factory):
    """Where the workers of these tests keep compiled programs: what one test compiled serves the next."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MESASCOPE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
