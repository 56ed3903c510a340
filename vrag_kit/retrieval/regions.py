"""Search by regions of an image: a document's score is its maximum over the crops."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pandas as pd
from PIL import Image

from vrag_kit.errors import VragError
from vrag_kit.retrieval.runs import make_run
from vrag_kit.retrieval.services import SearchService, ServiceWrapper, check_queries
from vrag_kit.types import LazyImage, Query

Box = tuple[float, float, float, float]
"""Left, upper, right and lower edge, as fractions of the image's width and height."""
Regions = Callable[[Query], Sequence[Box]]
WHOLE: Box = (0.0, 0.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Crop:
    """A region of an image; implements `LazyImage`."""

    image: LazyImage
    box: Box

    @property
    def where(self) -> str:
        """The image's `where`, followed by the region."""
        return f"{self.image.where} {_box_text(self.box)}"

    @property
    def stamp(self) -> str:
        """The image's `stamp`, followed by the region."""
        return f"{self.image.stamp} {_box_text(self.box)}"

    def open(self) -> Image.Image:
        """Returns the region, with every pixel that it touches. Raises `VragError` for a region
        without area or wholly outside the image.
        """
        picture = self.image.open()
        width, height = picture.size
        edges = (
            max(0, math.floor(self.box[0] * width)),
            max(0, math.floor(self.box[1] * height)),
            min(width, math.ceil(self.box[2] * width)),
            min(height, math.ceil(self.box[3] * height)),
        )
        if edges[0] >= edges[2] or edges[1] >= edges[3]:
            raise VragError(
                f"{self.image.where}: the region {_box_text(self.box)} holds no pixel of it;"
                " expected"
                " left, upper, right, lower as fractions in [0, 1], left before right."
            )
        return picture.crop(edges)

    def data(self) -> bytes:
        """Returns the region as PNG."""
        file = io.BytesIO()
        self.open().save(file, "PNG")
        return file.getvalue()


@dataclass(frozen=True)
class RegionService(ServiceWrapper):
    """An image service that searches by each region of a query's image."""

    regions: Regions
    margin: float = 0.0
    """Margin on each side of a region, as a share of its own width and height."""

    @property
    def name(self) -> str:
        """The service's name with "-by-region", and the margin if there is one."""
        beyond = f"-and-{self.margin:g}" if self.margin else ""
        return f"{self.service.name}-by-region{beyond}"

    @property
    def fingerprint(self) -> str:
        """The service's fingerprint, which does not cover the regions of a query."""
        return self.service.fingerprint

    def search(self, queries: Sequence[Query], k: int) -> pd.DataFrame:
        """Implements `SearchService.search`; a query without regions is searched by its whole
        image. Raises `VragError` for a region that holds no pixel.
        """
        check_queries(self, queries, k)
        crops: list[Query] = []
        owners: dict[str, str] = {}
        for query in queries:
            for number, box in enumerate(self.regions(query) or [WHOLE]):
                crop = _cropped(query, number, _widened(box, self.margin))
                crops.append(crop)
                owners[crop.query_id] = query.query_id
        run = self.service.search(crops, k)
        run["query_id"] = run["query_id"].map(owners)
        best = run.groupby(["query_id", "doc_id"], sort=False, as_index=False)["score"].max()
        ranked = make_run(best)
        return ranked[ranked["rank"] <= k].reset_index(drop=True)


def with_regions(service: SearchService, regions: Regions, *, margin: float = 0.0) -> RegionService:
    """Returns a service that searches by the regions of each query's image. A `margin` widens them
    on each side by that share of their own width and height, within the image.

    Raises `VragError` for a service that reads texts, and for a margin below 0.
    """
    if not 0 <= margin < math.inf:
        raise VragError(
            f"with_regions: margin is {margin!r}; expected a share of a region's side, 0 or more."
        )
    if service.reads != "image":
        raise VragError(
            f"search by {service.name} reads the {service.reads} of a query, which has no"
            " regions. Use a search by image."
        )
    return RegionService(service, regions, margin)


def annotated_region(query: Query) -> list[Box]:
    """Returns the annotated region of a query's image, or an empty list if there is none. It is
    `region` in the metadata: left, upper, right, lower in pixels of an image of `image_size`, by
    default the image's own size.

    Raises `VragError` for an annotation that is not four numbers.
    """
    region = query.metadata.get("region")
    if not region:
        return []
    try:
        edges = [float(edge) for edge in region]
        size = query.metadata.get("image_size")
        if not size and query.image is not None:
            size = query.image.open().size
        width, height = (float(side) for side in size or ())
        return [(edges[0] / width, edges[1] / height, edges[2] / width, edges[3] / height)]
    except (TypeError, ValueError, IndexError, ZeroDivisionError) as error:
        raise VragError(
            f"query {query.query_id!r}: its region is {region!r} in a picture of"
            f" {query.metadata.get('image_size')!r}; expected left, upper, right, lower, and width"
            " and height, in pixels."
        ) from error


def _cropped(query: Query, number: int, box: Box) -> Query:
    name = f"{query.query_id}#{number}"
    if box == WHOLE or query.image is None:
        return replace(query, query_id=name)
    return replace(query, query_id=name, image=Crop(query.image, box))


def _widened(box: Box, margin: float) -> Box:
    """Returns the box with its margin, within the image; without a margin, the box as it is."""
    if not margin:
        return box
    across, down = margin * (box[2] - box[0]), margin * (box[3] - box[1])
    left, upper = max(0.0, box[0] - across), max(0.0, box[1] - down)
    return left, upper, min(1.0, box[2] + across), min(1.0, box[3] + down)


def _box_text(box: Box) -> str:
    return ",".join(f"{edge:.6g}" for edge in box)
