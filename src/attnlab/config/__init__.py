"""From a composed config to objects: what is allowed, how it is checked, how it is built, and its
identity.
"""
