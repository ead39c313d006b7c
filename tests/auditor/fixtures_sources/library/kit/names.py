def bundle_name(model, mode):
    return f"{model}_{mode}"
