"""How long does one take, where several take turns?"""

import time
from collections.abc import Callable


def milliseconds(run: Callable[[], int], seconds: float) -> float:
    """Of one piece of work, over runs that take about so long together; a run returns its pieces.

    It is run at least once. Whatever a run hands to a device it must also wait for.
    """
    count, began = 0, time.perf_counter()
    while not count or time.perf_counter() - began < seconds:
        count += run()
    return 1e3 * (time.perf_counter() - began) / count
