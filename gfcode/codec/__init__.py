"""Codecs: encode, decode, reconstruct, verify and update blocks in memory."""

from gfcode.codec.plan import Plan
from gfcode.codec.preset_codec import PresetCodec, UncertifiedWarning
from gfcode.codec.progressive import ProgressiveEncoder
from gfcode.codec.ranges import Read, RepairPlan
from gfcode.codec.reed_solomon import Codec
from gfcode.codec.spans import VerifyReport

__all__ = [
    "Codec",
    "Plan",
    "PresetCodec",
    "ProgressiveEncoder",
    "Read",
    "RepairPlan",
    "UncertifiedWarning",
    "VerifyReport",
]
