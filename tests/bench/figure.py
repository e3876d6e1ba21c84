# SPDX-License-Identifier: Apache-2.0
"""How a figure of a benchmark is computed and printed: the same line for people, CI and scripts."""

import math


def median_interval(values):
    """Median and its 95 % interval by order statistics (Conover, Practical Nonparametric Statistics, 3.2)."""
    ordered = sorted(values)
    n = len(ordered)
    middle = ordered[n // 2] if n % 2 else (ordered[n // 2 - 1] + ordered[n // 2]) / 2
    # The largest k for which at most 2.5 % of the binomial distribution lies below it.
    k, below = 0, 0.0
    while k < n // 2 and below + math.comb(n, k) / 2**n <= 0.025:
        below += math.comb(n, k) / 2**n
        k += 1
    return middle, ordered[max(k - 1, 0)], ordered[min(n - k, n - 1)]


def print_figure(name, values, unit, operator, target):
    """Print the line; True when the median meets the target. A ratio whose interval is wider than 10 % is a MISS:
    measure longer."""
    value, low, high = median_interval(values)
    met = {"<=": value <= target, ">=": value >= target}[operator]
    if unit == "ratio" and high - low > 0.1 * value:
        met = False
    print(
        f"figure {name} {value:.4g} {unit} [{low:.4g} .. {high:.4g}] target {operator} {target:g} "
        f"{'ok' if met else 'MISS'}",
        flush=True,
    )
    return met


def print_median_figure(name, rows, operator, target):
    """The row whose median is the median of all rows' (of an even number the better of the two has no say)."""
    ordered = sorted(rows, key=lambda values: median_interval(values)[0])
    worse = (len(ordered) - 1) // 2 if operator == ">=" else len(ordered) // 2
    return print_figure(name, ordered[worse], "ratio", operator, target)
