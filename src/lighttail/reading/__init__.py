"""Reads the input of users: policies and noises in words, classes in files, and data in CSV files."""
