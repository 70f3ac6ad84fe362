"""Worker processes: the error states how one ended."""

import os
from concurrent.futures.process import BrokenProcessPool

import pytest

from busenv.common.worker_pool import worker_pool


@pytest.mark.skipif(os.name == "nt", reason="there are no signals")
def test_the_signal_that_ended_a_worker_is_named() -> None:
    with (
        pytest.raises(BrokenProcessPool, match=r"^a worker process was ended by SIGABRT$"),
        worker_pool(1) as pool,
    ):
        pool.submit(os.abort).result()
