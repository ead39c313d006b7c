"""What families of Hugging Face models keep from call to call: facts of the library, by names that scripts use."""

from __future__ import annotations

import re

from auditor.places import Site, here
from auditor.values import Unknown

_KEEP_MORE = """
bamba falconh1 falconmamba granitemoehybrid hymba jamba kimilinear lfm2 lfm2moe lfm2vl mamba mamba2 minimax minimaxm1
minimaxtext01 nemotronh olmohybrid plamo2 qwen35 qwen35moe qwen35moetext qwen35text qwen3next recurrentgemma retnet
rwkv rwkv7 transfoxl xlnet xlstm zamba zamba2
"""
_HYBRID = frozenset(_KEEP_MORE.split())
"""Families whose layers keep more than keys and values: convolutions, recurrences, linear attention, hidden states."""

_KEEP_KEYS = """
afmoe apertus arcee aria ariatext baichuan bart bert bertgeneration bigbird bigbirdpegasus biogpt bitnet blenderbot
blenderbotsmall bloom camembert chatglm codegen codellama cohere cohere2 cohere2moe cpmant ctrl cwm data2vectext dbrx
deepseek deepseekv2 deepseekv3 diffllama doge dots1 electra emu3 ernie ernie45 ernie45moe exaone exaone4 falcon
flexolmo fuyu gemma gemma2 gemma3 gemma3n gemma3ntext gemma3text gemma4 gemma4text glm glm4 glm4moe glm4moelite
gotocr2 gpt2 gptbigcode gptj gptneo gptneox gptneoxjapanese gptoss granite granitemoe granitemoeshared helium
hunyuandensev1 hunyuanmoev1 hunyuanv1dense hunyuanv1moe internlm internlm2 internlm3 jais jetmoe llama llama4
llama4text longcatflash m2m100 marian mbart megatronbert minicpm minicpm3 minimaxm2 ministral ministral3 mistral
mistral3 mistral4 mixtral mllama mllamatext moshi mpt musicgen mvp nanochat nemotron olmo olmo2 olmo3 olmoe openaigpt
openelm opt pegasus persimmon phi phi3 phi3small phi4multimodal phimoe plbart prophetnet qwen qwen2 qwen25vltext
qwen2moe qwen2vltext qwen3 qwen3moe qwen3vlmoetext qwen3vltext rembert roberta robertaprelayernorm rocbert roformer
seedoss smollm smollm3 solar solaropen stablelm starcoder2 trocr vaultgemma whisper xglm xlmroberta xlmrobertaxl xmod
youtu
"""
_ATTENTION = frozenset(_KEEP_KEYS.split())
"""Families whose layers keep keys and values, or a latent of them, and nothing else."""

_HYBRID_NAMES = re.compile(
    r"jamba|mamba|bamba|zamba|hymba|rwkv|xlstm|retnet|deltanet|hyena|recurrent-?gemma|lfm-?2|plamo-?2|qwen-?3\.?-?next"
    r"|qwen-?3[._][5-9]|falcon-?h1|nemotron-h|nvidia-nemotron-nano|nemotron-3|kimi-linear|minimax-(?:text|m1|01)"
    r"|granite-4[\d.]*-h\b|olmo-?hybrid|phi-4-mini-flash"
)
_ATTENTION_NAMES = re.compile(
    r"llama|mi[sn]tral|mixtral|qwen|qwq|gemma|(?:^|-)phi(?:-|\d)|gpt|(?:^|-)opt-|bloom|falcon|smollm|vicuna|alpaca|zephyr"
    r"|deepseek|(?:^|-)yi-|stable-?lm|star-?coder|code-?gen|pythia|olmo|granite|command-r|(?:^|-)aya-|internlm|baichuan"
    r"|glm|exaone|minicpm|mpt-|dolly|redpajama|openelm|xglm|solar|arcee|helium|ernie|hunyuan|jais|persimmon|biogpt"
    r"|nemotron|apertus|seed-oss|bitnet|minimax-m2|hermes|dolphin|wizard|orca|wordllama|cerebras|galactica"
)
_SIZE = re.compile(r"(?:^|[^a-z0-9])\d+(?:[._]\d+)?[bm](?:$|[^a-z0-9])")
"""A number of parameters in the name of a checkpoint: it is one that is published under the name of its family."""


def other_states(family: str, site: Site | None) -> Unknown | None:
    """Why nothing is known of a model of this family, by its `model_type` or the beginning of its class names."""
    return _keeps_more(family, site) if _plain(family) in _HYBRID else None


def of_checkpoint(name: str, site: Site | None) -> Unknown | None:
    """The same for the family that the name of a checkpoint says."""
    found = _HYBRID_NAMES.search(_last(name))
    return _keeps_more(found.group(), site) if found else None


def not_listed(family: str, site: Site | None) -> Unknown | None:
    """Why it is not known what a model of this family keeps; None for those that keep keys and values."""
    listed = not family or _plain(family) in _ATTENTION
    return None if listed else _unlisted(family, site)


def checkpoint_not_listed(name: str, site: Site | None) -> Unknown | None:
    """The same for the family that the name of a checkpoint says; one that says none (a path, say) is passed over."""
    last = _last(name)
    said = "*" not in name and _SIZE.search(last) is not None
    return _unlisted(name, site) if said and not _ATTENTION_NAMES.search(last) else None


def _keeps_more(family: str, site: Site | None) -> Unknown:
    what = f"a Hugging Face model of the family `{family}` keeps other states than keys and values"
    return Unknown(what, "from_pretrained", places=here(site))


def _unlisted(family: str, site: Site | None) -> Unknown:
    what = f"whether a Hugging Face model like `{family}` keeps nothing but keys and values is not known"
    return Unknown(what, "from_pretrained", places=here(site))


def _plain(family: str) -> str:
    return re.sub(r"[^a-z0-9]", "", family.lower())


def _last(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2].lower().replace("_", "-")
