"""narrlit data sample: files as packaged, and no other file replaced."""

from narrlit.data.tales import TABLE, sample_tales


def test_sample_writes_a_file_per_tale_and_the_table_and_may_be_repeated(narrlit, tmp_path):
    for _ in range(2):
        found = narrlit("data", "sample", "tales")
        assert found.code == 0
        assert "narrlit index tales --out tales.index" in found.err

    assert len(list((tmp_path / "tales").iterdir())) == 25
    for tale in sample_tales():
        assert (tmp_path / "tales" / tale["file_name"]).read_text(encoding="utf-8") == tale["text"] + "\n"
    assert (tmp_path / "tales" / "tales.csv").read_bytes() == TABLE.read_bytes()


def test_sample_does_not_replace_a_file_of_the_same_name(narrlit, tmp_path):
    (tmp_path / "tales").mkdir()
    (tmp_path / "tales" / "tales.csv").write_text("title\nmine\n")
    found = narrlit("data", "sample", "tales")

    assert found.code == 2
    assert "tales.csv exists with other content" in found.err
    assert [path.name for path in (tmp_path / "tales").iterdir()] == ["tales.csv"]

    (tmp_path / "file").write_text("mine")
    assert narrlit("data", "sample", "file").code == 2
