"""MRAG-Bench is read in the order of its ids whatever its shards are called, its pictures
are found in the corpus, and nothing wrong with it passes in silence.
"""

from __future__ import annotations

import io
import os
from urllib.parse import unquote

import pytest
from mrag_rows import corpus_of, mrag_picture, mrag_row, write_mrag_rows
from PIL import Image

from vrag_kit.benchmarks import load_mrag_bench
from vrag_kit.errors import VragError
from vrag_kit.fetching.validate import find_problems


def test_rows_come_in_the_order_of_their_ids_though_shards_sort_otherwise(tmp_path):
    shards = [[mrag_row(2 * number), mrag_row(2 * number + 1)] for number in range(12)]
    folder = write_mrag_rows(tmp_path / "rows", shards)
    names = sorted(path.name for path in folder.iterdir())
    assert names.index("test-000010-of-000012.parquet") == 2  # before 00002: the trap
    benchmark = load_mrag_bench(folder, cache_dir=tmp_path / "store")
    assert list(benchmark.queries) == [str(number) for number in range(24)]
    query = benchmark.queries["17"]
    assert query.choices == ("wood_rabbit", "hare", "pika", "vole")
    assert (query.answers, query.metadata["letter"]) == (("hare",), "B")
    assert query.image.open().getpixel((5, 5)) == (17, 7, 17)


def test_images_are_found_in_the_corpus_by_bytes_or_by_pixels(tmp_path):
    rows = [mrag_row(0), mrag_row(1), mrag_row(2)]
    corpus = corpus_of(tmp_path / "corpus", rows)
    # the same pixels in a file of other bytes, with a palette of which one colour is clear
    few = Image.open(io.BytesIO(rows[1]["image"])).quantize(4, dither=Image.Dither.NONE)
    few.save(corpus / "1 input%2B+é.png", transparency=0)
    (corpus / "2 input%2B+é.png").unlink()
    benchmark = load_mrag_bench(
        write_mrag_rows(tmp_path / "rows", [rows]), corpus, cache_dir=tmp_path / "store"
    )
    assert benchmark.left_out["0"] == {"0%20input%252B%2B%C3%A9.png"}
    assert benchmark.left_out["1"] == {"1%20input%252B%2B%C3%A9.png"}
    assert "2" not in benchmark.left_out  # a crop, say: in no file
    assert benchmark.relevant("1") == tuple(f"1_gt_{place}.png" for place in range(5))
    retrieved = benchmark.queries["1"].metadata["retrieved"]
    assert retrieved == [f"retrieved%20{place}.png" for place in range(5)]
    for doc_id in benchmark.corpus:
        assert not set(doc_id) & set(" +é")
        assert (corpus / unquote(doc_id)).is_file()
    assert benchmark.queries["2"].image.open().getpixel((5, 5)) == (2, 7, 2)


def test_without_a_corpus_the_documents_are_the_images_of_the_rows(tmp_path):
    rows = [mrag_row(0, 1, 2, 3, 4, 5), mrag_row(1, 5, 6, 7, 8, 9)]
    rows[1]["gt_images"][0] = mrag_picture(5, 99, kind="WEBP")  # lossy: another image
    folder = write_mrag_rows(tmp_path / "rows", [rows])
    benchmark = load_mrag_bench(folder, cache_dir=tmp_path / "store")
    assert len(benchmark.corpus) == 15
    assert sorted(benchmark.corpus)[0].startswith("row-")


def test_matches_stay_until_a_change(tmp_path, capsys):
    rows = [mrag_row(0), mrag_row(1)]
    corpus = corpus_of(tmp_path / "corpus", rows)
    folder = write_mrag_rows(tmp_path / "rows", [rows])
    first = load_mrag_bench(folder, corpus, cache_dir=tmp_path / "store")
    (shard,) = folder.iterdir()
    stat, whole = shard.stat(), shard.read_bytes()
    for content in (bytes(stat.st_size), whole):  # the zeros are read by nobody
        shard.write_bytes(content)
        os.utime(shard, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        capsys.readouterr()
        again = load_mrag_bench(folder, corpus, cache_dir=tmp_path / "store")
        assert again.fingerprint == first.fingerprint
        assert capsys.readouterr().out == ""
        shard.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(VragError, match="cut short"):
            load_mrag_bench(folder, corpus, cache_dir=tmp_path / "store")


def test_bad_rows_and_files_are_refused_and_the_check_names_all(tmp_path):
    """The other cases are in bad_inputs.csv."""
    store, lacking = tmp_path / "store", mrag_row(0)
    del lacking["gt_images"]
    other = write_mrag_rows(tmp_path / "other", [[lacking]])
    for places, words in (
        ([other], "'gt_images'"),
        ([tmp_path], r"\*\.parquet"),
        ([other, tmp_path], "no images"),
    ):
        with pytest.raises(VragError, match=words):
            load_mrag_bench(*places, cache_dir=store)
    rows = [mrag_row(0), mrag_row(1, gt_images=[mrag_picture(k) for k in (3, 3, 4, 5, 6)])]
    corpus = corpus_of(tmp_path / "corpus", rows)
    (corpus / "1_gt_2.png").write_bytes(b"\x89PNG broken")
    bad = [mrag_row(0), mrag_row(2, gt_images=[b"\x89PNG not"] * 5), mrag_row(3, answer="fox")]
    folder = write_mrag_rows(tmp_path / "rows", [rows, bad], 3)
    with pytest.raises(VragError, match="2 shards of 3"):
        load_mrag_bench(folder, corpus, cache_dir=store)
    found = find_problems(folder, corpus)
    told = found["location"] + ": " + found["message"]
    for words in ("id '0' came before", "not a readable", "'fox'", "one image occurs twice"):
        assert told.str.contains(words).any(), words
    assert set(found["kind"]) == {"row", "missing", "damaged", "odd"}
    shard = folder / "test-00001-of-00003.parquet"
    shard.write_bytes(shard.read_bytes()[:-100])
    assert find_problems(folder)["message"].str.contains("cut short").any()
