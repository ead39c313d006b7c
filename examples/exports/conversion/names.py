"""The names that the runtime sees."""

KV_STATE_NAMES = ("keyCache", "valueCache")
HYBRID_STATE_NAMES = (*KV_STATE_NAMES, "convState", "recState")
INPUT_NAMES = ["input_ids", "position_ids"]
OUTPUT_NAMES = ["logits"]
