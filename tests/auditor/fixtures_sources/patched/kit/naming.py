def bundle_name(model, mode):
    return f"{model}_decode_{mode}"
