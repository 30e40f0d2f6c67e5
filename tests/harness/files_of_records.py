"""Records of claims, figures, arrays, identifications and certificates, for the harness."""

import numpy as np

import mutants
import stored_records as stored
from harness.files import Kind, data_text, report, text
from mesascope.records import CertificateFile, RunDirectory, read_along, read_identification


def claim(tmp):
    folder = stored.run_directory(tmp / "run", stored.claim(), stored.claim("zheng2024/other", seconds=2.0))
    run, name = RunDirectory(folder), "zheng2024/theorem-4.1"
    file = folder / f"claims/{name}.json"
    return Kind(file, lambda: text(run.read_claim(name)), mutants.resealed_record, command=report(file))


def figure(tmp):
    name = "zheng2024/curves"
    figures = {name: stored.curves_figure(), "zheng2024/map": stored.map_figure()}
    folder = stored.run_directory(tmp / "run", stored.claim(), figures=figures)
    run, file = RunDirectory(folder), folder / f"figures/{name}.json"
    return Kind(file, lambda: text(run.read_figure(name)), mutants.resealed_record, command=report(folder))


def data(tmp):
    run = RunDirectory.create(tmp / "run")
    time = np.linspace(0, 1, 5)
    arrays = {
        "time": ("time", time),
        "z": (("time", "k"), np.ones((5, 2)) * 1j),
        "name": ("time", np.array(list("abcde"))),
    }
    run.write_data("curves", arrays | {"s": ((), 3.5)}, {"note": "a", "n": 3})
    return Kind(tmp / "run/data/curves.nc", lambda: data_text(run.read_data("curves")), mutants.resealed_data)


def identification(tmp):
    file = stored.identification(tmp) / "identification.json"
    return Kind(file, lambda: text(read_identification(file)), mutants.resealed_record, command=report(file))


def certificate(tmp):
    file = stored.certificate(tmp / "c.json")
    return Kind(file, lambda: text(CertificateFile(file).record), mutants.changed_json, False, report(file))


def along(tmp):
    file = stored.along(tmp) / "along.json"
    return Kind(file, lambda: text(read_along(file)), mutants.resealed_record, command=report(file))


RECORDS = (claim, figure, data, identification, along, certificate)
