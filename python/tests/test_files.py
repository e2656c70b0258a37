# SPDX-License-Identifier: Apache-2.0
"""Names of files, and files that are replaced as a whole."""
import os
from pathlib import Path

import braintrace_cpp as bt
import pytest


@pytest.fixture
def learner():
    return bt.compile(bt.nn.GRUCell(3, 4), bt.D_RTRL, bt.zeros(3))


@pytest.fixture
def run():
    net = bt.nn.Sequential(bt.nn.GRUCell(1, 4), bt.nn.Linear(4, 1))
    return bt.TrainingRun(bt.tasks.integrator(steps=5), net, "d_rtrl", bt.Adam(), batch=2)


@pytest.mark.parametrize("name", [None, 3, "x\0y", b"x\0y", ["x"]])
def test_what_is_no_name_of_a_file_is_refused(name, learner, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    calls = [learner.save, learner.load, run.save, run.load, bt.load_checkpoint, bt.data.read_npy]
    for call in calls:
        with pytest.raises(bt.UserTypeError, match="FileName"):
            call(name)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["plain", Path("path"), b"bytes", os.fsdecode(b"no\xffutf8")])
def test_every_name_python_opens_is_taken(name, learner, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    learner.save(name, step=7)
    assert os.listdir(b".") == [os.fsencode(name)]
    assert learner.load(name) == 7
    run.save(name)
    assert run.load(name) == 0


def test_names_that_are_no_text_are_told():
    with pytest.raises(bt.UserError, match=r"no\\xffutf8"):
        bt.load_checkpoint(os.fsdecode(b"/nowhere/no\xffutf8"))


def export(learner, out):
    return bt.export_learner(learner, lambda x: bt.sum(learner(x)), bt.zeros(3), out=out)


def test_headers_and_pages_that_cannot_be_written_are_user_errors(learner, run, tmp_path):
    for write in (lambda path: export(learner, path), run.report):
        with pytest.raises(bt.UserRuntimeError, match="/nowhere/file"):
            write("/nowhere/file")
        with pytest.raises(bt.UserError):
            write(tmp_path)


def test_headers_and_pages_replace_a_file_as_a_whole(learner, run, tmp_path):
    for write in (lambda path: export(learner, path), run.report):
        path = tmp_path / "file"
        path.write_text("old")
        before = os.stat(path).st_ino
        text = write(path)
        assert path.read_text(encoding="utf-8") == text
        assert os.stat(path).st_ino != before  # a new file under the old name
        assert os.listdir(tmp_path) == ["file"]
