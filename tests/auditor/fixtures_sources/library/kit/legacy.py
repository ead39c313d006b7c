def old_export():
    return None
