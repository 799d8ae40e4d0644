"""Formats of files and of data in them: Hadoop's (XML, TFile, Writables) and ours (JSON, YAML)."""
