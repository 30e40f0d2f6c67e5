"""`mesascope certify`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import FlagCreatePairsOff, Positional, arg

from ._interrupt import stopped_by_interrupts
from ._output import DONE, FAILED, InputError, compute_in_64_bits, in_file, print_json, progress, results, say
from ._plugin import PluginOption

if TYPE_CHECKING:
    from mesascope.records import CertificateRecord
    from mesascope.studies import CertifyModelSpec, CertifySpec


@dataclass(frozen=True)
class Certify(PluginOption):
    """Prove which critical point gradient flow ends at, and its kind.

    The flow is solved in floating point; every statement is proved with rational and
    interval arithmetic, from the loss alone.

    Write numbers as integers, or as fractions or decimals in quotes: "1/10", "0.1".

    Exit status: 0 proved, 1 not proved (which does not mean false), 2 bad input or a
    certificate that cannot be proved.
    """

    spec: Annotated[Positional[str | None], arg(metavar="[SPEC]", help_behavior_hint="")] = None
    """TOML or JSON file with law, dim, horizon, init, or process, examples and model; - reads
    standard input."""
    out: Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Write the certificate: centre, radius, bounds, statement."""
    check: Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Prove a certificate again, without solving the flow; instead of SPEC."""
    json: FlagCreatePairsOff[bool] = False
    """Print one JSON object: proved, reason, statement, radius, unique_within, positive, negative,
    zero, loss, products, theorem, weights, spec, provenance."""

    def run(self) -> int:
        """Prove, print and write; return the exit status."""
        if (self.spec is None) == (self.check is None):
            raise InputError("give either SPEC, or --check FILE; see mesascope certify --help")
        if self.check is not None:
            if self.out is not None:
                raise InputError("--check writes nothing; leave out --out")
            return self._checked(self.check)
        if self.out is not None and not self.out.strip():
            raise InputError("--out is empty; name a file")
        return self._proved(str(self.spec))

    def _proved(self, file: str) -> int:
        from mesascope.dynamics.certificates import NotProvedError
        from mesascope.records import RecordError, write_certificate
        from mesascope.studies import certify_spec, read_spec

        reason = None
        with in_file(file):
            spec = read_spec(file, certify_spec)
            if self.out is not None:
                _refuse_output(self.out)
            compute_in_64_bits()
            try:
                with stopped_by_interrupts():
                    record = self._solved(spec)
            except NotProvedError as error:
                reason = str(error)
        if reason is not None:
            if self.json:
                print_json({"proved": False, "reason": reason, "statement": None, "radius": None})
            say(f"mesascope certify: not proved: {reason}")
            return FAILED
        if self.out is not None:
            try:
                write_certificate(self.out, record)
            except RecordError as error:
                self._show(record, file=None)  # so that the result is not lost
                say(f"mesascope certify: {error}")
                return FAILED
        self._show(record, file=self.out)
        return DONE

    def _solved(self, spec: "CertifySpec | CertifyModelSpec") -> "CertificateRecord":
        console = progress()
        if console.quiet:
            return spec.run()
        with console.status("compiling") as status:
            return spec.run(lambda now: status.update(f"flow: {now.describe()}"))

    def _checked(self, file: str) -> int:
        from mesascope.studies import check_certificate

        compute_in_64_bits()
        with stopped_by_interrupts():
            self._show(check_certificate(file), file=None)
        return DONE

    def _show(self, record: "CertificateRecord", file: str | None) -> None:
        if self.json:
            found = record.model_dump(mode="json", exclude={"format"})
            print_json({"proved": True, "reason": None, **found, "statement": " ".join(record.statement)})
            return
        console = results()
        console.print("proved", style="bold green")
        for sentence in record.statement:
            console.print(sentence, markup=False)
        if file is not None:
            print(file)


def _refuse_output(out: str) -> None:
    """Refuse, before computing, a path that cannot be written, or a file that would be lost."""
    from mesascope.records import CertificateFile, RecordError, prepare_replacement

    path = Path(out)
    if path.is_file():
        try:
            CertificateFile(path)
        except RecordError:
            raise InputError(
                f"--out {out} exists and is not a certificate; name another file, or remove it"
            ) from None
    prepare_replacement(path)
