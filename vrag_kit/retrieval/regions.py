"""Search by regions of an image: crops, and services that search by each of them."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from PIL import Image

from vrag_kit.errors import VragError
from vrag_kit.retrieval.runs import make_run
from vrag_kit.retrieval.services import SearchService
from vrag_kit.types import LazyImage, Query

Box = tuple[float, ...]
"""Left, upper, right and lower edge, as fractions of the image's width and height."""
Regions = Callable[[Query], Sequence[Box]]
WHOLE = (0.0, 0.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Crop:
    """A region of an image; implements `LazyImage`."""

    image: LazyImage
    box: Box

    @property
    def where(self) -> str:
        """The image's `where`, followed by the region."""
        return f"{self.image.where} {','.join(f'{edge:.6g}' for edge in self.box)}"

    @property
    def stamp(self) -> str:
        """The image's `stamp`, followed by the region."""
        return f"{self.image.stamp} {','.join(f'{edge:.6g}' for edge in self.box)}"

    def open(self) -> Image.Image:
        """Returns the region, with every pixel that it touches. Raises `VragError` for a region
        without area or wholly outside the image.
        """
        image = self.image.open()
        edges = np.multiply(self.box, image.size * 2)
        start = np.maximum(np.floor(edges[:2]), 0)
        end = np.minimum(np.ceil(edges[2:]), image.size)
        if (start >= end).any():
            raise VragError(
                f"{self.where}: the region holds no pixel of the image; expected left, upper,"
                " right, lower as fractions in [0, 1], left before right."
            )
        return image.crop((*start.astype(int), *end.astype(int)))

    def data(self) -> bytes:
        """Returns the region as PNG."""
        file = io.BytesIO()
        self.open().save(file, "PNG")
        return file.getvalue()


def with_regions(service: SearchService, regions: Regions, *, margin: float = 0.0) -> SearchService:
    """Returns a service that searches by the regions of each query's image, or by the whole image
    if it has none. A document has its best score over the regions. A `margin` widens them on each
    side by that share of their own width and height, within the image.

    Its fingerprint is "", as regions are unknown: give it a `cached_service`. Raises `VragError`
    for a service that searches by text, and for a margin below 0.
    """
    if not 0 <= margin < math.inf:
        raise VragError(
            f"with_regions: margin is {margin!r}; expected a share of a region's side, 0 or more."
        )
    if service.modality != "image":
        raise VragError(
            f"search by {service.name} reads the {service.modality} of a query, which has no"
            " regions; expected a search by image."
        )

    def rank(queries: Sequence[Query], k: int) -> pd.DataFrame:
        crops: list[Query] = []
        query_of: dict[str, str] = {}
        for query in queries:
            for number, region in enumerate(regions(query) or [WHOLE]):
                box = _widened(region, margin)
                image = Crop(query.image, box) if query.image and box != WHOLE else query.image
                crops.append(replace(query, query_id=f"{query.query_id}#{number}", image=image))
                query_of[crops[-1].query_id] = query.query_id
        run = service.search(crops, k)
        run = run.assign(query_id=run["query_id"].map(query_of))
        best = run.groupby(["query_id", "doc_id"], sort=False, as_index=False)["score"].max()
        ranked = make_run(best)
        return ranked[ranked["rank"] <= k].reset_index(drop=True)

    name = f"{service.name}-by-region" + (f"-and-{margin:g}" if margin else "")
    return replace(service, name=name, fingerprint="", ranker=rank)


def annotated_region(query: Query) -> list[Box]:
    """Returns the annotated region of a query's image, or an empty list if there is none. It is
    `region` in the metadata: left, upper, right, lower in pixels of an image of `image_size`, by
    default the image's own size.

    Raises `VragError` for an annotation that is not four numbers.
    """
    region = query.metadata.get("region")
    if not region:
        return []
    size = query.metadata.get("image_size") or ()
    if not size and query.image is not None:
        size = query.image.open().size
    try:
        pixels = zip(region, (*size, *size), strict=True)
        return [tuple(float(edge) / side for edge, side in pixels)]
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise VragError(
            f"query {query.query_id!r}: its region is {region!r} in an image of"
            f" {size!r}; expected left, upper, right, lower, and width"
            " and height, in pixels."
        ) from error


def _widened(box: Box, margin: float) -> Box:
    """Returns the part of a box with its margin that is within the image."""
    beyond = margin * np.subtract(box[2:], box[:2])
    edges = np.add(box, [*-beyond, *beyond])
    return tuple(edges.clip(0, 1).tolist())
