"""Which class a checkpoint is loaded into: one of the sources by its name, or the one that the library chooses."""

from __future__ import annotations

from auditor.expressions.text import format_value
from auditor.interpreter import Interpreter
from auditor.objects.inheritance import OBJECT
from auditor.places import Site, here
from auditor.torch.modules import MODULE
from auditor.values import NONE, Args, Method, NativeClass, Unknown, Value

CHECKPOINT = "the checkpoint's config.json decides"


def config(site: Site | None, it: Interpreter | None = None, args: Args | None = None) -> Unknown:
    """The configuration of the checkpoint that the call names; one that is not at hand is unknown."""
    if it is not None and args is not None:
        for given in args.all():
            found = it.loader.checkpoints.config(format_value(given, "", None))
            if found is not None:
                return found
    return Unknown(CHECKPOINT, "config", "data", places=here(site))


def registered(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`AutoModel.register(config, cls)`: the class stays as it is; which one a checkpoint gives is not known then."""
    places = here(site)
    it.registered = it.registered or Unknown(
        "a class of its own is registered for checkpoints", "register", places=places
    )
    return NONE


def chosen(handler: Method) -> Method:
    """`handler` as long as no class is registered that a checkpoint may ask for in place of the library's."""

    def run(it: Interpreter, args: Args, site: Site | None) -> Value:
        return it.registered or handler(it, args, site)

    return run


def _generate(it: Interpreter, args: Args, site: Site | None) -> Value:
    return Unknown("what a model generates", "generate()", places=here(site))


GENERATES = NativeClass("transformers.GenerationMixin", {"generate": _generate}, (OBJECT,), closed=True)
"""Adds ways to generate to a model, and nothing that an export meets."""


def _own(it: Interpreter, args: Args, site: Site | None) -> Value:
    """`Model.from_pretrained(name)` of a class of the sources: it is made from the checkpoint's configuration.

    What does not say how to load, the class may read, or the configuration is changed by it.
    """
    cls, given = args.pos[0], args.kw.get("config")
    if args.more is not None or not _LOADS.issuperset(args.kw) or len(args.pos) > 2:
        what = "settings of a model that its checkpoint is loaded with"
        return Unknown(what, "from_pretrained", places=here(site))
    named = Args(args.pos[1:2])
    return it.call(cls, Args([given if given is not None else config(site, it, named)]), site)


_HOW = (
    "config torch_dtype dtype device_map low_cpu_mem_usage trust_remote_code local_files_only attn_implementation "
    "cache_dir token use_auth_token revision subfolder use_safetensors variant weights_only quantization_config "
    "force_download pretrained_model_name_or_path"
)
_LOADS = frozenset(_HOW.split())


OWN = NativeClass("transformers.modeling_utils.PreTrainedModel", {"from_pretrained": _own}, (MODULE,))
