"""How each decision is said."""

from __future__ import annotations

from dataclasses import dataclass

from rules.decision import Decision


@dataclass(frozen=True, slots=True)
class Words:
    """How a decision is said: `tone` chooses a colour and `mark` a sign, which never stand without the words."""

    title: str
    short: str
    mark: str
    tone: str
    todo: str


DECISIONS = {
    Decision.CONFIRMED: Words(
        "Eligible and confirmed",
        "confirmed",
        "●",
        "good",
        "A probe on a device agrees with the source. Drafting can ship, with a K that pays.",
    ),
    Decision.CONFIRMED_ELSEWHERE: Words(
        "Eligible, confirmed off the device",
        "confirmed off device",
        "◕",
        "good",
        "The program does what the source says. No device has run it: probe one before shipping.",
    ),
    Decision.SETTLED: Words(
        "Unresolved in the source, confirmed by a probe",
        "confirmed, source unresolved",
        "◑",
        "good",
        "The shipped bundle can draft. The next export may not: settle the cited line.",
    ),
    Decision.PARTLY: Words(
        "Eligible, partly probed",
        "partly probed",
        "◔",
        "warn",
        "A probe found nothing against it and did not check everything.",
    ),
    Decision.UNPROBED: Words(
        "Eligible, unprobed",
        "unprobed",
        "○",
        "warn",
        "The source has all three properties. Probe the bundle before shipping.",
    ),
    Decision.REFUTED: Words(
        "Refuted by a probe",
        "refuted",
        "⊗",
        "bad",
        "The source speaks for it or does not tell, and the bundle failed. Do not draft with it.",
    ),
    Decision.CONTRADICTED: Words(
        "Out in the source, confirmed by a probe",
        "contradicted",
        "≠",
        "bad",
        "The bundle is not what this source exports, or one of the two was misread. Find out before shipping.",
    ),
    Decision.SECOND_BUNDLE: Words(
        "Out, but the same run exports an eligible bundle",
        "ship the other bundle",
        "⇄",
        "warn",
        "Ship the other bundle of the run, after a probe.",
    ),
    Decision.FLAG: Words(
        "Out, fixable by a flag", "fixable by a flag", "⚑", "warn", "Export again with the flag changed, then probe."
    ),
    Decision.LINE: Words(
        "Out, fixable by a line", "fixable by a line", "✎", "warn", "Change the cited line, export again, then probe."
    ),
    Decision.OUT: Words("Out", "out", "✕", "bad", "No known change of a flag or a line makes it eligible."),
    Decision.UNRESOLVED: Words(
        "Unresolved", "unresolved", "?", "mute", "Not a pass: the cited line is where knowledge ended."
    ),
    Decision.NO_DECODER: Words(
        "Not a decoder", "not a decoder", "–", "mute", "Encoders, towers, vocoders: drafting does not apply."
    ),
}
