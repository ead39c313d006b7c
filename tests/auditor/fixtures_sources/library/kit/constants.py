KEY_CACHE = "key_cache"
VALUE_CACHE = "value_cache"

STATE_NAMES = (KEY_CACHE, VALUE_CACHE)

INPUT_IDS = "input_ids"
POSITION_IDS = "position_ids"

LOGITS = "logits"

MAX_CONTEXT = 4096
