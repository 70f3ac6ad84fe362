"""Exact geometry of maps: straight streets between intersections at whole coordinates.

points: int64, (V, 2). adjacent: bool, (V, V), which intersections a street joins. Products of
coordinates below 1000 fit an int64, so no result is rounded.
"""

from __future__ import annotations

import numpy as np

from busenv.core.jit import kernel


@kernel
def squared_distance(points, i, j):
    """Squared distance of two intersections."""
    dx, dy = points[i, 0] - points[j, 0], points[i, 1] - points[j, 1]
    return dx * dx + dy * dy


@kernel
def _dot(points, i, j, k):
    """Scalar product of the vectors from i to j and from i to k."""
    dx, dy = points[j, 0] - points[i, 0], points[j, 1] - points[i, 1]
    return dx * (points[k, 0] - points[i, 0]) + dy * (points[k, 1] - points[i, 1])


@kernel
def _cross(points, i, j, k):
    """Cross product of the vectors from i to j and from i to k.

    Its sign gives the side of the line i-j on which k lies.
    """
    dx, dy = points[j, 0] - points[i, 0], points[j, 1] - points[i, 1]
    return dx * (points[k, 1] - points[i, 1]) - dy * (points[k, 0] - points[i, 0])


@kernel
def crosses(points, i, j, k, m):
    """Return whether the streets i-j and k-m, which have no common end, cross."""
    if (_cross(points, i, j, k) > 0) == (_cross(points, i, j, m) > 0):
        return False
    return (_cross(points, k, m, i) > 0) != (_cross(points, k, m, j) > 0)


@kernel
def is_near(points, i, j, k, clearance):
    """Return whether a street i-j passes an intersection k at less than a distance.

    Returns False if the projection of k falls outside the street, where k is nearest to one of its
    ends.
    """
    length, along = squared_distance(points, i, j), _dot(points, i, j, k)
    across = _cross(points, i, j, k)
    return 0 < along < length and across * across < clearance * clearance * length


@kernel
def is_narrow(points, i, j, k, cosine):
    """Return whether the angle at i between streets to j and k is below a limit.

    cosine: the squared cosine of the limit in hundredths.
    """
    dot = _dot(points, i, j, k)
    lengths = squared_distance(points, i, j) * squared_distance(points, i, k)
    return dot > 0 and 100 * dot * dot > cosine * lengths


@kernel
def bfs_distances(adjacent, starts, closed, distances):
    """Write the number of streets from the nearest of some intersections to each.

    starts: int64, (k,). closed: an intersection that no path may use, or -1. distances: int64,
    (V,), -1 if there is no path.
    """
    number = adjacent.shape[0]
    queue = np.empty(number, np.int64)
    distances[:] = -1
    first, last = 0, starts.shape[0]
    for k in range(last):
        queue[k] = starts[k]
        distances[starts[k]] = 0
    while first < last:
        i = queue[first]
        first += 1
        for j in range(number):
            if adjacent[i, j] and distances[j] < 0 and j != closed:
                distances[j] = distances[i] + 1
                queue[last] = j
                last += 1


@kernel
def has_articulation_point(adjacent):
    """Return whether the map is not connected without one of its intersections."""
    number = adjacent.shape[0]
    distances, start = np.empty(number, np.int64), np.empty(1, np.int64)
    for closed in range(number):
        start[0] = 0 if closed else 1
        bfs_distances(adjacent, start, closed, distances)
        if (distances < 0).sum() > 1:
            return True
    return False


@kernel
def _is_sooner(points, centre, start, k, best):
    """Return whether a turn around `centre` from `start` meets k before `best`."""
    if best == start:
        return True
    side = _cross(points, centre, start, k) >= 0
    if side != (_cross(points, centre, start, best) >= 0):
        return side
    return _cross(points, centre, best, k) < 0


@kernel
def streets_around(points, adjacent, i, j):
    """Number of streets around the face (city block) on one side of a street from i to j.

    The other side's face is that of the street from j to i. The land around the city is a face.
    """
    first, second, count = i, j, 0
    while count == 0 or i != first or j != second:
        count += 1
        following = i
        for k in range(points.shape[0]):
            if adjacent[j, k] and k != i and _is_sooner(points, j, i, k, following):
                following = k
        i, j = j, following
    return count
