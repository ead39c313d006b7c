"""What families of Hugging Face models keep from call to call: facts of the library, by names that scripts use."""

from __future__ import annotations

import re
from dataclasses import dataclass

from auditor.places import Site, here
from auditor.values import Args, NativeClass, Unknown, text_of

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


@dataclass(frozen=True, slots=True)
class Family:
    """What a call says of the family of the model that it makes: names of families, else that of a checkpoint."""

    names: tuple[str, ...]
    checkpoint: str = ""

    def keeps_more(self, site: Site | None) -> Unknown | None:
        """Why nothing is known of a model of this family: it keeps other states."""
        said = [n for n in self.names if _plain(n) in _HYBRID]
        said += [found.group() for found in [_HYBRID_NAMES.search(_last(self.checkpoint))] if found is not None]
        what = "a Hugging Face model of the family `{}` keeps other states than keys and values"
        return Unknown(what.format(said[0]), "from_pretrained", places=here(site)) if said else None

    def is_unlisted(self, site: Site | None) -> Unknown | None:
        """Why it is not known what it keeps; a checkpoint that says no family (a path, say) is passed over."""
        said = [n for n in self.names if _plain(n) not in _ATTENTION]
        last = _last(self.checkpoint)
        if "*" not in last and _SIZE.search(last) and not _ATTENTION_NAMES.search(last):
            said.append(self.checkpoint)
        what = "whether a Hugging Face model like `{}` keeps nothing but keys and values is not known"
        return Unknown(what.format(said[0]), "from_pretrained", places=here(site)) if said else None


def told(args: Args, config: Unknown) -> Family:
    """The family that a model is of, by its configuration, its class and the name of its checkpoint."""
    cls = args.pos[0]
    named = _HEADS.split(cls.name.rpartition(".")[2])[0] if isinstance(cls, NativeClass) else ""
    kind = text_of(config.child(".model_type")) or ("" if named.startswith("Auto") else named)
    made = config.name.partition("Config")  # `AutoModelForCausalLM.from_config(JambaConfig())`
    names = tuple(filter(None, (kind, made[0] if made[1] else "")))
    given = args.get(1, "pretrained_model_name_or_path")
    return Family(names) if names or given is None else Family((), text_of(given) or "")


_HEADS = re.compile("For|LMHead|Model$")


def _plain(family: str) -> str:
    return re.sub(r"[^a-z0-9]", "", family.lower())


def _last(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2].lower().replace("_", "-")
