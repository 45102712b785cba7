"""Builders of logical nodes: arguments checked, each rule with its own message."""
