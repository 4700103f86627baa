"""What users write, read into objects: policies and noises in words, classes in files, data in CSV."""
